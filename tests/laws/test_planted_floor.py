"""Planted floors and rates, found again through writer, reader and analyzer."""

from __future__ import annotations

from functools import cache

import pytest

from fixtures.planted.answer import SEEDS, Answer, figures_of
from fixtures.planted.floor import answers_of

WIDTHS = {
    "fraction of the floor": 0.10,
    "unexplained": 0.15,
    "near-bandwidth by counters": 0.10,
    "near-bandwidth by ledger, kernels named": 1.1,
    "near-bandwidth by ledger, kernels not named": 1.8,
}
"""Most of the median width of an interval, as a share of the planted value.

Step times vary by up to a third and there are 20 to 50 of them. What a ledger's total proves of kernels that run at 5
to 94 % of the bandwidth is little: both ends are reached by some kernels of that total. Counters tell each kernel.
"""


@cache
def _answers() -> tuple[Answer, ...]:
    return tuple(answer for seed in SEEDS for answer in answers_of(seed))


@pytest.mark.timeout(600 + 10 * len(SEEDS))
@pytest.mark.parametrize("term", list(WIDTHS))
def test_intervals_hold_and_are_narrow(term: str) -> None:
    figures = figures_of([answer for answer in _answers() if answer.term == term])
    assert figures.fulfilled(WIDTHS[term]), figures
