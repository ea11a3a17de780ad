"""The long tables of an analysis, as columns. They lie beside ``diagnosis.json``, each in a CSV file of its own.

Times are ns relative to the diagnosis' ``time_zero_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

NO_EVENT = np.iinfo(np.int64).min
"""Stands for "no event recorded" in ``SegmentTable.event_start_ns``."""


@dataclass(frozen=True)
class SegmentTable:
    """Every path segment, (n,) columns, sorted by (rank, window, start). Lives in segments.csv."""

    rank: npt.NDArray[np.int32]
    window: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    category: npt.NDArray[np.int8]  # Category
    binding: npt.NDArray[np.int8]  # Binding
    inferred: npt.NDArray[np.bool_]
    name: npt.NDArray[np.int32]  # index into names, -1 none
    place: npt.NDArray[np.int32]  # index into places (stream or thread), -1 none
    correlation: npt.NDArray[np.int64]  # of the event behind it, 0 none
    event_start_ns: npt.NDArray[np.int64]  # start of that event as its file has it, NO_EVENT none
    late_rank: npt.NDArray[np.int32]  # of a wait in a collective: the rank waited for, -1 elsewhere
    names: tuple[str, ...]
    places: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class QueueTable:
    """How far the CPU runs ahead, in equal bins over the windows of each rank; lives in queue.csv.

    (b,) columns, sorted by (rank, start). Depth: device work submitted and not finished, one per launch
    call, a replay once. Latency: from the start of a launch call to the start of its work; -1 where no
    launch lies in the bin.
    """

    rank: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    depth_low: npt.NDArray[np.int64]
    depth_high: npt.NDArray[np.int64]
    launches: npt.NDArray[np.int64]
    latency_low_ns: npt.NDArray[np.int64]
    latency_median_ns: npt.NDArray[np.int64]
    latency_high_ns: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)


class DetailKind(IntEnum):
    """What an event of the detail step is."""

    KERNEL = 0
    COLLECTIVE = 1
    COPY = 2
    GRAPH = 3
    PRIOR = 4
    LAUNCH = 5  # launch calls: kernels, graphs, copies
    HELD = 6  # a call that the device held
    API = 7  # any other CUDA call
    OP = 8
    RANGE = 9
    FRAME = 10
    OS = 11
    PROFILER = 12


@dataclass(frozen=True)
class DetailTable:
    """The events of the detail step that the timeline draws; lives in detail_step.csv.

    (e,) columns, sorted by (lane, start, -end). Instants are those of the windows; events reach beyond
    the window where they do. The path of the step stands in segments.csv.
    """

    kind: npt.NDArray[np.int8]  # DetailKind
    lane: npt.NDArray[np.int32]  # index into lanes
    depth: npt.NDArray[np.int16]  # nesting on a thread, 0 outermost; 0 on streams
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    name: npt.NDArray[np.int32]  # index into names
    class_: npt.NDArray[np.int32]  # kernel class, index into names, -1 none
    lanes: tuple[str, ...]  # threads first, then streams, as segments.csv names its places
    device_lanes: int  # how many of the lanes, at the end, are streams
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start_ns)


TOKEN_PARTS = ("device", "output", "transport", "buffering", "unsplit")
"""What the gap between two tokens of a request is made of."""


@dataclass(frozen=True)
class TokenTable:
    """Every token of the token logs; lives in service.csv. (n,) columns, sorted by (log, request, token).

    Instants are ns relative to the diagnosis' ``time_zero_ns`` where the log is joined, else to ``zero_ns`` of its log;
    ``NO_EVENT`` where not logged. The parts of the gap before the token are -1 for a request's first one.
    """

    log: npt.NDArray[np.int32]  # index into logs
    request: npt.NDArray[np.int32]  # index into requests
    token: npt.NDArray[np.int64]
    window: npt.NDArray[np.int64]  # index of the step it is from, -1 none
    completion_ns: npt.NDArray[np.int64]
    held_ns: npt.NDArray[np.int64]  # until the last token emitted with it was complete
    emission_ns: npt.NDArray[np.int64]
    last_emission_ns: npt.NDArray[np.int64]  # of the last token read with it
    arrival_ns: npt.NDArray[np.int64]
    receipt_ns: npt.NDArray[np.int64]
    buffering_ns: npt.NDArray[np.int64]  # -1 not known
    gap_ns: npt.NDArray[np.int64]
    part_ns: npt.NDArray[np.int64]  # (n, 5) by TOKEN_PARTS
    logs: tuple[str, ...]
    requests: tuple[str, ...]
    zero_ns: tuple[int, ...]  # epoch time of 0 of each log's instants

    def __len__(self) -> int:
        return len(self.token)
