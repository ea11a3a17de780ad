"""Planted prices of collectives through the whole analyzer: intervals hold, and are narrow."""

from __future__ import annotations

from functools import cache

import pytest

from fixtures.planted.alpha_beta import answers_of
from fixtures.planted.answer import SEEDS, Answer, figures_of


@cache
def answers() -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for seed in SEEDS:
        for answer in answers_of(seed):
            found.setdefault(answer.term, []).append(answer)
    return found


@pytest.mark.parametrize("term", ["alpha_ns", "beta_bytes_per_s"])
def test_intervals_hold_the_planted_price(term: str) -> None:
    """At 95 %, and half of them no wider than a tenth of the planted value; half of the estimates within 2 %."""
    figures = figures_of(answers()[term])
    assert figures.n == len(SEEDS)
    assert figures.fulfilled(0.10), figures
    assert figures.median_error <= 0.02, figures
