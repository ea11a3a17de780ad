"""Shares of the step behind the verdicts: value, lower end, upper end per window."""

from __future__ import annotations

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
    """(c,) bool, to be indexed by category: one look-up per segment, which pays with many windows."""
    return np.isin(np.arange(len(Category)), tuple(categories))


def amounts(entry: Entry, path: Path, work: Work) -> IntArray:
    """(n,) int64: how much of each segment belongs to the hypothesis's quantity, ns."""
    length = path.end_ns - path.start_ns
    mine = np.where(_table(entry.categories)[path.category], length, 0)
    if entry.id != "synchronization":
        return np.asarray(mine, np.int64)
    after = covered(_returns_to_work(path, work), path.start_ns, path.end_ns)
    follows = _table(_FOLLOWS_RETURN)[path.category]
    return np.where(follows, np.maximum(mine, after), mine).astype(np.int64)


def _returns_to_work(path: Path, work: Work) -> Intervals:
    """From each return of a device-held call on the path to the start of the next device work.

    In time order the path goes from the device to the host only where such a call returned; a window
    that opens with the return itself counts too.
    """
    host = (path.side != ON_DEVICE) | (path.category == Category.LAUNCH_LATENCY)
    from_device = host & np.concatenate(([False], ~host[:-1])) if len(host) else host
    returning = path.category == Category.HOST_SYNC_RETURN
    instants = distinct(np.concatenate((path.start_ns[from_device], path.end_ns[returning])))
    following = np.searchsorted(work.start_ns, instants, side="left")
    has = following < len(work)
    return union(instants[has], work.start_ns[following[has]])


def window_shares(entry: Entry, paths: list[Path], work: Work) -> WindowShares:
    """Per window the quantity with its certain and its possible part."""
    value, low, high, step = [], [], [], []
    for path in paths:
        length = path.end_ns - path.start_ns
        mine = amounts(entry, path, work)
        possible = np.where(_table(entry.could_belong)[path.category], length, mine)
        value.append(mine.sum())
        low.append(mine[~path.inferred].sum())
        high.append(possible.sum())
        step.append(length.sum())
    return WindowShares(*(np.array(column, np.float64) for column in (value, low, high, step)))


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
