"""Shares of the step behind the verdicts: value, lower end, upper end per window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from analyzer.arrays import distinct
from analyzer.categories import Category
from analyzer.explain.catalogue import HOST, LAUNCH, Entry
from analyzer.intervals import Intervals, covered, union
from analyzer.model import IntArray
from analyzer.reconstruct.critical_path import ON_DEVICE, Path
from analyzer.reconstruct.work import Work
from analyzer.stats import bootstrap_mean_interval

FloatArray = npt.NDArray[np.float64]

_NONE, _ZERO = np.empty(0, np.int64), np.zeros(1, np.int64)

_FOLLOWS_RETURN = HOST | LAUNCH | {Category.HOST_OUTPUT, Category.HOST_SYNC_RETURN}


@dataclass(frozen=True)
class WindowShares:
    """Of one hypothesis, per window (w,): ns that belong to it, that surely do, that could at most."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    step: FloatArray


@lru_cache
def _table(categories: frozenset[Category]) -> npt.NDArray[np.bool_]:
    """(c,) bool, to be indexed by category."""
    return np.isin(np.arange(len(Category)), tuple(categories))


@dataclass(frozen=True)
class Paths:
    """The windows of one phase of one rank, and what hypotheses ask of them beyond categories."""

    each: Sequence[Path]
    whole: Path  # the segments of ``each``, one window after the other
    work: Work
    coverage: FloatArray  # (n,) grid coverage of each row of work, NaN unknown
    small_below: float

    def lengths(self) -> IntArray:
        """(s,) int64, ns."""
        return self.whole.end_ns - self.whole.start_ns

    def coverage_of_segments(self) -> FloatArray:
        """(s,) grid coverage of the kernel behind each segment, NaN where there is none or it is unknown."""
        known = np.full(len(self.whole), np.nan)
        rows = np.flatnonzero((self.whole.side == ON_DEVICE) & (self.whole.ref >= 0))
        known[rows] = self.coverage[self.whole.ref[rows]]
        return known


def amounts(entry: Entry, paths: Paths, *, certain: bool = False) -> IntArray:
    """(s,) int64 over the segments of all windows: how much of each belongs to the quantity, ns.

    ``certain``: without what is inferred, and without what follows a return that may have waited for
    nothing.
    """
    whole, length = paths.whole, paths.lengths()
    mine = np.where(_table(entry.categories)[whole.category], length, 0)
    if certain:
        mine[whole.inferred] = 0
    if entry.id == "small-grids":
        return np.where(paths.coverage_of_segments() < paths.small_below, mine, 0)
    if entry.id == "synchronization":
        return _with_returns(paths, mine, certain=certain)
    return mine


def _with_returns(paths: Paths, mine: IntArray, *, certain: bool) -> IntArray:
    """``mine`` and the host and launch time between device-held returns and the next device work."""
    whole = paths.whole
    after = [
        covered(_returns_to_work(path, paths.work, certain=certain), path.start_ns, path.end_ns)
        for path in paths.each
    ]
    follows = _table(_FOLLOWS_RETURN)[whole.category] & ~(whole.inferred & certain)
    return np.where(follows, np.maximum(mine, np.concatenate([_NONE, *after])), mine)


def _returns_to_work(path: Path, work: Work, *, certain: bool) -> Intervals:
    """From each return of a device-held call on the path to the start of the next device work.

    In time order the path goes from the device to the host only where such a call returned; a window
    that opens with the return itself counts too.
    """
    host = (path.side != ON_DEVICE) | (path.category == Category.LAUNCH_LATENCY)
    from_device = host & np.concatenate(([False], ~host[:-1])) if len(host) else host
    returning = path.category == Category.HOST_SYNC_RETURN
    if certain:
        from_device &= ~(returning & path.inferred)
        returning = returning & ~path.inferred
    instants = distinct(np.concatenate((path.start_ns[from_device], path.end_ns[returning])))
    following = np.searchsorted(work.start_ns, instants, side="left")
    has = following < len(work)
    return union(instants[has], work.start_ns[following[has]])


def window_shares(entry: Entry, paths: Paths, mine: IntArray, certain: IntArray) -> WindowShares:
    """Per window the quantity with its certain and its possible part; both are its ``amounts``."""
    length, whole = paths.lengths(), paths.whole
    possible = np.where(_table(entry.could_belong)[whole.category], length, mine)
    if entry.id == "small-grids":  # kernels of unknown grid could be small
        unknown = (whole.category == Category.KERNEL) & np.isnan(paths.coverage_of_segments())
        possible = np.where(unknown, length, possible)
    edges = np.cumsum([0, *map(len, paths.each)])
    return WindowShares(*(_per_window(column, edges) for column in (mine, certain, possible, length)))


def ceiling_shares(categories: frozenset[Category], paths: Paths) -> WindowShares:
    """Of a quantity that is nowhere told apart: nothing for certain, at most all of ``categories``."""
    length = paths.lengths()
    nothing = np.zeros(len(length), np.int64)
    possible = np.where(_table(categories)[paths.whole.category], length, 0)
    edges = np.cumsum([0, *map(len, paths.each)])
    return WindowShares(*(_per_window(column, edges) for column in (possible, nothing, possible, length)))


def _per_window(column: IntArray, edges: IntArray) -> FloatArray:
    until = np.concatenate((_ZERO, np.cumsum(column)))[edges]
    return np.diff(until).astype(np.float64)


def share_of(shares: WindowShares) -> tuple[float, float, float]:
    """Mean share, and its interval widened by the bootstrap over windows, each within 0..1."""
    total = float(shares.step.sum())
    if total <= 0:
        return 0.0, 0.0, 0.0
    value = float(shares.value.sum()) / total
    low, _ = bootstrap_mean_interval(shares.low, shares.step)
    _, high = bootstrap_mean_interval(shares.high, shares.step)
    low = min(low, float(shares.low.sum()) / total)
    high = max(high, float(shares.high.sum()) / total)
    return value, max(0.0, low), min(1.0, high)
