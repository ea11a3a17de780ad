"""Exposed time: what the device did in each nanosecond (attribution contract, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category, Exposure
from analyzer.errors import InvariantError
from analyzer.intervals import EMPTY, Intervals, complement, covered, intersect, measure, subtract, union
from analyzer.model import IntArray, SmallArray
from analyzer.reconstruct.work import BoolArray, Work

_LABELS = (
    (Category.KERNEL, Exposure.KERNEL),
    (Category.GRAPH_UNRESOLVED, Exposure.GRAPH_UNRESOLVED),
    (Category.PRIOR_WORK, Exposure.PRIOR_WORK),
    (Category.COLLECTIVE_UNSPLIT, Exposure.COLLECTIVE),
    (Category.COPY, Exposure.COPY),
)


@dataclass(frozen=True)
class ExposureLine:
    """Pieces of one rank, (n,) columns, sorted and gapless over the whole measured span."""

    start_ns: IntArray
    end_ns: IntArray
    label: SmallArray
    busy: Intervals
    hidden: dict[str, Intervals]  # time that another label covers, by name

    def window(self, low: int, high: int) -> dict[Exposure, int]:
        """Time per label inside ``[low, high)``, every label present; sums to ``high - low``."""
        first = int(np.searchsorted(self.end_ns, low, side="right"))
        last = int(np.searchsorted(self.start_ns, high, side="left"))
        start = np.maximum(self.start_ns[first:last], low)
        end = np.minimum(self.end_ns[first:last], high)
        totals = np.zeros(len(Exposure), np.int64)
        np.add.at(totals, self.label[first:last], end - start)
        result = {label: int(totals[label]) for label in Exposure}
        if sum(result.values()) != high - low:
            raise InvariantError(f"exposure does not partition [{low}, {high})")
        return result

    def overlaps(self, lows: IntArray, highs: IntArray) -> list[dict[str, int]]:
        """Hidden time inside each ``[low, high)``: reported beside the partition, never added to it."""
        columns = [covered(part, lows, highs).tolist() for part in self.hidden.values()]
        return [dict(zip(self.hidden, row, strict=True)) for row in zip(*columns, strict=True)]


def expose(work: Work, profiler: Intervals, low: int, high: int) -> ExposureLine:
    """Label every nanosecond of ``[low, high)`` of one rank.

    Idle time that reaches across the edges is judged as a whole: it began where the device fell idle.
    """
    if len(work):
        low, high = min(low, int(work.start_ns[0])), max(high, int(work.end_ns.max()))
    taken: Intervals = EMPTY
    pieces: list[tuple[IntArray, IntArray, int]] = []
    sets: dict[Category, Intervals] = {}
    for category, label in _LABELS:
        rows = work.label == category
        sets[category] = union(work.start_ns[rows], work.end_ns[rows])
        fresh = subtract(sets[category], taken)
        pieces.append((fresh[0], fresh[1], label))
        taken = union(np.concatenate((taken[0], fresh[0])), np.concatenate((taken[1], fresh[1])))
    pieces += _idle(work, complement(taken, low, high), profiler)
    start = np.concatenate([piece[0] for piece in pieces])
    end = np.concatenate([piece[1] for piece in pieces])
    label_column = np.concatenate([np.full(len(piece[0]), piece[2], np.int8) for piece in pieces])
    order = np.argsort(start, kind="stable")
    computing = [sets[c] for c in (Category.KERNEL, Category.GRAPH_UNRESOLVED, Category.PRIOR_WORK)]
    compute = union(np.concatenate([s[0] for s in computing]), np.concatenate([s[1] for s in computing]))
    return ExposureLine(
        start[order],
        end[order],
        label_column[order],
        busy=taken,
        hidden={
            "collective_under_kernel": intersect(sets[Category.COLLECTIVE_UNSPLIT], compute),
            "copy_under_kernel": intersect(sets[Category.COPY], compute),
            "kernel_under_kernel": _overlapping(work, work.label == Category.KERNEL),
        },
    )


def _idle(work: Work, idle: Intervals, profiler: Intervals) -> list[tuple[IntArray, IntArray, int]]:
    """Idle time by what it waited for: the work that ends it, and when that had been submitted."""
    start, end = idle
    overhead = intersect(idle, profiler)
    follower = np.searchsorted(work.start_ns, end, side="left")
    after_last = follower >= len(work)
    if not len(work):
        return [(start, end, Exposure.IDLE_AFTER_LAST)]
    row = np.minimum(follower, len(work) - 1)
    # An idle stretch cut off by the end of the span has its follower later on: the same rule holds.
    linked = work.linked[row] & ~after_last
    submitted = np.clip(work.launch_ns[row], start, end)
    dependency = linked & (work.launch_ns[row] < start)
    by_launch = linked & ~dependency
    parts = [
        (start[after_last], end[after_last], Exposure.IDLE_AFTER_LAST),
        (start[dependency], end[dependency], Exposure.IDLE_DEPENDENCY),
        (start[~linked & ~after_last], end[~linked & ~after_last], Exposure.IDLE_UNLINKED),
        (start[by_launch], submitted[by_launch], Exposure.IDLE_HOST),
        (submitted[by_launch], end[by_launch], Exposure.IDLE_LAUNCH),
    ]
    pieces: list[tuple[IntArray, IntArray, int]] = [(overhead[0], overhead[1], Exposure.IDLE_PROFILER)]
    for low, high, label in parts:
        keep = high > low
        rest = subtract((low[keep], high[keep]), overhead)
        pieces.append((rest[0], rest[1], label))
    return pieces


def _overlapping(work: Work, mask: BoolArray) -> Intervals:
    """Where at least two of the chosen rows run at once."""
    start, end = work.start_ns[mask], work.end_ns[mask]
    keep = end > start
    start, end = np.sort(start[keep]), np.sort(end[keep])
    times = np.concatenate((start, end))
    change = np.concatenate((np.ones(len(start), np.int64), -np.ones(len(end), np.int64)))
    order = np.lexsort((change, times))
    depth = np.cumsum(change[order])
    times = times[order]
    busy = depth[:-1] >= 2
    return union(times[:-1][busy], times[1:][busy])


def beside_collectives(work: Work) -> Intervals:
    """When a collective shares the device with other kernels, collectives of other groups included, as a set."""
    collective = work.own_label == Category.COLLECTIVE_UNSPLIT
    other = ~collective & np.isin(work.own_label, (Category.KERNEL, Category.GRAPH_UNRESOLVED))
    running = union(work.start_ns[collective], work.end_ns[collective])
    kernels = intersect(union(work.start_ns[other], work.end_ns[other]), running)
    several = _overlapping(work, collective)
    return union(np.concatenate((kernels[0], several[0])), np.concatenate((kernels[1], several[1])))


def exposed_by_row(work: Work, low: int, high: int) -> IntArray:
    """(n,) int64: how much of the device's time inside ``[low, high)`` each row accounts for, ns.

    Of several rows with one label the first in total order counts, and a label of higher precedence
    takes the time, so that the rows of a label sum to that label's exposed time.
    """
    exposed = np.zeros(len(work), np.int64)
    taken: Intervals = EMPTY
    for category, _ in _LABELS:
        rows = np.flatnonzero(work.label == category)
        if not len(rows):
            continue
        end = np.clip(work.end_ns[rows], low, high)
        reach = np.concatenate(([low], np.maximum.accumulate(end)[:-1]))
        start = np.maximum(np.clip(work.start_ns[rows], low, high), reach)
        fresh = np.maximum(end - start, 0)
        exposed[rows] = fresh - covered(taken, start, start + fresh)
        mine = union(work.start_ns[rows], work.end_ns[rows])
        taken = union(np.concatenate((taken[0], mine[0])), np.concatenate((taken[1], mine[1])))
    return exposed


def busy_time(work: Work) -> int:
    """Length of the union of all device work, ns."""
    return measure(union(work.start_ns, work.end_ns))
