"""Path segments of a rank as one table with readable names and places."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from analyzer.arrays import unique_inverse
from analyzer.model import CodeArray, IntArray, ProcessTrace
from analyzer.reconstruct.critical_path import ON_DEVICE, Path, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import clean_names
from analyzer.tables import NO_EVENT, SegmentTable


@dataclass
class _Interner:
    texts: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def place_of_lane(process: ProcessTrace, lane: int) -> str:
    """A stream in words."""
    key = process.lanes[lane]
    return f"device {key.device} stream {key.stream}"


def place_of_thread(process: ProcessTrace, thread: int) -> str:
    """A host thread in words."""
    if thread < 0:
        return "thread unknown"
    entry = process.threads[thread]
    label = f"thread {entry.tid}"
    if not entry.name or entry.name == label:
        return label
    return entry.name if entry.name.startswith(label) else f"{label} ({entry.name})"


def merge_suffixes(process: ProcessTrace, codes: IntArray) -> IntArray:
    """Name codes with those merged that differ only in what ``emit_nvtx`` appends to every range."""
    values, inverse = unique_inverse(codes)
    # The smallest code of each text stands for all; -1 (the only code below 0) has a text of its own.
    _, first, text = np.unique(
        clean_names(process.names).of_code[values], return_index=True, return_inverse=True
    )
    return values[first[text]][inverse]


def segment_table(account: RankAccount, rank: int) -> SegmentTable:
    """All segments of all windows of one rank, in (window, start) order."""
    windows = np.repeat(
        np.array([window.index for window in account.windows], np.int32),
        [len(path) for path in account.paths],
    )
    return as_table(account, rank, join_paths(account.paths), windows)


def as_table(account: RankAccount, rank: int, whole: Path, windows: CodeArray) -> SegmentTable:
    """Segments of one rank with their names and places; ``windows``: (s,) the window of each."""
    process, work = account.trace.process, account.work
    names, places = _Interner(), _Interner()
    name = _recode(_name_codes(account, whole), process.names, names)
    place = _places(process, work.lane, whole, places)
    correlation, event_start = event_columns(account, whole)
    return SegmentTable(
        rank=np.full(len(windows), rank, np.int32),
        window=windows,
        start_ns=whole.start_ns,
        end_ns=whole.end_ns,
        category=whole.category,
        binding=whole.binding,
        inferred=whole.inferred,
        name=name.astype(np.int32),
        place=place.astype(np.int32),
        correlation=correlation,
        event_start_ns=event_start,
        late_rank=np.full(len(windows), -1, np.int32),
        names=tuple(names.texts),
        places=tuple(places.texts),
    )


def event_columns(account: RankAccount, path: Path) -> tuple[IntArray, IntArray]:
    """Correlation id and start, as the input file has it, of the event behind each segment."""
    host, work, trace = account.trace.process.host, account.work, account.trace
    correlation = np.zeros(len(path), np.int64)
    start = np.full(len(path), NO_EVENT, np.int64)
    device = np.flatnonzero((path.side == ON_DEVICE) & (path.ref >= 0))
    on_host = np.flatnonzero((path.side != ON_DEVICE) & (path.ref >= 0))
    correlation[device] = work.table.correlation[path.ref[device]]
    correlation[on_host] = host.correlation[path.ref[on_host]]
    start[device] = work.start_ns[path.ref[device]] - account.clock.shift_ns + trace.file_zero_ns
    start[on_host] = host.start_ns[path.ref[on_host]] + trace.file_zero_ns
    return correlation, start


def _name_codes(account: RankAccount, path: Path) -> IntArray:
    """Name code in the process's table of what each segment is about, -1 none."""
    codes = np.full(len(path), -1, np.int64)
    device = np.flatnonzero((path.side == ON_DEVICE) & (path.ref >= 0))
    host = np.flatnonzero((path.side != ON_DEVICE) & (path.ref >= 0))
    codes[device] = account.work.table.name[path.ref[device]]
    codes[host] = account.trace.process.host.name[path.ref[host]]
    return codes


def _recode(codes: IntArray, texts: tuple[str, ...], interner: _Interner) -> IntArray:
    values, inverse = unique_inverse(codes)
    # Interned in order of first appearance, so that equal inputs give equal tables.
    first = _first_positions(inverse, len(values))
    new = np.full(len(values), -1, np.int64)
    for at in np.argsort(first, kind="stable").tolist():
        if values[at] >= 0:
            new[at] = interner.code(texts[values[at]])
    return new[inverse] if len(codes) else codes


def _first_positions(inverse: IntArray, count: int) -> IntArray:
    """Where each of ``count`` values occurs first."""
    first = np.empty(count, np.int64)
    first[inverse[::-1]] = np.arange(len(inverse))[::-1]  # of several writes to one place the last holds
    return first


def _places(
    process: ProcessTrace, lane: np.ndarray[tuple[int], np.dtype[np.int32]], path: Path, places: _Interner
) -> IntArray:
    device = (path.side == ON_DEVICE) & (path.ref >= 0)
    key = np.where(path.thread >= 0, -2 - path.thread, -1)
    key[device] = lane[path.ref[device]]
    values, inverse = unique_inverse(key)
    first = _first_positions(inverse, len(values))
    new = np.full(len(values), -1, np.int64)
    for at in np.argsort(first, kind="stable").tolist():
        value = int(values[at])
        if value >= 0:
            new[at] = places.code(place_of_lane(process, value))
        elif value < -1:
            new[at] = places.code(place_of_thread(process, -2 - value))
    return new[inverse] if len(key) else key


def join_tables(tables: list[SegmentTable]) -> SegmentTable:
    """Tables of several ranks as one. Empties the list, so that little more than one copy lies in memory."""
    texts = {"name": _Interner(), "place": _Interner()}
    plain = [f.name for f in fields(SegmentTable) if f.name not in (*texts, "names", "places")]
    parts: dict[str, list[Any]] = {name: [] for name in (*plain, *texts)}
    while tables:
        table = tables.pop(0)
        for name in plain:
            parts[name].append(getattr(table, name))
        for name, interner in texts.items():
            new = [interner.code(text) for text in getattr(table, f"{name}s")]
            parts[name].append(np.array([*new, -1], np.int32)[getattr(table, name)])
    del table
    columns: dict[str, Any] = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    return SegmentTable(**columns, names=tuple(texts["name"].texts), places=tuple(texts["place"].texts))
