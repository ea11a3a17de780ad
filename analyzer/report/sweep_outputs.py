"""SWEEP.md and ``sweep/``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from analyzer.report.figures import Figures
from analyzer.report.studies import table_bytes, write_study
from analyzer.report.sweep import render_sweep
from analyzer.report.sweep_figures import NAMES
from analyzer.swept import Cell, Estimated, Sweep

REPORT = "SWEEP.md"
FOLDER = "sweep"
JSON, CELLS, SLOPES = "sweep.json", "cells.csv", "slopes.csv"
CELL_COLUMNS = (
    "run", "context", "batch", "cache_initialization", "fitted", "left_out_because", "unlike", "phase", "scope", "rank",
    "steps", "steps_left_out", "mean_step_ns", "low_ns", "high_ns", "tokens_per_s", "tokens_per_s_per_stream",
)  # fmt: skip
SLOPE_COLUMNS = ("axis", "at", "cache_initialization", "of", "name", "unit", "slope", "low", "high")


def write_sweep(sweep: Sweep, directory: Path, figures: Figures | None = None) -> Path:
    """Write SWEEP.md and ``sweep/`` under ``directory``; returns the path of SWEEP.md.

    Figures of an earlier run that are not written now are removed, also without ``figures``.
    """
    categories = list(sweep.cells[0].mean_ns)
    files = {
        JSON: sweep.to_json(),
        CELLS: table_bytes((*CELL_COLUMNS, *categories), (_cell(one, categories) for one in sweep.cells)),
        SLOPES: table_bytes(SLOPE_COLUMNS, _slopes(sweep)),
    }
    return write_study(directory, REPORT, FOLDER, files, figures, NAMES, partial(render_sweep, sweep))


def _cell(one: Cell, categories: Sequence[str]) -> list[object]:
    low, high = one.step_ns.ci95 or (None, None)
    return [
        one.name, one.context.value, one.batch.value, one.cache_initialization, one.fitted, one.left_out_because,
        "; ".join(pin.pin for pin in one.unlike), one.phase, one.scope, one.rank, one.steps, one.steps_left_out,
        one.step_ns.value, low, high, one.tokens_per_s, one.tokens_per_s_per_stream,
        *(one.mean_ns.get(name) for name in categories),
    ]  # fmt: skip


def _slopes(sweep: Sweep) -> Iterator[list[object]]:
    for line in sweep.lines:
        head = [line.axis, line.at, line.cache_initialization]
        rows: list[tuple[str, str, Estimated]] = [("step", "", line.slope)]
        rows += [("category", name, part) for name, part in line.categories.items()]
        rows += [("slowest rank's step", "", line.rank_slope)]
        rows += [("class", name, part) for name, part in line.classes.items()]
        rows += [("piece", f"{one.low} to {one.high}", one.slope) for one in line.pieces]
        for of, name, found in rows:
            yield [*head, of, name, line.unit, found.value, *(found.ci95 or (None, None))]
