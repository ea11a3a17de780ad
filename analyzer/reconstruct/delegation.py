"""Threads that wait while another works for them: a silence of one, filled by the other.

Nothing in a torch trace says that the thread inside ``backward()`` waits for autograd's engine thread. It
shows in time: the one falls silent, the other begins soon after, works, and the first resumes soon after
its last record. All threads are compared at once, through the beginnings of work alone, so that hundreds
of threads cost no more than their records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray

LAG_NS = 500_000
"""Longest pause between a thread's falling silent and the other's first record, and back."""
SHORT_SILENCE_NS = 100_000
REST_NS = 200_000
"""Below this silence the delegate must otherwise rest for this long: two busy threads fill each other's pauses
of some 30 us by chance."""
MIN_COVER = 0.7
"""A delegate's work spans at least this share of the silence."""
MIN_HABIT = 0.5
"""Share of a delegate's records that lie in silences of the thread it works for."""
FAR = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class Activity:
    """Distinct instants at which threads began or ended records: (n,) columns sorted by (owner, time).

    ``owner`` is the place of the thread in an order that does not depend on the file.
    """

    owner: IntArray
    time_ns: IntArray

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class Delegations:
    """``waiter`` was silent in ``[silent_ns, resumed_ns)``; ``helper`` worked from first to last instant."""

    waiter: IntArray
    helper: IntArray
    silent_ns: IntArray
    resumed_ns: IntArray
    first_ns: IntArray
    last_ns: IntArray

    def __len__(self) -> int:
        return len(self.waiter)


def find_delegations(activity: Activity, in_call: BoolArray, works: BoolArray, quiet_ns: int) -> Delegations:
    """All delegations, at most one per silence: the helper that worked longest into it.

    ``in_call``: (n,) whether the silence that follows an instant is spent inside a CUDA call. ``works``:
    by owner, whether the thread made calls or ran ops at all.
    """
    owner, time = activity.owner, activity.time_ns
    same = owner[1:] == owner[:-1]
    pause = np.diff(time)
    silences = np.flatnonzero(same & (pause >= quiet_ns) & ~in_call[:-1])
    begins = (
        np.flatnonzero(np.append(True, ~same | (pause >= quiet_ns)) & works[owner]) if len(time) else silences
    )
    begins = begins[np.argsort(time[begins], kind="stable")]
    silence, begin = _pairs(time, silences, begins)
    keep = owner[begin] != owner[silence]
    silence, begin = silence[keep], begin[keep]
    if not len(silence):
        nothing = np.empty(0, np.int64)
        return Delegations(nothing, nothing, nothing, nothing, nothing, nothing)
    end = _last_before(activity, owner[begin], time[silence + 1])
    fits = (end > begin) & _fits(activity, silence, begin, end, quiet_ns)
    silence, begin, end = silence[fits], begin[fits], end[fits]
    order = np.lexsort((owner[begin], -time[end], silence))
    order = order[np.diff(silence[order], prepend=-1) > 0]
    silence, begin, end = silence[order], begin[order], end[order]
    habit = _habitual(activity, owner[silence], begin, end)
    silence, begin, end = silence[habit], begin[habit], end[habit]
    return Delegations(owner[silence], owner[begin], time[silence], time[silence + 1], time[begin], time[end])


def _habitual(activity: Activity, waiter: IntArray, begin: IntArray, end: IntArray) -> BoolArray:
    """Whether the helper does most of its work while this waiter is silent.

    A thread that is busy now and then falls into another's long silence by chance, but not as a habit.
    """
    threads = int(activity.owner.max()) + 1 if len(activity) else 1
    in_all = np.bincount(activity.owner, minlength=threads)
    pair = waiter * threads + activity.owner[begin]
    inside = np.zeros(threads * threads, np.int64)
    np.add.at(inside, pair, end - begin + 1)
    return np.asarray(inside[pair] >= MIN_HABIT * in_all[activity.owner[begin]], bool)


def _pairs(time: IntArray, silences: IntArray, begins: IntArray) -> tuple[IntArray, IntArray]:
    """Every silence with every beginning of work at most a lag after it and before its end."""
    low = np.searchsorted(time[begins], time[silences], side="left")
    until = np.minimum(time[silences] + LAG_NS, time[silences + 1])
    count = np.maximum(np.searchsorted(time[begins], until, side="right") - low, 0)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(silences, count), begins[np.repeat(low, count) + offset]


def _last_before(activity: Activity, owner: IntArray, until_ns: IntArray) -> IntArray:
    """Index of each owner's last instant at or before a time (it has one)."""
    base = int(activity.time_ns.min())
    span = int(activity.time_ns.max()) - base + 1
    # One sorted key per (owner, time): a day of nanoseconds times a thousand threads stays below 2**63.
    key = activity.owner * span + (activity.time_ns - base)
    return np.searchsorted(key, owner * span + (until_ns - base), side="right") - 1


def _fits(activity: Activity, silence: IntArray, begin: IntArray, end: IntArray, quiet_ns: int) -> BoolArray:
    """Whether the helper's work fills the silence and the helper rests before and after."""
    owner, time = activity.owner, activity.time_ns
    silent, resumed = time[silence], time[silence + 1]
    before = np.where((begin > 0) & (owner[begin - 1] == owner[begin]), time[begin - 1], -FAR)
    following = np.minimum(end + 1, len(time) - 1)
    after = np.where((end + 1 < len(time)) & (owner[following] == owner[end]), time[following], FAR)
    rest = np.where(resumed - silent < SHORT_SILENCE_NS, REST_NS, quiet_ns)
    fits = (before < silent) & (resumed - time[end] <= LAG_NS)
    fits &= time[end] - time[begin] >= MIN_COVER * (resumed - silent)
    return np.asarray(fits & (time[begin] - before >= rest) & (after - time[end] >= rest), bool)
