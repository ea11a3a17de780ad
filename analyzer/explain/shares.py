"""Shares of the step behind the verdicts: value, lower end, upper end per window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.categories import Category
from analyzer.explain.catalogue import HOST, LAUNCH, Entry
from analyzer.reconstruct.critical_path import ON_DEVICE, Path
from analyzer.stats import bootstrap_mean_interval

FloatArray = npt.NDArray[np.float64]

_FOLLOWS_RETURN = tuple(HOST | LAUNCH | {Category.HOST_OUTPUT, Category.HOST_SYNC_RETURN})


@dataclass(frozen=True)
class WindowShares:
    """Of one hypothesis, per window (w,): ns that belong to it, that surely do, that could at most."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    step: FloatArray


def member_mask(entry: Entry, path: Path) -> npt.NDArray[np.bool_]:
    """(n,) bool: the segments that make up the hypothesis's quantity."""
    members = np.isin(path.category, tuple(entry.categories))
    if entry.id == "synchronization":
        members |= _after_return(path)
    return np.asarray(members, bool)


def _after_return(path: Path) -> npt.NDArray[np.bool_]:
    """Host and launch segments between the return of a device-held call and the next device work.

    In time order the path can only go from the device to the host where a call returned that the device
    had held; the run ends where the path is on the device again.
    """
    host = (path.side != ON_DEVICE) | (path.category == Category.LAUNCH_LATENCY)
    before_first_device = np.cumsum(~host) == 0  # a run at the window's start follows no return
    return np.asarray(host & ~before_first_device & np.isin(path.category, _FOLLOWS_RETURN), bool)


def window_shares(entry: Entry, paths: list[Path]) -> WindowShares:
    """Per window the quantity with its certain and its possible part."""
    value, low, high, step = [], [], [], []
    for path in paths:
        length = path.end_ns - path.start_ns
        members = member_mask(entry, path)
        possible = members | np.isin(path.category, tuple(entry.could_belong))
        value.append(length[members].sum())
        low.append(length[members & ~path.inferred].sum())
        high.append(length[possible].sum())
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
