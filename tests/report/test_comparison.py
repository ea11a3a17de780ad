"""COMPARISON.md: the golden report, and what hostile names may not do to it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from analyzer.comparison.result import (
    Comparison,
    Difference,
    GraphUse,
    PlacedWork,
    Replaced,
    ShapeUse,
    WorkChange,
)
from analyzer.report.comparison import render_comparison, terminal_lines
from tests.report.comparison_builder import comparison, work_check
from tests.report.test_markdown import HOSTILE

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "comparison.md"


def named(name: str = "flash_fwd") -> Comparison:
    """Every text of a capture is ``name``."""
    change = WorkChange(
        name=name, kind="kernel", detail=name, change="added",
        calls_a=None, calls_b=32.0, ns_a=None, ns_b=120_000,
    )  # fmt: skip
    other = Difference(what=name, a=name, b=name)
    work = PlacedWork(name=name, kind="kernel", detail=name)
    swap = Replaced(
        a=[work], b=[work, work], change="faster", places=32, after=work,
        calls_a=32.0, calls_b=64.0, ns_a=400_000, ns_b=300_000,
    )  # fmt: skip
    graph = GraphUse(
        phase=name, graph=name, ranks=[0], shapes=[name], replays=50, kernels_per_replay=79.0, share=0.963
    )
    shape = ShapeUse(
        phase=name, shape=name, ran="some steps eager", steps=50, eager_steps=2, eager_outlier_steps=1,
        step_ns=9_000_000, eager_step_ns=20_000_000, other_step_ns=8_500_000, share=0.9,
    )  # fmt: skip
    base = comparison(
        phase=name,
        changes=[change],
        replaced=[swap],
        matched_by="place",
        matched_because=name,
        checks=[other],
        differences=[other],
        undeclared=["batch"],
    )
    sides = {
        side: msgspec.structs.replace(getattr(base, side), inputs=[name], graphs=[graph], shapes=[shape])
        for side in ("a", "b")
    }
    return msgspec.structs.replace(base, notes=[name], **sides)


def test_golden(request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the file; read the difference before you commit it."""
    shown = render_comparison(named())
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.strip()])
def test_hostile_names_change_no_structure(name: str) -> None:
    plain, attacked = render_comparison(named("name")), render_comparison(named(name))
    assert [
        token.type for token in MarkdownIt("commonmark").enable("table").parse(attacked) if token.nesting
    ] == [token.type for token in MarkdownIt("commonmark").enable("table").parse(plain) if token.nesting]
    assert not any(unicodedata.category(char) in {"Cc", "Cf"} and char != "\n" for char in attacked)


def test_what_is_shown_of_the_difference_sums() -> None:
    third = {"kernel": 1_000_333, "copy": 333, "launch.api": 334}
    shown = render_comparison(comparison(a_ns=third, b_ns={name: 2 * ns for name, ns in third.items()}))
    rows = [
        line.split("|") for line in shown.splitlines() if line.startswith(("| kernel", "| copy", "| launch"))
    ]
    total = next(line.split("|") for line in shown.splitlines() if line.startswith("| **sum**"))
    for column in (3, 4, 5):
        parts = sum(round(float(row[column]) * 1000) for row in rows if len(row) == 7)
        assert parts == round(float(total[column]) * 1000)


DIFFERENT = "no speedup is claimed: the work is different"
SHORTER = "step 9.000 -> 8.000 ms: 95 % interval -1.040 to -0.960 ms"
IDENTICAL = "work: identical; A's mean step over B's 1.125x"
RATIO = "(95 % interval 1.120 to 1.130)"


@pytest.mark.parametrize(
    ("found", "answer", "lines"),
    [
        (
            comparison(),
            f"**Work: identical.** A's mean step over B's: **1.125x** {RATIO}.",
            [SHORTER, f"{IDENTICAL} {RATIO}"],
        ),
        (
            comparison(work=work_check("different"), speedup_because=DIFFERENT),
            "**Work: different.** No speedup is claimed: the work is different.",
            [SHORTER, f"work: different; {DIFFERENT}"],
        ),
        (
            comparison(b_ns={"kernel": 8_990_000}),
            "**No difference is shown**: 95 % interval -0.050 to +0.030 ms includes 0.",
            [
                "step 9.000 -> 8.990 ms: no difference is shown (95 % interval -0.050 to +0.030 ms)",
                "work: identical; A's mean step over B's 1.001x (95 % interval 0.997 to 1.006)",
            ],
        ),
        (
            comparison(a_times=[9_000_000]),
            "**No difference is shown**: fewer than 5 steps on one side.",
            ["step 9.000 -> 8.000 ms: no difference is shown (fewer than 5 steps on one side)", IDENTICAL],
        ),
    ],
)
def test_the_answer_comes_first(found: Comparison, answer: str, lines: list[str]) -> None:
    assert answer in render_comparison(found).split("## What was compared")[0]
    assert terminal_lines(found) == lines


def test_an_end_of_the_ratio_is_never_rounded_to_1() -> None:
    shown = render_comparison(comparison(speedup_ci95=(1.00004, 1.2)))
    assert "(95 % interval 1.00004 to 1.200)" in shown
