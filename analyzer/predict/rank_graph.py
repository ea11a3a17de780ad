"""The event graph of one rank, small enough to travel between processes.

Events are numbered: first the host's, then one per row of device work (its start). Times are on the rank's own
corrected clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category
from analyzer.model import Columns, IntArray
from analyzer.predict.device import device_edges
from analyzer.predict.edges import BoolArray, Edges, join_edges
from analyzer.predict.host_edges import host_edges
from analyzer.predict.host_events import HostEvents, Role, find_waits, host_events
from analyzer.reconstruct.rank import HOST, RankAccount


@dataclass(frozen=True)
class DeviceRows(Columns):
    """Device work of one rank, (n,) columns in the total order.

    ``name``: index into ``RankGraph.names``. ``scalable``: a kernel that a faster one could replace; copies and
    collectives are none. ``small``: one whose grid leaves most of the device without a block. ``copies``: copies and
    sets. ``window``: ordinal of the step that launched it, -1 none. ``replay``: ordinal of the graph
    launch, -1 eager. ``entry``: host event at which its launch call began, -1 none.
    """

    start_ns: IntArray
    end_ns: IntArray
    name: IntArray
    scalable: BoolArray
    small: BoolArray
    copies: BoolArray
    window: IntArray
    replay: IntArray
    lane: IntArray
    entry: IntArray


@dataclass(frozen=True)
class Measured:
    """What this capture shows of graph replays: (low, high) ns, None where it has none.

    ``launch_ns``: duration of a graph launch call; ``latency_ns``: from its start to the first node's;
    ``turnaround_ns``: between two nodes; ``tau_ns``: least gap of queued work on one stream.
    """

    graph_launch_ns: tuple[int, int] | None
    graph_latency_ns: tuple[int, int] | None
    graph_turnaround_ns: tuple[int, int] | None
    tau_ns: int


@dataclass(frozen=True)
class RankGraph:
    """Events, edges and windows of one rank.

    ``host_window``: (h,) step to which each host event belongs, -1 none. ``collective_row``, ``collective_bytes``:
    (c,) device row (-1 cut off) and size (-1 not recorded) of each of its collectives. ``step_events``: (w, 2) host
    events at which each step's range begins and ends, None where steps have none. ``host_windows``: the same of the
    windows at the host boundary, None at the device's. ``first``, ``last``: the windows that the events cover.
    """

    rank: int
    host: HostEvents
    rows: DeviceRows
    names: tuple[str, ...]
    edges: Edges
    host_window: IntArray
    collective_row: IntArray
    collective_bytes: IntArray
    windows: int
    first: int
    last: int
    step_events: IntArray | None
    host_windows: IntArray | None
    measured: Measured
    memory_bytes_per_s: int | None


def rank_graph(account: RankAccount, rank: int, small: BoolArray | None = None) -> RankGraph | None:
    """The event graph of a rank; None without any window or device work.

    ``small``: (n,) device rows whose grid is known to leave most of the device without a block.
    """
    if not account.windows or not len(account.work):
        return None
    waits = find_waits(account)
    events = host_events(account, waits)
    nothing = np.zeros(len(account.work), bool)
    rows, names = _rows(account, events, nothing if small is None else small)
    host_windows = None
    if account.boundary == HOST:
        host_windows = np.array(
            [
                [_event_at(events, w.start_ns, w.thread), _event_at(events, w.end_ns, w.thread)]
                for w in account.windows
            ],
            np.int64,
        )
    info = account.trace.device_info
    return RankGraph(
        rank=rank,
        host=events,
        rows=rows,
        names=names,
        edges=join_edges(
            [host_edges(account, events, waits), device_edges(account, rows.entry, len(events))]
        ),
        host_window=np.searchsorted(account.steps.start_ns, events.at_ns, side="right") - 1,
        collective_row=account.arrivals.arrivals.row,
        collective_bytes=account.arrivals.arrivals.bytes,
        windows=len(account.windows),
        first=0,
        last=len(account.windows) - 1,
        step_events=_step_events(account, events),
        host_windows=host_windows,
        measured=_measured(account),
        memory_bytes_per_s=None if info is None else info.memory_bytes_per_s,
    )


def _event_at(events: HostEvents, at_ns: int, thread: int) -> int:
    """The event of a thread at an instant, of any thread where it is not known (-1); -1 none."""
    found = np.flatnonzero((events.at_ns == at_ns) & ((events.thread == thread) | (thread < 0)))
    return int(found[0]) if len(found) else -1


def _step_events(account: RankAccount, events: HostEvents) -> IntArray | None:
    steps = account.steps
    if account.assignment is None or not len(steps):
        return None
    found = np.array(
        [
            [_event_at(events, begin, thread), _event_at(events, end, thread)]
            for begin, end, thread in zip(
                steps.start_ns.tolist(), steps.end_ns.tolist(), steps.thread.tolist(), strict=True
            )
        ],
        np.int64,
    )
    return found if (found[:, 0] >= 0).all() else None


def _rows(account: RankAccount, events: HostEvents, small: BoolArray) -> tuple[DeviceRows, tuple[str, ...]]:
    work, calls = account.work, account.calls
    begins = np.flatnonzero(events.role == Role.CALL)
    at_call = np.full(len(calls), -1, np.int64)
    at_call[events.call[begins]] = begins
    entry = np.where(work.linked, at_call[work.launch] if len(calls) else -1, -1)
    codes, name = np.unique(work.table.name, return_inverse=True)
    names = tuple(account.trace.process.name_of(int(code)) for code in codes)
    window = np.zeros(len(work), np.int64) if account.assignment is None else account.assignment.of_row
    if account.boundary == HOST:
        window = np.full(len(work), -1, np.int64)
    scalable = np.asarray(work.kernels & (work.own_label == Category.KERNEL), bool)
    rows = DeviceRows(
        start_ns=work.start_ns,
        end_ns=work.end_ns,
        name=name.astype(np.int64).reshape(-1),
        scalable=scalable,
        small=scalable & small,
        copies=np.asarray(work.own_label == Category.COPY, bool),
        window=window,
        replay=work.replay,
        lane=work.lane.astype(np.int64),
        entry=entry,
    )
    return rows, names


def _measured(account: RankAccount) -> Measured:
    work, calls, replays = account.work, account.calls, account.replays
    launches = replays.call
    free = launches[~np.isin(launches, account.held.call)]
    durations = calls.end_ns[free] - calls.start_ns[free]
    known = account.constants.latency
    latency = [
        (value.low_ns, value.high_ns)
        for api, value in known.items()
        if "GraphLaunch" in api and value.samples
    ]
    inner = np.flatnonzero((replays.inner >= 0) & ~replays.inner_inferred)
    gaps = work.start_ns[inner] - work.end_ns[replays.inner[inner]]
    return Measured(
        graph_launch_ns=_range(durations),
        graph_latency_ns=latency[0] if latency else None,
        graph_turnaround_ns=_range(gaps),
        tau_ns=account.constants.tau_ns,
    )


def _range(values: IntArray) -> tuple[int, int] | None:
    """Quartiles; None without values."""
    if not len(values):
        return None
    low, high = np.quantile(np.maximum(values, 0), [0.25, 0.75])
    return int(low), int(high)
