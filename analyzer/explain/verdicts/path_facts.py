"""What the hypotheses ask of a path segment beyond its category, measured while the rank's records are at hand.

A few numbers per segment are all that verdicts need later, also for a path that leads through several ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from analyzer.categories import CPU_CATEGORIES, Category
from analyzer.explain.bytes.codes import NO_CODES, RowCodes
from analyzer.explain.device.grids import coverage
from analyzer.intervals import Intervals, covered, union
from analyzer.model import Columns, IntArray, SmallArray
from analyzer.reconstruct.critical_path import ON_DEVICE, ON_HOST, Path, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import BoolArray

GAPS = frozenset({Category.GAP_DISPATCH, Category.GAP_DEPENDENCY})
UNSEEN = frozenset({Category.HOST_UNTRACED, Category.HOST_WAIT})
ON_CPU = CPU_CATEGORIES | {Category.PROFILER}
SMALL, LARGE, UNKNOWN_GRID = 1, 0, -1
MOST_NS = 1 << 61
"""Times of several paths laid end to end stay below this: 64 bits hold it."""


@lru_cache
def of_category(categories: frozenset[Category]) -> npt.NDArray[np.bool_]:
    """(c,) bool, to be indexed by category."""
    return np.isin(np.arange(len(Category)), tuple(categories))


@dataclass(frozen=True)
class PathFacts(Columns):
    """(s,) columns over the segments of one or several paths; lengths of time in ns."""

    length: IntArray
    category: SmallArray
    inferred: BoolArray
    on_host: BoolArray
    small: SmallArray  # kernels: SMALL, LARGE or UNKNOWN_GRID; LARGE elsewhere
    bandwidth: SmallArray  # kernels: by counters, a code of ``bytes.codes``; BELOW elsewhere
    arithmetic: SmallArray  # the same of the arithmetic peak
    unseen_under_overhead: (
        IntArray  # CPU time with nothing recorded while the profiler was at work on some thread
    )
    overhead: IntArray  # CPU time on this thread's path while the profiler was at work on some thread
    kernels_behind: IntArray  # of a guessed wait: time in which such work ran elsewhere
    copies_behind: IntArray
    small_behind: IntArray
    after_wait: IntArray  # time between a return from a wait for the device and the next device work
    after_certain_wait: IntArray  # the same without calls that may have waited for nothing
    after_possible_wait: IntArray  # the same with calls that a later device clock would make waits
    later: IntArray  # how much later the device's clock could lie without contradiction
    earlier: IntArray

    def in_category(self, categories: frozenset[Category]) -> BoolArray:
        """(s,) bool."""
        return of_category(categories)[self.category]

    def clipped(self, length: IntArray) -> PathFacts:
        """The same with every segment cut to ``length``, and no part of it longer."""
        cut = {"length": length}
        for column in fields(self):
            if column.name in _PARTS:
                cut[column.name] = np.minimum(getattr(self, column.name), length)
        return PathFacts(**{**vars(self), **cut})


_PARTS = ("unseen_under_overhead", "overhead", "kernels_behind", "copies_behind", "small_behind", "after_wait",
          "after_certain_wait", "after_possible_wait")  # fmt: skip


def join_facts(parts: Sequence[PathFacts]) -> PathFacts:
    """The rows of several tables one after another."""
    return PathFacts(
        **{c.name: np.concatenate([getattr(part, c.name) for part in parts]) for c in fields(PathFacts)}
    )


def path_facts(
    account: RankAccount, paths: Sequence[Path], small_below: float, codes: RowCodes = NO_CODES
) -> PathFacts:
    """Facts of all segments of ``paths``; ``small_below``: coverage below which a grid is small."""
    return _Reading(account, paths, small_below, codes).facts()


class _Reading:
    """One pass over the paths of a rank."""

    def __init__(
        self, account: RankAccount, paths: Sequence[Path], small_below: float, codes: RowCodes
    ) -> None:
        self.account, self.work, self.codes = account, account.work, codes
        self.whole = join_paths(paths)
        self.edges: IntArray = np.cumsum([0, *map(len, paths)])
        self.part = np.repeat(np.arange(len(paths)), np.diff(self.edges))  # (s,) path of each segment
        self.small_below = small_below
        self.length = self.whole.end_ns - self.whole.start_ns

    def facts(self) -> PathFacts:
        whole, clock = self.whole, self.account.clock
        on_cpu = self._in(ON_CPU) & (whole.side == ON_HOST)
        overhead = np.where(on_cpu | self._in(UNSEEN), self._covered_by(self.account.profiler), 0)
        later = earlier = 0
        if clock.correction == "shifted":
            later = max(0, clock.high_ns - clock.shift_ns) if clock.high_ns is not None else 0
            earlier = max(0, clock.shift_ns - clock.low_ns) if clock.low_ns is not None else 0
        grids = coverage(self.account.trace, self.work.table)
        own_label = self.work.own_label
        kernels = np.isin(own_label, (Category.KERNEL, Category.GRAPH_UNRESOLVED))
        # A window that opens with the return itself counts too.
        back, returning = self._from_device(), whole.category == Category.HOST_SYNC_RETURN
        small_rows = (own_label == Category.KERNEL) & ~(grids >= self.small_below)
        return PathFacts(
            length=self.length,
            category=whole.category,
            inferred=whole.inferred,
            on_host=whole.side == ON_HOST,
            small=self._small(grids),
            bandwidth=self._coded(self.codes.bandwidth),
            arithmetic=self._coded(self.codes.compute),
            unseen_under_overhead=np.where(self._in(UNSEEN), overhead, 0),
            overhead=np.where(on_cpu, overhead, 0),
            kernels_behind=self._behind(kernels),
            copies_behind=self._behind(own_label == Category.COPY),
            small_behind=self._behind(small_rows),
            after_wait=self._after(back, returning),
            # ... without calls that may have waited for nothing
            after_certain_wait=self._after(back & ~(returning & whole.inferred), returning & ~whole.inferred),
            after_possible_wait=self._after(back | self._nearly_held(), returning),
            later=np.full(len(whole), later, np.int64),
            earlier=np.full(len(whole), earlier, np.int64),
        )

    def _in(self, categories: frozenset[Category]) -> BoolArray:
        return of_category(categories)[self.whole.category]

    def _covered_by(self, intervals: Intervals) -> IntArray:
        return covered(intervals, self.whole.start_ns, self.whole.end_ns)

    def _small(self, grids: npt.NDArray[np.float64]) -> SmallArray:
        small = np.zeros(len(self.whole), np.int8)
        rows = self._kernels()
        known = grids[self.whole.ref[rows]]
        small[rows] = np.where(
            np.isnan(known), UNKNOWN_GRID, np.where(known < self.small_below, SMALL, LARGE)
        )
        return small

    def _kernels(self) -> IntArray:
        """Segments in which a kernel runs."""
        kernel = self._in(frozenset({Category.KERNEL}))
        return np.flatnonzero((self.whole.side == ON_DEVICE) & (self.whole.ref >= 0) & kernel)

    def _coded(self, codes: SmallArray | None) -> SmallArray:
        result = np.zeros(len(self.whole), np.int8)
        if codes is not None:
            rows = self._kernels()
            result[rows] = codes[self.whole.ref[rows]]
        return result

    def _behind(self, rows: BoolArray) -> IntArray:
        """(s,) ns of guessed waits under which any of these rows ran."""
        waiting = self.whole.inferred & self._in(GAPS)
        if not waiting.any():
            return np.zeros(len(self.whole), np.int64)
        busy = union(self.work.start_ns[rows], self.work.end_ns[rows])
        return np.where(waiting, self._covered_by(busy), 0)

    def _after(self, opened: BoolArray, closed: BoolArray) -> IntArray:
        """(s,) ns of each segment between a return and the next device work, within its own path.

        ``opened``: segments that a return precedes, ``closed``: returns themselves.
        """
        instants = np.concatenate((self.whole.start_ns[opened], self.whole.end_ns[closed]))
        of = np.concatenate((self.part[opened], self.part[closed]))
        following = np.searchsorted(self.work.start_ns, instants, side="left")
        has = following < len(self.work)
        since, until, of = instants[has], self.work.start_ns[following[has]], of[has]
        if not len(since):
            return np.zeros(len(self.whole), np.int64)
        # Laid end to end, so that no path sees another's returns.
        low = min(int(since.min()), int(self.whole.start_ns.min()))
        span = max(int(until.max()), int(self.whole.end_ns.max())) - low + 1
        result = np.empty(len(self.whole), np.int64)
        at_once = max(MOST_NS // span, 1)
        for first in range(0, len(self.edges) - 1, at_once):
            rows = slice(int(self.edges[first]), int(self.edges[min(first + at_once, len(self.edges) - 1)]))
            mine = (of >= first) & (of < first + at_once)
            shift = (of[mine] - first) * span - low
            place = (self.part[rows] - first) * span - low
            result[rows] = covered(
                union(since[mine] + shift, until[mine] + shift),
                self.whole.start_ns[rows] + place,
                self.whole.end_ns[rows] + place,
            )
        return result

    def _from_device(self) -> BoolArray:
        """(s,) where a path comes back to the host.

        In time order it goes from the device to the host only where a device-held call returned.
        """
        host: BoolArray = (self.whole.side != ON_DEVICE) | (self.whole.category == Category.LAUNCH_LATENCY)
        found: BoolArray = host & np.append(True, ~host[:-1])[: len(host)]
        found[self.edges[:-1][np.diff(self.edges) > 0]] = False
        return found

    def _nearly_held(self) -> BoolArray:
        """(s,) calls that a later device clock would make device-held."""
        rows = self.account.calls.row[self.account.held.nearly]
        found: BoolArray = (self.whole.side == ON_HOST) & np.isin(self.whole.ref, rows)
        return found
