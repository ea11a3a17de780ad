"""Writing COMPARISON.md and ``comparison/`` so that a killed run leaves no half file."""

from __future__ import annotations

from pathlib import Path

from analyzer.comparison.result import Comparison
from analyzer.report.comparison import render_comparison
from analyzer.report.comparison_figures import NAMES
from analyzer.report.figures import FOLDER as FIGURES
from analyzer.report.figures import Figures, figure_links, file_names
from analyzer.report.outputs import publish_figures, staging_folder

REPORT = "COMPARISON.md"
FOLDER = "comparison"
JSON = "comparison.json"


def write_comparison(comparison: Comparison, directory: Path, figures: Figures | None = None) -> Path:
    """Write COMPARISON.md and ``comparison/`` under ``directory``; returns the path of COMPARISON.md.

    Figures of an earlier run that are not written now are removed, also without ``figures``.
    """
    with staging_folder(directory) as staging:
        _fill(comparison, staging, figures or Figures())
        _publish(staging, directory)
    return directory / REPORT


def _fill(comparison: Comparison, staging: Path, figures: Figures) -> None:
    (staging / FOLDER / FIGURES).mkdir(parents=True)
    (staging / FOLDER / JSON).write_bytes(comparison.to_json())
    for name, data in figures.files().items():
        (staging / FOLDER / FIGURES / name).write_bytes(data)
    links = figure_links(figures.drawn, f"{FOLDER}/{FIGURES}")
    text = render_comparison(comparison, links, figures.not_drawn)
    (staging / REPORT).write_text(text, encoding="utf-8", newline="\n")


def _publish(staging: Path, directory: Path) -> None:
    """The old report goes first and the new one comes last: where it stands, all beside it belongs to it."""
    (directory / FOLDER).mkdir(exist_ok=True)
    (directory / REPORT).unlink(missing_ok=True)
    (staging / FOLDER / JSON).replace(directory / FOLDER / JSON)
    publish_figures(staging / FOLDER / FIGURES, directory / FOLDER / FIGURES, file_names(NAMES))
    (staging / REPORT).replace(directory / REPORT)
