"""Figures and the page of planted truth, from literal answers."""

from __future__ import annotations

import pytest

from fixtures.planted.answer import Answer, figures_of
from fixtures.planted.page import page
from fixtures.planted.terms import PLANTED


def answer(seed: int, truth: float, low: float, high: float, term: str = "alpha") -> Answer:
    return Answer(term, seed, truth, (low + high) / 2, low, high)


def test_an_answer_is_judged_by_its_ends_its_middle_and_its_width() -> None:
    right, wrong = answer(0, 100.0, 98.0, 103.0), answer(1, 100.0, 101.0, 103.0)
    assert (right.holds, right.error, right.width) == (True, pytest.approx(0.005), pytest.approx(0.05))
    assert (wrong.holds, wrong.error, wrong.width) == (False, pytest.approx(0.02), pytest.approx(0.02))
    assert answer(2, 98.0, 98.0, 103.0).holds and answer(3, 103.0, 98.0, 103.0).holds


def test_a_rate_far_below_95_percent_is_rejected_and_so_are_wide_intervals() -> None:
    def held(misses: int) -> list[Answer]:
        low = [101.0 if seed < misses else 98.0 for seed in range(50)]
        return [answer(seed, 100.0, at, 103.0) for seed, at in enumerate(low)]

    found = figures_of(held(3))
    assert (found.n, found.held, found.missed) == (50, 47, (0, 1, 2))
    assert found.fulfilled(0.05) and not found.fulfilled(0.049)
    assert figures_of(held(8)).p_value < 0.01 and not figures_of(held(8)).fulfilled(1.0)


def test_figures_are_of_one_term() -> None:
    with pytest.raises(ValueError, match="unpack"):
        figures_of([answer(0, 1.0, 0.0, 2.0), answer(0, 1.0, 0.0, 2.0, "beta")])
    with pytest.raises(ValueError, match="unpack"):
        figures_of([])


def test_the_page_shows_every_term_with_its_limit() -> None:
    answers = {
        planted.title: [answer(0, 100.0, 99.0, 102.0, term) for term in planted.widths] for planted in PLANTED
    }
    answers["Sweeps"] = [answer(0, 100.0, 10.0, 400.0, term) for term in PLANTED[2].widths]
    text = page(answers)
    for planted in PLANTED:
        for term, width in planted.widths.items():
            (row,) = [line for line in text.splitlines() if line.startswith(f"| `{term}` ")]
            assert f"{100 * width:.0f} %" in row
            assert ("**no**" in row) == (planted.title == "Sweeps")
