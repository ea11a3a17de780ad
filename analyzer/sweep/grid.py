"""Where the runs of a sweep lie: a grid file, and what a run's own manifest pins.

A grid file is CSV with a header. Column ``run`` is a trace, directory, glob or ``diagnosis.json``, relative to the
file; every other column is a pin (``context``, ``batch``, ``cache_initialization``, ``model`` ...). An empty field
leaves the pin to the run's manifest.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.errors import TraceError
from collectors.manifest import PINS

RUN = "run"
CACHES = ("real-prefix", "synthetic", "seek")
"""How a cache came to hold its context: by running the tokens, by made-up ones, by moving the position alone."""
_NUMBER = re.compile(r"\s*(\d{1,3}(?:[,_]\d{3})+|\d{1,12})\s*(?:tokens?|sequences?|seqs?)?\s*", re.ASCII)


@dataclass(frozen=True)
class Planned:
    """One run as a grid file has it. ``name``: as written there; ``where``: file and line."""

    name: str
    path: str
    pins: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


def read_grid(path: Path) -> list[Planned]:
    """The runs of a grid file. Raises TraceError with the line and column of the first defect."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TraceError(str(path), "", error.strerror or str(error), "check the path of --grid") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            str(path), "", f"is no UTF-8 text ({error})", "save the grid as CSV in UTF-8"
        ) from error
    rows = _rows(str(path), text)
    _, header = next(rows, (0, []))
    columns = _columns(str(path), header)
    planned = [_planned(path, line, columns, row) for line, row in rows if any(part.strip() for part in row)]
    if not planned:
        raise TraceError(str(path), "", "holds no run", "write one line per run below the header")
    return planned


def _rows(path: str, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(
            path, f"line {reader.line_num}", f"is no CSV: {error}", "quote fields that hold commas"
        ) from None


def _columns(path: str, header: Sequence[str]) -> list[str]:
    columns = [name.strip() for name in header]
    known = f"the columns are {RUN} and pins: {', '.join(PINS)}"
    for name in columns:
        if name != RUN and name not in PINS:
            raise TraceError(path, f"line 1, column {name!r}", "is no column of a grid", known)
        if columns.count(name) > 1:
            raise TraceError(path, f"line 1, column {name!r}", "stands twice", known)
    if RUN not in columns:
        raise TraceError(path, "line 1", f"has no column {RUN!r}", known)
    return columns


def _planned(path: Path, line: int, columns: Sequence[str], row: Sequence[str]) -> Planned:
    where = f"line {line}"
    if len(row) != len(columns):
        why = f"has {len(row)} fields, the header {len(columns)}"
        raise TraceError(
            str(path), where, why, "give every column a field, an empty one where nothing is declared"
        )
    told = {name: value.strip() for name, value in zip(columns, row, strict=True) if value.strip()}
    run = told.pop(RUN, None)
    if run is None:
        raise TraceError(
            str(path),
            f"{where}, column {RUN!r}",
            "is empty",
            "name the run's trace, folder or diagnosis.json",
        )
    for axis in ("context", "batch"):
        if axis in told and number_in(told[axis]) is None:
            why = f"{told[axis]!r} is no whole number of {'tokens' if axis == 'context' else 'sequences'}"
            raise TraceError(str(path), f"{where}, column {axis!r}", why, "write it in digits, such as 8192")
    return Planned(run, str(path.parent / run), told, f"{path} ({where})")


def number_in(text: str) -> int | None:
    """``8192``, ``8,192`` or ``8192 tokens`` as a number above 0; None for anything else (``8k`` may mean two)."""
    match = _NUMBER.fullmatch(text)
    number = int(re.sub("[,_]", "", match[1])) if match else 0
    return number or None


def cache_kind(text: str) -> str:
    """One of ``CACHES`` in one spelling (``Real_Prefix``), else the text as it is."""
    spelled = re.sub(r"[\s_]+", "-", text.strip()).lower()
    return spelled if spelled in CACHES else text.strip()
