"""SCALING.md and ``scaling/``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from analyzer.categories import CATEGORY_NAMES
from analyzer.report.figures import Figures
from analyzer.report.scaling import render_scaling
from analyzer.report.scaling_figures import NAMES
from analyzer.report.studies import table_bytes, write_study
from analyzer.scaling.result import Scaling

REPORT = "SCALING.md"
FOLDER = "scaling"
JSON = "scaling.json"
CSV = "runs.csv"
COLUMNS = ("run", "ranks", "used", "unlike", "phase", "rank", "steps", "mean_step_ns")


def write_scaling(scaling: Scaling, directory: Path, figures: Figures | None = None) -> Path:
    """Write SCALING.md and ``scaling/`` under ``directory``; returns the path of SCALING.md.

    Figures of an earlier run that are not written now are removed, also without ``figures``.
    """
    files = {
        JSON: scaling.to_json(),
        CSV: table_bytes((*COLUMNS, *CATEGORY_NAMES.values()), _runs(scaling)),
    }
    return write_study(directory, REPORT, FOLDER, files, figures, NAMES, partial(render_scaling, scaling))


def _runs(scaling: Scaling) -> Iterator[list[object]]:
    """One line per run: its mean step (ns) whole and by category."""
    for run in scaling.runs:
        head = [run.name, run.ranks, run.used, " ".join(run.unlike), run.phase, run.rank, run.steps]
        yield [*head, run.mean_step_ns, *(run.mean_ns[name] for name in CATEGORY_NAMES.values())]
