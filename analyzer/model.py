"""The one event model: what every reader produces and every later stage consumes.

All times are int64 nanoseconds on the clock of the capture, relative to
``Trace.epoch_zero_ns``. Tables are columns (numpy arrays of one length). Names are int32 codes into
``ProcessTrace.names``; -1 means "no name". "Not captured" is -1 (ids and sizes) and never 0.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from collectors.manifest import Manifest, RankRecord

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
SmallArray = npt.NDArray[np.int8]

T = TypeVar("T", bound="Columns")


class DeviceKind(IntEnum):
    """What a row of the device table is."""

    KERNEL = 0
    COPY = 1
    SET = 2
    GRAPH = 3  # one row for a whole graph replay; what ran inside was not recorded


class HostKind(IntEnum):
    """What a row of the host table is."""

    CALL = 0  # CUDA/HIP runtime or driver API call
    OP = 1  # framework operator (cpu_op)
    RANGE = 2  # push/pop range: NVTX, user annotation
    FRAME = 3  # sampled or traced Python frame
    OS = 4  # OS runtime call (may block)
    OVERHEAD = 5  # time that the profiler itself recorded as its own
    SPAN = 6  # start/end range: may cross others, may end on another thread
    MARK = 7  # instant (start == end)


class CopyKind(IntEnum):
    """Direction of a copy, CUPTI's codes; -1 for rows that are no copies."""

    UNKNOWN = 0
    HTOD = 1
    DTOH = 2
    HTOA = 3
    ATOH = 4
    ATOA = 5
    ATOD = 6
    DTOA = 7
    DTOD = 8
    HTOH = 9
    PTOP = 10
    UM_HTOD = 11  # unified-memory migrations: driver work without a launch
    UM_DTOH = 12
    UM_DTOD = 13


class MemoryKind(IntEnum):
    """Kind of memory at one end of a copy, CUPTI's codes as nsys stores them; -1 unknown."""

    PAGEABLE = 0
    PINNED = 1
    DEVICE = 2
    ARRAY = 3
    MANAGED = 4
    DEVICE_STATIC = 5
    MANAGED_STATIC = 6
    UNKNOWN = 7


class StreamFlag(IntEnum):
    """How a stream orders itself against the legacy default stream."""

    UNKNOWN = 0
    BLOCKING = 1
    NON_BLOCKING = 2
    NULL = 3


@dataclass(frozen=True)
class Columns:
    """Base of all tables: a set of numpy columns of equal length. Columns named ``*_ns`` are instants."""

    def __post_init__(self) -> None:
        lengths = {f.name: len(getattr(self, f.name)) for f in fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of {type(self).__name__} differ in length: {lengths}")

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self: T, index: npt.NDArray[np.generic]) -> T:
        """The same table with the rows of ``index`` (int positions or a bool mask), in its order."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def shifted(self: T, shift_ns: int) -> T:
        """The same table with every instant moved by ``shift_ns``."""
        moved = {f.name: getattr(self, f.name) + shift_ns for f in fields(self) if f.name.endswith("_ns")}
        return replace(self, **moved)


@dataclass(frozen=True)
class DeviceTable(Columns):
    """Device work of one rank, sorted by (start, end, position).

    All columns are (n,). ``grid``/``block`` are (n, 3) int32. Sizes are bytes. -1: not recorded.
    """

    start_ns: IntArray
    end_ns: IntArray
    kind: SmallArray  # DeviceKind
    lane: CodeArray  # index into ProcessTrace.lanes
    name: CodeArray  # full (demangled) name where the capture has it
    correlation: IntArray  # 0: none recorded (never a key)
    graph_exec: IntArray  # executable graph that this row replayed, -1 none or unknown
    graph_node: IntArray  # node id inside a graph, -1 none
    grid: CodeArray
    block: CodeArray
    registers: CodeArray  # per thread
    shared_static: IntArray  # bytes per block; Kineto's one figure (static + dynamic) stands here
    shared_dynamic: IntArray  # bytes per block; -1 where only the sum is known
    occupancy_pct: CodeArray  # the trace's own "est. achieved occupancy", percent
    bytes: IntArray
    copy_kind: SmallArray  # CopyKind, -1 for rows that are no copies
    src_memory: SmallArray  # MemoryKind, -1 unknown
    dst_memory: SmallArray
    collective: CodeArray  # index into Trace.collectives, -1 none
    position: IntArray  # order in the file: the last tie-break of the total order

    @property
    def duration_ns(self) -> IntArray:
        """(n,) int64."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class HostTable(Columns):
    """Host records of one process, sorted by (thread, start, -end, position)."""

    start_ns: IntArray
    end_ns: IntArray
    kind: SmallArray  # HostKind
    thread: CodeArray  # index into ProcessTrace.threads; OVERHEAD rows without a thread: -1
    name: CodeArray  # CUDA calls without the version suffix (``_v7000``), ``_ptsz`` kept
    correlation: IntArray  # calls only; 0 none
    result: IntArray  # return value of a call, -1 not recorded
    domain: CodeArray  # name code of the NVTX domain, -1 default or not NVTX
    end_thread: CodeArray  # where a SPAN ended, -1 same thread
    position: IntArray


@dataclass(frozen=True)
class SyncTable(Columns):
    """What the capture recorded about a synchronizing call or a device-side stream wait.

    Joined to the host call by ``correlation``; the kind is decided by that call's name, because the
    type codes differ between profiler versions.
    """

    correlation: IntArray
    lane: CodeArray  # the stream waited for, or (stream wait) the stream that waits; -1 all/unknown
    record_correlation: IntArray  # the event-record call whose event it is, 0 unresolved
    polled: npt.NDArray[np.bool_]  # from a query: never blocks


@dataclass(frozen=True)
class EventRecordTable(Columns):
    """Event-record calls: ``correlation`` of the call and the stream it recorded on."""

    correlation: IntArray
    lane: CodeArray


@dataclass(frozen=True)
class FlowTable(Columns):
    """Recorded hand-overs between two host threads (``fwdbwd`` and the like), sorted by target."""

    from_thread: CodeArray
    from_ns: IntArray
    to_thread: CodeArray
    to_ns: IntArray
    kind: CodeArray  # name code


@dataclass(frozen=True)
class MetricTable(Columns):
    """Sampled hardware counters of one device."""

    time_ns: IntArray
    metric: CodeArray  # name code
    value: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Thread:
    """A host thread. ``tid`` is opaque (text of whatever the capture holds)."""

    tid: str
    name: str = ""


@dataclass(frozen=True)
class Lane:
    """One stream. Stream ids repeat over processes, devices and contexts; this is the whole key."""

    device: int
    context: int
    stream: int
    flag: StreamFlag = StreamFlag.UNKNOWN


@dataclass(frozen=True)
class CollectiveInfo:
    """Metadata that the capture attached to one collective; ``None`` is "not recorded"."""

    op: str | None
    dtype: str | None
    in_elements: int | None
    out_elements: int | None
    group: str | None
    group_description: str | None
    group_size: int | None
    group_ranks: tuple[int, ...] | None
    sequence: int | None
    src_rank: int | None = None
    dst_rank: int | None = None
    bytes: int | None = (
        None  # larger of what one rank puts in and gets out, where no elements and type tell it
    )


@dataclass(frozen=True)
class DeviceInfo:
    """What the capture says of one device; ``None`` is "not recorded"."""

    index: int  # as activity rows name it
    uuid: str | None = None
    name: str | None = None
    sm_count: int | None = None
    memory_bytes_per_s: int | None = None
    total_memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    limits: tuple[tuple[str, int], ...] = ()  # per-SM and per-block limits, by name
    physical: str | None = None  # identity across processes where no uuid is known


@dataclass(frozen=True)
class Diagnostic:
    """A message that the profiler left in the capture. severity: 1 info, 2 warning, 3 error."""

    severity: int
    text: str


@dataclass(frozen=True)
class QualityEntry:
    """One line of the data-quality ledger: ``count`` things of ``total`` for ``reason``.

    ``reason`` is a stable slug (``truncated-file``, ``bad-event-skipped``, ...), ``effect`` a plain
    sentence about what it does to the figures, ``place`` where it was seen.
    """

    reason: str
    count: int
    total: int | None
    effect: str
    place: str = ""


RECORD_CLASSES = (
    "kernel",
    "copy",
    "set",
    "graph",
    "graph-node",
    "call",
    "sync",
    "event-record",
    "nvtx",
    "op",
    "frame",
    "os",
    "overhead",
    "collective-metadata",
    "metrics",
    "stream-flags",
    "flow",
)
"""Every class of records that a capture can have a place for."""


@dataclass(frozen=True)
class Source:
    """One input file as it was read."""

    path: str
    kind: str  # "nsys-sqlite" | "kineto-json"
    profiler_version: str | None = None
    schema_version: str | None = None
    partial: bool = False  # truncated or salvaged
    vendor: str = "cuda"  # "cuda" | "rocm" | "none"
    captured: frozenset[str] = frozenset()
    """Those of RECORD_CLASSES for which the file has a place (a table, a category with rows).

    What is absent here was *not captured*.
    """
    settings: tuple[tuple[str, str], ...] = ()
    """Capture settings from an allow-list (graph trace mode, ...). Never environment variables."""
    diagnostics: tuple[Diagnostic, ...] = ()
    quality: tuple[QualityEntry, ...] = ()
    capture_duration_ns: int | None = None


NO_NAME = "<no name>"
"""What stands for a name that the capture does not hold."""


@dataclass(frozen=True)
class ProcessTrace:
    """The host side of one process, shared by all its ranks."""

    pid: str  # opaque: text of the pid or of nsys's global pid
    name: str
    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    lanes: tuple[Lane, ...]
    host: HostTable
    syncs: SyncTable
    event_records: EventRecordTable
    flows: FlowTable

    def name_of(self, code: int) -> str:
        """The text of a name code, NO_NAME for -1."""
        return self.names[code] if code >= 0 else NO_NAME

    def shifted(self, shift_ns: int) -> ProcessTrace:
        """The same process with every instant moved by ``shift_ns``."""
        return replace(self, host=self.host.shifted(shift_ns), flows=self.flows.shifted(shift_ns))


@dataclass(frozen=True)
class Trace:
    """One rank: one device of one process (or a process whose device work was not recorded)."""

    source: Source
    process: ProcessTrace
    device_info: DeviceInfo | None  # None: no device work was recorded for this process
    device: DeviceTable
    collectives: tuple[CollectiveInfo, ...] = ()
    rank: int | None = None  # as the file itself says it
    world_size: int | None = None
    hostname: str | None = None
    epoch_zero_ns: int | None = None  # epoch time of t = 0; None: the file does not know
    file_zero_ns: int = 0  # what t = 0 is in the file's own timestamps (ns; Kineto: ts x 1000)
    metrics: MetricTable | None = None

    def shifted(self, shift_ns: int) -> Trace:
        """The same trace on a zero that lies ``shift_ns`` earlier."""
        return replace(
            self,
            process=self.process.shifted(shift_ns),
            device=self.device.shifted(shift_ns),
            metrics=self.metrics.shifted(shift_ns) if self.metrics is not None else None,
            epoch_zero_ns=None if self.epoch_zero_ns is None else self.epoch_zero_ns - shift_ns,
            file_zero_ns=self.file_zero_ns - shift_ns,
        )


@dataclass(frozen=True)
class StoredTrace:
    """Where one rank's trace lies on disk; only the process and its workers read what they wrote."""

    path: str
    device_events: int
    shift_ns: int = 0  # added to every instant when it is loaded

    def load(self) -> Trace:
        """The whole trace."""
        with Path(self.path).open("rb") as file:
            trace: Trace = pickle.load(file)
        return trace.shifted(self.shift_ns) if self.shift_ns else trace


@dataclass(frozen=True)
class Capture:
    """All ranks of one run, in rank order, with the ledger of what could not be used."""

    traces: tuple[Trace, ...]
    ranks: tuple[int, ...]  # the rank of each trace
    quality: tuple[QualityEntry, ...] = ()
    missing_ranks: tuple[int, ...] = ()
    rank_basis: str = ""  # how the ranks were told apart, for the report
    stored: tuple[
        StoredTrace, ...
    ] = ()  # where each trace lies; () where ``traces`` hold everything themselves
    run: Manifest | None = None  # how the capture came about, where a manifest says so
    run_path: str = ""
    records: tuple[RankRecord | None, ...] = ()  # of each trace; () without a manifest

    @property
    def device_events(self) -> tuple[int, ...]:
        """How much device work each trace has."""
        if self.stored:
            return tuple(place.device_events for place in self.stored)
        return tuple(len(trace.device) for trace in self.traces)

    def trace(self, at: int) -> Trace:
        """One trace with all its tables."""
        return self.stored[at].load() if self.stored else self.traces[at]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The distinct input files, in path order."""
        unique = {trace.source.path: trace.source for trace in self.traces}
        return tuple(unique[path] for path in sorted(unique))
