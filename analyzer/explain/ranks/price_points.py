"""What transfers of each size took, and what contention adds: measured, whatever a line says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analyzer.across.waits import BoolArray
from analyzer.diagnosis import PriceOfSize
from analyzer.explain.ranks.transfers import STEPS, Transfers
from analyzer.latency_fit import LEVEL, NORMAL, SEED, LatencyLine
from analyzer.model import IntArray
from analyzer.stats import quantile

FEWEST_COMPARED = 5
"""Contended and other calls of one size that a ratio of their medians needs, of each."""
FEWEST_ALONE = 2
"""Of the calls of one size that run alone, to be part of the ratio over all sizes."""
DRAWS = 400

AnyArray = IntArray | npt.NDArray[np.float64]


def rounded(value: float) -> float:
    """Six significant digits: more are neither known nor the same on every processor."""
    return float(f"{value:.6g}")


def both(interval: tuple[float, float]) -> tuple[float, float]:
    """Both ends rounded."""
    return rounded(interval[0]), rounded(interval[1])


def points_of(transfers: Transfers, line: LatencyLine | None) -> list[PriceOfSize]:
    """One row per size, ascending; calls of unknown size have none."""
    return [
        _point(transfers.take(transfers.bytes == size), size, line)
        for size in np.unique(transfers.bytes[transfers.bytes >= 0]).tolist()
    ]


def _point(transfers: Transfers, size: int, line: LatencyLine | None) -> PriceOfSize:
    latency = np.maximum(transfers.latency_ns, 1)
    beside, alone = latency[transfers.contended], latency[~transfers.contended]
    ratio, interval = None, None
    if min(len(beside), len(alone)) >= FEWEST_COMPARED:
        ratio, interval = _ratio(latency, transfers.contended, transfers.step)
    return PriceOfSize(
        bytes=size,
        calls=len(latency),
        median_ns=quantile(latency, 0.5),
        p05_ns=quantile(latency, 0.05),
        p95_ns=quantile(latency, 0.95),
        fitted_ns=None if line is None else rounded(float(line.at(np.array([size]))[0])),
        fitted_ci95_ns=None if line is None else both(line.interval_at(size)),
        contended_calls=len(beside),
        contended_ratio=ratio,
        contended_ratio_ci95=interval,
    )


def contention(transfers: Transfers) -> tuple[float | None, tuple[float, float] | None]:
    """How many times as long contended calls take as the others of their size, over all sizes, with the interval.

    Calls of unknown size stay out: longer ones may be larger ones. So do sizes of which a single call runs alone: held
    against itself it would not seem to scatter.
    """
    ratio, used = [np.empty(0)], [np.empty(0, np.int64)]
    for size in np.unique(transfers.bytes[transfers.bytes >= 0]).tolist():
        rows = np.flatnonzero(transfers.bytes == size)
        mine = transfers.take(rows)
        if mine.contended.any() and int((~mine.contended).sum()) >= FEWEST_ALONE:
            ratio.append(
                np.maximum(mine.latency_ns, 1) / max(float(np.median(mine.latency_ns[~mine.contended])), 1.0)
            )
            used.append(rows)
    relative, of = np.concatenate(ratio), transfers.take(np.concatenate(used))
    if min(int(of.contended.sum()), int((~of.contended).sum())) < FEWEST_COMPARED:
        return None, None
    return _ratio(relative, of.contended, of.step)


def _ratio(values: AnyArray, contended: BoolArray, step: IntArray) -> tuple[float, tuple[float, float]]:
    """Ratio of the medians of contended calls and others, with a 95 % bootstrap interval; seeded, so repeatable.

    Steps are drawn anew, since calls of one share what happened to them, and the interval is wider for few of them;
    with fewer than ``STEPS`` of either kind calls are drawn. Symmetric in the logarithm.
    """
    ratio = float(np.median(values[contended]) / np.median(values[~contended]))
    few = min(len(np.unique(step[contended])), len(np.unique(step[~contended]))) < STEPS
    block = np.arange(len(values)) if few else np.unique(step, return_inverse=True)[1]
    generator, blocks = np.random.default_rng(SEED), int(block.max()) + 1
    sides = [_Side.of(values[mine], block[mine]) for mine in (contended, ~contended)]
    drawn = []
    for _ in range(DRAWS):
        times = np.bincount(generator.integers(0, blocks, blocks), minlength=blocks)
        one, two = (side.median(times) for side in sides)
        if one is not None and two is not None:
            drawn.append(abs(math.log(one / two / ratio)))
    n = min(len(np.unique(block[contended])), len(np.unique(block[~contended])))
    wider = float(stdtrit(n - 1, (1 + LEVEL) / 2)) / NORMAL * math.sqrt(n / (n - 1))
    factor = math.exp(wider * float(np.quantile(drawn, LEVEL)))
    return rounded(ratio), both((ratio / factor, ratio * factor))


@dataclass(frozen=True)
class _Side:
    """Values in ascending order, with the block of each."""

    values: npt.NDArray[np.float64]
    block: IntArray

    @classmethod
    def of(cls, values: AnyArray, block: IntArray) -> _Side:
        order = np.argsort(values, kind="stable")
        return cls(values[order].astype(np.float64), block[order])

    def median(self, times: IntArray) -> float | None:
        """The median with each block ``times`` over; None where no block of these values is drawn."""
        reach = np.cumsum(times[self.block])
        whole = int(reach[-1])
        if not whole:
            return None
        at = np.searchsorted(reach, [(whole - 1) // 2 + 1, whole // 2 + 1])
        return float(self.values[at].mean())
