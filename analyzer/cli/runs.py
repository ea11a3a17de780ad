"""Runs as the commands take them that hold several runs: traces, or what an earlier diagnosis made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.cli.console import warn
from analyzer.cli.reading import Selection, analyzed
from analyzer.diagnosis import FORMAT
from analyzer.report.escape import TERMINAL, visible

if TYPE_CHECKING:
    from analyzer.diagnosis import Diagnosis
    from analyzer.pipeline import Options

RUN = "a trace, a directory, a glob in quotes, or the diagnosis.json of an earlier diagnosis"


def diagnosed(run: str, settings: Options, which: Selection, *, quiet: bool, verbose: bool) -> Diagnosis:
    """Analyze one run, or read back what an earlier diagnosis made of it. Its cautions go to stderr."""
    from analyzer.analysis import Analysis
    from analyzer.report.cautions import cautions

    if is_diagnosis(Path(run)):
        return Analysis.from_json(Path(run).read_bytes()).diagnosis
    diagnosis = analyzed([run], settings, which, quiet=quiet).diagnosis
    warn(
        [f"{visible(run, 60)}: {text}" for text in cautions(diagnosis, TERMINAL)],
        quiet=quiet,
        verbose=verbose,
    )
    return diagnosis


def is_diagnosis(path: Path) -> bool:
    """By its first bytes: a trace may bear any name."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(256)
