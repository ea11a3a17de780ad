"""Writing SCALING.md and ``scaling/`` so that a killed run leaves no half file."""

from __future__ import annotations

import csv
from pathlib import Path

from analyzer.categories import CATEGORY_NAMES
from analyzer.report.escape import visible
from analyzer.report.figures import FOLDER as FIGURES
from analyzer.report.figures import Figures, figure_links, file_names
from analyzer.report.outputs import publish_figures, staging_folder
from analyzer.report.scaling import render_scaling
from analyzer.report.scaling_figures import NAMES
from analyzer.study.scaling_result import Scaling

REPORT = "SCALING.md"
FOLDER = "scaling"
JSON = "scaling.json"
CSV = "runs.csv"


def write_scaling(scaling: Scaling, directory: Path, figures: Figures | None = None) -> Path:
    """Write SCALING.md and ``scaling/`` under ``directory``; returns the path of SCALING.md.

    Figures of an earlier run that are not written now are removed, also without ``figures``. The old report goes
    first and the new one comes last: where it stands, all beside it belongs to it.
    """
    drawn = figures or Figures()
    with staging_folder(directory) as staging:
        (staging / FIGURES).mkdir()
        (staging / JSON).write_bytes(scaling.to_json())
        _write_runs(scaling, staging / CSV)
        for name, data in drawn.files().items():
            (staging / FIGURES / name).write_bytes(data)
        links = figure_links(drawn.drawn, f"{FOLDER}/{FIGURES}")
        text = render_scaling(scaling, links, drawn.not_drawn)
        (staging / REPORT).write_text(text, encoding="utf-8", newline="\n")
        target = directory / FOLDER
        target.mkdir(exist_ok=True)
        (directory / REPORT).unlink(missing_ok=True)
        for name in (JSON, CSV):
            (staging / name).replace(target / name)
        publish_figures(staging / FIGURES, target / FIGURES, file_names(NAMES))
        (staging / REPORT).replace(directory / REPORT)
    return directory / REPORT


def _write_runs(scaling: Scaling, path: Path) -> None:
    """One line per run: its mean step (ns) whole and by category."""
    names = list(CATEGORY_NAMES.values())
    header = ["run", "ranks", "used", "unlike", "phase", "rank", "steps", "mean_step_ns", *names]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for run in scaling.runs:
            writer.writerow(
                [
                    visible(run.name),
                    run.ranks,
                    "true" if run.used else "false",
                    " ".join(run.unlike),
                    visible(run.phase),
                    run.rank,
                    run.steps,
                    run.mean_step_ns,
                    *(run.mean_ns[name] for name in names),
                ]
            )
