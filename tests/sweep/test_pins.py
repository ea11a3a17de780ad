"""Cells of other pins are marked and left out; what is undeclared is told, and shouted of caches."""

from __future__ import annotations

from analyzer.report.sweep import cache_warning, render_sweep
from analyzer.sweep import sweep
from tests.sweep.builder import run


def grid(**odd: str) -> list:
    runs = [run(f"c{at}", 20 + 10 * at, context=1_000 * at, model="m") for at in (1, 2, 4)]
    return [*runs, run("odd", 300, context=8_000, **{"model": "m", **odd})]


def test_a_cell_of_another_model_is_marked_and_left_out() -> None:
    found = sweep(grid(model="other"))
    odd = found.cells[3]
    assert [(one.pin, one.value, one.most) for one in odd.unlike] == [("model", "other", "m")]
    assert not odd.fitted
    assert odd.left_out_because == "differs from most in model"
    assert found.lines[0].cells == ["c1", "c2", "c4"]
    text = render_sweep(found)
    assert "✻−" in text and "left out of every fit" in text


def test_it_is_fitted_when_asked_and_stays_marked() -> None:
    found = sweep(grid(model="other"), keep_unlike=True)
    assert found.cells[3].fitted and found.cells[3].unlike
    assert found.lines[0].cells == ["c1", "c2", "c4", "odd"]


def test_pins_that_no_most_of_the_cells_share_mark_nobody_and_are_told() -> None:
    runs = [run(f"c{at}", 20 + 10 * at, context=1_000 * at, input=f"prompt {at}") for at in (1, 2, 4)]
    found = sweep(runs)
    assert found.varying == ["input"]
    assert not any(cell.unlike for cell in found.cells)
    assert "Differs from cell to cell" in render_sweep(found)


def test_undeclared_pins_are_listed() -> None:
    found = sweep(grid())
    assert "weights" in found.undeclared and "model" not in found.undeclared
    assert "context" not in found.undeclared


def test_an_undeclared_cache_is_shouted_and_makes_no_evidence() -> None:
    runs = [run(f"c{at}", 20 + 10 * at, context=1_000 * at, cache=None) for at in (1, 2, 4, 8)]
    found = sweep(runs)
    assert found.cache_undeclared == ["c1", "c2", "c4", "c8"]
    assert "CACHE INITIALIZATION UNDECLARED of all 4 cells" in cache_warning(found)
    assert found.kv_context.verdict == "inconclusive"
    text = render_sweep(found)
    assert text.index("CACHE INITIALIZATION UNDECLARED") < text.index("## The grid")
    assert "**UNDECLARED**" in text
    declared = sweep([run(f"c{at}", 20 + 10 * at, context=1_000 * at) for at in (1, 2, 4, 8)])
    assert declared.kv_context.verdict == "supported"
    assert cache_warning(declared) == ""
