"""Writing the report of several runs and its folder so that a killed run leaves no half file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from analyzer.report.escape import visible
from analyzer.report.figures import FOLDER as FIGURES
from analyzer.report.figures import FigureLink, Figures, NotDrawn, figure_links, file_names
from analyzer.report.outputs import publish_figures, staging_folder

Render = Callable[[Sequence[FigureLink], Sequence[NotDrawn]], str]


def write_study(
    directory: Path,
    report: str,
    folder: str,
    files: Mapping[str, bytes],
    figures: Figures | None,
    names: Iterable[str],
    render: Render,
) -> Path:
    """Write ``report``, and ``files`` and figures in ``folder``, under ``directory``; returns the report's path.

    Of all figures that there can be (``names``), those of an earlier run that are not written now are removed. The old
    report goes first and the new one comes last: where it stands, all beside it belongs to it.
    """
    drawn = figures or Figures()
    with staging_folder(directory) as staging:
        (staging / FIGURES).mkdir()
        for name, data in files.items():
            (staging / name).write_bytes(data)
        for name, data in drawn.files().items():
            (staging / FIGURES / name).write_bytes(data)
        text = render(figure_links(drawn.drawn, f"{folder}/{FIGURES}"), drawn.not_drawn)
        (staging / report).write_text(text, encoding="utf-8", newline="\n")
        target = directory / folder
        target.mkdir(exist_ok=True)
        (directory / report).unlink(missing_ok=True)
        for name in files:
            (staging / name).replace(target / name)
        publish_figures(staging / FIGURES, target / FIGURES, file_names(names))
        (staging / report).replace(directory / report)
    return directory / report


def table_bytes(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV table; names are shown as text, truth as ``true`` and ``false``, what is not known as nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue().encode("utf-8")


def _field(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return visible(value) if isinstance(value, str) else value
