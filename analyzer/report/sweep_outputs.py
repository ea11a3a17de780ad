"""Writing SWEEP.md and ``sweep/`` so that a killed run leaves no half file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from analyzer.report.escape import visible
from analyzer.report.figures import FOLDER as FIGURES
from analyzer.report.figures import Figures, figure_links, file_names
from analyzer.report.outputs import publish_figures, staging_folder
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
    with staging_folder(directory) as staging:
        _fill(sweep, staging, figures or Figures())
        _publish(staging, directory)
    return directory / REPORT


def _fill(sweep: Sweep, staging: Path, figures: Figures) -> None:
    folder = staging / FOLDER
    (folder / FIGURES).mkdir(parents=True)
    (folder / JSON).write_bytes(sweep.to_json())
    categories = list(sweep.cells[0].mean_ns)
    _write(folder / CELLS, (*CELL_COLUMNS, *categories), (_cell(one, categories) for one in sweep.cells))
    _write(folder / SLOPES, SLOPE_COLUMNS, _slopes(sweep))
    for name, data in figures.files().items():
        (folder / FIGURES / name).write_bytes(data)
    text = render_sweep(sweep, figure_links(figures.drawn, f"{FOLDER}/{FIGURES}"), figures.not_drawn)
    (staging / REPORT).write_text(text, encoding="utf-8", newline="\n")


def _publish(staging: Path, directory: Path) -> None:
    """The old report goes first and the new one comes last: where it stands, all beside it belongs to it."""
    (directory / FOLDER).mkdir(exist_ok=True)
    (directory / REPORT).unlink(missing_ok=True)
    for name in (JSON, CELLS, SLOPES):
        (staging / FOLDER / name).replace(directory / FOLDER / name)
    publish_figures(staging / FOLDER / FIGURES, directory / FOLDER / FIGURES, file_names(NAMES))
    (staging / REPORT).replace(directory / REPORT)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_field(value) for value in row] for row in rows)


def _field(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return visible(value) if isinstance(value, str) else value


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
