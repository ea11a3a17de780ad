"""Nsight Compute's CSV: what each profiled launch moved from and to device memory.

Both forms are read: the wide one of ``ncu --csv --page raw`` (a column per metric, units in a row of their own) and the
long one of the details page and of older versions (a row per metric). Names and units follow NVIDIA's Nsight Compute
documentation and public files. Lines that are no CSV (``==PROF==``, the program's own output) are passed over.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from analyzer.errors import TraceError

LONGEST_FILE_BYTES = 1_000_000_000
COMMAND = (
    "ncu --csv --page raw --cache-control none --clock-control none --metrics dram__bytes_read.sum,"
    "dram__bytes_write.sum,gpu__time_duration.sum,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,"
    "sm__throughput.avg.pct_of_peak_sustained_elapsed"
)
"""What writes such a file, in advice."""

Triple = tuple[int, int, int]
_KERNEL, _METRIC, _UNIT, _VALUE = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
_PIPE = re.compile(
    r"sm__(?:inst_executed_)?pipe_(?:tensor|fma|fp16|fp32|fp64)\w*\.avg\.pct_of_peak_sustained_elapsed"
)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BYTES = re.compile(r"([KMGTP]?)(?:byte|bytes|B)")
_TIME_NS = {
    "s": 1e9,
    "second": 1e9,
    "ms": 1e6,
    "msecond": 1e6,
    "us": 1e3,
    "usecond": 1e3,
    "ns": 1.0,
    "nsecond": 1.0,
}
_WITH_UNIT = ("dram__bytes", "gpu__time_duration", "Duration", "Memory Throughput rate")
_NUMBER = re.compile(r"-?[\d.,\u00a0\u202f' ]*\d(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class LaunchCounters:
    """One launch that Nsight Compute profiled; None is "not measured". Percentages are 0 to 100."""

    name: str
    grid: Triple | None
    block: Triple | None
    bytes: float | None  # read and written
    duration_ns: float | None  # under Nsight Compute: serialized, by default at base clocks
    dram_pct: float | None  # of the peak over that duration
    pipe_pct: float | None  # busiest arithmetic pipe of those measured, over that duration, idle SMs included
    sm_pct: float | None  # busiest of everything in the SMs, so no arithmetic pipe is busier


@dataclass(frozen=True)
class CounterFile:
    """One file, its launches in order."""

    path: str
    launches: tuple[LaunchCounters, ...]


def read_counters(path: str | Path) -> CounterFile:
    """The launches of a file. Raises TraceError where it cannot be read, is no such CSV or measures none of these."""
    shown = str(path)
    header, rows = _table(_lines(Path(path), shown), shown)
    long = {_METRIC, _VALUE} <= set(header)
    cells = list(_long(header, rows) if long else _wide(header, rows))
    comma = _decimal_comma(cells, shown)
    launches = tuple(_launch(cell, comma, shown) for cell in cells)
    if not any(
        one.bytes is not None or one.pipe_pct is not None or one.sm_pct is not None for one in launches
    ):
        raise TraceError(
            shown,
            "",
            "holds neither bytes from and to device memory nor activity of arithmetic pipes",
            f"capture it with {COMMAND}",
        )
    return CounterFile(shown, launches)


@dataclass(frozen=True)
class _Cells:
    """One launch as text: its metrics as (unit, value) by name."""

    line: int
    name: str
    grid: str
    block: str
    metrics: dict[str, tuple[str, str]]


def _lines(path: Path, shown: str) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise TraceError(shown, "", error.strerror or str(error), "give a readable file") from None
    if len(data) > LONGEST_FILE_BYTES:
        raise TraceError(shown, "", f"is larger than {LONGEST_FILE_BYTES:,} bytes", "profile fewer launches")
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(
            shown, f"byte {error.start}", "is no UTF-8 text", f"write it with {COMMAND}"
        ) from None


class _Row(NamedTuple):
    """A line below the header. ``part``: which of several files that were put one after another."""

    line: int
    part: int
    cells: list[str]


def _table(lines: Sequence[str], shown: str) -> tuple[list[str], list[_Row]]:
    """The header and the rows below it; all else is passed over."""
    header: list[str] = []
    rows: list[_Row] = []
    part = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("==") or (_KERNEL not in line and not header):
            continue
        try:
            cells = next(csv.reader([line], strict=True), [])
        except csv.Error:
            continue
        if _KERNEL in cells:
            if header and cells != header:
                why = "begins another table, of other columns"
                raise TraceError(
                    shown, f"line {number}", why, "give each file apart, with --counters for each"
                )
            header, part = cells, part + 1
        elif header and cells and len(cells) == len(header):
            rows.append(_Row(number, part, cells))
    if not header or not rows:
        what = "has no row under its header" if header else f'has no line with a column "{_KERNEL}"'
        raise TraceError(shown, "", f"is no CSV of Nsight Compute: it {what}", f"write it with {COMMAND}")
    return header, rows


def _wide(header: Sequence[str], rows: Iterable[_Row]) -> Iterator[_Cells]:
    """A column per metric. The row of units has no kernel."""
    units: dict[str, str] = {}
    for line, _, cells in rows:
        row = dict(zip(header, cells, strict=True))
        if not row[_KERNEL]:
            units = row
            continue
        metrics = {name: (units.get(name, ""), value) for name, value in row.items()}
        yield _Cells(line, row[_KERNEL], row.get("Grid Size", ""), row.get("Block Size", ""), metrics)


def _long(header: Sequence[str], rows: Iterable[_Row]) -> Iterator[_Cells]:
    """A row per metric; the launches are told apart by their ID and process, else by a metric that comes again."""
    found: dict[tuple[object, ...], _Cells] = {}
    again = 0
    for line, part, cells in rows:
        row = dict(zip(header, cells, strict=True))
        unit = row.get(_UNIT, "")
        # the details page has two metrics of this name: a share and a rate
        name = row[_METRIC] + (" rate" if row[_METRIC] == "Memory Throughput" and unit != "%" else "")
        one = (part, row.get("Host Name"), row.get("Process ID"), row.get("ID"), row[_KERNEL])
        held = found.get((*one, again))
        if "ID" not in row and (held is None or name in held.metrics):
            again += 1
            held = None
        if held is None:
            shape = row.get("Grid Size", ""), row.get("Block Size", "")
            held = found[*one, again] = _Cells(line, row[_KERNEL], *shape, {})
        held.metrics[name] = (unit, row[_VALUE])
    yield from found.values()


def _launch(cells: _Cells, comma: bool, path: str) -> LaunchCounters:
    def number(name: str) -> float | None:
        return (
            _in_base(name, *cells.metrics[name], comma, path, cells.line) if name in cells.metrics else None
        )

    read, written, both = (number(f"dram__bytes{which}.sum") for which in ("_read", "_write", ""))
    duration = number("gpu__time_duration.sum")
    duration = number("Duration") if duration is None else duration
    total = both if both is not None else None if read is None or written is None else read + written
    if total is None and duration is not None:
        rate = number("dram__bytes.sum.per_second")
        rate = number("Memory Throughput rate") if rate is None else rate
        total = None if rate is None else rate * duration / 1e9
    share = number("dram__throughput.avg.pct_of_peak_sustained_elapsed")
    busiest = number("sm__throughput.avg.pct_of_peak_sustained_elapsed")
    return LaunchCounters(
        name=cells.name,
        grid=_triple(cells.grid),
        block=_triple(cells.block),
        bytes=total,
        duration_ns=duration,
        dram_pct=number("DRAM Throughput") if share is None else share,
        pipe_pct=_busiest(cells, number),
        sm_pct=number("Compute (SM) Throughput") if busiest is None else busiest,
    )


def _busiest(cells: _Cells, number: Callable[[str], float | None]) -> float | None:
    values = [
        value for name in cells.metrics if _PIPE.fullmatch(name) and (value := number(name)) is not None
    ]
    return max(values, default=None)


def _triple(text: str) -> Triple | None:
    """``(256, 1, 1)`` or ``256, 1, 1``."""
    found = re.findall(r"\d+", text)
    return (int(found[0]), int(found[1]), int(found[2])) if len(found) == 3 else None


def _in_base(name: str, unit: str, text: str, comma: bool, path: str, line: int) -> float | None:
    """A value in bytes, bytes/s, ns or percent; None where there is none. TraceError for what is no number."""
    text = text.strip()
    if text.lower() in ("", "n/a", "nan", "(!) n/a", "no data"):
        return None
    value = _number(text, comma)
    factor = _factor(unit.strip())
    if value and not unit.strip() and name.startswith(_WITH_UNIT):
        why = f"{name} = {text!r} has no unit: the row of units below the header is missing"
        raise TraceError(path, f"line {line}", why, f"give the file as it was written by {COMMAND}")
    if value is None or factor is None or value < 0:
        why = f"{name} = {text!r} {unit!r} is no amount that is known here"
        raise TraceError(path, f"line {line}", why, "add --print-units base to the command of ncu")
    return value * factor


def _factor(unit: str) -> float | None:
    if unit in ("", "%"):
        return 1.0
    unit = unit.removesuffix("/second").removesuffix("/s") if unit not in _TIME_NS else unit
    if unit in _TIME_NS:
        return _TIME_NS[unit]
    found = _BYTES.fullmatch(unit)
    return _PREFIX[found[1]] if found else None


def _number(text: str, comma: bool) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    plain = re.sub(r"[\u00a0\u202f' ]", "", text)
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _decimal_comma(cells: Iterable[_Cells], path: str) -> bool:
    """Whether the file writes decimals after a comma (numbers follow the locale). TraceError where it does both."""
    commas = points = 0
    for cell in cells:
        for name, (_, value) in cell.metrics.items():
            text = value.strip()
            if name.endswith(("Size", "Name", "ID", "CC")) or not _NUMBER.fullmatch(text):
                continue
            last_comma, last_point = text.rfind(","), text.rfind(".")
            if last_comma >= 0 and last_point >= 0:
                commas += last_comma > last_point
                points += last_point > last_comma
            elif last_comma >= 0:
                commas += re.fullmatch(r"-?[1-9]\d{0,2}(?:,\d{3})+", text) is None
                points += text.count(",") > 1
            elif last_point >= 0:
                points += re.fullmatch(r"-?[1-9]\d{0,2}(?:\.\d{3})+", text) is None
                commas += text.count(".") > 1
    if commas and points:
        raise TraceError(
            path, "", "writes decimals after commas and after points", "write it again with LC_ALL=C"
        )
    return commas > 0
