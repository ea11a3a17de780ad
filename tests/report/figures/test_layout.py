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
from tests.report.builder import MS
from tests.report.figures import tables
from tests.report.figures.rank_tables import joint
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


LONG = "W" * 300
HOSTILE = "$\\frac{a}{b$ x_y^z \\ % #\x1b[31m\n线 ядро نواة 🚀 é̸\x00\u202e\udce9"
INPUTS: dict[str, Callable[[], Analysis]] = {
    "small": tables.analysis,
    "many steps": lambda: tables.analysis(many_steps()),
    "many ranks": lambda: tables.analysis(many_ranks()),
    "one step": lambda: tables.analysis(one_step()),
    "long names": lambda: tables.hostile(LONG),
    "hostile names": lambda: tables.hostile(HOSTILE),
    "empty names": lambda: tables.hostile(""),
    "two ranks": lambda: joint(2, late=lambda _: 1, span_ns=10_000),
    "512 ranks": lambda: joint(512, 40, late=lambda call: call * 37 % 512),
    "very many calls": lambda: joint(8, 2_000, late=lambda call: call * 5 % 8, span_ns=10_000 * MS),
    "long names of ranks": lambda: joint(text=LONG),
    "hostile names of ranks": lambda: joint(text=HOSTILE),
    "empty names of ranks": lambda: joint(text=""),
}
WITHOUT_FITS = tuple(name for name in NAMES if name != "collective_price")
OF_ONE_RANK = tuple(name for name in WITHOUT_FITS if name != "rank_timeline")
WITH_NAMES = tuple(name for name in OF_ONE_RANK if name != "launch_and_queue")
OF_RANKS = (
    "two ranks",
    "512 ranks",
    "very many calls",
    *(f"{kind} names of ranks" for kind in ("long", "hostile", "empty")),
)
CASES = [
    *(("small", name) for name in NAMES),
    ("many steps", "budget_over_steps"),
    ("many steps", "launch_and_queue"),
    ("many ranks", "exposed_time"),
    ("one step", "budget_over_steps"),
    *(("long names", name) for name in (*WITH_NAMES, "collective_price")),
    *(("hostile names", name) for name in (*WITH_NAMES, "collective_price")),
    *(("empty names", name) for name in ("timeline", "kernels_on_path")),
    *((kind, "rank_timeline") for kind in OF_RANKS),
]


def draft(name: str, analysis: Analysis) -> Sheet:
    sheet = importlib.import_module(f"analyzer.report.figures.{name}").draw(analysis)
    assert isinstance(sheet, Sheet)
    return sheet


def draw(name: str, analysis: Analysis) -> Sheet:
    sheet = draft(name, analysis)
    sheet.finish()
    return sheet


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_text_overlaps_or_is_cut_off(kind: str, name: str) -> None:
    with drawing():
        assert layout_problems(draw(name, INPUTS[kind]())) == []


@needs_shared
@pytest.mark.parametrize(
    ("path", "drawn"),
    [
        ("nsysai/mfu_2gpu_after.sqlite", WITHOUT_FITS),
        ("tracelens-vllm/vllm_decode_fullgraph.json.gz", OF_ONE_RANK),
        ("odd/cpu_only_gloo_rank34.pt.trace.json.gz", ("budget_over_steps", "timeline")),
        ("astra-megatron-tp8", ("rank_timeline",)),
        ("torchrec-a2a", ("rank_timeline",)),
    ],
)
def test_real_captures_read_well(path: str, drawn: tuple[str, ...]) -> None:
    analysis = pipeline.analyze(pipeline.read(trace_path(path)))
    for name in drawn:
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
