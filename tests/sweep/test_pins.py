"""Cells of other pins are marked and left out; what is undeclared is told, and shouted of caches."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.report.sweep import cache_warning, render_sweep
from analyzer.sweep import Given, sweep
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
    assert "CACHE INITIALIZATION UNDECLARED" in found.lines[0].statement
    text = render_sweep(found)
    assert text.index("CACHE INITIALIZATION UNDECLARED") < text.index("## The grid")
    assert "**UNDECLARED**" in text
    assert "**grows**; no evidence: CACHE INITIALIZATION UNDECLARED" in text
    declared = sweep([run(f"c{at}", 20 + 10 * at, context=1_000 * at) for at in (1, 2, 4, 8)])
    assert declared.kv_context.verdict == "supported"
    assert cache_warning(declared) == ""


def replaced(given: Given, old: bytes, new: bytes) -> Given:
    """The run with one text of its diagnosis replaced."""
    text = msgspec.json.encode(given.diagnosis)
    assert old in text
    return Given(given.name, msgspec.json.decode(text.replace(old, new), type=Diagnosis), given.declared)


def test_eager_cells_among_replayed_ones_are_marked() -> None:
    runs = [run(f"b{batch}", 20 * batch, context=1_000, batch=batch) for batch in (1, 2, 4)]
    graphs = [replaced(one, b'"calls_in_graphs":0', b'"calls_in_graphs":8') for one in runs[:2]]
    odd = sweep([*graphs, runs[2]]).cells[2]
    assert [(one.pin, one.value) for one in odd.unlike] == [("graph replay", "few kernels or none")]
    assert not odd.fitted


def test_a_capture_without_steps_is_in_no_sweep() -> None:
    runs = [run(f"c{at}", 20 * at, context=1_000 * at) for at in (1, 2, 4)]
    whole = replaced(runs[0], b'"phase":"step"', b'"phase":"whole capture"')
    found = sweep([whole, *runs[1:]])
    assert found.unplaced == ["c1: has no phase 'step'"]
    with pytest.raises(UsageError, match="no run holds a step"):
        sweep([replaced(one, b'"phase":"step"', b'"phase":"whole capture"') for one in runs])
    with pytest.raises(UsageError, match="alone has a phase"):
        sweep([whole, runs[1]])


def test_prefill_and_decode_are_never_mixed() -> None:
    runs = [run(f"c{at}", 20 * at, context=1_000 * at) for at in (1, 2, 4, 8)]
    prefill = [replaced(one, b'"phase":"step"', b'"phase":"prefill"') for one in runs[2:]]
    found = sweep([*runs[:2], *prefill], phase="prefill")
    assert [cell.name for cell in found.cells] == ["c4", "c8"]
    assert found.phase == "prefill"
    assert {line.cells[0] for line in found.lines} == {"c4"}


def test_two_models_half_and_half_are_no_evidence() -> None:
    """No cell can be marked, and what grows may be the model."""
    runs = [
        run(f"c{at}", 20 + 10 * at, context=1_000 * at, model="a" if at < 3 else "b") for at in (1, 2, 4, 8)
    ]
    found = sweep(runs)
    assert found.varying == ["model"] and not any(cell.unlike for cell in found.cells)
    assert found.kv_context.verdict == "inconclusive"
    assert "differ in model" in found.kv_context.verdict_note
    assert "Its cells differ in model" in found.lines[0].statement


def test_a_report_to_the_client_is_of_the_same_device_steps() -> None:
    runs = [run(f"c{at}", 20 + 10 * at, context=1_000 * at) for at in (1, 2, 4)]
    client = msgspec.structs.replace(runs[2].diagnosis, boundary="client")
    found = sweep([*runs[:2], replace(runs[2], diagnosis=client)])
    assert found.boundary == "device"
    assert not found.cells[2].unlike and found.cells[2].pins["timing_boundary"] == "device"
