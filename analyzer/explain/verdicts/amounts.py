"""How much of each path segment belongs to a hypothesis: by measurement, for certain, and at most.

At most: what could belong to it by its category (unsplit, unresolved, unattributed), what was inferred
among its siblings, and what only the device clock's uncertainty or another thread's overhead leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from analyzer.arrays import distinct
from analyzer.categories import CPU_CATEGORIES, Category
from analyzer.explain.device.grids import coverage
from analyzer.explain.verdicts.catalogue import Entry
from analyzer.explain.verdicts.shares import FloatArray, WindowShares, window_shares
from analyzer.intervals import Intervals, covered, union
from analyzer.model import IntArray
from analyzer.reconstruct.critical_path import ON_DEVICE, ON_HOST, Path, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import BoolArray, Work

_NONE = np.empty(0, np.int64)
_ON_CPU = CPU_CATEGORIES | {Category.PROFILER}
LONGEST_TURNAROUND_NS = 50_000
"""So much of a gap with an inferred cause could be the device's turnaround (a few us are usual)."""
_GAPS = frozenset({Category.GAP_DISPATCH, Category.GAP_DEPENDENCY})


@lru_cache
def _table(categories: frozenset[Category]) -> npt.NDArray[np.bool_]:
    """(c,) bool, to be indexed by category."""
    return np.isin(np.arange(len(Category)), tuple(categories))


class Paths:
    """The windows of one phase of one rank, and what hypotheses ask of them beyond categories."""

    def __init__(self, account: RankAccount, indices: Sequence[int], small_below: float) -> None:
        """``indices``: positions in ``account.windows``; ``small_below``: coverage of a small grid."""
        self.account = account
        self.each: list[Path] = [account.paths[index] for index in indices]
        self.whole = join_paths(self.each)
        self.edges: IntArray = np.cumsum([0, *map(len, self.each)])
        self.small_below = small_below

    @property
    def work(self) -> Work:
        """The rank's device work."""
        return self.account.work

    @cached_property
    def length(self) -> IntArray:
        """(s,) int64, ns."""
        return self.whole.end_ns - self.whole.start_ns

    @cached_property
    def coverage(self) -> FloatArray:
        """(n,) grid coverage of each row of work, NaN unknown."""
        return coverage(self.account.trace, self.work.table)

    @cached_property
    def coverage_of_segments(self) -> FloatArray:
        """(s,) grid coverage of the kernel behind each segment, NaN where there is none or it is unknown."""
        known = np.full(len(self.whole), np.nan)
        rows = np.flatnonzero((self.whole.side == ON_DEVICE) & (self.whole.ref >= 0))
        known[rows] = self.coverage[self.whole.ref[rows]]
        return known

    @cached_property
    def unseen_under_overhead(self) -> IntArray:
        """(s,) ns of CPU time with nothing recorded in which the profiler was at work on some thread."""
        unseen = self.in_category(frozenset({Category.HOST_UNTRACED, Category.HOST_WAIT}))
        return np.where(unseen, self.covered_by(self.account.profiler), 0)

    def in_category(self, categories: frozenset[Category]) -> BoolArray:
        """(s,) bool."""
        return _table(categories)[self.whole.category]

    def covered_by(self, intervals: Intervals) -> IntArray:
        """(s,) ns of each segment that lie in ``intervals``."""
        return covered(intervals, self.whole.start_ns, self.whole.end_ns)

    def busy_with(self, rows: BoolArray) -> Intervals:
        """When any of these rows of work ran."""
        return union(self.work.start_ns[rows], self.work.end_ns[rows])


@dataclass(frozen=True)
class Amounts:
    """(s,) ns over the segments of all windows: the quantity, its certain part, what it holds at most."""

    mine: IntArray
    certain: IntArray
    possible: IntArray

    def per_window(self, paths: Paths) -> WindowShares:
        """The same per window."""
        return window_shares(self.mine, self.certain, self.possible, paths.length, paths.edges)


def amounts(entry: Entry, paths: Paths) -> Amounts:
    """What each segment has of the hypothesis.

    Certain: without what is inferred, without what follows a return that may have waited for nothing, and
    without CPU time of unknown use in which the profiler was at work on some thread.
    """
    length = paths.length
    mine = np.where(paths.in_category(entry.categories), length, 0)
    certain = np.where(paths.whole.inferred, 0, mine)
    certain = np.minimum(certain, length - paths.unseen_under_overhead)
    if entry.id == "small-grids":
        small = paths.coverage_of_segments < paths.small_below
        mine, certain = np.where(small, mine, 0), np.where(small, certain, 0)
    elif entry.id == "synchronization":
        certain = _with_returns(paths, certain, _certain_returns, inferred=False)
        certain = np.minimum(certain, length - paths.unseen_under_overhead)
        mine = _with_returns(paths, mine, _returns, inferred=True)
    possible = np.where(paths.in_category(entry.could_belong), length, mine)
    possible = np.maximum(possible, _doubt(entry, paths))
    return _by_another_clock(paths, Amounts(mine, certain, possible))


def ceiling(categories: frozenset[Category], paths: Paths) -> WindowShares:
    """Of a quantity that is nowhere told apart: nothing for certain, at most all of ``categories``."""
    possible = np.where(paths.in_category(categories), paths.length, 0)
    return Amounts(possible, np.zeros_like(possible), possible).per_window(paths)


def _doubt(entry: Entry, paths: Paths) -> IntArray:
    """(s,) ns that another reading of the same records would give to the hypothesis."""
    inferred, length = paths.whole.inferred, paths.length
    waiting = inferred & paths.in_category(_GAPS)
    if entry.id == "dependency-stalls":
        return np.where(waiting, length, 0)
    if entry.id == "device-turnaround":  # a longer wait is no turnaround, whatever it is
        return np.where(waiting, np.minimum(length, LONGEST_TURNAROUND_NS), 0)
    if entry.id in ("kernel-bound", "copies", "small-grids"):
        return _work_behind(entry, paths, waiting)
    if entry.id == "profiler-distortion":
        on_cpu = paths.in_category(_ON_CPU) & (paths.whole.side == ON_HOST)
        return np.where(on_cpu, paths.covered_by(paths.account.profiler), 0)
    doubt = np.where(inferred & paths.in_category(_ON_CPU), length, 0)
    if entry.id == "synchronization":
        return _with_returns(paths, doubt, _possible_returns(paths), inferred=True)
    return doubt


def _work_behind(entry: Entry, paths: Paths, waiting: BoolArray) -> IntArray:
    """(s,) ns of guessed waits under which such work ran elsewhere; for small grids kernels of unknown grid."""
    rows = _table(entry.categories)[paths.work.own_label]
    unknown = np.zeros(len(waiting), bool)
    if entry.id == "small-grids":
        rows &= ~(paths.coverage >= paths.small_below)
        unknown = paths.in_category(frozenset({Category.KERNEL})) & np.isnan(paths.coverage_of_segments)
    behind = np.zeros(len(waiting), np.int64)
    if waiting.any():
        behind = np.where(waiting, paths.covered_by(paths.busy_with(rows)), 0)
    return np.where(unknown, paths.length, behind)


def _by_another_clock(paths: Paths, amounts: Amounts) -> Amounts:
    """The same where a device clock that had to be moved could lie elsewhere in what contradicts nothing.

    A later device makes every wait from a launch to its work longer and every return from a wait shorter.
    """
    clock = paths.account.clock
    if clock.correction != "shifted":
        return amounts
    later = max(0, clock.high_ns - clock.shift_ns) if clock.high_ns is not None else 0
    earlier = max(0, clock.shift_ns - clock.low_ns) if clock.low_ns is not None else 0
    mine = amounts.mine > 0
    latency = mine & paths.in_category(frozenset({Category.LAUNCH_LATENCY}))
    back = mine & paths.in_category(frozenset({Category.HOST_SYNC_RETURN}))
    return Amounts(
        amounts.mine,
        np.maximum(amounts.certain - latency * earlier - back * later, 0),
        amounts.possible + latency * later + back * earlier,
    )


Returns = Callable[[int, Path], IntArray]
"""By place and path of a window: when it may have come back from a wait for the device, sorted."""


def _with_returns(paths: Paths, mine: IntArray, returns: Returns, *, inferred: bool) -> IntArray:
    """``mine`` and the host and launch time between each return and the next device work."""
    whole = paths.whole
    after = [
        covered(_to_next_work(returns(at, path), paths.work), path.start_ns, path.end_ns)
        for at, path in enumerate(paths.each)
    ]
    follows = paths.in_category(CPU_CATEGORIES)
    if not inferred:
        follows &= ~whole.inferred
    return np.where(follows, np.maximum(mine, np.concatenate([_NONE, *after])), mine)


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


def _possible_returns(paths: Paths) -> Returns:
    """Also waits that a later device clock would make device-held: their own time and what follows."""
    rows = paths.account.calls.row[paths.account.held.nearly]
    nearly = np.flatnonzero((paths.whole.side == ON_HOST) & np.isin(paths.whole.ref, rows))
    if not len(nearly):
        return _returns
    cuts = np.searchsorted(nearly, paths.edges)

    def returns(at: int, path: Path) -> IntArray:
        mine = paths.whole.start_ns[nearly[cuts[at] : cuts[at + 1]]]
        return distinct(np.concatenate((_returns(at, path), mine)))

    return returns
