"""What a thread did with its time, by kind, between any two instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.arrays import distinct
from analyzer.categories import Category
from analyzer.intervals import Intervals, union
from analyzer.model import IntArray
from analyzer.reconstruct.host_account import ThreadAccount
from analyzer.reconstruct.work import Calls

DISPATCH = (Category.LAUNCH_DISPATCH,)
WORK = (Category.HOST_FRAMEWORK, Category.HOST_UNTRACED)
OUTPUT = (Category.HOST_OUTPUT,)
PROFILER = (Category.PROFILER,)
_SUBMITTING = (Category.LAUNCH_DISPATCH, Category.LAUNCH_API, Category.HOST_API)
STRAY = tuple(category for category in Category if category not in _SUBMITTING)
"""What breaks a submission burst."""
_NOTHING: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class HostTime:
    """ns of one thread between pairs of instants, (n,) columns.

    CPU time outside calls: ``dispatch_ns`` inside submission bursts, ``output_ns`` on output, ``work_ns`` any other.
    ``profiler_ns``: overhead that the profiler recorded. ``stray_ns``: all that is no submission. ``blocked_ns``: the
    OS or a collective on the CPU blocked the thread, or it may have waited (see ``steps_here``).
    """

    dispatch_ns: IntArray
    work_ns: IntArray
    output_ns: IntArray
    profiler_ns: IntArray
    stray_ns: IntArray
    blocked_ns: IntArray


def host_time(
    account: ThreadAccount, calls: Calls, thread: int, begin: IntArray, end: IntArray, *, steps_here: bool
) -> HostTime:
    """Time between ``begin`` and ``end``, (n,) instants of one thread.

    ``steps_here``: the thread runs the steps. Any other may wait where nothing of it is recorded.
    """
    mine = calls.of_thread(thread)
    in_calls = union(calls.start_ns[mine], calls.end_ns[mine])
    waits = (Category.HOST_WAIT, Category.COLLECTIVE_HOST)
    blocked = waits if steps_here else (*waits, Category.HOST_UNTRACED)

    def between(counts: Sequence[Category], without: Intervals) -> IntArray:
        meter = _Meter(account, counts, without)
        return meter.until(end) - meter.until(begin)

    return HostTime(
        dispatch_ns=between(DISPATCH, in_calls),
        work_ns=between(WORK, in_calls),
        output_ns=between(OUTPUT, in_calls),
        profiler_ns=between(PROFILER, _NOTHING),
        stray_ns=between(STRAY, _NOTHING),
        blocked_ns=between(blocked, _NOTHING),
    )


class _Meter:
    """How much of a thread's time lies in some categories and in none of some intervals, up to an instant."""

    def __init__(self, account: ThreadAccount, counts: Sequence[Category], without: Intervals) -> None:
        self._bounds = distinct(np.concatenate((account.bounds, *without)))
        at = np.searchsorted(account.bounds, self._bounds, side="right") - 1
        category = np.append(account.category, Category.HOST_UNTRACED)  # nothing is recorded before and after
        last = len(account.bounds) - 1
        inside = np.isin(category[np.where((at < 0) | (at >= last), -1, at)], counts)
        starts, ends = without
        if len(starts):
            before = np.searchsorted(starts, self._bounds, side="right") - 1
            inside &= (before < 0) | (self._bounds >= ends[np.maximum(before, 0)])
        self._inside, self._outside = inside, Category.HOST_UNTRACED in counts
        counted = np.where(inside[:-1], np.diff(self._bounds), 0)
        self._total = np.concatenate(([0], np.cumsum(counted))).astype(np.int64)

    def until(self, instants: IntArray) -> IntArray:
        """(n,) ns, relative to the first bound."""
        if not len(self._bounds):
            return instants * int(self._outside)
        at = np.searchsorted(self._bounds, instants, side="right") - 1
        safe = np.maximum(at, 0)
        counted = np.where(at >= 0, self._inside[safe], self._outside)
        return self._total[safe] + np.where(counted, instants - self._bounds[safe], 0)
