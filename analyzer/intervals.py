"""Half-open integer intervals as pairs of numpy arrays: unions, differences, clipping, lookup.

Every function takes and returns ``(n,) int64`` arrays; a *set* is sorted, disjoint and without empty
intervals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Intervals = tuple[IntArray, IntArray]

EMPTY: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: IntArray, ends: IntArray) -> Intervals:
    """The set covered by any of the intervals (unsorted, overlapping and empty ones allowed)."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return EMPTY
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    opens = np.concatenate(([True], starts[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return starts[opens], reach[closes]


def measure(intervals: Intervals) -> int:
    """Total length of a set (or the sum of durations of any intervals), ns."""
    return int((intervals[1] - intervals[0]).sum())


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    """The parts inside ``[low, high)``; empty results dropped."""
    starts = np.maximum(intervals[0], low)
    ends = np.minimum(intervals[1], high)
    keep = ends > starts
    return starts[keep], ends[keep]


def complement(intervals: Intervals, low: int, high: int) -> Intervals:
    """What a set leaves free of ``[low, high)``."""
    starts, ends = clip(intervals, low, high)
    gap_starts = np.concatenate(([low], ends)).astype(np.int64)
    gap_ends = np.concatenate((starts, [high])).astype(np.int64)
    keep = gap_ends > gap_starts
    return gap_starts[keep], gap_ends[keep]


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The intersection of two sets."""
    if not len(a[0]) or not len(b[0]):
        return EMPTY
    first = np.searchsorted(b[1], a[0], side="right")
    last = np.searchsorted(b[0], a[1], side="left")
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(a[0])), counts)
    if not len(rows):
        return EMPTY
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = np.repeat(first, counts) + offsets
    starts = np.maximum(a[0][rows], b[0][columns])
    ends = np.minimum(a[1][rows], b[1][columns])
    keep = ends > starts
    return starts[keep], ends[keep]


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What is in set ``a`` and not in set ``b``."""
    if not len(a[0]):
        return EMPTY
    return intersect(a, complement(b, int(a[0][0]), int(a[1][-1])))


def covered(intervals: Intervals, lows: IntArray, highs: IntArray) -> IntArray:
    """(m,) int64: how much of each ``[low, high)`` a set covers, ns."""
    return _covered_before(intervals, highs) - _covered_before(intervals, lows)


def _covered_before(intervals: Intervals, instants: IntArray) -> IntArray:
    starts, ends = intervals
    total = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)
    index = np.searchsorted(starts, instants, side="right")
    inside = np.zeros(len(instants), np.int64)
    has = index > 0
    previous = index[has] - 1
    inside[has] = np.minimum(instants[has], ends[previous]) - starts[previous]
    result = total[np.maximum(index - 1, 0)] + inside
    return np.where(has, result, 0)
