"""Planted prices of collectives through the whole analyzer: intervals hold, and are narrow."""

from __future__ import annotations

import pytest

from fixtures.planted.alpha_beta import answers_of
from fixtures.planted.answer import SEEDS, Answer, figures_of


@pytest.mark.timeout(3_600)  # 600 cases at night
def test_intervals_hold_the_planted_price() -> None:
    """Of alpha and beta: at 95 %, half of them no wider than a tenth of the planted value, errors of 2 % at most."""
    answers: dict[str, list[Answer]] = {}
    for seed in SEEDS:
        for answer in answers_of(seed):
            answers.setdefault(answer.term, []).append(answer)
    assert sorted(answers) == ["alpha_ns", "beta_bytes_per_s"]
    for found in answers.values():
        figures = figures_of(found)
        assert figures.n == len(SEEDS)
        assert figures.fulfilled(0.10), figures
        assert figures.median_error <= 0.02, figures
