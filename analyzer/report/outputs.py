"""Writing the output directory so that a killed run leaves no half file.

Everything is written into a hidden directory beside its target and then renamed into place, file by
file (files of the user's own in ``diagnosis/`` stay). The old DIAGNOSIS.md is removed before the first
rename and the new one comes last: where it stands, all files beside it belong to it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analyzer.analysis import Analysis
from analyzer.errors import TraceboundError
from analyzer.report.csv_tables import TABLES
from analyzer.report.markdown import render

REPORT = "DIAGNOSIS.md"
FOLDER = "diagnosis"
JSON = "diagnosis.json"


def write(analysis: Analysis, directory: Path) -> Path:
    """Write DIAGNOSIS.md and ``diagnosis/`` under ``directory``; returns the path of DIAGNOSIS.md."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _staging(directory) as staging:
            _fill(analysis, staging)
            _publish(staging, directory)
    except OSError as error:
        raise TraceboundError(
            str(error.filename or directory),
            "",
            f"cannot write the report: {error.strerror or error}",
            "choose another place with --output DIR",
        ) from error
    return directory / REPORT


@contextmanager
def _staging(directory: Path) -> Iterator[Path]:
    staging = Path(tempfile.mkdtemp(prefix=".tracebound-", dir=directory))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _fill(analysis: Analysis, staging: Path) -> None:
    (staging / FOLDER).mkdir()
    (staging / FOLDER / JSON).write_bytes(analysis.to_json())
    for name, table in TABLES.items():
        table(staging / FOLDER / name, analysis)
    (staging / REPORT).write_text(render(analysis.diagnosis), encoding="utf-8", newline="\n")


def _publish(staging: Path, directory: Path) -> None:
    (directory / FOLDER).mkdir(exist_ok=True)
    (directory / REPORT).unlink(missing_ok=True)
    for name in (JSON, *TABLES):
        (staging / FOLDER / name).replace(directory / FOLDER / name)
    (staging / REPORT).replace(directory / REPORT)
