"""Threads that stood still until somebody needed them.

A thread that signals another one may have slept for long before: an I/O thread in ``epoll_wait``, a worker without
work. What it slept through is nothing that a step waited for. From the moment on at which somebody waited for it the
step waits with it; before that moment the step's time is that of the thread that waits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Interval = tuple[int, int]


@dataclass(frozen=True)
class Wake:
    """``waiter`` slept in ``[asleep_ns, woken_ns)``, until ``helper`` signalled at ``signal_ns``."""

    waiter: int
    asleep_ns: int
    woken_ns: int
    helper: int
    signal_ns: int


@dataclass(frozen=True)
class Needed:
    """From ``since_ns`` on ``waiter`` slept for what ``helper`` had yet to do; ``helper`` had slept until then."""

    helper: int
    waiter: int
    since_ns: int


def idle_helpers(wakes: Sequence[Wake], asleep: Mapping[int, Sequence[Interval]]) -> list[Needed]:
    """Helpers that slept when they began to be needed.

    ``wakes``: of threads that waited for one another. ``asleep``: by thread, the sleeps that no signal is known to
    have ended. Where a helper that wakes up signals somebody, too, who had waited before it fell asleep, its sleep is
    part of what that one waited for, and nothing is said of it.
    """
    signals = _by_helper(wakes)
    needed_since = _needed_since(wakes)
    found = []
    for wake, (since, waiter) in needed_since.items():
        own = asleep.get(wake.helper, ())
        at = bisect_right(own, since, key=lambda interval: interval[0]) - 1
        if waiter == wake.helper or at < 0 or not since < own[at][1] <= wake.signal_ns:
            continue
        until = own[at + 1][0] if at + 1 < len(own) else wake.signal_ns
        then = _between(signals[wake.helper], own[at][1], until)
        if all(needed_since[other][0] >= own[at][0] for other in then):
            found.append(Needed(wake.helper, waiter, since))
    return found


def _needed_since(wakes: Sequence[Wake]) -> dict[Wake, tuple[int, int]]:
    """Of each wake the instant from which on somebody waited for it, and who.

    Whoever waits may itself be waited for: of all that slept at the signal the one counts that fell asleep last.
    Wakes come later than those that led to them, so the latest is settled first.
    """
    signals, woken = _by_helper(wakes), _woken(wakes)
    sleepers: dict[Wake, set[tuple[int, int]]] = {}
    for wake in sorted(wakes, key=lambda wake: (wake.signal_ns, wake.woken_ns), reverse=True):
        again = bisect_right(woken[wake.waiter], wake.woken_ns)
        until = woken[wake.waiter][again] if again < len(woken[wake.waiter]) else None
        then = _between(signals.get(wake.waiter, []), wake.woken_ns, until)
        passed_on = set[tuple[int, int]]().union(*(sleepers.get(later, ()) for later in then))
        sleepers[wake] = {(wake.asleep_ns, wake.waiter)} | {
            (since, waiter) for since, waiter in passed_on if since < wake.signal_ns
        }
    return {wake: max(found) for wake, found in sleepers.items()}


def _between(sent: Sequence[Wake], low_ns: int, high_ns: int | None) -> Sequence[Wake]:
    """Those of one helper, in order of time, whose signal lies in ``[low_ns, high_ns)``; None: no end."""
    first = bisect_left(sent, low_ns, key=lambda wake: wake.signal_ns)
    last = len(sent) if high_ns is None else bisect_left(sent, high_ns, key=lambda wake: wake.signal_ns)
    return sent[first:last]


def _by_helper(wakes: Sequence[Wake]) -> dict[int, list[Wake]]:
    """Wakes by who signalled, in order of time."""
    found: dict[int, list[Wake]] = {}
    for wake in sorted(wakes, key=lambda wake: wake.signal_ns):
        found.setdefault(wake.helper, []).append(wake)
    return found


def _woken(wakes: Sequence[Wake]) -> dict[int, list[int]]:
    """By thread, when it was woken, in order of time."""
    found: dict[int, list[int]] = {}
    for wake in sorted(wakes, key=lambda wake: wake.woken_ns):
        found.setdefault(wake.waiter, []).append(wake.woken_ns)
    return found
