"""Step times of one run, and whether two runs differ by more than their steps vary.

The 95 % interval of the difference of means is the wider of two that are symmetric about it:

- Welch's t interval (Welch 1947), and
- a studentized bootstrap, ``|t|`` of resamples (Hall, The Bootstrap and Edgeworth Expansion, 1992): wider than
  Welch where a few long steps make the distribution skew. The mean of more than ``BOOTSTRAP_STEPS`` steps is drawn
  from a normal distribution, not resampled; with as many on both sides the interval is Welch's alone.

Steps in a row are correlated (clocks, growing contexts), so ``n`` of them tell less about their mean than ``n``
independent ones. The variance of a mean is multiplied by ``(1 + r) / (1 - r)``, ``r`` the correlation of each step
with the next: the effective sample size of an AR(1) process (Bayley and Hammersley 1946; Zwiers and von Storch
1995). Only where ``r`` is beyond ``2 / sqrt(n)``, above which chance rarely takes it, and with ``r`` at most
``analyzer.stats.HIGHEST_CORRELATION``. This is the only use of the order of the steps. It needs some 50 steps: of 20,
few show their correlation (of pairs of 20 without a difference and an ``r`` of 0.5, one in six is shown instead of
one in 20).

The interval of the ratio of the means is Fieller's (Fieller 1954) with the same critical value and the same variances
as that of their difference: all ratios ``q`` for which ``mean(A) - q * mean(B)`` is not told from 0. So it contains 1
exactly where no difference is shown, and that of B over A holds the reciprocals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analyzer.comparison.result import StepDelta, StepTimes
from analyzer.stats import RESAMPLED_AT_ONCE, mean_inflation, quantile

FloatArray = npt.NDArray[np.float64]

MIN_STEPS = 5
"""Steps that each side needs for an interval."""

RESAMPLES = 4_000
"""Resamples of the bootstrap, always the same ones."""

BOOTSTRAP_STEPS = 1_000
"""Steps of a side up to which it is resampled; above, that costs time, and the mean is close to normal."""

LEAST_ERROR = 0.25
"""Least standard error of a resample, as a share of the samples' own. A resample that missed the one long step has
next to none, and would make the interval as wide as one pleases."""

LEVEL = 0.95
SEED = 20240229


def step_times(times_ns: Sequence[int]) -> StepTimes:
    """Sum up step times (ns). Median and percentiles are steps themselves (of two neighbours the lower).

    Raises ValueError without a step.
    """
    if not times_ns:
        raise ValueError("no step: nothing to sum up")
    values = np.array(times_ns, dtype=np.int64)
    low, middle, high = (quantile(values, q) for q in (0.05, 0.5, 0.95))
    return StepTimes(n=len(times_ns), median=middle, mean=round(_mean(times_ns)), p05=low, p95=high)


def step_delta(a_ns: Sequence[int], b_ns: Sequence[int]) -> StepDelta:
    """Difference of two runs' step times (ns, each in order of time), B minus A.

    ``step_delta(b, a)`` is its mirror image to the nanosecond. Interval ends are rounded outward. Raises ValueError
    where a side has no step.
    """
    a, b = step_times(a_ns), step_times(b_ns)
    difference = _mean(b_ns) - _mean(a_ns)
    ci95: tuple[int, int] | None = None
    if min(a.n, b.n) >= MIN_STEPS:
        margin = Fraction(_margin(a_ns, b_ns))
        ci95 = math.floor(difference - margin), math.ceil(difference + margin)
    return StepDelta(
        mean=round(difference),
        median=b.median - a.median,
        ci95=ci95,
        shown=ci95 is not None and (ci95[0] > 0 or ci95[1] < 0),
        because=_because(a.n, b.n, ci95, _mean(a_ns)),
    )


def speedup_interval(a_ns: Sequence[int], b_ns: Sequence[int]) -> tuple[float, float] | None:
    """95 % interval of A's mean step over B's (step times in ns, each in order of time).

    It contains 1 exactly where :func:`step_delta` shows no difference. None where a side has fewer than ``MIN_STEPS``
    steps, or where a mean is not told from 0: then no ratio is excluded on one side. Raises ValueError where a side
    has no step.
    """
    delta = step_delta(a_ns, b_ns)
    if delta.ci95 is None:
        return None
    factor = _factor(a_ns, b_ns)
    a, b = _mean(a_ns), _mean(b_ns)
    spread_a, spread_b = (Fraction(factor**2 * _sample(side).mean_variance) for side in (a_ns, b_ns))
    # The roots of (a - q b)^2 = factor^2 (var a + q^2 var b), exact up to the last square root.
    left, middle, right = b * b - spread_b, a * b, a * a - spread_a
    if left <= 0 or right <= 0:
        return None
    root = math.sqrt(middle * middle - left * right)
    # The larger root first: the smaller one as a quotient loses no digits, and mirrors the larger of B over A.
    high = (float(middle) + root) / float(left)
    low = float(right) / (float(middle) + root)
    # Ends of the difference are rounded outward to whole ns: what lies within 1 ns of 0 is not shown.
    return (low, high) if delta.shown else (min(low, 1.0), max(high, 1.0))


@dataclass(frozen=True)
class _Sample:
    """One side about its mean, in order of size; ``inflation``: of the variance of its mean."""

    centred: FloatArray
    inflation: float

    @property
    def mean_variance(self) -> float:
        """Variance of the mean (ns²)."""
        n = len(self.centred)
        return self.inflation * float(self.centred @ self.centred) / ((n - 1) * n)


def _mean(times_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(times_ns), len(times_ns))


def _margin(a_ns: Sequence[int], b_ns: Sequence[int]) -> float:
    """Half the 95 % interval of the difference (ns)."""
    a, b = _sample(a_ns), _sample(b_ns)
    return _factor(a_ns, b_ns) * math.sqrt(a.mean_variance + b.mean_variance)


def _factor(a_ns: Sequence[int], b_ns: Sequence[int]) -> float:
    """Standard errors that the interval reaches to each side, 0 where both sides are constant.

    The same whichever side comes first: random draws go out in a fixed order.
    """
    first, second = (
        _sample(side) for side in sorted([a_ns, b_ns], key=lambda side: (len(side), sorted(side), [*side]))
    )
    error = math.sqrt(first.mean_variance + second.mean_variance)
    if error == 0:
        return 0.0
    factor = _welch(first, second)
    if min(len(first.centred), len(second.centred)) <= BOOTSTRAP_STEPS:
        factor = max(factor, _bootstrap(first, second, error))
    return factor


def _sample(times_ns: Sequence[int]) -> _Sample:
    # About a whole number first: so differences are exact, and steps all alike have a variance of exactly 0.
    origin = round(_mean(times_ns))
    values = (np.array(times_ns, dtype=np.int64) - origin).astype(np.float64)
    centred = values - float(_mean(times_ns) - origin)
    return _Sample(centred=np.sort(centred), inflation=mean_inflation(centred))


def _welch(first: _Sample, second: _Sample) -> float:
    """Standard errors that the interval reaches to each side: Student's t at Welch's degrees of freedom."""
    # Shares of the variance, not variances: their squares could leave the range of a float.
    whole = first.mean_variance + second.mean_variance
    terms = ((side.mean_variance / whole) ** 2 / (len(side.centred) - 1) for side in (first, second))
    return float(stdtrit(1 / sum(terms), (1 + LEVEL) / 2))


def _bootstrap(first: _Sample, second: _Sample, error: float) -> float:
    """Standard errors that the interval reaches to each side: the 95 % quantile of ``|t|`` of resamples."""
    generator = np.random.default_rng(SEED)
    first_means, first_variances = _resampled(first, generator)
    second_means, second_variances = _resampled(second, generator)
    errors = np.maximum(np.sqrt(first_variances + second_variances), LEAST_ERROR * error)
    return float(np.quantile(np.abs(first_means - second_means) / errors, LEVEL, method="higher"))


def _resampled(sample: _Sample, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Mean of each resample about the sample's own (ns), and its variance (ns²), both inflated as the sample's."""
    n = len(sample.centred)
    if n > BOOTSTRAP_STEPS:
        variance = sample.mean_variance
        return generator.normal(0, math.sqrt(variance), RESAMPLES), np.full(RESAMPLES, variance)
    means, variances = np.empty(RESAMPLES), np.empty(RESAMPLES)
    at_once = max(1, RESAMPLED_AT_ONCE // n)
    for start in range(0, RESAMPLES, at_once):
        some = slice(start, min(start + at_once, RESAMPLES))
        drawn = sample.centred[generator.integers(0, n, size=(some.stop - start, n))]
        means[some] = drawn.mean(axis=1)
        variances[some] = np.einsum("ij,ij->i", drawn, drawn) / n - means[some] ** 2
    spread = np.maximum(variances, 0) / (n - 1)  # below 0 by rounding, where all steps drawn are the same
    return means * math.sqrt(sample.inflation), spread * sample.inflation


def _because(n_a: int, n_b: int, ci95: tuple[int, int] | None, mean_a: Fraction) -> str:
    if ci95 is None:
        short = "both sides" if max(n_a, n_b) < MIN_STEPS else "one side"
        return f"fewer than {MIN_STEPS} steps on {short}"
    low, high = (_share(end, mean_a) for end in ci95)
    place = "lies above 0" if ci95[0] > 0 else "lies below 0" if ci95[1] < 0 else "includes 0"
    return f"the 95 % interval of the difference, {low} to {high}, {place}"


def _share(ns: int, mean_a: Fraction) -> str:
    """In per cent of A's mean, with as many decimals as show that it is not 0; in ns where that mean is 0."""
    if ns == 0:
        return "0 %"
    if mean_a == 0:
        return f"{ns:+,} ns"
    percent = float(100 * ns / mean_a)
    decimals = max(1, -math.floor(math.log10(abs(percent))))
    return f"{percent:+,.{decimals}f} %"
