"""Host calls that the device held: which call, by which work, from when to when.

Evidence decides, the name comes second: the awaited work must have ended after the call began and no
later than its return. Rules per kind of call follow measurements on real captures (return points of
copies, the launch queue's depth); see docs/algorithm.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.cuda_api import WAITS, CallKind
from analyzer.model import CopyKind, HostKind, IntArray, MemoryKind, ProcessTrace
from analyzer.reconstruct.sync_targets import SyncTargets
from analyzer.reconstruct.work import BoolArray, Calls, Work, group_indices

NEAR_NS = 50_000
"""How long after the end of its work a wait may return and still be called held by it."""
NEAR_SHARE = 0.05
"""... or this share of the call's own duration, whichever is longer."""
SHORT_WAIT_NS = 20_000
"""A wait shorter than this may be the plain cost of the call: work that ended inside it may be chance."""
EARLY_NS = 100_000
"""Staged copies return up to this long before the recorded end of their DMA."""
STAGED_BYTES = 64 * 1024
"""Pageable host-to-device copies up to this size are copied into the command stream: no wait."""
LONG_NS = 100_000
"""Allocations and other calls shorter than this are never called held."""
POLL_GAP_NS = 1_000_000
"""Queries further apart than this are no polling loop."""
MIN_SLOW = 3
"""So many slow launches at one depth make a plateau."""
QUEUE_MIN_DEPTH = 64
"""No launch queue is shallower than this; a "plateau" below it is coincidence."""


@dataclass(frozen=True)
class HeldCalls:
    """Calls held by the device, (h,) columns sorted by (thread, end)."""

    thread: IntArray
    end_ns: IntArray
    work: IntArray  # row of Work that it waited for
    call: IntArray  # index into Calls (of a polling loop: the last query)
    nearly: IntArray  # calls whose work ended just before they began: by a later device clock it held them
    doubtful: BoolArray  # short, and what it waited for is a guess: the device may not have held it
    queue_depth: int | None  # launches in flight at which launching blocks, None never seen
    queue_held: int  # launches longer than 100 us that a full queue held

    def __len__(self) -> int:
        return len(self.thread)


def find_held(
    targets: SyncTargets, process: ProcessTrace, *, sole_device: bool, slack_ns: int = 0
) -> HeldCalls:
    """All device-held calls of the process, as one rank's device work shows them.

    ``slack_ns``: how much later the device clock could be and still contradict nothing.
    """
    work, calls = targets.work, targets.calls
    found = np.full(len(calls), -1, np.int64)
    depth, queue_held = None, 0
    if len(work) and len(calls):
        _explicit(found, targets, sole_device=sole_device)
        _copies(found, targets)
        _implicit(found, targets)
        depth, queue_held = _full_queue(found, targets)
        _command_buffer_full(found, targets, process)
        _polling(found, targets)
    held = np.flatnonzero(found >= 0)
    order = held[np.lexsort((calls.end_ns[held], calls.thread[held]))]
    return HeldCalls(
        thread=calls.thread[order].astype(np.int64),
        end_ns=calls.end_ns[order],
        work=found[order],
        call=order,
        nearly=_nearly(found, targets, slack_ns, sole_device=sole_device),
        doubtful=_doubtful(targets, order, sole_device=sole_device),
        queue_depth=depth,
        queue_held=queue_held,
    )


def _nearly(found: IntArray, targets: SyncTargets, slack_ns: int, *, sole_device: bool) -> IntArray:
    """Waits for a known target that had ended less than the clock's slack before they began."""
    calls, work = targets.calls, targets.work
    waits = np.flatnonzero(np.isin(calls.kind, list(WAITS)) & (found < 0))
    if not len(work) or not slack_ns:
        return waits[:0]
    target = targets.certain(waits, sole_device=sole_device)
    ended_before = calls.start_ns[waits] - work.end_ns[target]
    return waits[(target >= 0) & (ended_before < min(slack_ns, NEAR_NS))]


def _doubtful(targets: SyncTargets, call: IntArray, *, sole_device: bool) -> BoolArray:
    """Waits as short as a call that waits for nothing, whose target the capture does not record."""
    calls = targets.calls
    waits = np.isin(calls.kind[call], list(WAITS))
    short = calls.end_ns[call] - calls.start_ns[call] < SHORT_WAIT_NS
    return np.asarray(waits & short & ~targets.is_known(call, sole_device=sole_device), bool)


def _near(calls: Calls, call: IntArray, end_ns: IntArray) -> BoolArray:
    """Whether each call returned soon after ``end_ns``."""
    duration = calls.end_ns[call] - calls.start_ns[call]
    return calls.end_ns[call] - end_ns <= np.maximum(NEAR_NS, (duration * NEAR_SHARE).astype(np.int64))


def _explicit(found: IntArray, targets: SyncTargets, *, sole_device: bool) -> None:
    """Synchronizing calls: the recorded target, else the pending work that ended just before return."""
    calls, work = targets.calls, targets.work
    waits = np.flatnonzero(
        np.isin(calls.kind, (CallKind.STREAM_SYNC, CallKind.EVENT_SYNC, CallKind.DEVICE_SYNC))
    )
    target = targets.certain(waits, sole_device=sole_device)
    known = targets.is_known(waits, sole_device=sole_device)
    end = work.end_ns[target]
    held = (target >= 0) & (end > calls.start_ns[waits])
    contradictory = held & (end > calls.end_ns[waits] + EARLY_NS)
    found[waits[held & ~contradictory]] = target[held & ~contradictory]
    guess = waits[~known | contradictory]
    whole = calls.kind[guess] != CallKind.EVENT_SYNC
    found[guess[whole]] = _pending_near_return(guess[whole], targets)
    found[guess[~whole]] = _any_near_return(guess[~whole], targets)


def _pending_near_return(call: IntArray, targets: SyncTargets) -> IntArray:
    """Per call: the last work of some stream that ended inside the call and near its return, -1 none."""
    calls, work = targets.calls, targets.work
    best = np.full(len(call), -1, np.int64)
    for lane in targets.lanes:
        row = targets.last_on_lane(lane, calls.start_ns[call])
        end = work.end_ns[row]
        fits = (row >= 0) & (end > calls.start_ns[call]) & (end <= calls.end_ns[call])
        fits &= _near(calls, call, end)
        best = targets.later(best, np.where(fits, row, -1))
    return best


def _any_near_return(call: IntArray, targets: SyncTargets) -> IntArray:
    """Per call: the last work of all to end inside the call and near its return, if submitted before it."""
    calls, work = targets.calls, targets.work
    by_end = np.argsort(work.end_ns, kind="stable")
    at = np.searchsorted(work.end_ns[by_end], calls.end_ns[call], side="right") - 1
    row = np.where(at >= 0, by_end[np.maximum(at, 0)], -1)
    end = work.end_ns[row]
    fits = (row >= 0) & (end > calls.start_ns[call]) & _near(calls, call, end)
    fits &= work.submitted_ns[row] < calls.start_ns[call]
    return np.where(fits, row, -1)


def _copies(found: IntArray, targets: SyncTargets) -> None:
    """Copies that block the host: by direction, memory kind and size, confirmed by their own end."""
    calls, work = targets.calls, targets.work
    table = work.table
    rows = np.flatnonzero(work.linked & (table.copy_kind >= 0))
    call = work.launch[rows]
    kind = calls.kind[call]
    start, finish, end = calls.start_ns[call], calls.end_ns[call], work.end_ns[rows]
    synchronous = kind == CallKind.COPY_SYNC
    down = table.copy_kind[rows] == CopyKind.DTOH
    up = table.copy_kind[rows] == CopyKind.HTOD
    soft = (MemoryKind.PAGEABLE, MemoryKind.MANAGED)
    inside = (end > start) & (end <= finish + 1_000)
    unknown = (table.dst_memory[rows] < 0) | (table.dst_memory[rows] == MemoryKind.UNKNOWN)
    held_down = down & inside & (synchronous | np.isin(table.dst_memory[rows], soft))
    held_down |= down & inside & unknown & _near(calls, call, end)
    staged = np.isin(table.src_memory[rows], soft)
    held_up = up & (end > start) & (end <= finish + EARLY_NS)
    held_up &= np.where(staged, table.bytes[rows] > STAGED_BYTES, synchronous)
    held = held_down | held_up
    order = np.argsort(end[held], kind="stable")
    found[call[held][order]] = rows[held][order]  # several rows of one call: the last to end
    first_syncs = synchronous & up & staged & (found[call] < 0)
    _stream_before_copy(found, rows[first_syncs], targets)


def _stream_before_copy(found: IntArray, rows: IntArray, targets: SyncTargets) -> None:
    """A synchronous staged copy first waits for its stream's earlier work, even where it is too small
    to wait for its own transfer.
    """
    calls, work = targets.calls, targets.work
    for lane in np.unique(work.lane[rows]):
        here = rows[work.lane[rows] == lane]
        call = work.launch[here]
        row = targets.last_on_lane(int(lane), calls.start_ns[call])
        end = work.end_ns[row]
        fits = (row >= 0) & (end > calls.start_ns[call]) & (end <= calls.end_ns[call])
        fits &= _near(calls, call, end)
        found[call[fits]] = row[fits]


def _implicit(found: IntArray, targets: SyncTargets) -> None:
    """Long allocations, frees and other calls that began with work pending and returned with none."""
    calls, work = targets.calls, targets.work
    kinds = (CallKind.ALLOCATE, CallKind.FREE, CallKind.MODULE_LOAD, CallKind.OTHER)
    long = (calls.end_ns - calls.start_ns > LONG_NS) & np.isin(calls.kind, kinds)
    call = np.flatnonzero(long)
    row = targets.last_on(targets.lanes, calls.start_ns[call])
    end = work.end_ns[row]
    fits = (row >= 0) & (end > calls.start_ns[call]) & (end <= calls.end_ns[call]) & _near(calls, call, end)
    found[call[fits]] = row[fits]


def _full_queue(found: IntArray, targets: SyncTargets) -> tuple[int | None, int]:
    """Launches that waited for a place in their stream's queue.

    Launch i of a stream returns when unit ``i - (depth + 1)`` has ended, where ``depth`` is the number
    of units submitted and not started at which slow launches pile up in this capture (1,021 on an
    A100). Returns that depth and how many launches longer than 100 us it held.
    """
    calls = targets.calls
    limit, slow_held = None, 0
    for lane in targets.lanes:
        units = _units(targets.work, lane)
        call = units.call
        if len(call) <= QUEUE_MIN_DEPTH:
            continue
        begin, finish = calls.start_ns[call], calls.end_ns[call]
        outstanding = np.arange(len(call)) - np.searchsorted(
            np.maximum.accumulate(units.start_ns), begin, side="right"
        )
        explained = found[call] >= 0  # a copy out that waits for itself is slow at any depth
        slow = (finish - begin > LONG_NS) & (outstanding >= QUEUE_MIN_DEPTH) & ~explained
        if slow.sum() < MIN_SLOW:
            continue
        depth = int(np.max(outstanding[slow]))
        if (outstanding[slow] >= depth - 1).sum() < MIN_SLOW:
            continue  # no plateau: slow for other reasons
        full = np.flatnonzero(outstanding >= depth - 1)
        full = full[full > depth]
        oldest = full - (depth + 1)
        awaited = units.end_ns[oldest]
        fits = (awaited > begin[full]) & (awaited <= finish[full]) & ~explained[full]
        found[call[full[fits]]] = units.last[oldest[fits]]
        limit = depth if limit is None else max(limit, depth)
        slow_held += int((slow[full] & fits).sum())
    return limit, slow_held


@dataclass(frozen=True)
class _Units:
    """Launches of one lane in launch order: call, start of the first row, end and row of the last."""

    call: IntArray
    start_ns: IntArray
    end_ns: IntArray
    last: IntArray


def _units(work: Work, lane: int) -> _Units:
    rows = work.lanes[lane]
    rows = rows[work.linked[rows]]
    order = rows[np.lexsort((work.end_ns[rows], work.launch[rows], work.launch_ns[rows]))]
    if not len(order):
        nothing = np.empty(0, np.int64)
        return _Units(nothing, nothing, nothing, nothing)
    opens = np.flatnonzero(np.diff(work.launch[order], prepend=-1))
    closes = np.append(opens[1:], len(order)) - 1
    start = np.minimum.reduceat(work.start_ns[order], opens)
    return _Units(work.launch[order[opens]], start, work.end_ns[order[closes]], order[closes])


def _command_buffer_full(found: IntArray, targets: SyncTargets, process: ProcessTrace) -> None:
    """Launches under a recorded "command buffer full": held by the last work that ended inside."""
    host = process.host
    codes = [code for code, name in enumerate(process.names) if name.lower() == "command buffer full"]
    rows = np.flatnonzero((host.kind == HostKind.OVERHEAD) & np.isin(host.name, codes))
    if not len(rows):
        return
    calls = targets.calls
    launches = np.flatnonzero(np.isin(calls.kind, (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH)) & (found < 0))
    starts = np.sort(host.start_ns[rows])
    hit = np.searchsorted(starts, calls.end_ns[launches], side="left") > np.searchsorted(
        starts, calls.start_ns[launches], side="left"
    )
    call = launches[hit]
    found[call] = _any_near_return(call, targets)


def _polling(found: IntArray, targets: SyncTargets) -> None:
    """Runs of event or stream queries: one wait from the first query to the first that said "ready"."""
    calls, work = targets.calls, targets.work
    by_end = np.argsort(work.end_ns, kind="stable")
    ends = work.end_ns[by_end]
    for index in group_indices(calls.thread).values():
        queries = np.flatnonzero(calls.kind[index] == CallKind.QUERY)
        if len(queries) < 2:
            continue
        gap = calls.start_ns[index[queries[1:]]] - calls.end_ns[index[queries[:-1]]]
        ready = calls.result[index[queries[:-1]]] == 0
        together = (np.diff(queries) == 1) & (gap <= POLL_GAP_NS) & ~ready
        for run in np.split(queries, np.flatnonzero(~together) + 1):
            if len(run) < 2 or (len(run) < 3 and calls.result[index[run[0]]] < 0):
                continue
            first, before, last = index[run[0]], index[run[-2]], index[run[-1]]
            at = int(np.searchsorted(ends, calls.end_ns[last], side="right")) - 1
            if at < 0 or ends[at] <= max(calls.start_ns[first], calls.start_ns[before] - NEAR_NS):
                continue
            row = int(by_end[at])
            if work.submitted_ns[row] < calls.start_ns[first]:
                found[last] = row
