"""Figures and the page of predictions, from literal outcomes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from fixtures.predictions import HELD_OUT, page
from fixtures.predictions.captures import CaptureAnswer
from fixtures.predictions.case import LEAST_STEPS, case_of
from fixtures.predictions.figures import figures_of
from fixtures.predictions.interventions import INTERVENTIONS
from fixtures.predictions.outcomes import Answer, Outcome
from fixtures.simulator import program as p

ROOT = Path(__file__).resolve().parents[2]


def outcome(seed: int, *answers: Answer, withheld: str = "", ranks: int = 1, level: str = "exact") -> Outcome:
    refused = (("copies=0.5", "fits no device work of the capture"),)
    return Outcome(seed, level, "nsys", ranks, 0.0, withheld, answers, refused)  # type: ignore[arg-type]


def answer(true: float, low: float, high: float, spec: str = "host=0.5") -> Answer:
    return Answer(spec, 100.0, true, low, high, None)


RIGHT = answer(80.0, 78.0, 82.0)
WRONG = answer(50.0, 78.0, 82.0)


def test_an_answer_is_judged_by_its_middle_its_ends_and_its_width() -> None:
    assert (RIGHT.error, RIGHT.holds, RIGHT.width) == (0.0, True, 0.04)
    assert (WRONG.error, WRONG.holds, WRONG.width) == (pytest.approx(0.6), False, 0.04)
    assert answer(82.0, 78.0, 82.0).holds and not answer(82.1, 78.0, 82.0).holds


def test_a_rate_far_below_95_percent_is_rejected_one_near_it_is_not() -> None:
    (row,) = figures_of([outcome(seed, WRONG if seed < 3 else RIGHT) for seed in range(50)])
    assert (row.spec, row.n, row.held, row.missed) == ("host=0.5", 50, 47, (0, 1, 2))
    assert row.fulfilled and row.median_error == 0.0 and row.worst_error == pytest.approx(0.6)
    (row,) = figures_of([outcome(seed, WRONG if seed < 8 else RIGHT) for seed in range(50)])
    assert row.p_value < 0.01 and not row.fulfilled


def test_wide_ranges_and_wrong_middles_do_not_pass() -> None:
    assert not figures_of([outcome(0, answer(80.0, 74.0, 86.0))])[0].fulfilled
    assert not figures_of([outcome(0, answer(80.0, 80.0, 86.0))])[0].fulfilled


def test_withheld_programs_do_not_count_and_rows_stand_in_the_order_of_the_changes() -> None:
    other = answer(80.0, 78.0, 82.0, "no-sync")
    found = figures_of([outcome(0, RIGHT, other), outcome(1, WRONG, withheld="3.1 %")])
    assert [(row.spec, row.n, row.held) for row in found] == [("no-sync", 1, 1), ("host=0.5", 1, 1)]


def test_the_page_shows_every_kind_of_program_and_every_capture() -> None:
    captures = [
        CaptureAnswer("a.sqlite", 10, 9, 9, 0.001, 0.002, ""),
        CaptureAnswer("b.json", 6, 5, 5, 0.05, 0.06, "only within 5.0 %"),
        CaptureAnswer("c.json", 2, 2, 0, None, None, "2 steps"),
    ]
    text = page.document([outcome(0, RIGHT), outcome(1, WRONG, ranks=4, level="hard")], captures, "abc1234")
    assert "| `host=0.5` | 2 |  | 30.00 % | 60.0 % | 1 (50.0 %) | 4.0 % | no |" in text
    assert "Exact programs of one rank: 1." in text and "Hard programs of several ranks: 1." in text
    assert "| `a.sqlite` | 10 | 9 | 0.100 % | 0.200 % | made |" in text
    assert "| `b.json` | 6 | 5 | 5.000 % | 6.000 % | withheld |" in text
    assert text.rstrip().endswith("(steps, used): `c.json` (2, 2).")
    assert "of commit `abc1234`" in text


def test_of_eight_seeds_each_kind_of_program_is_there() -> None:
    kinds = {(case.level, case.ranks > 1, case.form) for case in map(case_of, range(8))}
    assert len(kinds) == 8
    for case in map(case_of, (2, 10)):
        steps = sum(isinstance(op, p.Step) for op in case.program.ranks[0].threads[0].ops)
        assert steps >= LEAST_STEPS and case.ranks in (2, 4)


def test_every_change_stands_once_in_the_table() -> None:
    specs = [one.spec for one in INTERVENTIONS]
    assert len(set(specs)) == len(specs)


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "predictions.py"))


def test_the_page_in_the_documentation_is_the_one_that_the_script_writes(script: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert text.count(page.TITLE) == 1
    assert page.INTRODUCTION in text
    _, title, part = text.partition(page.TITLE)
    assert script["renewed"](text, title + part) == text
    assert script["renewed"]("# One\n\ntext\n", "## New\n") == "# One\n\ntext\n\n## New\n"
    assert "| no |" not in part


def test_held_out_seeds_are_not_shown_by_chance(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["predictions.py", "--seeds", f"{HELD_OUT.start - 1}-{HELD_OUT.start}"])
    with pytest.raises(SystemExit):
        script["main"]()
    assert f"seeds {HELD_OUT.start} to {HELD_OUT.stop - 1} are held out" in capsys.readouterr().err
