"""A straight line through the means of runs, with 95 % intervals that hold the scatter between runs.

Model: the mean of run ``i`` is ``intercept + slope x_i + u_i + e_i``; ``e_i`` is the noise of a mean of steps, whose
variance the steps themselves tell, ``u_i`` what differs from run to run (clocks, placement, the line's own misfit).
Its variance is estimated as Paule and Mandel (1982) do, the weights are ``1 / (variance of e_i + variance of u)``, and
the interval is that of Knapp and Hartung (2003): the weighted residuals scale the error, and Student's t has ``n - 2``
degrees of freedom. It is never narrower than the interval that the noise of the steps alone gives
(Welch-Satterthwaite), so that a lucky fit is not taken for precision. Two runs have no residual: theirs is that of the
steps alone, and what differs from run to run is not in it.

Estimates are linear in the means for given weights: lines of parts, fitted with the weights of their sum, sum to the
line of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, stdtrit

from analyzer.stats import MIN_VALUES, mean_error, mean_inflation

FloatArray = npt.NDArray[np.float64]

LEVEL = 0.95
MIN_STEPS = MIN_VALUES
"""Steps that a run needs for the noise of its mean to be known."""
LEAST_VARIANCE = 0.01
"""Least variance of one run's mean as a share of the mean variance: steps that happen to be all alike do not make a
run outweigh all others."""
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""What arithmetic leaves of a sum that is 0, as a share of the sum of its parts' sizes. It differs between processors,
so it is taken as 0: no time grows by it."""


@dataclass(frozen=True)
class RunMean:
    """Mean of one run's steps at ``x``. ``variance``: of the mean, None where too few steps tell it.

    ``dof``: degrees of freedom of that variance.
    """

    x: float
    mean: float
    variance: float | None
    dof: int

    @property
    def ci95(self) -> tuple[float, float] | None:
        """95 % interval of the mean by its steps alone (Student's t); None where their noise is not known."""
        if self.variance is None:
            return None
        margin = _quantile(self.dof) * math.sqrt(self.variance)
        return self.mean - margin, self.mean + margin


@dataclass(frozen=True)
class Estimate:
    """A fitted value and its 95 % interval, None where there is none."""

    value: float
    ci95: tuple[float, float] | None


@dataclass(frozen=True)
class RunLine:
    """``y = intercept + slope x`` through runs.

    ``residuals``: mean - line, in the order given. ``misfit_p``: of residuals as large, if steps' noise within runs
    were all that scatters; None with two runs or where that noise is not known. ``between_runs``: whether the
    intervals hold the scatter between runs.
    """

    slope: Estimate
    intercept: Estimate
    residuals: tuple[float, ...]
    misfit_p: float | None
    between_runs: bool


def run_mean(x: float, values: Sequence[int] | FloatArray) -> RunMean:
    """Mean of a run's steps, in order of time. Raises ValueError without a step.

    Steps in a row are correlated: the variance is inflated as :func:`analyzer.stats.mean_inflation` says.
    """
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    if not n:
        raise ValueError("no step: nothing to average")
    mean = float(sample.mean())
    error = mean_error(sample)
    if error is None:
        return RunMean(x, mean, None, 0)
    return RunMean(x, mean, error**2, max(1, math.floor((n - 1) / mean_inflation(sample - mean))))


def weights_of(runs: Sequence[RunMean]) -> FloatArray:
    """(n,) weight of each run for :func:`fit_runs`; all 1 where the noise of a run is not known, or none has any."""
    variances = _variances(runs)
    if variances is None or not variances.any():
        return np.ones(len(runs))
    variances = np.maximum(variances, LEAST_VARIANCE * variances.mean())
    return np.asarray(1 / (variances + _between_variance(runs, variances)), dtype=np.float64)


def fit_runs(runs: Sequence[RunMean], weights: FloatArray | None = None) -> RunLine:
    """The weighted line of least squares through at least two distinct ``x``; ``weights``: by default their own.

    Raises ValueError where all runs lie at one ``x``.
    """
    w = weights_of(runs) if weights is None else weights
    to_slope, to_intercept = _coefficients(runs, w)
    y = np.array([run.mean for run in runs])
    x = np.array([run.x for run in runs])
    size = _size(x, y, w)
    slope, intercept = _clean(to_slope @ y, size.slope), _clean(to_intercept @ y, size.intercept)
    at_runs = np.abs(y) + size.intercept + size.slope * np.abs(x)
    residuals = np.array([_clean(*pair) for pair in zip(y - intercept - slope * x, at_runs, strict=True)])
    return RunLine(
        _estimate(slope, to_slope, runs, w, residuals, size.slope),
        _estimate(intercept, to_intercept, runs, w, residuals, size.intercept),
        tuple(residuals.tolist()),
        _misfit(runs),
        between_runs=len(runs) > 2,
    )


class _Size(NamedTuple):
    """Sums of the sizes of what a slope and an intercept are added up from: their rounding is a share of it."""

    slope: float
    intercept: float


def _size(x: FloatArray, y: FloatArray, w: FloatArray) -> _Size:
    share, middle, spread = _moments(x, w)
    slope = float(w * (np.abs(x) + abs(middle)) @ np.abs(y)) / spread
    return _Size(slope, float(share @ np.abs(y)) + abs(middle) * slope)


def _clean(value: float, size: float) -> float:
    """The value, 0 where it is within the rounding of parts of that size."""
    return 0.0 if abs(value) <= _ROUNDING * size else float(value)


def _estimate(
    value: float, row: FloatArray, runs: Sequence[RunMean], w: FloatArray, residuals: FloatArray, size: float
) -> Estimate:
    """``value`` and its interval, which has no width where all its width is rounding."""
    margin = _margin(row, runs, w, residuals)
    if margin is None:
        return Estimate(value, None)
    margin = _clean(margin, size)
    return Estimate(value, (value - margin, value + margin))


def _coefficients(runs: Sequence[RunMean], w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) each: what slope and intercept take of each run's mean."""
    x = np.array([run.x for run in runs])
    if len({*x.tolist()}) < 2:
        raise ValueError("runs at one place: no line")
    share, middle, spread = _moments(x, w)
    to_slope = w * (x - middle) / spread
    return to_slope, share - middle * to_slope


def _moments(x: FloatArray, w: FloatArray) -> tuple[FloatArray, float, float]:
    """(n,) share of each run, the middle of ``x``, and the weighted squares about it."""
    share = w / w.sum()
    middle = float(share @ x)
    return share, middle, float(w @ (x - middle) ** 2)


def _variances(runs: Sequence[RunMean]) -> FloatArray | None:
    known = [run.variance for run in runs if run.variance is not None]
    return np.array(known) if len(known) == len(runs) else None


def _between_variance(runs: Sequence[RunMean], variances: FloatArray) -> float:
    """Variance of run to run at which the weighted squares of the residuals are as many as their freedom."""
    freedom = len(runs) - 2
    if freedom < 1 or _squares(runs, 1 / variances) <= freedom:
        return 0.0
    low, high = 0.0, float(np.var([run.mean for run in runs])) * len(runs) + float(variances.max())
    for _ in range(60):  # bisection: the squares fall steadily
        middle = (low + high) / 2
        if _squares(runs, 1 / (variances + middle)) > freedom:
            low = middle
        else:
            high = middle
    return high


def _squares(runs: Sequence[RunMean], w: FloatArray) -> float:
    to_slope, to_intercept = _coefficients(runs, w)
    y, x = np.array([run.mean for run in runs]), np.array([run.x for run in runs])
    residuals = y - to_intercept @ y - (to_slope @ y) * x
    return float(w @ residuals**2)


def _margin(row: FloatArray, runs: Sequence[RunMean], w: FloatArray, residuals: FloatArray) -> float | None:
    """Half of Knapp and Hartung's interval, at least that which the steps alone give; of two runs the latter."""
    within, freedom = _within(row, runs), len(runs) - 2
    if freedom < 1:
        return within
    scale = float(w @ residuals**2) / freedom
    margin = _quantile(freedom) * math.sqrt(scale * float(row**2 @ (1 / w)))
    return max(margin, within or 0.0)


def _within(row: FloatArray, runs: Sequence[RunMean]) -> float | None:
    """Half the interval by the noise of the steps (Welch-Satterthwaite); None where it is not known."""
    variances = _variances(runs)
    if variances is None:
        return None
    parts = row**2 * variances
    whole = float(parts.sum())
    if whole == 0:
        return 0.0
    freedom = whole**2 / float(parts**2 @ (1 / np.array([run.dof for run in runs])))
    return _quantile(freedom) * math.sqrt(whole)


def _quantile(freedom: float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _misfit(runs: Sequence[RunMean]) -> float | None:
    """Chance of weighted residuals as large from the steps' noise alone (F with the steps' degrees of freedom)."""
    variances, freedom = _variances(runs), len(runs) - 2
    if freedom < 1 or variances is None or not variances.any():
        return None
    variances = np.maximum(variances, LEAST_VARIANCE * variances.mean())
    ratio = _squares(runs, 1 / variances) / freedom
    return float(fdtrc(freedom, sum(run.dof for run in runs), ratio))
