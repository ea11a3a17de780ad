"""Output and transport delays planted in token logs: the analyzer's intervals hold and are narrow.

Median width of an interval relative to the planted mean: at most 4 % for the output delay, whose scatter is a small
part of it; at most 60 % for transport above its smallest, an exponential variable of which a case has 20 to 320 draws:
the interval of a mean of 100 of them is 39 % wide.
"""

from __future__ import annotations

import pytest

from fixtures.planted.answer import SEEDS, Answer, figures_of
from fixtures.planted.output_delay import OUTPUT, TRANSPORT, answers_of

MOST_WIDTH = {OUTPUT: 0.04, TRANSPORT: 0.6}


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    return [answer for seed in SEEDS for answer in answers_of(seed)]


@pytest.mark.parametrize("term", [OUTPUT, TRANSPORT])
def test_intervals_of_planted_delays_hold(answers: list[Answer], term: str) -> None:
    figures = figures_of([answer for answer in answers if answer.term == term])
    assert figures.fulfilled(MOST_WIDTH[term]), figures
