"""The collected rows of one file -> the tables of the event model."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from analyzer.model import (
    CodeArray,
    DeviceKind,
    DeviceTable,
    EventRecordTable,
    FlowTable,
    HostKind,
    HostTable,
    IntArray,
    Lane,
    ProcessTrace,
    SyncTable,
    Thread,
)
from analyzer.readers.interning import Interner
from analyzer.readers.kineto_json.collectives import inside
from analyzer.readers.kineto_json.columns import Rows
from analyzer.readers.kineto_json.device_rows import copy_kind
from analyzer.readers.kineto_json.events import Number

# Nothing recorded relative to a base can reach this many nanoseconds (31 years): it is epoch time.
EPOCH_NS = 10**18
# The CUDA version in which an API got its form, as _v7000; cudaStreamGetCaptureInfo_v2 is a name of its own.
_CALL_VERSION = re.compile(r"_v\d{4,}$")


@dataclass(frozen=True)
class Tables:
    """Both sides of one file, times relative to ``zero_ns`` (0 where the file knows no epoch)."""

    process: ProcessTrace
    device: DeviceTable
    epoch_zero_ns: int | None
    zero_ns: int
    outside_epoch: int  # rows left out because their time is no epoch time although the file's are
    unpaired_flows: int
    call_processes: int


def build(rows: Rows, base_ns: int | None) -> Tables:
    """Sort, link and name everything. ``base_ns``: epoch time that the file's times are relative to."""
    host, device = _host(rows), _device(rows)
    latest = max((int(table.start_ns.max()) for table in (host, device) if len(table)), default=0)
    is_epoch = base_ns is None and latest >= EPOCH_NS
    outside = 0
    if is_epoch:
        kept_host, kept_device = host.start_ns >= EPOCH_NS, device.start_ns >= EPOCH_NS
        outside = int((~kept_host).sum() + (~kept_device).sum())
        host, device = host.take(kept_host), device.take(kept_device)
    zero = 0
    if is_epoch or base_ns is not None:
        zero = min((int(table.start_ns.min()) for table in (host, device) if len(table)), default=0)
    threads = name_threads(rows, host)
    host = _order_host(rows, host, threads.codes, zero)
    device = _order_device(device, zero)
    calls = CallIndex(host)
    device = replace(device, collective=_link_collectives(rows, device, calls, threads.codes, zero))
    flows, unpaired = _flows(rows, threads.codes, zero)
    process = ProcessTrace(
        pid=threads.process,
        name=rows.process_names.get(threads.process, ""),
        names=tuple(rows.names),
        threads=threads.threads,
        lanes=tuple(Lane(*key) for key in rows.lanes),
        host=host,
        syncs=_syncs(rows, calls),
        event_records=EventRecordTable(
            correlation=np.array(list(rows.syncs.records.keys()), dtype=np.int64),
            lane=np.array(list(rows.syncs.records.values()), dtype=np.int32),
        ),
        flows=flows,
    )
    epoch = (base_ns or 0) + zero if is_epoch or base_ns is not None else None
    return Tables(process, device, epoch, zero, outside, unpaired, threads.call_processes)


def _host(rows: Rows) -> HostTable:
    table, n = rows.host, len(rows.host)
    return HostTable(
        start_ns=table.column("start_ns", np.int64),
        end_ns=table.column("end_ns", np.int64),
        kind=table.column("kind", np.int8),
        thread=table.column("thread", np.int32),
        name=table.column("name", np.int32),
        correlation=table.column("correlation", np.int64),
        result=np.full(n, -1, dtype=np.int64),
        domain=np.full(n, -1, dtype=np.int32),
        end_thread=np.full(n, -1, dtype=np.int32),
        position=table.column("position", np.int64),
    )


def _device(rows: Rows) -> DeviceTable:
    table, n = rows.device.table, len(rows.device)
    kind, name = table.column("kind", np.int8), table.column("name", np.int32)
    is_copy = kind == DeviceKind.COPY
    names = tuple(rows.names)
    lookup = np.full((len(names) + 1, 3), -1, dtype=np.int8)
    for code in np.unique(name[is_copy]).tolist():
        lookup[code] = copy_kind(names[code] if code >= 0 else "")
    from_name = np.where(is_copy[:, None], lookup[name], np.int8(-1))
    hint = table.column("copy_kind", np.int8)
    return DeviceTable(
        start_ns=table.column("start_ns", np.int64),
        end_ns=table.column("end_ns", np.int64),
        kind=kind,
        lane=table.column("lane", np.int32),
        name=name,
        correlation=table.column("correlation", np.int64),
        graph_exec=table.column("graph_exec", np.int64),
        graph_node=table.column("graph_node", np.int64),
        grid=table.column("grid", np.int32).reshape(n, 3),
        block=table.column("block", np.int32).reshape(n, 3),
        registers=table.column("registers", np.int32),
        shared_static=table.column("shared_static", np.int64),
        shared_dynamic=np.full(n, -1, dtype=np.int64),
        occupancy_pct=table.column("occupancy_pct", np.int32),
        bytes=table.column("bytes", np.int64),
        copy_kind=np.where(is_copy & (from_name[:, 0] <= 0) & (hint >= 0), hint, from_name[:, 0]),
        src_memory=from_name[:, 1],
        dst_memory=from_name[:, 2],
        collective=table.column("collective", np.int32),
        position=table.column("position", np.int64),
    )


@dataclass(frozen=True)
class Threads:
    """The threads of a file. ``codes[raw code]`` is the index of the thread."""

    threads: tuple[Thread, ...]
    codes: CodeArray
    process: str
    call_processes: int  # processes that made runtime calls; one in every file that a profiler wrote


def name_threads(rows: Rows, host: HostTable) -> Threads:
    """Threads by the text of (pid, tid): exporters write the same id as a number here and as text there."""
    keys = [(_text(pid), _text(tid)) for pid, tid in rows.threads]
    busy: Counter[str] = Counter()
    calling: set[str] = set()
    counts = np.bincount(host.thread[host.thread >= 0], minlength=len(keys)).tolist()
    called = set(np.unique(host.thread[host.kind == HostKind.CALL]).tolist())
    for code, (key, count) in enumerate(zip(keys, counts, strict=True)):
        busy[key[0]] += count
        if code in called:
            calling.add(key[0])
    process = busy.most_common(1)[0][0] if busy else ""
    index: Interner[tuple[str, str]] = Interner()
    codes = index.codes(keys)
    threads = tuple(
        Thread(tid=tid if pid == process else f"{pid}/{tid}", name=rows.thread_names.get((pid, tid), ""))
        for pid, tid in index
    )
    return Threads(threads, codes, process, len(calling))


def _text(value: Number) -> str:
    if value is None:
        return "?"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _order_host(rows: Rows, host: HostTable, thread_codes: CodeArray, zero: int) -> HostTable:
    thread = np.append(thread_codes, np.int32(-1))[host.thread]
    names = tuple(rows.names)
    renamed = np.arange(len(names) + 1, dtype=np.int32)
    renamed[-1] = -1
    for code in np.unique(host.name[(host.kind == HostKind.CALL) & (host.name >= 0)]).tolist():
        renamed[code] = rows.names[_CALL_VERSION.sub("", names[code])]
    host = replace(
        host,
        start_ns=host.start_ns - zero,
        end_ns=host.end_ns - zero,
        thread=thread,
        name=np.where(host.kind == HostKind.CALL, renamed[host.name], host.name),
    )
    return host.take(np.lexsort((host.position, -host.end_ns, host.start_ns, host.thread)))


def _order_device(device: DeviceTable, zero: int) -> DeviceTable:
    device = replace(device, start_ns=device.start_ns - zero, end_ns=device.end_ns - zero)
    return device.take(np.lexsort((device.position, device.end_ns, device.start_ns)))


class CallIndex:
    """Finds the host call of a correlation id."""

    def __init__(self, host: HostTable) -> None:
        calls = np.flatnonzero((host.kind == HostKind.CALL) & (host.correlation > 0))
        order = np.argsort(host.correlation[calls], kind="stable")
        self.host = host
        self._row = calls[order]
        self._key = host.correlation[self._row]

    def rows(self, correlation: IntArray) -> IntArray:
        """(n,) int64 row of the host table, -1 where no call has that id (0 is no id)."""
        if not len(self._key):
            return np.full(len(correlation), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._key, correlation), len(self._key) - 1)
        return np.where((self._key[at] == correlation) & (correlation > 0), self._row[at], -1)


def _link_collectives(
    rows: Rows, device: DeviceTable, calls: CallIndex, thread_codes: CodeArray, zero: int
) -> CodeArray:
    """Codes of ``device.collective``, completed for NCCL kernels launched inside a described op."""
    ops = rows.comm_ops
    if not len(ops) or not len(device):
        return device.collective
    is_nccl = np.array(["nccl" in name.lower() for name in rows.names] + [False])
    open_rows = np.flatnonzero((device.collective < 0) & is_nccl[device.name])
    launch = calls.rows(device.correlation[open_rows])
    open_rows, launch = open_rows[launch >= 0], launch[launch >= 0]
    op = inside(
        calls.host.thread[launch],
        calls.host.start_ns[launch],
        thread_codes[ops.column("thread", np.int32)],
        ops.column("start_ns", np.int64) - zero,
        ops.column("end_ns", np.int64) - zero,
    )
    code = ops.column("code", np.int32)
    completed = device.collective.copy()
    completed[open_rows[op >= 0]] = code[op[op >= 0]]
    return completed


def _syncs(rows: Rows, calls: CallIndex) -> SyncTable:
    correlation = np.array(rows.syncs.correlation, dtype=np.int64)
    call = calls.rows(correlation)
    asks = np.array(["query" in name.lower() for name in rows.names] + [False])
    name = np.append(calls.host.name, np.int32(-1))[call]
    return SyncTable(
        correlation=correlation,
        lane=np.array(rows.syncs.lane, dtype=np.int32),
        record_correlation=np.array(rows.syncs.record, dtype=np.int64),
        polled=asks[name],
    )


def _flows(rows: Rows, thread_codes: CodeArray, zero: int) -> tuple[FlowTable, int]:
    """Pairs of a flow's two ends, and how many ends have no partner.

    Ids can come again in one file: the n-th start of an id belongs to its n-th finish, by time.
    """
    table = rows.flows
    flow, starts = table.column("id", np.int64), table.column("starts", np.int64).astype(bool)
    thread, at = table.column("thread", np.int32), table.column("at_ns", np.int64)
    kind = table.column("kind", np.int32)
    order = np.lexsort((at, flow, ~starts))
    flow, starts, thread, at, kind = (c[order] for c in (flow, starts, thread, at, kind))
    n_starts = int(starts.sum())
    nth = _occurrence(flow[:n_starts]), _occurrence(flow[n_starts:])
    width = len(flow) + 1
    left, right = flow[:n_starts] * width + nth[0], flow[n_starts:] * width + nth[1]
    _, source, target = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    target = target + n_starts
    by_target = np.lexsort((at[source], at[target], thread[target]))
    source, target = source[by_target], target[by_target]
    codes = thread_codes if len(thread_codes) else np.zeros(1, dtype=np.int32)
    flows = FlowTable(
        from_thread=codes[thread[source]],
        from_ns=at[source] - zero,
        to_thread=codes[thread[target]],
        to_ns=at[target] - zero,
        kind=kind[source],
    )
    return flows, len(flow) - 2 * len(source)


def _occurrence(sorted_ids: IntArray) -> IntArray:
    """How many equal ids precede each of a sorted list."""
    return np.arange(len(sorted_ids)) - np.searchsorted(sorted_ids, sorted_ids)
