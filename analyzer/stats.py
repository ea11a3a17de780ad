"""Small statistics on integer nanoseconds, deterministic to the last bit."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

RESAMPLED_AT_ONCE = 1_000_000
"""Values drawn in one go by the bootstrap: bounds its memory, and changes no result."""

MIN_VALUES = 5
"""Values that a standard error needs."""

HIGHEST_CORRELATION = 0.9
"""Cap of the correlation of a step with the next: the variance grows at most 19 times."""


def quantile(values: IntArray, q: float) -> int:
    """The ``q`` quantile as one of the values themselves (lower of two neighbours); values not empty."""
    ordered = np.sort(values)
    return int(ordered[int(q * (len(ordered) - 1))])


def robust_z(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance from the median in units of 1.4826 x the median absolute deviation (Iglewicz, Hoaglin)."""
    middle = np.median(values)
    spread = 1.4826 * np.median(np.abs(values - middle))
    if spread == 0:
        return np.where(values == middle, 0.0, np.inf)
    return np.asarray((values - middle) / spread, dtype=np.float64)


def bootstrap_mean_interval(
    values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    *,
    draws: int = 400,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile bootstrap of ``sum(values) / sum(weights)`` over rows; seeded, so repeatable.

    With fewer than two rows there is nothing to resample: the point itself is returned.
    """
    total = float(weights.sum())
    point = float(values.sum()) / total if total else 0.0
    if len(values) < 2:
        return point, point
    generator = np.random.default_rng(20240229)
    sums, bases = np.empty(draws), np.empty(draws)
    at_once = max(1, RESAMPLED_AT_ONCE // len(values))
    for first in range(0, draws, at_once):
        some = slice(first, min(first + at_once, draws))
        rows = generator.integers(0, len(values), size=(some.stop - first, len(values)))
        sums[some], bases[some] = values[rows].sum(axis=1), weights[rows].sum(axis=1)
    ratios = np.divide(sums, bases, out=np.full(draws, point), where=bases > 0)
    tail = (1 - level) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def mean_inflation(centred: npt.NDArray[np.float64]) -> float:
    """How many times the variance of the mean of independent steps, at least 1. ``centred``: (n,) about their mean.

    That of an AR(1) process, from the correlation of each step with the next (Bayley and Hammersley 1946), where it
    is beyond what chance brings.
    """
    squares = float(centred @ centred)
    if squares == 0:
        return 1.0
    r = float(centred[:-1] @ centred[1:]) / squares
    if r <= 2 / math.sqrt(len(centred)):
        return 1.0
    r = min(r, HIGHEST_CORRELATION)
    return (1 + r) / (1 - r)


def mean_error(values: npt.NDArray[np.float64]) -> float | None:
    """Standard error of the mean of values in order of time; None of fewer than ``MIN_VALUES``."""
    n = len(values)
    if n < MIN_VALUES:
        return None
    centred = values - values.mean()
    return math.sqrt(mean_inflation(centred) * float(centred @ centred) / ((n - 1) * n))
