"""The price of a message: ``latency = alpha + size / beta``, by least absolute deviations, with 95 % intervals.

Latencies are positive, skewed to the right, and their noise grows with them. The line therefore goes through medians
(it minimizes the sum of ``|latency - line| / scale``, the scale being about the line itself), where a few slow calls
do not move it. Calls of one block (an engine step, or a stretch of calls in a row) share what happened to them: the
interval comes from drawing blocks anew with exponential weights (the Bayesian bootstrap, Rubin 1981), widened for few
blocks:
Student's t with two degrees of freedom less than blocks, and the spread by the root of blocks / (blocks - 2). Where a
few blocks decide (large sizes in the few steps of a prefill), as many count as the effective number of those that do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, stdtrit

from analyzer.least_deviations import FloatArray, lines, scale_of
from analyzer.stats import RESAMPLED_AT_ONCE

IntArray = npt.NDArray[np.int64]

LEVEL, NORMAL = 0.95, 1.959964
DRAWS = 400
SEED = 20240229
FAR = 3.5
"""Robust deviations (Iglewicz, Hoaglin) of a call, in logarithms, beyond which it does not count."""
MAD_TO_SD = 1.4826
FEW = 5
"""Calls of a size from which on its own median is what its calls are measured by."""
MISFIT_P, MISFIT = 0.01, 0.10
"""A line is refused where the signs of its residuals depend on the size with a chance below the first, and the median
of some size lies further from it than the second."""


@dataclass(frozen=True)
class Samples:
    """Latencies of calls, (n,) columns. ``block``: calls of one block are drawn together, 0 .. blocks - 1."""

    bytes: IntArray
    latency_ns: IntArray
    block: IntArray

    def take(self, rows: npt.NDArray[np.generic]) -> Samples:
        """The calls of some rows (positions or a mask)."""
        _, block = np.unique(self.block[rows], return_inverse=True)
        return Samples(self.bytes[rows], self.latency_ns[rows], np.asarray(block, np.int64))

    def __len__(self) -> int:
        return len(self.bytes)

    @property
    def sizes(self) -> IntArray:
        """Distinct sizes, ascending."""
        return np.asarray(np.unique(self.bytes), np.int64)


@dataclass(frozen=True)
class LatencyLine:
    """``latency = alpha_ns + ns_per_byte x size`` with 95 % intervals; both are 0 or more.

    ``misfit``: the largest relative distance of a size's median from the line, where the signs of the residuals
    depend on the size beyond chance; 0.0 elsewhere. Two sizes are met by every line, but one that would need an alpha
    or a slope below 0. ``kept``: (n,)
    whether a call counts; the others lie so far from the line that something else happened to them. ``drawn``: alphas
    and slopes that the intervals come from; ``pull``: (3, blocks) what each block has of the variance of alpha, of
    their covariance, and of the slope's variance, to tell how many blocks decide.
    """

    alpha_ns: float
    ns_per_byte: float
    alpha_ci95: tuple[float, float]
    ns_per_byte_ci95: tuple[float, float]
    misfit: float
    kept: npt.NDArray[np.bool_]
    drawn: tuple[FloatArray, FloatArray]
    pull: FloatArray

    def at(self, size: FloatArray | IntArray) -> FloatArray:
        """Latency at sizes, ns."""
        return np.asarray(self.alpha_ns + self.ns_per_byte * size, np.float64)

    def interval_at(self, size: int) -> tuple[float, float]:
        """95 % interval of the line at one size, ns."""
        line = self.drawn[0] + self.drawn[1] * size
        return _widened(
            line, self.alpha_ns + self.ns_per_byte * size, self.pull, np.array([1.0, 2 * size, size**2])
        )


def median_line(
    size: IntArray | FloatArray, latency_ns: IntArray | FloatArray, weight: FloatArray | None = None
) -> tuple[float, float]:
    """Alpha in ns and ns per byte of the line through the medians; latencies are positive, sizes two or more."""
    units = np.asarray(size, np.float64), np.asarray(latency_ns, np.float64)
    one = np.ones((1, len(units[0]))) if weight is None else weight[None, :]
    alpha, slope = lines(*units, one, scale_of(*units, one))
    return float(alpha[0]), float(slope[0])


def fit_latency(samples: Samples) -> LatencyLine:
    """The line through calls of two sizes or more, and its intervals.

    Calls further than ``FAR`` robust deviations from the other calls of their size are left out: contention and
    hiccups only lengthen calls, so that they would move even a median.
    """
    kept = _near(samples)
    used = _lines_of(samples.take(kept))
    drawn, pull = _drawn(used), _pull(used)
    return LatencyLine(
        used.alpha,
        used.slope,
        _widened(drawn[0], used.alpha, pull, np.array([1.0, 0.0, 0.0])),
        _widened(drawn[1], used.slope, pull, np.array([0.0, 0.0, 1.0])),
        _misfit(used) if len(samples.sizes) > 2 else _missed(used),
        kept,
        drawn,
        pull,
    )


def _near(samples: Samples) -> npt.NDArray[np.bool_]:
    """(n,) calls that are like the others of their size, or like the line where the size has few calls."""
    latency = np.maximum(samples.latency_ns, 1).astype(np.float64)
    sizes, of, count = np.unique(samples.bytes, return_inverse=True, return_counts=True)
    middle = np.array([float(np.median(latency[of == at])) for at in range(len(sizes))])
    few = count < FEW
    if few.any():
        middle[few] = _lines_of(samples).line(sizes[few])
    apart = np.abs(np.log(latency / middle[of]))
    # of one spread for all sizes, or of their own where that is wider: cut to the spread of quieter sizes, noisy ones
    # would pass for quiet; calls within a hundredth of the others are like them, however alike those are
    own = np.array([0.0 if few[at] else float(np.median(apart[of == at])) for at in range(len(sizes))])
    spread = np.maximum(own, float(np.median(apart)))
    near = apart <= np.maximum(FAR * MAD_TO_SD * spread, 0.01)[of]
    # a size of few calls none of which is near the line counts as it is: what is left would tell nothing of it
    alone = np.bincount(of, weights=near) == 0
    return np.asarray(near | alone[of], np.bool_)


@dataclass(frozen=True)
class _Line:
    """A line and the units that it goes through: medians of a size within a block, for ``count`` calls each."""

    size: FloatArray
    latency: FloatArray
    block: IntArray
    count: FloatArray
    scale: FloatArray
    alpha: float
    slope: float

    def line(self, size: FloatArray | IntArray) -> FloatArray:
        return np.maximum(self.alpha + self.slope * size, 1.0)


def _lines_of(samples: Samples) -> _Line:
    size, latency, block, count = _units(samples)
    scale = scale_of(size, latency, count[None, :])
    alpha, slope = lines(size, latency, count[None, :], scale)
    return _Line(size, latency, block, count, scale, float(alpha[0]), float(slope[0]))


def _units(samples: Samples) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Median latency of every size within a block, and how many calls it stands for."""
    order = np.lexsort((samples.latency_ns, samples.bytes, samples.block))
    size, block, latency = samples.bytes[order], samples.block[order], samples.latency_ns[order]
    opens = np.flatnonzero(np.concatenate(([True], (np.diff(size) != 0) | (np.diff(block) != 0))))
    count = np.diff(np.concatenate((opens, [len(size)])))
    middle = (latency[opens + (count - 1) // 2] + latency[opens + count // 2]) / 2
    return size[opens].astype(np.float64), np.maximum(middle, 1.0), block[opens], count.astype(np.float64)


def _drawn(of: _Line) -> tuple[FloatArray, FloatArray]:
    """Alpha and slope, (DRAWS,) each, with blocks weighted at random; seeded, so repeatable."""
    generator = np.random.default_rng(SEED)
    weights = generator.standard_exponential((DRAWS, int(of.block.max()) + 1))
    at_once = max(1, RESAMPLED_AT_ONCE // len(of.size))
    parts = [
        lines(of.size, of.latency, weights[first : first + at_once][:, of.block] * of.count, of.scale)
        for first in range(0, DRAWS, at_once)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _pull(of: _Line) -> FloatArray:
    """(3, blocks): of the variances of alpha and slope, and of their covariance, what each block has.

    By the coefficients of least squares, with a noise of the units in proportion to their scale.
    """
    x = of.size / of.size.max()
    w = of.count / of.scale**2
    middle = float(w @ x / w.sum())
    slope = w * (x - middle) / float(w @ (x - middle) ** 2)
    alpha, slope = (w / w.sum() - middle * slope) * of.scale, slope * of.scale / of.size.max()
    return np.array([np.bincount(of.block, weights=part) for part in (alpha**2, alpha * slope, slope**2)])


def _widened(drawn: FloatArray, value: float, pull: FloatArray, of: FloatArray) -> tuple[float, float]:
    """Symmetric about the value, as far as 95 % of the draws stray from it, wider for few blocks; not below 0.

    ``of``: (3,) the variance of what is drawn in terms of ``pull``.
    """
    blocks = pull.shape[1]
    if blocks < 3:  # the line takes two of them
        return 0.0, math.inf
    part = np.maximum(of @ pull, 0.0)
    deciding = float(part.sum() ** 2 / (part @ part)) if part.any() else float(blocks)
    free = max(deciding * (blocks - 2) / blocks, 1.0)
    factor = float(stdtrit(free, (1 + LEVEL) / 2)) / NORMAL * math.sqrt(blocks / (blocks - 2))
    margin = factor * float(np.quantile(np.abs(drawn - value), LEVEL))
    return max(value - margin, 0.0), value + margin


def _missed(of: _Line) -> float:
    """Of two sizes the largest relative distance of a median from the line, where it is beyond the units' scatter.

    A line that need not have both ends at 0 or more would meet both.
    """
    relative = of.latency / of.line(of.size) - 1
    middle = np.array([float(np.median(relative[of.size == size])) for size in np.unique(of.size)])
    own = np.abs(relative - middle[np.searchsorted(np.unique(of.size), of.size)])
    furthest = float(np.abs(middle).max())
    return furthest if furthest > FAR * MAD_TO_SD * float(np.median(own)) else 0.0


def _misfit(of: _Line) -> float:
    """The largest relative distance of a size's median from the line if the signs depend on the size, else 0."""
    sizes, at = np.unique(of.size, return_inverse=True)
    line, n = of.line(of.size), np.bincount(at)
    above = np.bincount(at, weights=(of.latency > line) + 0.5 * (of.latency == line))
    if float(chdtrc(len(sizes) - 2, float((((2 * above - n) ** 2) / n).sum()))) >= MISFIT_P:
        return 0.0
    relative = of.latency / line - 1
    return max(abs(float(np.median(relative[at == place]))) for place in range(len(sizes)))
