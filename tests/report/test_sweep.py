"""SWEEP.md and its figures: the golden report, hostile names, sums that hold as shown, files whole or not at all."""

from __future__ import annotations

import importlib
import io
import unicodedata
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from PIL import Image

from analyzer.errors import TraceboundError
from analyzer.report.figures import NotDrawn
from analyzer.report.figures.sheet import Sheet, drawing
from analyzer.report.sweep import render_sweep, terminal_lines
from analyzer.report.sweep_figures import NAMES, figures
from analyzer.report.sweep_outputs import write_sweep
from analyzer.sweep import Given, sweep
from analyzer.swept import Sweep
from tests.report.figures.tables import layout_problems
from tests.report.figures.test_palette import too_alike
from tests.report.test_markdown import HOSTILE
from tests.sweep.builder import run

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "sweep.md"


@cache
def _runs() -> tuple[Given, ...]:
    places = ((1_000, 1), (2_000, 1), (4_000, 1), (2_000, 2), (2_000, 4), (4_000, 4))
    return (
        *(run(f"c{c} b{b}", 20 + c // 100 * b, context=c, batch=b, model="m") for c, b in places),
        run("odd", 90, context=8_000, batch=1, model="other"),
        run("unknown", 31, context=1_000, batch=2, cache=None, model="m"),
    )


def grid(name: str = "cell", cache: str = "real-prefix") -> Sweep:
    """A cross of contexts and batches, lines of two points, one cell of another model, one without a cache."""
    told = {"real-prefix": cache, "other": name}
    runs = [
        Given(
            f"{name} {one.name}",
            one.diagnosis,
            {pin: told.get(text, text) for pin, text in one.declared.items()},
        )
        for one in _runs()
    ]
    return sweep(runs, experts=(64, 4))


@cache
def flat() -> Sweep:
    """Two points alone, batch undeclared."""
    return sweep([run(f"c{context}", 60, context=context, batch=None) for context in (1_000, 64_000)])


def test_golden(request: pytest.FixtureRequest) -> None:
    """``pytest --update-golden`` rewrites the file; read the difference before you commit it."""
    shown = render_sweep(grid())
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.strip()])
def test_hostile_names_change_no_structure(name: str) -> None:
    plain, attacked = render_sweep(grid("name", "warm")), render_sweep(grid(name, name))
    parser = MarkdownIt("commonmark").enable("table")
    assert [token.type for token in parser.parse(attacked) if token.nesting] == [
        token.type for token in parser.parse(plain) if token.nesting
    ]
    texts = [attacked, *terminal_lines(grid(name, name))]
    assert not any(unicodedata.category(c) in {"Cc", "Cf"} and c != "\n" for text in texts for c in text)


def test_slopes_as_shown_sum_to_that_of_the_step() -> None:
    found = 0
    for part in render_sweep(grid()).split("### Over ")[1:]:
        rows = [line.split("|") for line in part.split("By kernel class")[0].splitlines() if "|" in line][2:]
        shown = [round(float(row[3].replace(",", "")) * 1_000) for row in rows]
        assert sum(shown[:-1]) == shown[-1]
        found += 1
    assert found == len(grid().lines) == 4


def test_categories_as_shown_sum_to_each_mean_step() -> None:
    section = render_sweep(grid()).split("## Mean step by category")[1]
    rows = [line.split("|")[2:-1] for line in section.splitlines() if line.startswith("|")][2:]
    for column in zip(*rows, strict=True):
        numbers = [round(float(text) * 1_000) for text in column]
        assert sum(numbers[:-1]) == numbers[-1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", [grid, flat])
def test_figures_overlap_nowhere_and_tell_their_parts_apart(case: object, name: str) -> None:
    with drawing():
        sheet = importlib.import_module(f"analyzer.report.sweep_figures.{name}").draw(case())  # type: ignore[operator]
        if isinstance(sheet, str):
            assert case is flat and name != "step_over_context"
            return
        assert isinstance(sheet, Sheet)
        sheet.finish()
        assert layout_problems(sheet) == []
        for _, entries in sheet.legends:
            assert too_alike([entry.fill for entry in entries], 15, 9, 20) == []


def test_a_legend_holds_what_is_drawn() -> None:
    def lines_of(case: Sweep) -> list[str]:
        with drawing():
            sheet = importlib.import_module("analyzer.report.sweep_figures.step_over_context").draw(case)
            return [entry.label for entry in sheet.legends[1][1]]

    both, attention = ["fitted line", "two points: no line"], "attention and KV-cache kernels"
    assert lines_of(grid()) == [*both, attention]
    assert lines_of(flat()) == [both[1], attention]
    three = sweep([run(f"c{context}", 60, context=context) for context in (1_000, 2_000, 64_000)])
    assert lines_of(three) == [both[0], attention]


def test_figures_are_drawn_described_and_the_same_again() -> None:
    found = figures(grid())
    assert (found.not_drawn, [one.name for one in found.drawn]) == ((), list(NAMES))
    for one, again in zip(found.drawn, figures(grid()).drawn, strict=True):
        assert (one.svg, one.png) == (again.svg, again.png)
        assert ET.fromstring(one.svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert Image.open(io.BytesIO(one.png)).size[0] == 1_440
        assert len(one.alt_text) > 60


def test_what_has_nothing_to_show_is_named() -> None:
    assert figures(flat()).not_drawn == (
        NotDrawn("step_over_batch", "no two cells lie at two places of the batch axis with all else equal"),
        NotDrawn(
            "rates", "no two batch sizes were measured at one context, or the phase does not generate tokens"
        ),
    )


def test_a_panel_shows_each_cell_and_the_fitted_line() -> None:
    with drawing():
        sheet = importlib.import_module("analyzer.report.sweep_figures.step_over_context").draw(grid())
        first = sheet.figure.axes[0]
    line = grid().lines[0]
    assert first.get_title("left") == "batch 1\nreal-prefix"
    (fitted,) = (one for one in first.lines if one.get_color() == "#000000")
    ends = [(line.intercept_ns.value + line.slope.value * place / 1_000) / 1e6 for place in (1_000, 4_000)]
    assert list(fitted.get_ydata()) == pytest.approx(ends)


def test_files_appear_whole_and_old_figures_go(tmp_path: Path) -> None:
    write_sweep(grid(), tmp_path, figures(grid()))
    (tmp_path / "sweep" / "mine.txt").write_text("kept")
    assert (tmp_path / "sweep" / "figures" / "rates.svg").exists()
    write_sweep(flat(), tmp_path)
    assert not (tmp_path / "sweep" / "figures").exists()
    assert {path.name for path in (tmp_path / "sweep").iterdir()} == {
        "sweep.json", "cells.csv", "slopes.csv", "mine.txt",
    }  # fmt: skip
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceboundError, match="cannot write the report"):
        write_sweep(flat(), tmp_path / "file")
