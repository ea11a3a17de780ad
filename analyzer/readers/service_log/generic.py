"""Token logs of anybody's: CSV with a header, JSON lines, Parquet.

Columns: ``request``, ``token`` (its index in the request); ``device_completion_ns``, ``server_emission_ns``,
``client_receipt_ns``, ``client_arrival_ns`` (when the client's kernel had it), ``request_sent_ns`` (by the client's
clock), each epoch ns, whole, empty or null where not logged; ``device_clock``, ``server_clock``, ``client_clock``:
the name of the clock, one per log. Other columns are ignored.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from analyzer.errors import TraceError
from analyzer.model import QualityEntry
from analyzer.readers.service_log.build import build
from analyzer.tokens import ABSENT, Clocks, IntArray, TokenLog

INSTANTS = {
    "device_completion_ns": "completion_ns",
    "server_emission_ns": "emission_ns",
    "client_arrival_ns": "arrival_ns",
    "client_receipt_ns": "receipt_ns",
    "request_sent_ns": "sent_ns",
}
CLOCKS = {"device_clock": "device", "server_clock": "server", "client_clock": "client"}
KNOWN = ("request", "token", *INSTANTS, *CLOCKS)
COLUMNS_HINT = (
    "a token log has the columns request, token, and of device_completion_ns, server_emission_ns,"
    " client_receipt_ns those that were logged"
)
MOST_DAMAGED = 0.5
"""More of the lines damaged than this: the file is refused, it is most likely not what it was taken for."""
_WHOLE = re.compile(r"\s*-?\d{1,19}\s*\Z", re.ASCII)


@dataclass
class _Damage:
    """Lines that could not be used: how many, and the first of them with its reason."""

    lines: set[int] = field(default_factory=set)
    first: tuple[int, str] | None = None

    def add(self, line: int, why: str) -> None:
        self.lines.add(line)
        if self.first is None or line < self.first[0]:
            self.first = (line, why)


def read_csv(path: Path) -> TokenLog:
    """CSV in UTF-8 with a header line. Raises TraceError."""
    damage = _Damage()
    lines_of_bad: list[int] = []

    def skip(row: Any) -> str:
        # pyarrow numbers the rows where it reads with one thread: the header is 1
        lines_of_bad.append(int(row.number or 0))
        damage.add(int(row.number or 0), f"has {row.actual_columns} fields instead of {row.expected_columns}")
        return "skip"

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
        _refuse_twice(path, names)
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(invalid_row_handler=skip),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[name for name in names if name in KNOWN],
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=["", "null", "NULL", "None", "nan", "NaN"],
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, csv.Error, UnicodeDecodeError) as error:
        raise TraceError(str(path), "", f"is no CSV: {_short(error)}", COLUMNS_HINT) from error
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    lines = _lines_without(lines_of_bad, table.num_rows)
    return _log(path, "csv", columns, lines, damage)


def _refuse_twice(path: Path, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if name in KNOWN and names.count(name) > 1})
    if twice:
        raise TraceError(
            str(path), "header", f"has the column {twice[0]!r} more than once", "keep one of them"
        )


def _lines_without(bad: Sequence[int], rows: int) -> list[int]:
    """The line of each row that was kept; the header is line 1."""
    skipped = set(bad)
    kept: list[int] = []
    line = 2
    while len(kept) < rows:
        if line not in skipped:
            kept.append(line)
        line += 1
    return kept


def read_jsonl(path: Path) -> TokenLog:
    """One JSON object per line. Raises TraceError."""
    damage = _Damage()
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                row = msgspec.json.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                damage.add(number, f"is no JSON: {_short(error)}")
                continue
            if not isinstance(row, dict):
                damage.add(number, "is no JSON object")
                continue
            rows.append(row)
            lines.append(number)
    present = [name for name in KNOWN if any(name in row for row in rows)]
    columns = {name: [row.get(name) for row in rows] for name in present}
    return _log(path, "jsonl", columns, lines, damage)


def read_parquet(path: Path) -> TokenLog:
    """A Parquet file. Raises TraceError."""
    try:
        names = pa_parquet.read_schema(path).names
        _refuse_twice(path, names)
        table = pa_parquet.read_table(path, columns=[name for name in names if name in KNOWN])
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(
            str(path), "", f"is no readable Parquet: {_short(error)}", "write the file again, whole"
        ) from error
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):  # epoch ns whatever the unit it is stored in
            try:
                column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise TraceError(
                    str(path), name, f"holds a time that has no ns since 1970: {_short(error)}", COLUMNS_HINT
                ) from error
        columns[name] = column.to_pylist()
    return _log(path, "parquet", columns, list(range(1, table.num_rows + 1)), _Damage())


def _log(
    path: Path, kind: str, columns: Mapping[str, Sequence[Any]], lines: Sequence[int], damage: _Damage
) -> TokenLog:
    for name in ("request", "token"):
        if name not in columns:
            there = ", ".join(sorted(columns)) or "none of the known ones"
            raise TraceError(
                str(path), "header", f"has no column {name!r}; known ones there: {there}", COLUMNS_HINT
            )
    whole = {
        name: _instants(columns[name], lines, damage, name)
        for name in ("token", *INSTANTS)
        if name in columns
    }
    for value, line in zip(columns["request"], lines, strict=True):
        if value is None:
            damage.add(line, "has no request")
    for value, line in zip(whole["token"].tolist(), lines, strict=True):
        if value == ABSENT:
            damage.add(line, "has no token index")
    total = len(lines) + len(damage.lines - set(lines))
    _refuse_ruins(path, damage, total)
    used = np.array([line not in damage.lines for line in lines], bool)
    codes: dict[str, int] = {}
    request = [
        codes.setdefault(str(value), len(codes))
        for value, wanted in zip(columns["request"], used, strict=True)
        if wanted
    ]
    absent = np.full(int(used.sum()), ABSENT, np.int64)
    table = {inner: whole[outer][used] if outer in whole else absent for outer, inner in INSTANTS.items()}
    table["request"], table["token"] = np.array(request, np.int64), whole["token"][used]
    table["line"] = np.array(lines, np.int64)[used]
    sent = _first_of(table["request"], table.pop("sent_ns"), len(codes))
    quality = [] if not damage.lines else [_quality(path, damage, total)]
    return build(str(path), kind, list(codes), table, sent, _clocks(path, columns), quality)


def _instants(values: Sequence[Any], lines: Sequence[int], damage: _Damage, name: str) -> IntArray:
    """Whole numbers, ABSENT for null; anything else damages its line. A float has lost ns: it is none."""
    result = np.full(len(values), ABSENT, np.int64)
    for at, value in enumerate(values):
        if value is None:
            continue
        whole = None
        if isinstance(value, int) and not isinstance(value, bool):
            whole = value
        elif isinstance(value, str) and _WHOLE.match(value):
            whole = int(value)
        if whole is None or not -(1 << 63) < whole < 1 << 63:
            damage.add(lines[at], f"{name} is no whole number of 64 bits: {str(value)[:40]!r}")
        else:
            result[at] = whole
    return result


def _refuse_ruins(path: Path, damage: _Damage, total: int) -> None:
    if damage.first is not None and len(damage.lines) > MOST_DAMAGED * total:
        line, why = damage.first
        raise TraceError(
            str(path),
            f"line {line}",
            f"{why}; {len(damage.lines)} of {total} lines are unusable",
            COLUMNS_HINT,
        )


def _quality(path: Path, damage: _Damage, total: int) -> QualityEntry:
    line, why = cast("tuple[int, str]", damage.first)
    return QualityEntry(
        "token-line-skipped",
        len(damage.lines),
        total,
        "tokens on damaged lines are missing: the gap around each counts as one long gap",
        f"{path}, first on line {line}: {why}",
    )


def _first_of(request: IntArray, values: IntArray, count: int) -> IntArray:
    """(r,) the first known value of each request, ABSENT without one."""
    result = np.full(count, ABSENT, np.int64)
    known = np.flatnonzero(values != ABSENT)[::-1]
    result[request[known]] = values[known]
    return result


def _clocks(path: Path, columns: Mapping[str, Iterable[Any]]) -> Clocks:
    found: dict[str, str | None] = {}
    for column, inner in CLOCKS.items():
        names = sorted({str(value) for value in columns.get(column, ()) if value not in (None, "")})
        if len(names) > 1:
            raise TraceError(
                str(path),
                column,
                f"names several clocks: {', '.join(names[:4])}",
                "write one log per clock: times of different clocks have nothing in common",
            )
        found[inner] = names[0] if names else None
    return Clocks(**found)


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
