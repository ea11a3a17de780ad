"""What two clocks have to do with one another: one clock, or an offset that causality only bounds.

For an instant x by one clock and a later one y by another, ``y - x = delay + offset`` with a delay that is never
negative. So the offset is at most the smallest ``y - x``, and a constant delay looks just like an offset. Where the
clocks are not one, the smallest difference is taken off as a whole: what is left is a delay for certain, and what was
taken off stays unattributed. Clocks that drift have a line in place of the smallest difference: the edge of the lower
convex hull of (x, y - x) at the middle of the log (as in Moon, Skelly, Towsley: Estimation and removal of clock
skew from network delay measurements, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analyzer.tokens import IntArray

FloatArray = npt.NDArray[np.float64]

SAME_HOST_MOST_NS = 50_000_000
"""A smallest delay above this between two programs of one host is not believed where the delays scatter far less.

Above what a delayed acknowledgement of TCP holds back (40 ms on Linux) and proxies on the way take.
"""
SCATTER = 10
"""So many times the usual excess over it a smallest delay has to be, for that."""
FEW = 0.01
"""Share of instants that may lie before their cause by chance: a clock that was set, a stamp taken too late."""
DRIFT_MOST = 200e-6
"""Clocks of computers drift by less; a steeper line is a delay that grows."""
DRIFT_LEAST_NS = 10_000_000_000
"""Shorter logs have no drift worth a line: at 100 ppm 1 ms."""


@dataclass(frozen=True)
class Offset:
    """The later clock minus the earlier one, as far as it can be known.

    ``base_ns`` at ``origin_ns`` (of the later clock) is taken off, and ``slope`` times the time from there.
    ``interval_ns``: what causality allows for clock offset, None where nothing bounds it; of clocks that drift at
    ``origin_ns``, and both with and without the drift. ``same``: one clock, then
    nothing is taken off. ``smallest_ns``: smallest difference seen. ``early``: differences below zero.
    ``drift_doubt_ns``: so much of a delay may be in what is taken off for drift; ``drift_excess_ns``: so far away from
    the line stay all differences in some third of the log, so much too little may be taken off there.
    """

    same: bool
    why: str
    base_ns: int = 0
    slope: float = 0.0
    origin_ns: int = 0
    interval_ns: tuple[int | None, int | None] = (None, None)
    smallest_ns: int | None = None
    drift_doubt_ns: int = 0
    drift_excess_ns: int = 0
    early: int = 0
    pairs: int = 0

    def hidden_ns(self, most_ns: int) -> int:
        """How long a delay may be that was taken for clock offset, or for drift; at most ``most_ns``."""
        low, high = self.interval_ns
        if self.same:
            return 0
        if low is None or high is None:
            return most_ns
        return min(most_ns, high - low + self.drift_doubt_ns)

    def at(self, later_ns: IntArray) -> IntArray:
        """What to take off instants of the later clock so that they stand on the earlier one."""
        away = np.rint((later_ns - self.origin_ns) * self.slope)
        moved: IntArray = self.base_ns + away.astype(np.int64)
        return moved


def compare(
    earlier_ns: IntArray,
    later_ns: IntArray,
    names: tuple[str | None, str | None],
    *,
    resolution_ns: int = 1,
    least: tuple[IntArray, IntArray] | None = None,
) -> Offset:
    """What the clocks of paired instants (n,) have to do with one another.

    ``names``: of both clocks, None where nothing tells. ``least``: what causality the other way round allows at
    least, (l,) offsets, and the instants (l,) by the later clock that each holds at: ``(instants, offsets)``. Raises
    ValueError without a pair.
    """
    if not len(earlier_ns):
        raise ValueError("no pair of instants")
    difference = later_ns - earlier_ns
    smallest = int(difference.min())
    early = int((difference < 0).sum())
    why = _why_not_one(difference, names, resolution_ns, None if least is None else int(least[1].max()))
    if not why:
        return Offset(True, "", interval_ns=(0, 0), smallest_ns=smallest, early=early, pairs=len(difference))
    slope, origin, base, doubt = _lower_line(later_ns, difference)
    line = Offset(
        False, why, base, slope, origin, (None, smallest), smallest, doubt, early=early, pairs=len(difference)
    )
    line = replace(line, interval_ns=_interval(line, smallest, least))
    return replace(
        line, drift_excess_ns=_farthest_third(later_ns, difference - line.at(later_ns)) if slope else 0
    )


def _interval(
    line: Offset, smallest_ns: int, least: tuple[IntArray, IntArray] | None
) -> tuple[int | None, int | None]:
    """What causality allows, at the line's origin. The drift is a fit: what holds without it is allowed, too."""
    high = max(smallest_ns, line.base_ns)
    if least is None:
        return None, high
    instants, offsets = least
    without, fitted = int(offsets.max()), int((offsets - (line.at(instants) - line.base_ns)).max())
    allowed = [(low, top) for low, top in ((without, smallest_ns), (fitted, line.base_ns)) if low <= top]
    if not allowed:  # stamps that contradict one another bound nothing
        return None, high
    return min(low for low, _ in allowed), max(top for _, top in allowed)


def _why_not_one(
    difference: IntArray, names: tuple[str | None, str | None], resolution_ns: int, least: int | None
) -> str:
    """Why the two are not taken for one clock, "" where they are."""
    if names[0] is None or names[1] is None:
        return "nothing tells that they are one clock"
    if names[0] != names[1]:
        return "they are clocks of different hosts"
    before = difference < -resolution_ns
    if before.sum() > FEW * len(difference):
        return f"they are named as one clock, but {before.sum()} of {len(difference)} instants lie before their cause"
    if least is not None and least > resolution_ns:
        return (
            "they are named as one clock, but the first tokens were emitted before their requests were sent"
        )
    smallest = int(difference.min())
    usual = int(np.median(difference)) - smallest
    if smallest > max(SAME_HOST_MOST_NS, SCATTER * usual):
        return (
            "they are named as one clock, but the delay between them is never shorter than"
            f" {smallest / 1e6:.3f} ms and hardly longer"
        )
    return ""


def _lower_line(later_ns: IntArray, difference: IntArray) -> tuple[float, int, int, int]:
    """Slope, origin, height there, and by how much the line may be too high for a constant offset."""
    smallest = int(difference.min())
    origin = int(later_ns.min())
    span = int(later_ns.max()) - origin
    if span < DRIFT_LEAST_NS:
        return 0.0, origin, smallest, 0
    hull = _lower_hull((later_ns - origin).astype(np.float64), (difference - smallest).astype(np.float64))
    middle = float((later_ns - origin).mean())
    at = int(np.clip(np.searchsorted(hull[:, 0], middle) - 1, 0, max(len(hull) - 2, 0)))
    if len(hull) < 2:
        return 0.0, origin, smallest, 0
    (x0, y0), (x1, y1) = hull[at], hull[at + 1]
    slope = (y1 - y0) / (x1 - x0)
    if abs(slope) > DRIFT_MOST:
        return 0.0, origin, smallest, 0
    height = y0 - slope * x0
    doubt = max(height, height + slope * span)
    return float(slope), origin, smallest + int(np.floor(height)), int(np.ceil(doubt))


def _farthest_third(later_ns: IntArray, left: IntArray) -> int:
    """The largest of the smallest distances in each third of the log's time, of thirds that hold any."""
    third = (later_ns - later_ns.min()) * 3 // (int(later_ns.max() - later_ns.min()) + 1)
    return max(int(left[third == at].min()) for at in range(3) if (third == at).any())


def _lower_hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """(h, 2) corners of the lower convex hull, left to right (Andrew's monotone chain)."""
    order = np.lexsort((y, x))
    corners: list[tuple[float, float]] = []
    for px, py in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if corners and corners[-1][0] == px:
            continue
        while len(corners) > 1 and _turns_right(corners[-2], corners[-1], (px, py)):
            corners.pop()
        corners.append((px, py))
    return np.array(corners)


def _turns_right(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0
