"""The host's events of one rank: where launch calls begin, where waits begin and return, where threads meet.

Between two of them a thread was busy; that time is an edge. What is not an event here (other calls, operators,
Python) is part of such an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from analyzer.arrays import distinct
from analyzer.categories import Category
from analyzer.cuda_api import WAITS, CallKind
from analyzer.intervals import Intervals, union
from analyzer.model import Columns, IntArray, SmallArray
from analyzer.predict.edges import BoolArray, EdgeKind, Edges, edges, join_edges
from analyzer.reconstruct.blocking import POLL_GAP_NS
from analyzer.reconstruct.handovers import Transition, thread_activity
from analyzer.reconstruct.host_account import HostAccount, ThreadAccount
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import NO_TIME, Calls

RETURN_NS = 5_000
"""From the end of the awaited work to the return of the call, where the capture shows none (assumed)."""
LOOK_BACK = 4
"""So many works that another thread launched may be the last one before a wait for the whole device, once times change."""
CALL_NS = 2_000
"""What a waiting call takes that waits for nothing, where the capture shows none (assumed)."""

_CPU = (Category.HOST_FRAMEWORK, Category.HOST_OUTPUT, Category.HOST_UNTRACED, Category.LAUNCH_DISPATCH)
_SUBMITTING = (Category.LAUNCH_DISPATCH, Category.LAUNCH_API, Category.HOST_API)
_STRAY = tuple(category for category in Category if category not in _SUBMITTING)
_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64))


class Role(IntEnum):
    """What a host event is; of several at one instant the smaller comes first."""

    RETURN = 0  # a waiting call returns, or a held launch
    RESUME = 1  # the thread goes on after another one
    MARK = 2  # a step begins or ends, a thread's records begin, or what another thread waits for is done
    CALL = 3  # a launch call or a waiting call begins


@dataclass(frozen=True)
class HostEvents(Columns):
    """Host events of one rank, (h,) columns sorted by (thread, instant, role).

    ``entry``: of a return the event at which its call began, else -1. ``call``: index into ``Calls`` (of a
    polling loop its first query where it begins, its last where it returns), -1 none. ``call_ns``: duration of the
    call that begins here, 0 where it has a return of its own. ``waits``: a call that exists to wait.
    ``capturable``: a launch that a graph could replay. ``stray_ns``: of the time since the thread's previous event, what
    is neither submission nor dispatch.
    """

    at_ns: IntArray
    thread: IntArray
    role: SmallArray
    call: IntArray
    entry: IntArray
    call_ns: IntArray
    waits: BoolArray
    capturable: BoolArray
    stray_ns: IntArray


@dataclass(frozen=True)
class _Waits:
    """Waiting calls: first and last call of each (they differ in polling loops), and the row that held it or -1."""

    first: IntArray
    last: IntArray
    held_by: IntArray


def host_events(account: RankAccount) -> tuple[HostEvents, Edges]:
    """The events of all threads and the edges between them; edges from device work are ``device``'s."""
    calls = account.calls
    waits = _waits(account)
    events = _in_order(account, waits)
    h = len(events)
    rows = np.arange(1, h)[events.thread[1:] == events.thread[:-1]] if h else np.empty(0, np.int64)
    cpu, stray, blocked = _time_between(account, events, rows)
    events = replace(events, stray_ns=_scatter(h, rows, stray))
    least, binds = _own_time(account, events, rows, waits)
    unexplained = binds & (blocked > account.constants.quiet_ns)
    own = edges(
        rows, rows - 1, EdgeKind.HOST, binds=binds, inferred=unexplained,
        least_ns=np.where(unexplained, least - blocked, least), cpu_ns=np.where(binds, cpu, 0),
    )  # fmt: skip
    return events, join_edges([own, *_held(account, events, waits), *_between_threads(account, events)])


def _scatter(n: int, at: IntArray, values: IntArray) -> IntArray:
    result: IntArray = np.zeros(n, np.int64)
    result[at] = values
    return result


def _waits(account: RankAccount) -> _Waits:
    """Calls that wait by their name, that the device held, and loops of queries."""
    calls, held = account.calls, account.held
    by_name = np.flatnonzero(np.isin(calls.kind, list(WAITS)))
    last = np.union1d(by_name, held.call).astype(np.int64)
    held_by = np.full(len(calls), -1, np.int64)
    held_by[held.call] = held.work
    first = last.copy()
    for at in np.flatnonzero(calls.kind[last] == CallKind.QUERY).tolist():
        first[at] = _loop_start(calls, int(last[at]))
    return _Waits(first, last, held_by[last])


def _loop_start(calls: Calls, last: int) -> int:
    """The first query of the polling loop that ends with ``last`` (see ``blocking``)."""
    at = last
    while (
        at > 0
        and calls.thread[at - 1] == calls.thread[at]
        and calls.kind[at - 1] == CallKind.QUERY
        and calls.start_ns[at] - calls.end_ns[at - 1] <= POLL_GAP_NS
        and calls.result[at - 1] != 0
    ):
        at -= 1
    return at


def _in_order(account: RankAccount, waits: _Waits) -> HostEvents:
    calls, work = account.calls, account.work
    launches = np.setdiff1d(np.unique(work.launch[work.linked]), waits.first)
    marks = [(int(item.at_ns), thread, Role.RESUME) for thread, item in _transitions(account)]
    marks += [(min(int(t.from_ns), int(t.at_ns)), t.other, Role.MARK) for _, t in _transitions(account)]
    steps = account.steps
    for at, thread in zip(steps.start_ns.tolist(), steps.thread.tolist(), strict=True):
        marks.append((at, thread, Role.MARK))
    for at, thread in zip(steps.end_ns.tolist(), steps.thread.tolist(), strict=True):
        marks.append((at, thread, Role.MARK))
    used = {*calls.thread[launches].tolist(), *calls.thread[waits.first].tolist(), *(mark[1] for mark in marks)}
    marks += _first_records(account, used)
    marks = [mark for mark in dict.fromkeys(marks) if mark[1] >= 0]
    w, n = len(waits.first), len(launches)
    at_ns = np.concatenate(
        [calls.start_ns[launches], calls.start_ns[waits.first], calls.end_ns[waits.last],
         np.array([mark[0] for mark in marks], np.int64)]
    )  # fmt: skip
    thread = np.concatenate(
        [calls.thread[launches], calls.thread[waits.first], calls.thread[waits.last],
         np.array([mark[1] for mark in marks], np.int64)]
    ).astype(np.int64)  # fmt: skip
    role = np.concatenate(
        [np.full(n + w, Role.CALL), np.full(w, Role.RETURN), np.array([mark[2] for mark in marks], np.int64)]
    ).astype(np.int8)
    call = np.concatenate([launches, waits.first, waits.last, np.full(len(marks), -1, np.int64)])
    order = np.lexsort((call, role, at_ns, thread))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    entry = np.full(len(order), -1, np.int64)
    entry[place[n + w : n + 2 * w]] = place[n : n + w]
    call_ns = np.zeros(len(order), np.int64)
    call_ns[place[:n]] = calls.end_ns[launches] - calls.start_ns[launches]
    exists_to_wait = np.isin(calls.kind[waits.first], [*WAITS, CallKind.QUERY])
    flag = np.zeros(len(order), bool)
    flag[place[n : n + w]] = flag[place[n + w : n + 2 * w]] = exists_to_wait
    capturable = np.zeros(len(order), bool)
    capturable[place[:n]] = _capturable(account, launches)
    return HostEvents(
        at_ns=at_ns[order],
        thread=thread[order],
        role=role[order],
        call=call[order],
        entry=entry,
        call_ns=call_ns,
        waits=flag,
        capturable=capturable,
        stray_ns=np.zeros(len(order), np.int64),
    )


def _first_records(account: RankAccount, threads: set[int]) -> list[tuple[int, int, Role]]:
    """Where each thread's records begin: what it does until its first event may change, too."""
    host = account.trace.process.host
    found = []
    for thread in sorted(threads):
        rows = account.account.rows_of(thread)
        if len(rows):
            found.append((int(host.start_ns[rows].min()), thread, Role.MARK))
    return found


def _transitions(account: RankAccount) -> Iterator[tuple[int, Transition]]:
    for thread, items in sorted(account.transitions.by_thread.items()):
        for item in items:
            yield thread, item


def _capturable(account: RankAccount, launches: IntArray) -> BoolArray:
    """Kernels, sets and copies that do not go through pageable memory."""
    calls, work = account.calls, account.work
    kind = calls.kind[launches]
    fits = np.isin(kind, (CallKind.LAUNCH, CallKind.SET, CallKind.COPY_ASYNC))
    table = work.table
    pageable = (table.src_memory == 0) | (table.dst_memory == 0)
    through = np.unique(work.launch[pageable & work.linked & (table.copy_kind >= 0)])
    return np.asarray(fits & ~np.isin(launches, through), bool)


class _Meter:
    """How much of a thread's time lies in some categories and in none of some intervals, up to an instant."""

    def __init__(self, account: ThreadAccount, counts: Sequence[Category], without: Intervals) -> None:
        untraced = Category.HOST_UNTRACED in counts
        self._bounds = distinct(np.concatenate((account.bounds, *without)))
        at = np.searchsorted(account.bounds, self._bounds, side="right") - 1
        category = np.append(account.category, Category.HOST_UNTRACED)  # nothing is recorded before and after
        last = len(account.bounds) - 1
        inside = np.isin(category[np.where((at < 0) | (at >= last), -1, at)], counts)
        starts, ends = without
        if len(starts):
            before = np.searchsorted(starts, self._bounds, side="right") - 1
            inside &= (before < 0) | (self._bounds >= ends[np.maximum(before, 0)])
        self._inside, self._outside = inside, untraced
        counted = np.where(inside[:-1], np.diff(self._bounds), 0)
        self._total = np.concatenate(([0], np.cumsum(counted))).astype(np.int64)

    def until(self, instants: IntArray) -> IntArray:
        """(n,) ns, relative to the first bound."""
        if not len(self._bounds):
            return instants * int(self._outside)
        at = np.searchsorted(self._bounds, instants, side="right") - 1
        safe = np.maximum(at, 0)
        since = instants - self._bounds[safe]
        counted = np.where(at >= 0, self._inside[safe], self._outside)
        return self._total[safe] + np.where(counted, since, 0)


def _time_between(
    account: RankAccount, events: HostEvents, rows: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """From each event's predecessor to it: CPU time between calls, time that is no submission, and possible waiting.

    A thread may wait where the OS blocked it and, if it runs no steps, where nothing of it is recorded.
    """
    own: HostAccount = replace(account.account, _threads=dict(account.account.built))
    cpu, stray, blocked = (np.zeros(len(rows), np.int64) for _ in range(3))
    stepping = set(account.steps.thread.tolist())
    for thread in np.unique(events.thread[rows]).tolist():
        here = np.flatnonzero(events.thread[rows] == thread)
        begin, end = events.at_ns[rows[here] - 1], events.at_ns[rows[here]]
        known, mine = own.thread(thread), account.calls.of_thread(thread)
        idle = (Category.HOST_WAIT,) if thread in stepping else (Category.HOST_WAIT, Category.HOST_UNTRACED)
        in_calls = union(account.calls.start_ns[mine], account.calls.end_ns[mine])
        for meter, into in (
            (_Meter(known, _CPU, in_calls), cpu),
            (_Meter(known, _STRAY, _NOTHING), stray),
            (_Meter(known, idle, _NOTHING), blocked),
        ):
            into[here] = meter.until(end) - meter.until(begin)
    return cpu, stray, blocked


def _own_time(
    account: RankAccount, events: HostEvents, rows: IntArray, waits: _Waits
) -> tuple[IntArray, BoolArray]:
    """The least time from the thread's previous event, and whether all observed time was its own."""
    calls = account.calls
    since = events.at_ns[rows] - events.at_ns[rows - 1]
    least, binds = since.copy(), np.ones(len(rows), bool)
    held = np.full(len(calls), False)
    held[waits.last[waits.held_by >= 0]] = True
    returns = np.flatnonzero(events.role[rows] == Role.RETURN)
    free_ns = _free_call_ns(calls, waits)
    for at in returns.tolist():
        row = rows[at]
        call = int(events.call[row])
        if not held[call]:
            continue
        entry = events.entry[row]
        left = free_ns.get(int(calls.kind[call]), CALL_NS) - (events.at_ns[row - 1] - events.at_ns[entry])
        least[at], binds[at] = min(max(left, 0), since[at]), False
    resumes = np.flatnonzero(events.role[rows] == Role.RESUME)
    if len(resumes):
        activity = thread_activity(account.trace.process)
        for at in resumes.tolist():
            row = rows[at]
            instants = activity.get(int(events.thread[row]))
            before = _last_before(instants, int(events.at_ns[row]))
            least[at] = 0 if before is None else max(min(before - events.at_ns[row - 1], since[at]), 0)
            binds[at] = False
    return least, binds


def _last_before(instants: IntArray | None, at_ns: int) -> int | None:
    if instants is None:
        return None
    at = int(np.searchsorted(instants, at_ns, side="left")) - 1
    return int(instants[at]) if at >= 0 else None


def _free_call_ns(calls: Calls, waits: _Waits) -> dict[int, int]:
    """By kind, the median duration of waiting calls that nothing held."""
    free = waits.last[(waits.held_by < 0) & (waits.first == waits.last)]
    result = {}
    for kind in np.unique(calls.kind[free]).tolist():
        mine = free[calls.kind[free] == kind]
        result[kind] = int(np.median(calls.end_ns[mine] - calls.start_ns[mine]))
    return result


def _held(account: RankAccount, events: HostEvents, waits: _Waits) -> list[Edges]:
    """Edges from device work to the returns of calls that wait for it. Rows stand behind the host's events."""
    calls, work, h = account.calls, account.work, len(events)
    place = np.full(len(calls), -1, np.int64)
    returns = np.flatnonzero(events.role == Role.RETURN)
    place[events.call[returns]] = returns
    held = waits.held_by >= 0
    took = np.where(held, calls.end_ns[waits.last] - work.end_ns[waits.held_by], 0) if len(work) else None
    if took is None:
        return []
    kinds = calls.kind[waits.last]
    usual = {kind: int(np.median(took[held & (kinds == kind)])) for kind in np.unique(kinds[held]).tolist()}
    pooled = int(np.median(took[held])) if held.any() else RETURN_NS
    found = [
        edges(
            place[waits.last[held]], h + waits.held_by[held], EdgeKind.HELD, done=True, binds=True,
            sample=100 + kinds[held].astype(np.int64),
        )
    ]  # fmt: skip
    for lane_row, which in _awaited(account, waits):
        ok = (lane_row >= 0) & (lane_row != waits.held_by[which])
        source, mine = lane_row[ok], which[ok]
        lag = np.where(
            held[mine],
            took[mine],
            np.array([usual.get(int(kind), pooled) for kind in kinds[mine]], np.int64),
        )
        found.append(edges(place[waits.last[mine]], h + source, EdgeKind.HELD, done=True, least_ns=lag))
    return found


def _awaited(account: RankAccount, waits: _Waits) -> Iterator[tuple[IntArray, IntArray]]:
    """(rows, positions of waits): work that waiting calls are recorded to wait for, whether it held them or not."""
    calls, targets = account.calls, account.targets
    named = np.flatnonzero(np.isin(calls.kind[waits.last], list(WAITS)))
    if not len(named):
        return
    yield targets.certain(waits.last[named], sole_device=True), named
    device = named[calls.kind[waits.last[named]] == CallKind.DEVICE_SYNC]
    for lane in targets.lanes:
        before = calls.start_ns[waits.last[device]]
        for _ in range(LOOK_BACK):
            row = targets.last_on_lane(lane, before)
            yield row, device
            elsewhere = (row >= 0) & (calls.thread[account.work.launch[row]] != calls.thread[waits.last[device]])
            before = np.where(elsewhere, account.work.submitted_ns[row], NO_TIME)


def _between_threads(account: RankAccount, events: HostEvents) -> list[Edges]:
    """Hand-overs and joins."""
    place = {
        (int(at), int(thread), int(role)): index
        for index, (at, thread, role) in enumerate(
            zip(events.at_ns.tolist(), events.thread.tolist(), events.role.tolist(), strict=True)
        )
    }
    target, source, inferred = [], [], []
    for thread, item in _transitions(account):
        target.append(place[int(item.at_ns), thread, int(Role.RESUME)])
        source.append(place[min(int(item.from_ns), int(item.at_ns)), item.other, int(Role.MARK)])
        inferred.append(item.inferred)
    return [
        edges(
            np.array(target, np.int64), np.array(source, np.int64), EdgeKind.HANDOVER, binds=True,
            inferred=np.array(inferred, bool), sample=99,
        ),
        _begun(account, events),
    ]  # fmt: skip


def _begun(account: RankAccount, events: HostEvents) -> Edges:
    """A thread whose records begin late was woken or made by somebody: it is taken to move with the thread that steps."""
    stepping = account.steps.thread[account.steps.thread >= 0]
    if not len(stepping) or not len(events):
        return edges(np.empty(0, np.int64), np.empty(0, np.int64), EdgeKind.HANDOVER)
    main = np.flatnonzero(events.thread == int(np.bincount(stepping).argmax()))
    first = np.flatnonzero(np.diff(events.thread, prepend=-1))
    first = first[~np.isin(events.thread[first], stepping)]
    at = np.searchsorted(events.at_ns[main], events.at_ns[first], side="right") - 1
    known = at >= 0
    return edges(first[known], main[at[known]], EdgeKind.HANDOVER, binds=True, inferred=True)
