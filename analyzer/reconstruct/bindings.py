"""Binding predecessor of every device event: of all that had to be done first, what was ready last.

One vectorized pass (attribution contract, section 3). The path walk only chases what is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.categories import Binding
from analyzer.cuda_api import CallKind
from analyzer.model import IntArray, ProcessTrace, SmallArray, StreamFlag
from analyzer.reconstruct.constants import Constants
from analyzer.reconstruct.inference import behind_a_loss, event_hop, infer, told_to_wait
from analyzer.reconstruct.replays import Replays
from analyzer.reconstruct.sync_targets import SyncTargets
from analyzer.reconstruct.work import NO_TIME, BoolArray, Calls, Work, group_indices


@dataclass(frozen=True)
class Bindings:
    """Per device row: how it is bound, by which earlier row (-1: by its launch, or by nothing)."""

    kind: SmallArray  # Binding
    predecessor: IntArray
    inferred: BoolArray  # whether the gap before the row is an inference
    event_hop_ns: int  # up to here after the end of its work a recorded event explains a start
    latency_high_ns: IntArray  # up to here after the launch call's start submission explains the wait
    stream: IntArray  # what each row's stream order puts before it, binding or not, -1 nothing
    event: IntArray  # the same of recorded orders across streams
    latency_low_ns: IntArray  # the least from the launch call's start to the row's, of its API
    discarded: int  # predecessors that did not precede in the total order
    unresolved_waits: int  # device-side waits whose event record is unknown

    def __len__(self) -> int:
        return len(self.kind)


def bind(
    work: Work,
    calls: Calls,
    process: ProcessTrace,
    targets: SyncTargets,
    replays: Replays,
    constants: Constants,
) -> Bindings:
    """Decide the binding predecessor of every row of one rank."""
    stream = _stream_predecessors(work, replays)
    event, unresolved, discarded = _event_predecessors(work, calls, process, targets, replays)
    rows = np.arange(len(work))
    discarded += int((stream >= rows).sum() + (event >= rows).sum())
    stream = np.where(stream < rows, stream, -1)
    event = np.where(event < rows, event, -1)
    low, high = _latencies(work, calls, process, constants)

    tau = constants.tau_ns
    ready_stream = _ready(work, stream, tau)
    ready_event = _ready(work, event, tau)
    ready_launch = np.where(work.linked, np.minimum(work.launch_ns + low, work.start_ns), NO_TIME)
    kind = np.full(len(work), Binding.MISSING, np.int8)
    kind[work.linked] = Binding.SUBMISSION
    by_event = (event >= 0) & (ready_event >= ready_launch)
    kind[by_event] = Binding.EVENT
    by_stream = (stream >= 0) & (ready_stream >= ready_launch) & (ready_stream >= ready_event)
    kind[by_stream] = Binding.STREAM
    predecessor = np.where(by_stream, stream, np.where(by_event, event, -1))
    inferred = np.zeros(len(work), bool)
    hop = event_hop(work, np.flatnonzero(kind == Binding.EVENT), predecessor, ready_launch, constants)
    told = told_to_wait(work, calls, stream)
    infer(work, kind, predecessor, inferred, stream, high, constants.turnaround_ns, hop, told)
    kind[behind_a_loss(work, calls, kind, predecessor)] = Binding.MISSING

    inner = replays.inner >= 0
    kind[inner] = Binding.GRAPH
    predecessor[inner] = replays.inner[inner]
    inferred[inner] = replays.inner_inferred[inner]
    return Bindings(kind, predecessor, inferred, hop, high, stream, event, low, discarded, unresolved)


def _ready(work: Work, predecessor: IntArray, tau_ns: int) -> IntArray:
    """When a predecessor leaves the row free to start, never later than its start; NO_TIME without."""
    if not len(work):
        return np.empty(0, np.int64)
    ready = np.minimum(work.end_ns[predecessor] + tau_ns, work.start_ns)
    return np.where(predecessor >= 0, ready, NO_TIME)


def _latencies(
    work: Work, calls: Calls, process: ProcessTrace, constants: Constants
) -> tuple[IntArray, IntArray]:
    """(n,), (n,) low and high launch latency of each row's API."""
    low = np.full(len(work), constants.pooled.low_ns, np.int64)
    high = np.full(len(work), constants.pooled.high_ns, np.int64)
    linked = np.flatnonzero(work.linked)
    names = process.host.name[calls.row[work.launch[linked]]]
    for code, rows in group_indices(names).items():
        latency = constants.latency_of(process.names[code])
        low[linked[rows]], high[linked[rows]] = latency.low_ns, latency.high_ns
    return low, high


def _later(work: Work, a: IntArray, b: IntArray) -> IntArray:
    """Of two predecessors (-1 none) the later to end; on a tie the later in the total order."""
    end_a = np.where(a >= 0, work.end_ns[a], NO_TIME)
    end_b = np.where(b >= 0, work.end_ns[b], NO_TIME)
    return np.where((end_b > end_a) | ((end_b == end_a) & (b > a)), b, a)


def _preceding(candidate: IntArray, rows: IntArray) -> IntArray:
    """Candidates that come before their rows in the total order, the others -1.

    Queued work of another stream often does not: the order then rests on an earlier piece of it.
    """
    return np.where(candidate < rows, candidate, -1)


def _stream_predecessors(work: Work, replays: Replays) -> IntArray:
    """(n,) previous work on each row's stream; a replay counts as one piece of work of its launch stream.

    Inner nodes get -1: the replay's own order binds them.
    """
    stream = np.full(len(work), -1, np.int64)
    for rows in work.lanes.values():
        # Of earlier work the one that ends last: with overlap that need not be the neighbour.
        reach = np.maximum.accumulate(work.end_ns[rows])
        at = np.where(work.end_ns[rows] == reach, np.arange(len(rows)), 0)
        stream[rows[1:]] = rows[np.maximum.accumulate(at)][:-1]
    in_graph = work.replay >= 0
    stream[in_graph] = -1
    if not len(replays):
        return stream
    eager = np.flatnonzero(~in_graph)
    roots = np.flatnonzero(replays.is_root)
    order = np.lexsort((np.arange(len(replays)), replays.start_ns))
    for lane in np.unique(replays.lane):
        here = order[replays.lane[order] == lane]
        starts = replays.start_ns[here]
        rows = eager[work.lane[eager] == lane]
        at = np.searchsorted(starts, work.start_ns[rows], side="left") - 1
        stream[rows] = _later(
            work, stream[rows], np.where(at >= 0, replays.last[here[np.maximum(at, 0)]], -1)
        )
        nodes = roots[replays.lane[work.replay[roots]] == lane]
        begin = replays.start_ns[work.replay[nodes]]
        at = np.searchsorted(starts, begin, side="left") - 1
        before = np.where(at >= 0, replays.last[here[np.maximum(at, 0)]], -1)
        lane_rows = rows  # eager work of the launch stream
        at = np.searchsorted(work.start_ns[lane_rows], begin, side="left") - 1
        alone = np.where(at >= 0, lane_rows[np.maximum(at, 0)], -1) if len(lane_rows) else before
        stream[nodes] = _later(work, before, alone)
    return stream


def _event_predecessors(
    work: Work, calls: Calls, process: ProcessTrace, targets: SyncTargets, replays: Replays
) -> tuple[IntArray, int, int]:
    """(n,) latest work that a recorded cross-stream order puts before each row.

    Besides, the number of waits whose record is unknown and of those that do not precede what they hold.
    """
    event = np.full(len(work), -1, np.int64)
    if not len(work):
        return event, 0, 0
    waits = stream_waits(work, calls, targets, replays)
    _, record = targets.sync_row(waits.calls)
    source = targets.before_record(record)
    unresolved = int((~np.isin(record, process.event_records.correlation) | (record == 0)).sum())
    origin, row = source[waits.wait], waits.row
    known = origin >= 0
    in_order = known & (origin < row)
    discarded = int((known & ~in_order).sum())  # clock noise: they hold nothing
    origin, row = origin[in_order], row[in_order]
    order = np.lexsort((origin, work.end_ns[origin], row))  # of several the last to end
    event[row[order]] = origin[order]
    _legacy_stream_order(event, work, process, targets)
    roots = np.flatnonzero(replays.is_root)
    previous = replays.previous[work.replay[roots]] if len(replays) else roots
    before = np.where(previous >= 0, replays.last[previous], -1) if len(replays) else previous
    event[roots] = _later(work, event[roots], _preceding(before, roots))
    return event, unresolved, discarded


@dataclass(frozen=True)
class StreamWaits:
    """Device-side waits and what they hold: ``calls`` (w,) index into Calls; ``wait``, ``row`` (p,) pairs of a
    position in it and a row of Work that could not start before.
    """

    calls: IntArray
    wait: IntArray
    row: IntArray


def stream_waits(work: Work, calls: Calls, targets: SyncTargets, replays: Replays) -> StreamWaits:
    """A wait holds the first work submitted to its stream after it; of a replay its roots."""
    waits = np.flatnonzero((calls.kind == CallKind.STREAM_WAIT) & (calls.result <= 0))
    lane, _ = targets.sync_row(waits)
    every_root = np.flatnonzero(replays.is_root)
    roots_of = {replay: every_root[at] for replay, at in group_indices(work.replay[every_root]).items()}
    pairs = [np.empty((2, 0), np.int64)]
    for value in np.unique(lane[lane >= 0]).tolist():
        here = np.flatnonzero(lane == value)
        rows = np.flatnonzero((work.lane == value) & work.linked & (work.replay < 0))
        launches = np.flatnonzero(replays.lane == value)
        submitted = np.concatenate((work.launch_ns[rows], work.launch_ns[replays.last[launches]]))
        unit = np.concatenate((rows, -launches - 1))  # negative: a replay
        order = np.argsort(submitted, kind="stable")
        at = np.searchsorted(submitted[order], calls.start_ns[waits[here]], side="right")
        here, at = here[at < len(order)], at[at < len(order)]
        held = unit[order[at]]
        pairs.append(np.stack((here[held >= 0], held[held >= 0])))
        for wait, replay in zip(here[held < 0].tolist(), (-held[held < 0] - 1).tolist(), strict=True):
            roots = roots_of.get(replay, every_root[:0])
            pairs.append(np.stack((np.full(len(roots), wait), roots)))
    wait, row = np.concatenate(pairs, axis=1)
    return StreamWaits(waits, wait, row)


def _legacy_stream_order(event: IntArray, work: Work, process: ProcessTrace, targets: SyncTargets) -> None:
    """The legacy default stream waits for the blocking streams of its context, and they for it."""
    for null in targets.lanes:
        key = process.lanes[null]
        if key.flag != StreamFlag.NULL:
            continue
        others = [lane for lane in targets.covered_lanes(null) if lane != null]
        if not others:
            continue
        rows = work.lanes[null]
        rows = rows[work.linked[rows]]
        event[rows] = _later(
            work, event[rows], _preceding(targets.last_on(others, work.launch_ns[rows]), rows)
        )
        for lane in others:
            rows = work.lanes[lane]
            rows = rows[work.linked[rows]]
            before = _preceding(targets.last_on_lane(null, work.launch_ns[rows]), rows)
            event[rows] = _later(work, event[rows], before)
