"""Ratios of counts that come in clusters: their variance and intervals.

Cycles of one request resemble one another, so ``n`` of them tell less than ``n`` independent ones. Where requests are
known, the variance of a ratio is the jackknife's over requests (Quenouille 1956, Tukey 1958), Student's t has the
degrees of freedom of as many requests of equal size (Kish's effective number), and intervals of chances are Clopper
and Pearson's with the effective number of trials (Korn and Graubard 1998). Else cycles count as independent, but for
the correlation of neighbours in a file that lists them in order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

from analyzer.model import IntArray

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
MIN_REQUESTS = 5
"""Requests, or cycles where requests are not told apart, below which no interval is given."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """``value`` with the variance of its error. ``dof``: Student's degrees of freedom.

    ``variance`` is None where there are too few clusters to tell. ``clusters``: that have a part in it.
    """

    value: float
    variance: float | None
    dof: float
    clusters: int

    @property
    def margin(self) -> float | None:
        """Half the 95 % interval."""
        if self.variance is None:
            return None
        return float(stdtrit(self.dof, 1 - TAIL)) * math.sqrt(self.variance)


def clustered(parts: IntArray, wholes: IntArray) -> Ratio:
    """``sum(parts) / sum(wholes)`` over clusters, (m,) each; clusters without a whole have no part in it.

    Raises ValueError where all wholes are 0.
    """
    some = wholes > 0
    y, n = parts[some].astype(np.float64), wholes[some].astype(np.float64)
    if not len(n):
        raise ValueError("no whole: no ratio")
    value, m = float(y.sum() / n.sum()), len(n)
    effective = float(n.sum() ** 2 / (n @ n))
    if m < MIN_REQUESTS or effective <= 1:
        return Ratio(value, None, 0.0, m)
    without = (y.sum() - y) / (n.sum() - n)
    variance = (m - 1) / m * float(((without - without.mean()) ** 2).sum())
    return Ratio(value, variance, max(1.0, effective - 1), m)


def independent(values: IntArray, times: IntArray, inflation: float) -> Ratio:
    """Mean of ``values``, each ``times`` over, (n,) each; ``inflation``: of the variance of the mean, from 1."""
    n = int(times.sum())
    mean = float(values @ times) / n
    if n < MIN_REQUESTS:
        return Ratio(mean, None, 0.0, n)
    squares = float(((values - mean) ** 2) @ times)
    return Ratio(mean, inflation * squares / ((n - 1) * n), max(1.0, (n - 1) / inflation), n)


def design_effect(chance: Ratio, trials: int) -> float:
    """How many times the variance of independent trials, at least 1."""
    alone = chance.value * (1 - chance.value) / (trials - 1) if trials > 1 else 0.0
    return max(1.0, (chance.variance or 0.0) / alone) if alone > 0 else 1.0


def chance_interval(chance: Ratio, trials: int) -> tuple[float, float] | None:
    """95 % interval of a chance; None where there are too few clusters.

    Without a success or without a failure nothing tells how clusters differ: each counts as one trial.
    """
    if chance.variance is None or trials < 2:
        return None
    if chance.value in (0.0, 1.0):
        effective = float(min(trials, chance.clusters))
    else:
        spread = stdtrit(trials - 1, 1 - TAIL) / stdtrit(chance.dof, 1 - TAIL)
        effective = trials / design_effect(chance, trials) * float(min(1.0, spread)) ** 2
    successes = chance.value * effective
    low = 0.0 if successes <= 0 else float(betaincinv(successes, effective - successes + 1, TAIL))
    failures = effective - successes
    high = 1.0 if failures <= 0 else float(betaincinv(successes + 1, failures, 1 - TAIL))
    return low, high
