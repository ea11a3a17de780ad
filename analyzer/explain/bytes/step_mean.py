"""The mean step of a budget with its 95 % interval."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analyzer.stats import mean_inflation

LEVEL = 0.95


def mean_step(times_ns: npt.NDArray[np.float64]) -> tuple[float, tuple[float, float] | None]:
    """Mean of (n,) step times and Student's t interval of it; None of fewer than two steps.

    Steps in a row are correlated: the variance of their mean is multiplied by ``stats.mean_inflation``.
    """
    mean = float(times_ns.mean())
    if len(times_ns) < 2:
        return mean, None
    variance = float(times_ns.var(ddof=1)) * mean_inflation(times_ns - mean) / len(times_ns)
    half = float(stdtrit(len(times_ns) - 1, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return mean, (max(mean - half, 0.0), mean + half)
