"""A literal builder of schedules: what a test writes down is what the analysis reads, without any file.

Times are microseconds, unless the schedule says ``unit_ns=1``. Every method adds one thing and returns the
schedule, so that a test reads like a timeline::

    schedule()
    .launch(0, 4, runs=(10, 30), name="gemm")  # cudaLaunchKernel 0-4, its kernel on stream 7 from 10 to 30
    .sync(5, 33, stream=7)

``path_of`` and its siblings answer in the schedule's own unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from analyzer.analysis import Analysis
from analyzer.categories import BINDING_NAMES, CATEGORY_NAMES, Binding, Category
from analyzer.model import (
    Capture,
    CollectiveInfo,
    CopyKind,
    DeviceInfo,
    DeviceKind,
    DeviceTable,
    Diagnostic,
    EventRecordTable,
    FlowTable,
    HostKind,
    HostTable,
    Lane,
    MemoryKind,
    ProcessTrace,
    Source,
    StreamFlag,
    SyncTable,
    Thread,
    Trace,
)
from analyzer.pipeline import analyze
from analyzer.reconstruct.rank import RankAccount, RankOptions, reconstruct_rank

Row = tuple[int, int, str, str]
EVERYTHING = frozenset(
    {"kernel", "copy", "set", "graph", "graph-node", "call", "sync", "event-record", "nvtx", "op", "frame",
     "os", "overhead", "flow"}
)  # fmt: skip
Span = tuple[int, int]


@dataclass(repr=False)
class Schedule:
    """Host records, device work and what ties them, in the order a test writes them."""

    unit_ns: int = 1000
    captured: frozenset[str] = EVERYTHING
    diagnostics: tuple[Diagnostic, ...] = ()
    partial: bool = False
    hostname: str | None = None
    sm_count: int | None = None
    capability: tuple[int, int] | None = None
    vendor: str = "cuda"
    names: dict[str, int] = field(default_factory=dict)
    threads: list[Thread] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    flags: dict[int, StreamFlag] = field(default_factory=dict)
    host: list[dict[str, int]] = field(default_factory=list)
    device: list[dict[str, Any]] = field(default_factory=list)
    syncs: list[tuple[int, int, int, bool]] = field(default_factory=list)
    records: list[tuple[int, int]] = field(default_factory=list)
    flows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)
    collectives: list[CollectiveInfo] = field(default_factory=list)
    at_thread: int = -1
    correlations: int = 0

    def __repr__(self) -> str:
        """Short enough for a failing property: host and device rows by time, in ns."""
        texts = list(self.names)
        host = [(r["start_ns"], r["end_ns"], texts[r["name"]], r["correlation"]) for r in self.host]
        device = [
            (r["start_ns"], r["end_ns"], texts[r["name"]], f"lane {r['lane']}", r["correlation"])
            for r in self.device
        ]
        return f"Schedule(host={host}, device={device}, syncs={self.syncs}, records={self.records})"

    # who is acting

    def thread(self, name: str) -> Self:
        """Host records that follow are of this thread (``""``: of none)."""
        known = [entry.tid for entry in self.threads]
        if not name:
            self.at_thread = -1
        elif name in known:
            self.at_thread = known.index(name)
        else:
            self.threads.append(Thread(name))
            self.at_thread = len(known)
        return self

    def flag(self, stream: int, flag: StreamFlag) -> Self:
        """How a stream orders itself against the legacy default stream; before its first use."""
        self.flags[stream] = flag
        return self

    # host records

    def call(self, start: int, end: int, name: str, *, corr: int = 0, result: int = -1) -> Self:
        return self._host(start, end, HostKind.CALL, name, correlation=corr, result=result)

    def op(self, start: int, end: int, name: str) -> Self:
        return self._host(start, end, HostKind.OP, name)

    def range(self, start: int, end: int, name: str) -> Self:
        return self._host(start, end, HostKind.RANGE, name)

    def span(self, start: int, end: int, name: str) -> Self:
        return self._host(start, end, HostKind.SPAN, name)

    def frame(self, start: int, end: int, name: str) -> Self:
        return self._host(start, end, HostKind.FRAME, name)

    def os(self, start: int, end: int, name: str) -> Self:
        return self._host(start, end, HostKind.OS, name)

    def overhead(self, start: int, end: int, name: str = "Instrumentation") -> Self:
        return self._host(start, end, HostKind.OVERHEAD, name)

    def flow(self, source: str, left: int, target: str, arrived: int, kind: str = "handoff") -> Self:
        tids = [entry.tid for entry in self.threads]
        unit = self.unit_ns
        row = (tids.index(source), left * unit, tids.index(target), arrived * unit, self._name(kind))
        self.flows.append(row)
        return self

    # device work

    def launch(
        self,
        start: int,
        end: int,
        *,
        runs: Span | None = None,
        name: str = "k",
        stream: int = 7,
        api: str = "cudaLaunchKernel",
        grid: int = 1,
        **more: Any,
    ) -> Self:
        """A launch call and the kernel it brings (``runs``: its start and end; ``more``: its columns)."""
        corr = self._correlation()
        self.call(start, end, api, corr=corr)
        if runs is None:
            return self
        return self.kernel(*runs, name, stream=stream, corr=corr, grid=grid, **more)

    def graph(
        self,
        start: int,
        end: int,
        nodes: Iterable[tuple[int, int, str, int]] = (),
        *,
        exec_id: int = 1,
        api: str = "cudaGraphLaunch",
    ) -> Self:
        """A graph launch and its nodes: (start, end, name, stream)."""
        corr = self._correlation()
        self.call(start, end, api, corr=corr)
        for begin, finish, name, stream in nodes:
            self.kernel(begin, finish, name, stream=stream, corr=corr, graph_exec=exec_id)
        return self

    def whole_graph(self, start: int, end: int, *, runs: Span, exec_id: int = 1, stream: int = 7) -> Self:
        """A graph launch whose replay was recorded as one row."""
        corr = self._correlation()
        self.call(start, end, "cudaGraphLaunch", corr=corr)
        return self._device(
            *runs, DeviceKind.GRAPH, "CUDA graph", stream=stream, correlation=corr, graph_exec=exec_id
        )

    def kernel(
        self,
        start: int,
        end: int,
        name: str = "k",
        *,
        stream: int = 7,
        corr: int = 0,
        graph_exec: int = -1,
        grid: int = 1,
        collective: int = -1,
        **more: Any,
    ) -> Self:
        return self._device(
            start, end, DeviceKind.KERNEL, name, stream=stream, correlation=corr, graph_exec=graph_exec,
            grid=grid, collective=collective, **more,
        )  # fmt: skip

    def copy(
        self,
        start: int,
        end: int,
        *,
        runs: Span,
        kind: CopyKind = CopyKind.HTOD,
        host: MemoryKind = MemoryKind.PINNED,
        size: int = 1 << 20,
        api: str = "cudaMemcpyAsync",
        stream: int = 7,
    ) -> Self:
        """A copy call and the transfer it makes; ``host`` is the memory at the host's end."""
        corr = self._correlation()
        self.call(start, end, api, corr=corr)
        up = kind == CopyKind.HTOD
        src, dst = (host, MemoryKind.DEVICE) if up else (MemoryKind.DEVICE, host)
        return self._device(
            *runs, DeviceKind.COPY, f"Memcpy {kind.name}", stream=stream, correlation=corr,
            bytes=size, copy_kind=kind, src_memory=src, dst_memory=dst,
        )  # fmt: skip

    # synchronization

    def sync(self, start: int, end: int, *, stream: int | None = None, row: bool = True) -> Self:
        """cudaStreamSynchronize on ``stream`` (None: cudaDeviceSynchronize); ``row``: it was recorded."""
        corr = self._correlation()
        name = "cudaDeviceSynchronize" if stream is None else "cudaStreamSynchronize"
        self.call(start, end, name, corr=corr)
        if row and stream is not None:
            self.syncs.append((corr, self._lane(stream), 0, False))
        return self

    def event_record(self, start: int, end: int, event: str, *, stream: int = 7, row: bool = True) -> Self:
        corr = self._correlation()
        self.call(start, end, "cudaEventRecord", corr=corr)
        if row:
            self.records.append((corr, self._lane(stream)))
        self.events[event] = corr
        return self

    def event_wait(self, start: int, end: int, event: str, *, stream: int, result: int = -1) -> Self:
        """cudaStreamWaitEvent: ``stream`` waits for the latest record of ``event``."""
        corr = self._correlation()
        self.call(start, end, "cudaStreamWaitEvent", corr=corr, result=result)
        self.syncs.append((corr, self._lane(stream), self.events[event], False))
        return self

    def event_sync(self, start: int, end: int, event: str) -> Self:
        corr = self._correlation()
        self.call(start, end, "cudaEventSynchronize", corr=corr)
        self.syncs.append((corr, -1, self.events[event], False))
        return self

    def query(self, start: int, end: int, *, ready: bool | None) -> Self:
        """cudaEventQuery with its return value (None: not recorded)."""
        return self.call(start, end, "cudaEventQuery", result={True: 0, False: 600, None: -1}[ready])

    # what the analysis reads

    def build(self) -> Trace:
        process = ProcessTrace(
            pid="1",
            name="engine",
            names=tuple(self.names),
            threads=tuple(self.threads),
            lanes=tuple(self.lanes),
            host=self._host_table(),
            syncs=self._sync_table(),
            event_records=EventRecordTable(
                *(np.array(column, kind) for column, kind in
                  zip(_columns(self.records, 2), (np.int64, np.int32), strict=True))
            ),
            flows=self._flow_table(),
        )  # fmt: skip
        source = Source(
            "capture.json",
            "kineto-json",
            captured=self.captured,
            diagnostics=self.diagnostics,
            partial=self.partial,
            vendor=self.vendor,
        )
        info = (
            DeviceInfo(0, sm_count=self.sm_count, compute_capability=self.capability) if self.device else None
        )
        return Trace(
            source, process, info, self._device_table(), tuple(self.collectives), hostname=self.hostname
        )

    def capture(self) -> Capture:
        return Capture((self.build(),), (0,))

    # inside

    def _correlation(self) -> int:
        self.correlations += 1
        return 1000 + self.correlations

    def _name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def _lane(self, stream: int) -> int:
        lane = Lane(0, 1, stream, self.flags.get(stream, StreamFlag.UNKNOWN))
        if lane not in self.lanes:
            self.lanes.append(lane)
        return self.lanes.index(lane)

    def _host(
        self, start: int, end: int, kind: HostKind, name: str, *, correlation: int = 0, result: int = -1
    ) -> Self:
        if self.at_thread < 0 and kind != HostKind.OVERHEAD:
            self.thread("main")
        self.host.append(
            {
                "start_ns": start * self.unit_ns,
                "end_ns": end * self.unit_ns,
                "kind": kind,
                "thread": self.at_thread,
                "name": self._name(name),
                "correlation": correlation,
                "result": result,
                "domain": -1,
                "end_thread": -1,
                "position": len(self.host),
            }
        )
        return self

    def _device(self, start: int, end: int, kind: DeviceKind, name: str, *, stream: int, **more: Any) -> Self:
        row: dict[str, Any] = dict.fromkeys(DeviceTable.__dataclass_fields__, -1)
        grid = more.pop("grid", 1)
        row |= {
            "start_ns": start * self.unit_ns,
            "end_ns": end * self.unit_ns,
            "kind": kind,
            "lane": self._lane(stream),
            "name": self._name(name),
            "correlation": 0,
            "grid": (grid, 1, 1),
            "block": (32, 1, 1),
            "position": len(self.device),
        }
        self.device.append(row | more)
        return self

    def _host_table(self) -> HostTable:
        rows = sorted(self.host, key=lambda r: (r["thread"], r["start_ns"], -r["end_ns"], r["position"]))
        types = {
            "kind": np.int8,
            "thread": np.int32,
            "name": np.int32,
            "domain": np.int32,
            "end_thread": np.int32,
        }
        return HostTable(
            **{
                column: np.array([row[column] for row in rows], types.get(column, np.int64))
                for column in HostTable.__dataclass_fields__
            }
        )

    def _device_table(self) -> DeviceTable:
        rows = sorted(self.device, key=lambda r: (r["start_ns"], r["end_ns"], r["position"]))
        small = dict.fromkeys(("kind", "copy_kind", "src_memory", "dst_memory"), np.int8)
        codes = dict.fromkeys(("lane", "name", "registers", "occupancy_pct", "collective"), np.int32)
        columns = {}
        for column in DeviceTable.__dataclass_fields__:
            if column in ("grid", "block"):
                columns[column] = np.array([row[column] for row in rows], np.int32).reshape(-1, 3)
            else:
                kind = small.get(column) or codes.get(column) or np.int64
                columns[column] = np.array([row[column] for row in rows], kind)
        return DeviceTable(**columns)

    def _sync_table(self) -> SyncTable:
        correlation, lane, record, polled = _columns(self.syncs, 4)
        return SyncTable(
            np.array(correlation, np.int64),
            np.array(lane, np.int32),
            np.array(record, np.int64),
            np.array(polled, bool),
        )

    def _flow_table(self) -> FlowTable:
        rows = sorted(self.flows, key=lambda row: (row[2], row[3]))
        source, left, target, arrived, kind = _columns(rows, 5)
        return FlowTable(
            np.array(source, np.int32),
            np.array(left, np.int64),
            np.array(target, np.int32),
            np.array(arrived, np.int64),
            np.array(kind, np.int32),
        )


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[at] for row in rows] for at in range(width)]


def schedule(unit_ns: int = 1000, sm_count: int | None = None) -> Schedule:
    """An empty schedule with one thread, ``main``."""
    return Schedule(unit_ns=unit_ns, sm_count=sm_count).thread("main")


def account_of(built: Schedule, **options: Any) -> RankAccount:
    """The schedule reconstructed, as the only device of its process."""
    return reconstruct_rank(built.build(), RankOptions(**options), sole_device=True)


def analysis_of(built: Schedule, **options: Any) -> Analysis:
    """The schedule analyzed: what a user gets."""
    return analyze(built.capture(), **options)


def path_of(built: Schedule, window: int = 0, **options: Any) -> list[Row]:
    """The window's path: (start, end, category, name); neighbours that differ in nothing are joined."""
    table = analysis_of(built, **options).segment_table
    assert table is not None
    rows: list[Row] = []
    for at in np.flatnonzero(table.window == window).tolist():
        name = table.names[table.name[at]] if table.name[at] >= 0 else ""
        category = CATEGORY_NAMES[Category(int(table.category[at]))]
        start, end = _units(built, table.start_ns[at]), _units(built, table.end_ns[at])
        if rows and rows[-1][1:] == (start, category, name):
            rows[-1] = (rows[-1][0], end, category, name)
        else:
            rows.append((start, end, category, name))
    return rows


def causes_of(built: Schedule, window: int = 0, **options: Any) -> list[tuple[int, int, str, bool]]:
    """The window's path by cause: (start, end, binding, inferred), equal neighbours joined."""
    table = analysis_of(built, **options).segment_table
    assert table is not None
    rows: list[tuple[int, int, str, bool]] = []
    for at in np.flatnonzero(table.window == window).tolist():
        binding, inferred = BINDING_NAMES[Binding(int(table.binding[at]))], bool(table.inferred[at])
        start, end = _units(built, table.start_ns[at]), _units(built, table.end_ns[at])
        if rows and rows[-1][1:] == (start, binding, inferred):
            rows[-1] = (rows[-1][0], end, binding, inferred)
        else:
            rows.append((start, end, binding, inferred))
    return rows


def windows_of(built: Schedule, **options: Any) -> list[tuple[int, int, str]]:
    """All windows: (start, end, step)."""
    rank = analysis_of(built, **options).diagnosis.ranks[0]
    return [(_units(built, w.start_ns), _units(built, w.end_ns), w.step) for w in rank.windows]


def exposed_of(built: Schedule, window: int = 0, **options: Any) -> dict[str, int]:
    """The window's exposed time by label, zeros left out."""
    labels = analysis_of(built, **options).diagnosis.ranks[0].windows[window].exposed_ns
    assert labels is not None
    return {label: _units(built, value) for label, value in labels.items() if value}


def quality_of(built: Schedule, **options: Any) -> dict[str, int]:
    """The data-quality ledger: count by reason."""
    return {entry.reason: entry.count for entry in analysis_of(built, **options).diagnosis.quality}


def _units(built: Schedule, value_ns: int) -> int:
    units, rest = divmod(int(value_ns), built.unit_ns)
    assert rest == 0, f"{value_ns} ns is no multiple of {built.unit_ns}"
    return units


__all__ = [
    "EVERYTHING",
    "Schedule",
    "account_of",
    "analysis_of",
    "causes_of",
    "exposed_of",
    "path_of",
    "quality_of",
    "schedule",
    "windows_of",
]
