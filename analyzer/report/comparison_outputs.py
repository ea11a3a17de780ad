"""COMPARISON.md and ``comparison/``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from analyzer.comparison.result import Comparison
from analyzer.report.comparison import render_comparison
from analyzer.report.comparison_figures import NAMES
from analyzer.report.figures import Figures
from analyzer.report.studies import write_study

REPORT = "COMPARISON.md"
FOLDER = "comparison"
JSON = "comparison.json"


def write_comparison(comparison: Comparison, directory: Path, figures: Figures | None = None) -> Path:
    """Write COMPARISON.md and ``comparison/`` under ``directory``; returns the path of COMPARISON.md.

    Figures of an earlier run that are not written now are removed, also without ``figures``.
    """
    files = {JSON: comparison.to_json()}
    return write_study(
        directory, REPORT, FOLDER, files, figures, NAMES, partial(render_comparison, comparison)
    )
