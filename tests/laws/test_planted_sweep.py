"""Slopes of simulated grids, through the writers and the whole analyzer, against what was planted."""

from __future__ import annotations

from functools import cache

import pytest

from fixtures.planted.answer import SEEDS, Answer, figures_of
from fixtures.planted.sweep import ATTENTION, BATCH, CONTEXT, answers_of


@cache
def _answers() -> tuple[Answer, ...]:
    return tuple(answer for seed in SEEDS for answer in answers_of(seed))


@pytest.mark.timeout(300 + 12 * len(SEEDS))
@pytest.mark.parametrize(("term", "widest"), [(CONTEXT, 0.08), (ATTENTION, 0.04), (BATCH, 0.14)])
def test_intervals_hold_the_planted_slopes(term: str, widest: float) -> None:
    """95 of 100 intervals hold (not rejected at 1 %), and half are at most this wide, as a share of the slope.

    8 % over five contexts and 4 % of the attention in it; 14 % over four batch sizes, which make up less of the step.
    """
    figures = figures_of([answer for answer in _answers() if answer.term == term])
    assert figures.fulfilled(widest), figures
