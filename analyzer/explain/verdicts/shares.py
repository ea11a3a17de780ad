"""Shares of the step behind the verdicts: value, lower end, upper end per window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.model import IntArray
from analyzer.stats import bootstrap_mean_interval

FloatArray = npt.NDArray[np.float64]

_ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True)
class WindowShares:
    """Of one hypothesis, per window (w,): ns that belong to it, that surely do, that could at most."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    step: FloatArray


def window_shares(
    mine: IntArray, certain: IntArray, possible: IntArray, length: IntArray, edges: IntArray
) -> WindowShares:
    """Per window the quantity with its certain and its possible part; all are (s,) ns over all segments.

    ``edges``: (w + 1,) where each window's segments begin.
    """
    return WindowShares(*(_per_window(column, edges) for column in (mine, certain, possible, length)))


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
