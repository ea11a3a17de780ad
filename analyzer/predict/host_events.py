"""The host's events of one rank: where launch calls begin, where waits begin and return, where threads meet.

What is not an event here (other calls, operators, Python) is part of the time between two events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np

from analyzer.cuda_api import WAITS, CallKind
from analyzer.model import Columns, IntArray, MemoryKind, SmallArray
from analyzer.predict.edges import BoolArray
from analyzer.predict.host_time import HostTime, host_time
from analyzer.reconstruct.blocking import POLL_GAP_NS
from analyzer.reconstruct.handovers import Transition
from analyzer.reconstruct.host_account import HostAccount
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import Calls


class Role(IntEnum):
    """What a host event is; of several at one instant the smaller comes first."""

    RETURN = 0  # a waiting call returns, or a held launch
    RESUME = 1  # the thread goes on after another one
    MARK = 2  # a step begins or ends, a thread's records begin, or what another thread waits for is done
    CALL = 3  # a launch call or a waiting call begins


@dataclass(frozen=True)
class HostEvents(Columns):
    """Host events of one rank, (h,) columns sorted by (thread, instant, role).

    ``entry``: of a return the event at which its call began, else -1. ``call``: index into ``Calls`` (of a polling
    loop its first query where it begins, its last where it returns), -1 none. ``call_ns``: duration of the call that
    begins here, 0 where it has a return of its own. ``waits``: a call that exists to wait. ``launches``: a launch call.
    ``capturable``: a launch that a graph could replay. ``*_ns`` below: what the thread did since its previous event,
    see ``HostTime``; 0 at a thread's first.
    """

    at_ns: IntArray
    thread: IntArray
    role: SmallArray
    call: IntArray
    entry: IntArray
    call_ns: IntArray
    waits: BoolArray
    launches: BoolArray
    capturable: BoolArray
    dispatch_ns: IntArray
    work_ns: IntArray
    output_ns: IntArray
    profiler_ns: IntArray
    stray_ns: IntArray
    blocked_ns: IntArray

    @property
    def follows(self) -> IntArray:
        """Events that have a previous one on their thread; it stands right before them."""
        if not len(self):
            return np.empty(0, np.int64)
        rows: IntArray = 1 + np.flatnonzero(self.thread[1:] == self.thread[:-1])
        return rows


@dataclass(frozen=True)
class Waits:
    """Waiting calls, (w,): first and last call of each (they differ in polling loops), the row that held it or -1."""

    first: IntArray
    last: IntArray
    held_by: IntArray

    @property
    def held(self) -> BoolArray:
        """(w,) whether the device held it."""
        return np.asarray(self.held_by >= 0, bool)


def find_waits(account: RankAccount) -> Waits:
    """Calls that wait by their name, that the device held, and loops of queries."""
    calls, held = account.calls, account.held
    by_name = np.flatnonzero(np.isin(calls.kind, list(WAITS)))
    last = np.union1d(by_name, held.call).astype(np.int64)
    held_by = np.full(len(calls), -1, np.int64)
    held_by[held.call] = held.work
    first = last.copy()
    for at in np.flatnonzero(calls.kind[last] == CallKind.QUERY).tolist():
        first[at] = _loop_start(calls, int(last[at]))
    return Waits(first, last, held_by[last])


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


def transitions(account: RankAccount) -> Iterator[tuple[int, Transition]]:
    """Hand-overs and joins with the thread that goes on."""
    for thread, items in sorted(account.transitions.by_thread.items()):
        for item in items:
            yield thread, item


def host_events(account: RankAccount, waits: Waits) -> HostEvents:
    """The events of all threads, with what each thread did between them."""
    events = _placed(account, waits)
    of_kind = {field.name: np.zeros(len(events), np.int64) for field in fields(HostTime)}
    own: HostAccount = replace(account.account, _threads=dict(account.account.built))
    rows = events.follows
    stepping = set(account.steps.thread.tolist())
    for thread in np.unique(events.thread[rows]).tolist():
        here = rows[events.thread[rows] == thread]
        begin, end = events.at_ns[here - 1], events.at_ns[here]
        spent = host_time(
            own.thread(thread), account.calls, thread, begin, end, steps_here=thread in stepping
        )
        for name, column in of_kind.items():
            column[here] = getattr(spent, name)
    return replace(events, **of_kind)  # type: ignore[arg-type]


def _placed(account: RankAccount, waits: Waits) -> HostEvents:
    calls, work = account.calls, account.work
    launches = np.setdiff1d(np.unique(work.launch[work.linked]), waits.first)
    used = {*calls.thread[launches].tolist(), *calls.thread[waits.first].tolist()}
    marks = _marks(account, used)
    w, n = len(waits.first), len(launches)
    at_ns, thread = (
        np.concatenate(
            (start[launches], start[waits.first], end[waits.last], [mark[position] for mark in marks])
        ).astype(np.int64)
        for start, end, position in ((calls.start_ns, calls.end_ns, 0), (calls.thread, calls.thread, 1))
    )
    role = np.concatenate(
        [np.full(n + w, Role.CALL), np.full(w, Role.RETURN), np.array([mark[2] for mark in marks], np.int64)]
    ).astype(np.int8)
    call = np.concatenate([launches, waits.first, waits.last, np.full(len(marks), -1, np.int64)])
    order = np.lexsort((call, role, at_ns, thread))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    entry, call_ns = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    entry[place[n + w : n + 2 * w]] = place[n : n + w]
    call_ns[place[:n]] = calls.end_ns[launches] - calls.start_ns[launches]
    exists_to_wait, launching, capturable = (np.zeros(len(order), bool) for _ in range(3))
    for at in (place[n : n + w], place[n + w : n + 2 * w]):
        exists_to_wait[at] = np.isin(calls.kind[waits.first], [*WAITS, CallKind.QUERY])
        launching[at] = np.isin(calls.kind[waits.first], (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH))
    launching[place[:n]] = np.isin(calls.kind[launches], (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH))
    capturable[place[:n]] = _capturable(account, launches)
    nothing = np.zeros(len(order), np.int64)
    return HostEvents(
        at_ns[order], thread[order], role[order], call[order], entry, call_ns, exists_to_wait, launching,
        capturable, *(nothing for _ in fields(HostTime)),
    )  # fmt: skip


def _marks(account: RankAccount, used: set[int]) -> list[tuple[int, int, Role]]:
    """(instant, thread, role) of events that are no calls, each once."""
    marks: list[tuple[int, int, Role]] = []
    for thread, item in transitions(account):
        marks.append((int(item.at_ns), thread, Role.RESUME))
        marks.append((handed_ns(item), item.other, Role.MARK))
    steps = account.steps
    for instants in (steps.start_ns, steps.end_ns):
        marks += [
            (at, thread, Role.MARK)
            for at, thread in zip(instants.tolist(), steps.thread.tolist(), strict=True)
        ]
    host = account.trace.process.host
    for thread in sorted({thread for thread in {*used, *(mark[1] for mark in marks)} if thread >= 0}):
        rows = account.account.rows_of(thread)
        if len(rows):  # what a thread does until its first event may change, too
            marks.append((int(host.start_ns[rows].min()), thread, Role.MARK))
    return [mark for mark in dict.fromkeys(marks) if mark[1] >= 0]


def handed_ns(item: Transition) -> int:
    """When the other thread was done; never later than this one went on."""
    return min(int(item.from_ns), int(item.at_ns))


def _capturable(account: RankAccount, launches: IntArray) -> BoolArray:
    """Kernels, sets and copies that do not go through pageable memory."""
    calls, work = account.calls, account.work
    fits = np.isin(calls.kind[launches], (CallKind.LAUNCH, CallKind.SET, CallKind.COPY_ASYNC))
    table = work.table
    pageable = (table.src_memory == MemoryKind.PAGEABLE) | (table.dst_memory == MemoryKind.PAGEABLE)
    through = np.unique(work.launch[pageable & work.linked & (table.copy_kind >= 0)])
    return np.asarray(fits & ~np.isin(launches, through), bool)
