"""A straight line through points, exact through two and of least squares through more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Line(NamedTuple):
    """y = intercept + slope x, with what it misses at each point (measured - fitted)."""

    intercept: float
    slope: float
    residuals: tuple[float, ...]

    @property
    def rms_residual(self) -> float:
        """Root of the mean square of the residuals."""
        return math.sqrt(sum(value * value for value in self.residuals) / len(self.residuals))


def fit_line(xs: Sequence[Fraction], ys: Sequence[float]) -> Line:
    """The line of least squares; ``xs`` has at least two distinct values, ``ys`` are finite.

    In exact fractions, so that two points are met to the last bit and large sizes cancel nothing.
    """
    exact = [Fraction(y) for y in ys]
    mean_x, mean_y = sum(xs, Fraction(0)) / len(xs), sum(exact, Fraction(0)) / len(xs)
    spread = sum(((x - mean_x) ** 2 for x in xs), Fraction(0))
    joint = sum(((x - mean_x) * (y - mean_y) for x, y in zip(xs, exact, strict=True)), Fraction(0))
    slope = joint / spread
    intercept = mean_y - slope * mean_x
    residuals = (_float(y - intercept - slope * x) for x, y in zip(xs, exact, strict=True))
    return Line(_float(intercept), _float(slope), tuple(residuals))


def _float(value: Fraction) -> float:
    """Infinity where it is too large: the result refuses it by name."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
