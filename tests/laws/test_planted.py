"""Planted truth through the writers, the readers and the whole analyzer: intervals hold, and are narrow."""

from __future__ import annotations

import pytest

from fixtures.planted.answer import SEEDS
from fixtures.planted.page import rows_of
from fixtures.planted.terms import PLANTED, Planted


@pytest.mark.timeout(600 + 12 * len(SEEDS))
@pytest.mark.parametrize("planted", PLANTED, ids=[planted.title for planted in PLANTED])
def test_intervals_hold_and_are_narrow(planted: Planted) -> None:
    """95 of 100 hold (not rejected at 1 %), and the median width is within the limit of each term."""
    answers = [answer for seed in SEEDS for answer in planted.answers_of(seed)]
    assert {answer.term for answer in answers} == set(planted.widths)
    assert not [row for row in rows_of(planted, answers) if not row.fulfilled(planted.widths[row.term])]
