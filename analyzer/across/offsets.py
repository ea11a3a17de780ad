"""Offsets between two clocks at which many collectives end together: the candidates for the true one."""

from __future__ import annotations

import numpy as np

from analyzer.across.ends import NEAR_NS, Ends, middle
from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray, group_indices

SAMPLED = 400
"""So many rows vote for the offset between two clocks."""
MOST_PAIRS = 4_000_000
"""Bounds the votes where no anchor narrows them down."""
ANCHORED_NS = 50_000_000
"""Wall clocks of two hosts agree to tens of milliseconds (NTP)."""
CANDIDATES = 6
"""So many offsets are followed to the end, of all rows and once more of those after a pause ..."""
SIMILAR = 0.10
"""... if so much fewer collectives end together there than at the best."""
PAUSE = 3.0
"""A pause is so many times as long as the median distance of two ends."""


def candidates(a: Ends, b: Ends, *, anchored: bool) -> list[int]:
    """Offsets at which the most collectives of equal content end together, the most first.

    Those that follow a pause vote once more on their own: among many alike only they tell which is which.
    """
    offsets = _vote(a, b, np.flatnonzero(b.ends_together), a.end_ns >= a.end_ns.min(), anchored=anchored)
    late_a, late_b = _after_pause(a), _after_pause(b) & b.ends_together
    if late_b.any() and late_a.any() and not late_b.all():
        offsets += _vote(a, b, np.flatnonzero(late_b), late_a, anchored=anchored)
    return offsets


def _after_pause(ends: Ends) -> BoolArray:
    """(n,) ends that lie much further from the one before than most do."""
    gaps = np.diff(ends.end_ns)
    found = np.zeros(len(ends), bool)
    if len(gaps):
        found[1:] = gaps > PAUSE * np.median(gaps)
    return found


def _vote(
    a: Ends,
    b: Ends,
    rows: IntArray,
    among: BoolArray,
    *,
    anchored: bool,
) -> list[int]:
    """Offsets at which the most of these rows of b end together with one of a, the most first."""
    if not len(rows):
        rows = np.arange(len(b))
    if len(rows) > SAMPLED:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLED).astype(np.int64)]
    votes = []
    of_key = {key: at[among[at]] for key, at in group_indices(a.key).items()}
    room = max(MOST_PAIRS // max(len(rows), 1), 1)
    for row in rows.tolist():
        same = of_key.get(int(b.key[row]))
        if same is None:
            continue
        difference = a.end_ns[same] - b.end_ns[row]
        if anchored:
            difference = difference[np.abs(difference) <= ANCHORED_NS]
        votes.append(difference[:room])
    offsets = np.sort(np.concatenate(votes)) if votes else np.empty(0, np.int64)
    if not len(offsets):
        return []
    width = _width(a, of_key)
    count = np.searchsorted(offsets, offsets + width, side="right") - np.arange(len(offsets))
    most = int(count.max())
    fewest = most - max(1, int(SIMILAR * most), int(2 * most**0.5))
    starts = _thinned(np.flatnonzero(count >= fewest), count, offsets, width)
    parts = [offsets[at : at + int(count[at])] for at in starts]
    spread = [float(np.abs(part - np.median(part)).mean()) for part in parts]
    order = sorted(
        range(len(parts)),
        key=lambda at: ((spread[at] / width - 1) * len(parts[at]), abs(middle(parts[at]))),
    )
    return [middle(parts[at]) for at in order[:CANDIDATES]]


def _width(a: Ends, of_key: dict[int, IntArray]) -> int:
    """How far apart votes for one offset may lie: where collectives follow closely, less than half their distance."""
    distances = [np.diff(a.end_ns[rows]) for rows in of_key.values() if len(rows) > 1]
    if not distances:
        return NEAR_NS
    return int(min(max(float(np.median(np.concatenate(distances))) / 4, NEAR_NS / 30), NEAR_NS))


def _thinned(best: IntArray, count: IntArray, offsets: IntArray, apart_ns: int) -> list[int]:
    """The fullest window of votes of each stretch of offsets."""
    kept: list[int] = []
    for at in best.tolist():
        if not kept or offsets[at] - offsets[kept[-1]] > apart_ns:
            kept.append(at)
        elif count[at] > count[kept[-1]]:
            kept[-1] = at
    return kept
