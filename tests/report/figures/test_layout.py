"""What a reader sees: nothing overlaps, nothing is cut off, nothing is too small, whatever the input."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Diagnosis
from analyzer.report.figures import NAMES
from analyzer.report.figures.sheet import Sheet, drawing
from tests.report import builder
from tests.report.figures import tables
from tests.report.figures.tables import layout_problems
from tests.shared import needs_shared, trace_path


def many_steps() -> Diagnosis:
    windows = [builder.window(at, warmup=at >= 1_500) for at in range(1_503)]
    budget = builder.budget(windows=1_500, windows_excluded=3)
    return builder.diagnosis(ranks=[builder.rank(windows=windows)], budget=[budget], detail=tables.DETAIL)


def many_ranks() -> Diagnosis:
    ranks = [builder.rank(number) for number in range(40)]
    budget = [
        builder.budget(p, number, w) for p, w in (("prefill", 1), ("decode", 3)) for number in range(40)
    ]
    return builder.diagnosis(ranks=ranks, budget=budget, detail=tables.DETAIL)


def one_step() -> Diagnosis:
    ranks = [builder.rank(windows=[builder.window(2)])]
    return builder.diagnosis(ranks=ranks, budget=[builder.budget(windows=1)], detail=tables.DETAIL)


INPUTS: dict[str, Callable[[], Analysis]] = {
    "small": tables.analysis,
    "many steps": lambda: tables.analysis(many_steps()),
    "many ranks": lambda: tables.analysis(many_ranks()),
    "one step": lambda: tables.analysis(one_step()),
    "long names": lambda: tables.hostile("wide_kernel_NAME" * 40),
    "no blanks": lambda: tables.hostile("W" * 300),
    "formulas": lambda: tables.hostile(r"$\frac{a}{b$ x_y^z \ % #"),
    "not Latin": lambda: tables.hostile("线程 ядро نواة 🚀 é̸"),
    "controls": lambda: tables.hostile("a\nb\tc\x1b[31m\x00\u202e\udce9"),
    "empty names": lambda: tables.hostile(""),
}


def draw(name: str, analysis: Analysis) -> Sheet:
    sheet = importlib.import_module(f"analyzer.report.figures.{name}").draw(analysis)
    assert isinstance(sheet, Sheet)
    sheet.finish()
    return sheet


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", INPUTS)
def test_no_text_overlaps_or_is_cut_off(kind: str, name: str) -> None:
    with drawing():
        assert layout_problems(draw(name, INPUTS[kind]())) == []


@needs_shared
@pytest.mark.parametrize("path", ["hta-diff/trace_diff_test.json.gz", "nsysai/mfu_2gpu_after.sqlite"])
def test_real_captures_read_well(path: str) -> None:
    analysis = pipeline.analyze(pipeline.read(trace_path(path)))
    for name in NAMES:
        with drawing():
            assert layout_problems(draw(name, analysis)) == []


def test_the_check_itself_sees_an_overlap() -> None:
    with drawing():
        sheet = draw("exposed_time", tables.analysis())
        sheet.figure.text(0.1, 0.5, "one text")
        sheet.figure.text(0.11, 0.5, "over another")
        sheet.figure.text(0.99, 0.1, "beyond the edge")
        sheet.figure.text(0.5, 0.99, "tiny", fontsize=5)
        kinds = {problem.split(":")[0] for problem in layout_problems(sheet)}
    assert kinds == {"overlap", "cut off", "too small"}
