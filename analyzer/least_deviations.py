"""Lines of least weighted absolute deviations, ``latency = alpha + slope x size``, with both ends held at 0 or more."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

ROUNDS = 60
CLOSE = 1e-7
"""Residuals below this share of the line weigh no more: where the reweighting stops."""
PIVOTS = 8
"""Points nearest to a line through which better ones are looked for: more than two lie on it where lines tie."""


def scale_of(size: FloatArray, latency: FloatArray, weight: FloatArray) -> FloatArray:
    """(n,) ns by which residuals are measured: about the line itself, found in a few rounds from the median of all."""
    scale = np.full(len(size), float(np.median(latency)))
    for _ in range(4):
        alpha, slope = lines(size, latency, weight, scale)
        line = alpha[0] + slope[0] * size
        scale = np.maximum(line, 0.05 * float(latency.min()))
    return scale


def lines(
    size: FloatArray, latency: FloatArray, weight: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Alpha and slope, (b,) each, of the lines of least ``sum(weight |latency - line| / scale)``; weight (b, n).

    By iteratively reweighted least squares, a single line to its very least by descent from there. A negative alpha or
    slope becomes 0, and the other is fitted alone.
    """
    unit = float(size.max()) or 1.0
    p, q, z = 1 / scale, size / unit / scale, latency / scale
    alpha, slope = _reweighted(p, q, z, weight)
    if len(weight) == 1:
        alpha[0], slope[0] = _descended(size / unit, latency, weight[0] / scale, alpha[0], slope[0])
    no_slope, no_alpha = slope < 0, alpha < 0
    if no_slope.any():
        alpha[no_slope], slope[no_slope] = _single(p, z, weight[no_slope]), 0.0
    no_alpha &= ~no_slope
    if no_alpha.any():
        alpha[no_alpha], slope[no_alpha] = 0.0, _single(q, z, weight[no_alpha])
    return alpha, slope / unit


def _reweighted(
    p: FloatArray, q: FloatArray, z: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    v = weight
    alpha, slope = np.zeros(len(weight)), np.zeros(len(weight))
    pp, pq, qq, pz, qz = p * p, p * q, q * q, p * z, q * z
    for _ in range(ROUNDS):
        a, b, d, e, f = v @ pp, v @ pq, v @ qq, v @ pz, v @ qz
        det = a * d - b * b
        new_alpha, new_slope = (d * e - b * f) / det, (a * f - b * e) / det
        moved = max(
            float(np.abs(new_alpha - alpha).max() * p.max()), float(np.abs(new_slope - slope).max() * q.max())
        )
        alpha, slope = new_alpha, new_slope
        if moved < CLOSE:
            break
        v = weight / np.maximum(np.abs(z - np.outer(alpha, p) - np.outer(slope, q)), CLOSE)
    return alpha, slope


def _descended(
    x: FloatArray, y: FloatArray, weight: FloatArray, alpha: float, slope: float
) -> tuple[float, float]:
    """Alpha and slope of least ``sum(weight |y - alpha - slope x|)``, from a line near it.

    A line of least deviation passes through two of the points. Of the lines through one point the best has the weighted
    median of the slopes to the others; from there on through its points, while that helps (after Wesolowsky 1981).
    """
    best, least = (alpha, slope), _deviation(x, y, weight, alpha, slope)
    improved = True
    while improved:
        improved = False
        near = np.argsort(np.abs(y - best[0] - best[1] * x), kind="stable")[:PIVOTS]
        for pivot in near.tolist():
            found = _through(x, y, weight, pivot)
            deviation = np.inf if found is None else _deviation(x, y, weight, *found)
            if found is not None and deviation < least * (1 - CLOSE):
                best, least, improved = found, deviation, True
                break
    return best


def _through(x: FloatArray, y: FloatArray, weight: FloatArray, pivot: int) -> tuple[float, float] | None:
    """The best line through one point; None where no other lies at another size."""
    away = x - x[pivot]
    rows = np.flatnonzero((away != 0) & (weight > 0))
    if not len(rows):
        return None
    slopes = (y[rows] - y[pivot]) / away[rows]
    order = np.argsort(slopes, kind="stable")
    reach = np.cumsum((weight[rows] * np.abs(away[rows]))[order])
    slope = float(slopes[order][int(np.searchsorted(reach, reach[-1] / 2))])
    return float(y[pivot] - slope * x[pivot]), slope


def _deviation(x: FloatArray, y: FloatArray, weight: FloatArray, alpha: float, slope: float) -> float:
    return float(weight @ np.abs(y - alpha - slope * x))


def _single(x: FloatArray, z: FloatArray, weight: FloatArray) -> FloatArray:
    """(b,) the factor of least ``sum(weight |z - factor x|)``: a weighted median of the ratios."""
    used = x > 0
    ratio, w = (z / np.where(used, x, 1.0))[used], (weight * x)[:, used]
    order = np.argsort(ratio, kind="stable")
    reach = np.cumsum(w[:, order], axis=1)
    at = (reach < reach[:, -1:] / 2).sum(axis=1)
    return np.asarray(ratio[order][at], np.float64)
