"""The part of docs/accuracy.md about several ranks, from literal outcomes."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.blind.outcomes import Answer
from fixtures.blind_ranks import figures, page
from fixtures.blind_ranks.clocks import ClockAnswer
from fixtures.blind_ranks.outcomes import RanksOutcome
from fixtures.blind_ranks.shares import HYPOTHESES, LATE_RANK, TRANSFER

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "accuracy.py"))


def outcome(seed: int, *answers: Answer, **other: Any) -> RanksOutcome:
    fields: dict[str, Any] = {"form": "kineto", "complete": False, "windows": 5, "problem": "", "ranks": 4}
    fields |= {"missing": (), "split_anyway": 0, "cause": "late-rank-host", "turns": False}
    fields |= {"late_rank": 2, "named_rank": 2, "reported_rank": 2, "clocks": ()}
    return RanksOutcome(seed=seed, answers=answers, **fields | other)


LATE = Answer(LATE_RANK, 0.30, True, "supported", 0.3, 0.2, 0.4)
SLOW = Answer(TRANSFER, 0.20, True, "inconclusive", 0.1, 0.05, 0.15)
NEAR = ClockAnswer(1, 1_000, 0, 1_200, (900, 1_500), 300)
RIGHT = outcome(7, LATE, clocks=(NEAR, replace(NEAR, rank=2, offset_ns=1_900)))
UNBOUND = replace(NEAR, interval_ns=None)
MISNAMED = outcome(8, LATE, named_rank=1, clocks=(UNBOUND,))
TURNING = outcome(9, LATE, cause="late-rank-work", turns=True, named_rank=None)
SLOW_LINK = outcome(10, SLOW, cause="slow-link", clocks=(replace(NEAR, rest_ns=200),))
WITHOUT = outcome(11, replace(LATE, verdict="inconclusive", due=False), missing=(3,), split_anyway=0)
ALL = [RIGHT, MISNAMED, TURNING, SLOW_LINK, WITHOUT]


def test_a_set_is_shown_with_what_only_several_ranks_have() -> None:
    shown = page.tables(ALL)
    assert "| right where a cause holds at least 15 % | 3 of 4 (75.0 %) | 95 % |" in shown
    assert "| split although a rank's file is missing | 0 of 1 (0.0 %) | 0 |" in shown
    assert "| one rank is late: named in the most calls | 1 of 2 (50.0 %) | - |" in shown
    assert "| one rank is late: reported first | 2 of 2 (100.0 %) | - |" in shown
    assert "| another one each time: named in the most calls | 0 of 1 (0.0 %) | - |" in shown
    assert "Another rank than the late one was named in seed 8 (rank 1 for rank 2)." in shown
    row = "| no rest of a device shift | 3 | 2 | 2 of 2 (100.0 %) | 2 of 3 (66.7 %) | 0.2 us | 0.9 us |"
    assert row in shown
    assert "| `slow-link` | 1 | 1 | 0 of 1 (0.0 %) | 0 of 1 (0.0 %) | 0 | 0 |" in shown
    assert {f"`{name}`" for name in HYPOTHESES} <= {line.split(" | ")[0].strip("| ") for line in shown}


def test_a_rest_of_a_device_shift_is_counted_by_itself() -> None:
    shown = "\n".join(page.clocks([SLOW_LINK]))
    assert "| no rest of a device shift | 0 | 0 | 0 of 0 | 0 of 0 | - | - |" in shown
    assert (
        "| a rest is left: between the devices' clocks | 1 | 1 | 1 of 1 (100.0 %) | 1 of 1 (100.0 %) | 0.0 us"
        in shown
    )
    assert (
        "| the same ranks: between the hosts' clocks | 1 | 1 | 1 of 1 (100.0 %) | 1 of 1 (100.0 %) | 0.2 us"
        in shown
    )


def test_captures_without_a_path_are_told_from_those_left_out() -> None:
    why = "no hypothesis on the global path"
    unmeasured = replace(LATE, verdict="unmeasured", value=None, low=None, high=None)
    shown = page.tables([RIGHT, outcome(8, unmeasured, problem=why), outcome(9, problem=why)])
    assert f"Left out: 1, {why}." in shown
    assert f"Unmeasured as a whole: 1, {why}." in shown
    assert "| right where a cause holds at least 15 % | 1 of 2 (50.0 %) | 95 % |" in shown


def test_late_ranks_count_where_they_are_felt_and_can_be_known() -> None:
    weak = outcome(12, replace(LATE, truth=0.04))
    staggered = outcome(13, LATE, cause="host-stagger")
    unknown = outcome(14, problem="no global window")
    assert figures.with_late_rank([*ALL, weak, staggered, unknown], turns=False) == [RIGHT, MISNAMED]
    assert figures.misnamed([RIGHT, MISNAMED]) == [MISNAMED]
    assert figures.split_anyway([*ALL, replace(WITHOUT, split_anyway=1)]) == [
        replace(WITHOUT, split_anyway=1)
    ]


def test_the_held_out_set_waits_and_then_names_the_commit_of_its_rules() -> None:
    waiting = page.document(ALL, [RIGHT], None, "abc1234")
    assert waiting.endswith("### Held-out set of several ranks\n\nNot looked at yet.\n")
    assert "abc1234" not in waiting
    looked = page.document(ALL, ALL, [RIGHT], "abc1234").split("### Held-out set")[1]
    assert "with the rules of commit `abc1234`." in looked
    assert "No verdict was wrong." in looked


def test_the_page_in_the_documentation_has_the_part_once(script: dict[str, Any]) -> None:
    one, several = script["halves"]((ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8"))
    assert one.startswith(script["INTRODUCTION"])
    assert several.startswith(page.INTRODUCTION)
    assert several.count(page.TITLE) == 1


def test_a_part_is_renewed_without_the_other(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert script["halves"]("# One\n\ntext\n") == ("# One\n\ntext\n", "")
    both = f"# One\n\ntext\n\n{page.TITLE}\n\nolder\n"
    assert script["halves"](both) == ("# One\n\ntext\n", f"{page.TITLE}\n\nolder\n")
    path = tmp_path / "accuracy.md"
    path.write_text(both)
    names = script["main"].__globals__
    monkeypatch.setitem(names, "DOCUMENT", path)
    monkeypatch.setitem(names, "several_ranks", lambda jobs, held_out: f"{page.TITLE}\n\n{jobs} {held_out}\n")
    monkeypatch.setattr("sys.argv", ["accuracy.py", "--only", "several-ranks", "--jobs", "3"])
    script["main"]()
    assert path.read_text() == f"# One\n\ntext\n\n{page.TITLE}\n\n3 False\n"


def test_held_out_seeds_are_not_shown_by_chance(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy.py", "--only", "several-ranks", "--seeds", "590-600"])
    with pytest.raises(SystemExit):
        script["main"]()
    assert "seeds 600 to 839 are held out" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["accuracy.py", "--seeds", "1"])
    with pytest.raises(SystemExit):
        script["main"]()
    assert script["seed_range"]("7") == range(7, 8)
    assert script["seed_range"]("7-20") == range(7, 21)
