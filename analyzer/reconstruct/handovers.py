"""Where one host thread waits for another: hand-overs and joins.

Recorded where a flow or an OS wait with a matching signal tells; otherwise inferred from delegation: a
thread falls silent, another thread works in that silence from its beginning to its end, and the first
resumes right after (autograd's engine thread and the thread inside ``backward()``).
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass

import numpy as np

from analyzer.arrays import distinct
from analyzer.categories import Binding
from analyzer.model import HostKind, IntArray, ProcessTrace
from analyzer.reconstruct.delegation import LAG_NS, Activity, find_delegations
from analyzer.reconstruct.host_account import OS_WAIT
from analyzer.reconstruct.host_collectives import backend_threads
from analyzer.reconstruct.idle_helpers import Interval, Wake, idle_helpers
from analyzer.reconstruct.work import Calls

WAKE_NS = 100_000
"""A signal at most this long before a wait's end explains it."""

_SIGNAL = re.compile(r"signal|broadcast|sem_post|^write|^send|unlock|eventfd_write")
_NOT_IDLE = re.compile(r"sleep|mutex")
"""Waits of a thread that has something to do: it ends them by itself, or wants what another one holds."""
_FOR_ANYTHING = re.compile(r"poll|select")
"""Waits that no other thread need end: a signal close to their end may be chance."""
_NOT_A_HANDOVER = re.compile(r"fwdbwd|forward_backward|ac2g|async", re.IGNORECASE)


@dataclass(frozen=True)
class Transition:
    """At ``at_ns`` the thread could go on because ``other`` had done something until ``from_ns``."""

    at_ns: int
    other: int
    from_ns: int
    binding: Binding  # HANDOVER or JOIN
    inferred: bool


@dataclass(frozen=True)
class Transitions:
    """All transitions by thread, each list in time order."""

    by_thread: dict[int, list[Transition]]

    def last(self, thread: int, instant: int) -> Transition | None:
        """The latest transition of ``thread`` at or before ``instant``."""
        items = self.by_thread.get(thread)
        if not items:
            return None
        at = bisect.bisect_right(items, instant, key=lambda item: item.at_ns)
        return items[at - 1] if at else None


def find_transitions(process: ProcessTrace, calls: Calls, quiet_ns: int) -> Transitions:
    """Look at every pair of threads once."""
    activity = thread_activity(process)
    found: dict[int, list[Transition]] = {}
    _from_flows(found, process, activity, quiet_ns)
    _from_signals(found, process, activity, quiet_ns)
    _from_delegation(found, process, calls, activity, quiet_ns)
    for items in found.values():
        # At one instant the last entry is found: a recorded cause before an inferred one, a hand-over
        # before a join, then the later; never by the order in which threads appear in the file.
        items.sort(
            key=lambda item: (
                item.at_ns,
                not item.inferred,
                item.binding == Binding.HANDOVER,
                item.from_ns,
                process.threads[item.other].tid,
            )
        )
    return Transitions(found)


def thread_activity(process: ProcessTrace) -> dict[int, IntArray]:
    """Distinct instants at which each thread began or ended a record of its own (OS waits excepted)."""
    host = process.host
    kinds = (HostKind.CALL, HostKind.OP, HostKind.RANGE, HostKind.FRAME)
    rows = np.flatnonzero(np.isin(host.kind, kinds) & (host.thread >= 0))
    result: dict[int, IntArray] = {}
    edges = np.searchsorted(host.thread[rows], np.arange(len(process.threads) + 1))
    for thread in range(len(process.threads)):
        mine = rows[edges[thread] : edges[thread + 1]]
        if len(mine):
            result[thread] = distinct(np.concatenate((host.start_ns[mine], host.end_ns[mine])))
    return result


def _from_flows(
    found: dict[int, list[Transition]], process: ProcessTrace, activity: dict[int, IntArray], quiet_ns: int
) -> None:
    """Recorded flows between threads that end a quiet time (autograd's forward-backward links do not)."""
    flows = process.flows
    others = [
        code
        for code in np.unique(flows.kind).tolist()
        if code >= 0 and _NOT_A_HANDOVER.search(process.names[code])
    ]
    hands_over = ~np.isin(flows.kind, others) & (flows.from_thread != flows.to_thread)
    for row in np.flatnonzero(hands_over).tolist():
        source, target = int(flows.from_thread[row]), int(flows.to_thread[row])
        if target not in activity:
            continue
        at_ns, from_ns = int(flows.to_ns[row]), int(flows.from_ns[row])
        instants = activity[target]
        index = int(np.searchsorted(instants, at_ns, side="left"))
        before = int(instants[index - 1]) if index else None
        if from_ns <= at_ns and (before is None or at_ns - before >= quiet_ns):
            found.setdefault(target, []).append(
                Transition(at_ns, source, from_ns, Binding.HANDOVER, inferred=False)
            )


def _from_signals(
    found: dict[int, list[Transition]], process: ProcessTrace, activity: dict[int, IntArray], quiet_ns: int
) -> None:
    """OS waits that end just after another thread signalled. No object address is recorded: inferred.

    The hand-over reaches to the woken thread's first record, unless that comes much later.
    """
    host = process.host
    rows = np.flatnonzero(host.kind == HostKind.OS)
    if not len(rows):
        return
    codes = np.unique(host.name[rows])
    names = {int(code): process.names[code] if code >= 0 else "" for code in codes}
    signals = rows[np.isin(host.name[rows], [c for c, n in names.items() if _SIGNAL.search(n)])]
    waits = rows[np.isin(host.name[rows], [c for c, n in names.items() if OS_WAIT.search(n)])]
    waits = waits[host.end_ns[waits] - host.start_ns[waits] >= quiet_ns]
    signals = signals[np.argsort(host.start_ns[signals], kind="stable")]
    if not len(signals):
        return
    at = np.searchsorted(host.start_ns[signals], host.end_ns[waits], side="right") - 1
    wakes: dict[int, Wake] = {}
    for wait, index in zip(waits.tolist(), at.tolist(), strict=True):
        wake = _wake(process, wait, signals, index)
        if wake is not None:
            wakes[wait] = wake
            at_ns = _first_record(activity.get(wake.waiter), wake.woken_ns)
            found.setdefault(wake.waiter, []).append(
                Transition(at_ns, wake.helper, wake.signal_ns, Binding.HANDOVER, inferred=True)
            )
    _from_idle_helpers(found, process, waits, wakes)


def _from_idle_helpers(
    found: dict[int, list[Transition]], process: ProcessTrace, waits: IntArray, wakes: dict[int, Wake]
) -> None:
    """Back from a thread that slept when it began to be needed. ``wakes``: by the wait that each ended."""
    host = process.host
    asleep: dict[int, list[Interval]] = {}
    for wait in waits[np.argsort(host.start_ns[waits], kind="stable")].tolist():
        if wait not in wakes and not _NOT_IDLE.search(process.names[host.name[wait]]):
            sleep = (int(host.start_ns[wait]), int(host.end_ns[wait]))
            asleep.setdefault(int(host.thread[wait]), []).append(sleep)
    for_threads = [
        wake for wait, wake in wakes.items() if not _FOR_ANYTHING.search(process.names[host.name[wait]])
    ]
    for needed in idle_helpers(for_threads, asleep):
        found.setdefault(needed.helper, []).append(
            Transition(needed.since_ns, needed.waiter, needed.since_ns, Binding.HANDOVER, inferred=True)
        )


def _wake(process: ProcessTrace, wait: int, signals: IntArray, last: int) -> Wake | None:
    """Who ended a wait: the latest signal of another thread, up to ``signals[last]``; None where none is close."""
    host = process.host
    asleep_ns, woken_ns, thread = int(host.start_ns[wait]), int(host.end_ns[wait]), int(host.thread[wait])
    for signal in signals[: last + 1][::-1].tolist():
        begin = int(host.start_ns[signal])
        if woken_ns - begin > WAKE_NS:
            return None
        if int(host.thread[signal]) != thread:
            early = begin < asleep_ns
            return None if early else Wake(thread, asleep_ns, woken_ns, int(host.thread[signal]), begin)
    return None


def _first_record(instants: IntArray | None, woken_ns: int) -> int:
    """The thread's first record after a wake-up, the wake-up itself where none follows soon."""
    if instants is None:
        return woken_ns
    at = int(np.searchsorted(instants, woken_ns, side="left"))
    if at == len(instants) or int(instants[at]) - woken_ns > LAG_NS:
        return woken_ns
    return int(instants[at])


def _from_delegation(
    found: dict[int, list[Transition]],
    process: ProcessTrace,
    calls: Calls,
    activity: dict[int, IntArray],
    quiet_ns: int,
) -> None:
    """Inferred joins and hand-overs; threads in the order of their ids, not of the file.

    Not with a collective's backend: the thread that waits for it is in the collective itself, and a backend that
    rests between two collectives waits for nobody's work.
    """
    host = process.host
    others = sorted(set(activity) - set(backend_threads(process).tolist()))
    threads = sorted(others, key=lambda thread: process.threads[thread].tid)
    if len(threads) < 2:
        return
    working = np.unique(host.thread[np.isin(host.kind, (HostKind.CALL, HostKind.OP))])
    whole = Activity(
        owner=np.repeat(np.arange(len(threads)), [len(activity[thread]) for thread in threads]),
        time_ns=np.concatenate([activity[thread] for thread in threads]),
    )
    in_call = np.concatenate([_inside_call(calls, thread, activity[thread]) for thread in threads])
    pairs = find_delegations(whole, in_call, np.isin(threads, working), quiet_ns)
    columns = (pairs.waiter, pairs.helper, pairs.silent_ns, pairs.resumed_ns, pairs.first_ns, pairs.last_ns)
    for waiter, helper, silent, resumed, first, last in zip(*(c.tolist() for c in columns), strict=True):
        waits, works = threads[waiter], threads[helper]
        found.setdefault(waits, []).append(Transition(resumed, works, last, Binding.JOIN, inferred=True))
        found.setdefault(works, []).append(Transition(first, waits, silent, Binding.HANDOVER, inferred=True))


def _inside_call(calls: Calls, thread: int, instants: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a call of the thread begins at each instant: the silence is then inside that call."""
    mine = calls.of_thread(thread)
    starts = calls.start_ns[mine][calls.end_ns[mine] > calls.start_ns[mine]]
    if not len(starts):
        return np.zeros(len(instants), bool)
    at = np.searchsorted(starts, instants, side="right") - 1
    return np.asarray((at >= 0) & (starts[at] == instants), bool)
