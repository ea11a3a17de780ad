"""What transfers of each size took, and what contention adds: measured, whatever a line says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyzer.diagnosis import PriceOfSize
from analyzer.explain.ranks.transfers import Transfers
from analyzer.latency_fit import SEED, LatencyLine
from analyzer.model import IntArray
from analyzer.stats import quantile

FEWEST_COMPARED = 5
"""Contended and other calls of one size that a ratio of their medians needs, of each."""
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
        ratio, interval = _ratio(beside, alone)
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

    Calls of unknown size stay out: longer ones may be larger ones.
    """
    ratio, beside = [np.empty(0)], [np.empty(0, bool)]
    for size in np.unique(transfers.bytes[transfers.bytes >= 0]).tolist():
        mine = transfers.take(transfers.bytes == size)
        if mine.contended.any() and not mine.contended.all():
            ratio.append(mine.latency_ns / max(float(np.median(mine.latency_ns[~mine.contended])), 1.0))
            beside.append(mine.contended)
    relative, contended = np.concatenate(ratio), np.concatenate(beside)
    if min(int(contended.sum()), int((~contended).sum())) < FEWEST_COMPARED:
        return None, None
    return _ratio(relative[contended], relative[~contended])


def _ratio(beside: AnyArray, alone: AnyArray) -> tuple[float, tuple[float, float]]:
    """Ratio of the medians with its 95 % percentile bootstrap interval; seeded, so repeatable."""
    generator = np.random.default_rng(SEED)
    drawn = _medians(beside, generator) / _medians(alone, generator)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return rounded(float(np.median(beside) / np.median(alone))), both((float(low), float(high)))


def _medians(values: AnyArray, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    rows = generator.integers(0, len(values), size=(DRAWS, len(values)))
    return np.asarray(np.median(values[rows], axis=1), np.float64)
