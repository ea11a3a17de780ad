"""What the host's events waited for: the thread itself, the device, another thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analyzer.cuda_api import WAITS, CallKind
from analyzer.model import IntArray
from analyzer.predict.edges import BoolArray, EdgeKind, Edges, edges, join_edges
from analyzer.predict.host_events import HostEvents, Role, Waits, handed_ns, transitions
from analyzer.reconstruct.handovers import thread_activity
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import NO_TIME

RETURN_NS = 5_000
"""From the end of the awaited work to the return of the call, where the capture shows none (assumed)."""
CALL_NS = 2_000
"""What a waiting call takes that waits for nothing, where the capture shows none (assumed)."""
LOOK_BACK = 4
"""So many works of another thread may be the last before a wait for the whole device, once times change."""
_OF_RETURNS, _OF_HANDOVERS, CALL_UNKNOWN = 100, 99, 98
"""Kinds of lags, for ``Edges.sample``; the last: own time of a call whose duration without a wait nothing shows."""


def host_edges(account: RankAccount, events: HostEvents, waits: Waits) -> Edges:
    """All edges into host events. Device work is numbered behind the host's events."""
    rows = events.follows
    least, binds, unknown = _own_time(account, events, rows, waits)
    unexplained = binds & (events.blocked_ns[rows] > account.constants.quiet_ns)
    own = edges(
        rows, rows - 1, EdgeKind.HOST, binds=binds, inferred=unexplained,
        least_ns=np.where(unexplained, least - events.blocked_ns[rows], least),
        sample=np.where(unknown, CALL_UNKNOWN, -1),
    )  # fmt: skip
    return join_edges(
        [
            own,
            *_held(account, events, waits),
            _handovers(account, events),
            _begun(account, events),
            _woken(account, events, rows[unexplained]),
        ]
    )


def _own_time(
    account: RankAccount, events: HostEvents, rows: IntArray, waits: Waits
) -> tuple[IntArray, BoolArray, BoolArray]:
    """The least time since the previous event; whether all observed time was its own; whether CALL_NS stands in."""
    calls = account.calls
    since = events.at_ns[rows] - events.at_ns[rows - 1]
    least, binds, unknown = since.copy(), np.ones(len(rows), bool), np.zeros(len(rows), bool)
    held = np.zeros(len(calls), bool)
    held[waits.last[waits.held]] = True
    free_ns = _free_call_ns(account, waits)
    for at in np.flatnonzero(events.role[rows] == Role.RETURN).tolist():
        row, call = rows[at], int(events.call[rows[at]])
        if held[call]:
            done = events.at_ns[row - 1] - events.at_ns[events.entry[row]]
            free = free_ns.get(int(calls.kind[call]))
            left = (CALL_NS if free is None else free) - done
            least[at], binds[at], unknown[at] = min(max(left, 0), since[at]), False, free is None
    resumes = np.flatnonzero(events.role[rows] == Role.RESUME)
    activity = thread_activity(account.trace.process) if len(resumes) else {}
    for at in resumes.tolist():
        row = rows[at]
        before = _last_before(activity.get(int(events.thread[row])), int(events.at_ns[row]))
        busy = 0 if before is None else before - int(events.at_ns[row - 1])
        least[at], binds[at] = max(min(busy, int(since[at])), 0), False
    return least, binds, unknown


def _last_before(instants: IntArray | None, at_ns: int) -> int | None:
    if instants is None:
        return None
    at = int(np.searchsorted(instants, at_ns, side="left")) - 1
    return int(instants[at]) if at >= 0 else None


def _free_call_ns(account: RankAccount, waits: Waits) -> dict[int, int]:
    """By kind, the median duration of calls that nothing held."""
    calls = account.calls
    free = np.ones(len(calls), bool)
    free[waits.last[waits.held]] = False
    result = {}
    for kind in np.unique(calls.kind[waits.last[waits.held]]).tolist():
        mine = np.flatnonzero(free & (calls.kind == kind))
        if len(mine):
            result[kind] = int(np.median(calls.end_ns[mine] - calls.start_ns[mine]))
    return result


def _held(account: RankAccount, events: HostEvents, waits: Waits) -> list[Edges]:
    """From device work to the returns of calls that wait for it."""
    calls, work, h = account.calls, account.work, len(events)
    if not len(work):
        return []
    place = np.full(len(calls), -1, np.int64)
    returns = np.flatnonzero(events.role == Role.RETURN)
    place[events.call[returns]] = returns
    held, kinds = waits.held, calls.kind[waits.last].astype(np.int64)
    took = np.where(held, calls.end_ns[waits.last] - work.end_ns[waits.held_by], 0)
    pooled = int(np.median(took[held])) if held.any() else RETURN_NS
    usual = {kind: int(np.median(took[held & (kinds == kind)])) for kind in np.unique(kinds[held]).tolist()}
    lag = np.where(held, took, np.array([usual.get(kind, pooled) for kind in kinds.tolist()], np.int64))
    awaited = list(_awaited(account, waits))
    direct, beyond = np.zeros(len(waits.first), bool), np.zeros(len(waits.first), bool)
    for row, which, elsewhere in awaited:
        (beyond if elsewhere else direct)[which[row == waits.held_by[which]]] = True
    found = [
        edges(
            place[waits.last[held]], h + waits.held_by[held], EdgeKind.HELD, done=True, binds=True,
            sample=_OF_RETURNS + kinds[held], beyond=(beyond & ~direct)[held],
        )
    ]  # fmt: skip
    for row, which, elsewhere in awaited:
        other = (row >= 0) & (row != waits.held_by[which])
        mine = which[other]
        found.append(
            edges(
                place[waits.last[mine]], h + row[other], EdgeKind.HELD, done=True, least_ns=lag[mine],
                beyond=elsewhere,
            )
        )  # fmt: skip
    return found


def _awaited(account: RankAccount, waits: Waits) -> Iterator[tuple[IntArray, IntArray, bool]]:
    """(rows, positions of waits): all that waiting calls are recorded to wait for, whether it held them or not.

    Allocations that were held wait for the whole device. And whether it is another stream's work, which only a wait
    for an event puts there.
    """
    calls, targets, work = account.calls, account.targets, account.work
    kind = calls.kind[waits.last]
    named = np.flatnonzero(np.isin(kind, list(WAITS)))
    for row, beyond in targets.parts(waits.last[named]):
        yield row, named, beyond
    allocates = np.isin(kind, (CallKind.ALLOCATE, CallKind.FREE)) & waits.held
    device = np.flatnonzero((kind == CallKind.DEVICE_SYNC) | allocates)
    for lane in targets.lanes:
        before = calls.start_ns[waits.last[device]]
        for _ in range(LOOK_BACK):
            row = targets.last_on_lane(lane, before)
            yield row, device, False
            elsewhere = (row >= 0) & (calls.thread[work.launch[row]] != calls.thread[waits.last[device]])
            before = np.where(elsewhere, work.submitted_ns[row], NO_TIME)


def _handovers(account: RankAccount, events: HostEvents) -> Edges:
    """Hand-overs and joins."""
    columns = (events.at_ns.tolist(), events.thread.tolist(), events.role.tolist())
    place = {key: index for index, key in enumerate(zip(*columns, strict=True))}
    found = [
        (
            place[int(item.at_ns), thread, int(Role.RESUME)],
            place[handed_ns(item), item.other, int(Role.MARK)],
            item.inferred,
        )
        for thread, item in transitions(account)
    ]
    target, source, inferred = (np.array([row[at] for row in found], np.int64) for at in range(3))
    return edges(
        target, source, EdgeKind.HANDOVER, binds=True, inferred=inferred.astype(bool), sample=_OF_HANDOVERS
    )


def _begun(account: RankAccount, events: HostEvents) -> Edges:
    """A thread whose records begin late was woken or made by somebody: taken to move with the one that steps."""
    first = np.flatnonzero(np.diff(events.thread, prepend=-1))
    target, source = _after_main(account, events, first)
    return edges(target, source, EdgeKind.HANDOVER, binds=True, inferred=True)


def _woken(account: RankAccount, events: HostEvents, blocked: IntArray) -> Edges:
    """A thread that was blocked for no visible cause may have been woken by the one that steps.

    That holds besides the time that it was blocked, and alone where that time is left out.
    """
    target, source = _after_main(account, events, blocked)
    since = events.at_ns[target] - events.at_ns[source]
    return edges(target, source, EdgeKind.HANDOVER, least_ns=since)


def _after_main(account: RankAccount, events: HostEvents, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Those of the events that are of other threads than those that step, and the stepping thread's last one before."""
    nothing: IntArray = np.empty(0, np.int64)
    stepping = account.steps.thread[account.steps.thread >= 0]
    if not len(stepping) or not len(rows):
        return nothing, nothing
    main = np.flatnonzero(events.thread == int(np.bincount(stepping).argmax()))
    rows = rows[~np.isin(events.thread[rows], stepping)]
    at = np.searchsorted(events.at_ns[main], events.at_ns[rows], side="right") - 1
    return rows[at >= 0], main[at[at >= 0]]
