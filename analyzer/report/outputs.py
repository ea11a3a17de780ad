"""Writing the output directory so that a killed run leaves no half file.

Everything is written into a hidden directory beside its target and then renamed into place, file by
file (files of the user's own in ``diagnosis/`` stay). The old DIAGNOSIS.md is removed before the first
rename and the new one comes last: where it stands, all files beside it belong to it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from analyzer.analysis import Analysis
from analyzer.errors import TraceboundError
from analyzer.report import figures as drawings
from analyzer.report.csv_tables import TABLES
from analyzer.report.markdown import render

REPORT = "DIAGNOSIS.md"
FOLDER = "diagnosis"
JSON = "diagnosis.json"


def write(analysis: Analysis, directory: Path, *, figures: bool = True) -> Path:
    """Write DIAGNOSIS.md and ``diagnosis/`` under ``directory``; returns the path of DIAGNOSIS.md.

    Figures of an earlier run that are not written now are removed, also where ``figures`` is False.
    """
    with staging_folder(directory) as staging:
        _fill(analysis, staging, drawings.figures(analysis) if figures else drawings.Figures())
        _publish(staging, directory)
    return directory / REPORT


@contextmanager
def staging_folder(directory: Path) -> Iterator[Path]:
    """A hidden folder beside the outputs in ``directory`` (made where it is missing), gone afterwards.

    What the system refuses while it is open becomes a TraceboundError.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".tracebound-", dir=directory))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise TraceboundError(
            str(error.filename or directory),
            "",
            f"cannot write the report: {error.strerror or error}",
            "choose another place with --output DIR",
        ) from error


def _fill(analysis: Analysis, staging: Path, figures: drawings.Figures) -> None:
    (staging / FOLDER / drawings.FOLDER).mkdir(parents=True)
    (staging / FOLDER / JSON).write_bytes(analysis.to_json())
    for name, table in TABLES.items():
        table(staging / FOLDER / name, analysis)
    for name, data in figures.files().items():
        (staging / FOLDER / drawings.FOLDER / name).write_bytes(data)
    text = render(analysis.diagnosis, drawings.figure_links(figures.drawn), figures.not_drawn)
    (staging / REPORT).write_text(text, encoding="utf-8", newline="\n")


def _publish(staging: Path, directory: Path) -> None:
    (directory / FOLDER).mkdir(exist_ok=True)
    (directory / REPORT).unlink(missing_ok=True)
    for name in (JSON, *TABLES):
        (staging / FOLDER / name).replace(directory / FOLDER / name)
    publish_figures(
        staging / FOLDER / drawings.FOLDER,
        directory / FOLDER / drawings.FOLDER,
        drawings.file_names((*drawings.NAMES, *drawings.OF_TOKENS)),
    )
    (staging / REPORT).replace(directory / REPORT)


def publish_figures(staging: Path, target: Path, names: Iterable[str]) -> None:
    """Put the new figures in place and remove those of ``names`` of an earlier run; other files in the folder stay."""
    new = {file.name for file in staging.iterdir()}
    if new:
        target.mkdir(exist_ok=True)
    for name in names:
        if name in new:
            (staging / name).replace(target / name)
        else:
            (target / name).unlink(missing_ok=True)
    if not new and target.is_dir() and not any(target.iterdir()):
        target.rmdir()
