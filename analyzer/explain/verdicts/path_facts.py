"""What the hypotheses ask of a path segment beyond its category, measured while the rank's records are at hand.

A few numbers per segment are all that verdicts need later, also for a path that leads through several ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from analyzer.arrays import distinct
from analyzer.categories import CPU_CATEGORIES, Category
from analyzer.explain.device.grids import coverage
from analyzer.intervals import Intervals, covered, union
from analyzer.model import Columns, IntArray, SmallArray
from analyzer.reconstruct.critical_path import ON_DEVICE, ON_HOST, Path, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import BoolArray, Work

GAPS = frozenset({Category.GAP_DISPATCH, Category.GAP_DEPENDENCY})
UNSEEN = frozenset({Category.HOST_UNTRACED, Category.HOST_WAIT})
ON_CPU = CPU_CATEGORIES | {Category.PROFILER}
SMALL, LARGE, UNKNOWN_GRID = 1, 0, -1


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


def path_facts(account: RankAccount, paths: Sequence[Path], small_below: float) -> PathFacts:
    """Facts of all segments of ``paths``; ``small_below``: coverage below which a grid is small."""
    return _Reading(account, paths, small_below).facts()


class _Reading:
    """One pass over the paths of a rank."""

    def __init__(self, account: RankAccount, paths: Sequence[Path], small_below: float) -> None:
        self.account, self.work, self.each = account, account.work, paths
        self.whole = join_paths(paths)
        self.edges: IntArray = np.cumsum([0, *map(len, paths)])
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
        small_rows = (own_label == Category.KERNEL) & ~(grids >= self.small_below)
        return PathFacts(
            length=self.length,
            category=whole.category,
            inferred=whole.inferred,
            on_host=whole.side == ON_HOST,
            small=self._small(grids),
            unseen_under_overhead=np.where(self._in(UNSEEN), overhead, 0),
            overhead=np.where(on_cpu, overhead, 0),
            kernels_behind=self._behind(kernels),
            copies_behind=self._behind(own_label == Category.COPY),
            small_behind=self._behind(small_rows),
            after_wait=self._after(_returns),
            after_certain_wait=self._after(_certain_returns),
            after_possible_wait=self._after(self._possible_returns()),
            later=np.full(len(whole), later, np.int64),
            earlier=np.full(len(whole), earlier, np.int64),
        )

    def _in(self, categories: frozenset[Category]) -> BoolArray:
        return of_category(categories)[self.whole.category]

    def _covered_by(self, intervals: Intervals) -> IntArray:
        return covered(intervals, self.whole.start_ns, self.whole.end_ns)

    def _small(self, grids: npt.NDArray[np.float64]) -> SmallArray:
        small = np.zeros(len(self.whole), np.int8)
        rows = np.flatnonzero(
            (self.whole.side == ON_DEVICE) & (self.whole.ref >= 0) & self._in(frozenset({Category.KERNEL}))
        )
        known = grids[self.whole.ref[rows]]
        small[rows] = np.where(
            np.isnan(known), UNKNOWN_GRID, np.where(known < self.small_below, SMALL, LARGE)
        )
        return small

    def _behind(self, rows: BoolArray) -> IntArray:
        """(s,) ns of guessed waits under which any of these rows ran."""
        waiting = self.whole.inferred & self._in(GAPS)
        if not waiting.any():
            return np.zeros(len(self.whole), np.int64)
        busy = union(self.work.start_ns[rows], self.work.end_ns[rows])
        return np.where(waiting, self._covered_by(busy), 0)

    def _after(self, returns: Returns) -> IntArray:
        parts = [
            covered(_to_next_work(returns(at, path), self.work), path.start_ns, path.end_ns)
            for at, path in enumerate(self.each)
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _possible_returns(self) -> Returns:
        """Also waits that a later device clock would make device-held: their own time and what follows."""
        rows = self.account.calls.row[self.account.held.nearly]
        nearly = np.flatnonzero((self.whole.side == ON_HOST) & np.isin(self.whole.ref, rows))
        if not len(nearly):
            return _returns
        cuts = np.searchsorted(nearly, self.edges)

        def returns(at: int, path: Path) -> IntArray:
            mine = self.whole.start_ns[nearly[cuts[at] : cuts[at + 1]]]
            return distinct(np.concatenate((_returns(at, path), mine)))

        return returns


Returns = Callable[[int, Path], IntArray]
"""By place and path of a window: when it may have come back from a wait for the device, sorted."""


def _to_next_work(instants: IntArray, work: Work) -> Intervals:
    following = np.searchsorted(work.start_ns, instants, side="left")
    has = following < len(work)
    return union(instants[has], work.start_ns[following[has]])


def _returns(_: int, path: Path) -> IntArray:
    """Returns of device-held calls on the path.

    In time order the path goes from the device to the host only where such a call returned; a window
    that opens with the return itself counts too.
    """
    return _returns_of(path, path.category == Category.HOST_SYNC_RETURN, np.zeros(len(path), bool))


def _certain_returns(_: int, path: Path) -> IntArray:
    """The same without calls that may have waited for nothing."""
    returning = path.category == Category.HOST_SYNC_RETURN
    return _returns_of(path, returning & ~path.inferred, returning & path.inferred)


def _returns_of(path: Path, returning: BoolArray, leave_out: BoolArray) -> IntArray:
    host = (path.side != ON_DEVICE) | (path.category == Category.LAUNCH_LATENCY)
    from_device = host & np.concatenate(([False], ~host[:-1])) if len(host) else host
    return distinct(np.concatenate((path.start_ns[from_device & ~leave_out], path.end_ns[returning])))
