"""Splits the file's rows into processes and devices, and gives lanes and threads their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analyzer.arrays import group, unique_inverse
from analyzer.model import (
    CodeArray,
    DeviceTable,
    EventRecordTable,
    FlowTable,
    HostTable,
    IntArray,
    Lane,
    SyncTable,
    Thread,
)
from analyzer.readers.nsys_sqlite.activities import DeviceRows
from analyzer.readers.nsys_sqlite.devices import Streams
from analyzer.readers.nsys_sqlite.host import HostRows
from analyzer.readers.nsys_sqlite.identifiers import NO_PROCESS, tid_of
from analyzer.readers.nsys_sqlite.sync import RecordRows, SyncRows

UNKNOWN_DEVICE = -1

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LaneBook:
    """The lanes of one process and where each of its streams lies."""

    lanes: tuple[Lane, ...]
    index: dict[tuple[int, int, int], int]  # (device, context, stream) → position in lanes
    device_of_context: dict[int, int]

    def codes(self, context: IntArray, stream: IntArray) -> CodeArray:
        """(n,) lanes of streams whose device only the context tells; -1 where no stream is named."""
        keys, inverse = group([context, stream])
        lookup = [
            self.index.get((self.device_of_context.get(ctx, UNKNOWN_DEVICE), ctx, number), -1)
            for ctx, number in keys
        ]
        return np.array(lookup, np.int32)[inverse] if len(inverse) else np.empty(0, np.int32)


def lane_book(
    process: int, device_rows: Iterable[tuple[int, int, int]], named: set[tuple[int, int]], streams: Streams
) -> LaneBook:
    """Lanes of a process: of its device work, and of ``named`` (context, stream) pairs without work."""
    keys = set(device_rows)
    of_context = {context: device for device, context, _ in keys}
    devices = {device for device, _, _ in keys}
    for context in {context for context, _ in named} - of_context.keys():
        told = streams.device_of(process, context)
        only = next(iter(devices)) if len(devices) == 1 else UNKNOWN_DEVICE
        of_context[context] = only if told is None else told
    keys |= {(of_context[context], context, stream) for context, stream in named}
    ordered = sorted(keys)
    lanes = tuple(
        Lane(device, context, stream, streams.flag_of(process, context, stream))
        for device, context, stream in ordered
    )
    return LaneBook(lanes, {key: position for position, key in enumerate(ordered)}, of_context)


@dataclass(frozen=True)
class DeviceSplit:
    """Device rows by lane key, so that each (process, device) is cut out once."""

    rows: DeviceRows
    keys: list[tuple[int, ...]]  # distinct (process, device, context, stream)
    codes: IntArray  # (n,) position of each row in keys

    @classmethod
    def of(cls, rows: DeviceRows) -> DeviceSplit:
        """Groups the rows; the only pass over all of them."""
        keys, codes = group([rows.process, rows.device, rows.context, rows.stream])
        return cls(rows, keys, codes)

    def lanes_of(self, process: int) -> list[tuple[int, int, int]]:
        """(device, context, stream) of all device work of the process."""
        return [(key[1], key[2], key[3]) for key in self.keys if key[0] == process]

    def table(self, process: int, device: int, book: LaneBook) -> DeviceTable:
        """The sorted device table of one rank; without rows for a device that has none."""
        places = [
            book.index[on, context, stream] if (owner, on) == (process, device) else -1
            for owner, on, context, stream in self.keys
        ]
        lookup = np.array(places, np.int32)
        lanes = lookup[self.codes] if len(self.codes) else np.empty(0, np.int32)
        mine = lanes >= 0
        table = replace(self.rows.table, lane=lanes)
        if not mine.all():
            table = table.take(mine)
        starts = table.start_ns
        if np.all(starts[1:] > starts[:-1]):
            return table
        return table.take(np.lexsort((table.end_ns, starts)))  # stable: position breaks ties


def split_host(
    host: HostRows, mine: Mask, main_names: dict[int, str]
) -> tuple[HostTable, tuple[Thread, ...]]:
    """One process's host table and threads (sorted by id). ``main_names``: thread names by globalTid."""
    rows = np.flatnonzero(mine)
    tids, thread = unique_inverse(host.thread[rows])
    threads = tuple(Thread(str(tid_of(int(tid))), main_names.get(int(tid), "")) for tid in tids)
    ends = host.end_thread[rows]
    end_thread = np.full(len(rows), -1, np.int32)
    moved = np.flatnonzero(ends != NO_PROCESS)
    if len(moved):
        places = np.minimum(np.searchsorted(tids, ends[moved]), len(tids) - 1)
        end_thread[moved] = np.where(tids[places] == ends[moved], places, -1)
    table = HostTable(
        start_ns=host.start_ns[rows],
        end_ns=host.end_ns[rows],
        kind=host.kind[rows],
        thread=thread.astype(np.int32),
        name=host.name[rows],
        correlation=host.correlation[rows],
        result=host.result[rows],
        domain=host.domain[rows],
        end_thread=end_thread,
        position=rows,
    )
    # Stable, and rows are in file order: position breaks ties.
    return table.take(np.lexsort((-table.end_ns, table.start_ns, table.thread))), threads


def split_syncs(
    syncs: SyncRows, records: RecordRows, process: int, book: LaneBook
) -> tuple[SyncTable, EventRecordTable]:
    """One process's synchronizations and event records, lanes resolved."""
    mine = syncs.process == process
    lane = book.codes(syncs.context[mine], syncs.stream[mine])
    table = SyncTable(syncs.correlation[mine], lane, syncs.record_correlation[mine], syncs.polled[mine])
    mine = records.process == process
    lane = book.codes(records.context[mine], records.stream[mine])
    return table, EventRecordTable(records.correlation[mine], lane)


def named_streams(syncs: SyncRows, records: RecordRows, process: int) -> set[tuple[int, int]]:
    """(context, stream) pairs that synchronizations and event records of the process name."""
    pairs: set[tuple[int, int]] = set()
    for table in (syncs, records):
        mine = (table.process == process) & (table.stream >= 0)
        keys, _ = group([table.context[mine], table.stream[mine]])
        pairs |= {(context, stream) for context, stream in keys}
    return pairs


def no_flows() -> FlowTable:
    """The empty flow table: nsys records no hand-overs between threads."""
    code, time = np.empty(0, np.int32), np.empty(0, np.int64)
    return FlowTable(from_thread=code, from_ns=time, to_thread=code, to_ns=time, kind=code)
