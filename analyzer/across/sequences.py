"""Which collectives of two ranks are one: their sequences aligned by kind, size and end.

The ends of one synchronizing collective lie within microseconds of one another on all ranks; its starts do
not. Missing records at the edges and in between shift nothing: what has no partner stays alone.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.work import group_indices

NEAR_NS = 150_000
"""Ends of one collective lie within so much of one another, apart from the clocks."""
FAR_NS = 1_000_000
"""... and between collectives that were matched sometimes so much."""
SAMPLED = 400
"""So many rows vote for the offset between two clocks."""
MOST_PAIRS = 4_000_000
"""Bounds the votes where no anchor narrows them down."""
ANCHORED_NS = 50_000_000
"""Wall clocks of two hosts agree to tens of milliseconds (NTP)."""
FOLLOWED = 16
"""The offset is followed over the median of so many matches: clocks drift."""
ENOUGH = 0.5
"""Share of the shorter sequence that must find partners at one offset, else nothing can be matched ..."""
NEARLY_ALL = 0.9
"""... and of ranks that nothing says to belong together: two groups at the same work meet by chance now and then."""


@dataclass(frozen=True)
class Ends:
    """Collectives of one rank in one group in the order of their ends: what each is, and when it ended."""

    key: IntArray  # (n,) equal where the collectives could be one
    end_ns: IntArray  # (n,)
    ends_together: np.ndarray[tuple[int], np.dtype[np.bool_]]  # (n,) synchronizing: the end tells

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class Pairing:
    """Positions that belong together, ascending in both, and the median difference of their ends."""

    a: IntArray
    b: IntArray
    offset_ns: int


FEWEST = 6
"""So many pairs must end together before ranks that nothing says to belong together are taken to."""


def pair_up(
    a: Ends,
    b: Ends,
    *,
    anchored: bool,
    together: bool = True,
    near_ns: int | None = None,
    within_ns: int = NEAR_NS,
) -> Pairing | None:
    """Pairs of two ranks' collectives; None where no offset makes enough of them end together.

    ``anchored``: both clocks are wall clocks, so that only offsets within 50 ms are considered.
    ``together``: something says that these two ranks take part in one group. ``near_ns``: the offset that
    other groups gave; then no other one is tried, and ends must meet it to ``within_ns``.
    """
    if not len(a) or not len(b):
        return None
    few = min(int(a.ends_together.sum()), int(b.ends_together.sum()))
    if near_ns is None and len(a) == len(b) and np.array_equal(a.key, b.key):
        whole = np.arange(len(a))
        if (together or few >= FEWEST) and _coherent(a, b, strict=not together):
            return Pairing(whole, whole, _middle((a.end_ns - b.end_ns)[_telling(a, b, whole, whole)]))
    start = near_ns if near_ns is not None else _vote(a, b, anchored=anchored)
    if start is None:
        return None
    mine, other = _follow(a, b, start, within_ns if near_ns is not None else NEAR_NS)
    fewest = 1 if together or near_ns is not None else FEWEST
    if not len(mine) or len(mine) < max((ENOUGH if together else NEARLY_ALL) * few, fewest):
        return None
    mine, other = _fill(a, b, mine, other)
    return Pairing(mine, other, _middle((a.end_ns[mine] - b.end_ns[other])[_telling(a, b, mine, other)]))


def _telling(a: Ends, b: Ends, mine: IntArray, other: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Pairs whose ends tell the offset; all of them where none is known to synchronize."""
    tells = a.ends_together[mine] & b.ends_together[other]
    return tells if tells.any() else np.ones(len(mine), bool)


def _middle(values: IntArray) -> int:
    """The lower median: one of the values themselves."""
    return int(np.sort(values)[(len(values) - 1) // 2])


def _coherent(a: Ends, b: Ends, *, strict: bool) -> bool:
    """Whether sequences of one content end together one by one, apart from a steady drift.

    ``strict``: only the ends say that they belong together, so that they must lie close.
    """
    whole = np.arange(len(a))
    tells = _telling(a, b, whole, whole)
    ends = a.end_ns[tells]
    difference = ends - b.end_ns[tells]
    if len(ends) < 3:
        return True  # so few of one content: order is all there is
    third = max(len(ends) // 3, 1)
    low, high = _middle(difference[:third]), _middle(difference[-third:])
    span = max(_middle(ends[-third:]) - _middle(ends[:third]), 1)
    line = low + (high - low) * (ends - _middle(ends[:third])) / span
    spacing = float(np.median(np.diff(ends)))
    return float(np.abs(difference - line).max()) <= (NEAR_NS if strict else max(NEAR_NS, spacing / 2))


def _vote(a: Ends, b: Ends, *, anchored: bool) -> int | None:
    """The offset at which the most collectives of equal content end together; the smallest of several."""
    rows = np.flatnonzero(b.ends_together)
    if not len(rows):
        rows = np.arange(len(b))
    if len(rows) > SAMPLED:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLED).astype(np.int64)]
    votes = []
    of_key = group_indices(a.key)
    room = max(MOST_PAIRS // max(len(rows), 1), 1)
    for row in rows.tolist():
        same = of_key.get(int(b.key[row]))
        if same is None:
            continue
        difference = a.end_ns[same] - b.end_ns[row]
        if anchored:
            difference = difference[np.abs(difference) <= ANCHORED_NS]
        votes.append(difference[:room])
    if not votes:
        return None
    offsets = np.sort(np.concatenate(votes))
    if not len(offsets):
        return None
    width = _width(a, of_key)
    count = np.searchsorted(offsets, offsets + width, side="right") - np.arange(len(offsets))
    best = np.flatnonzero(count >= count.max() - max(1, int(0.02 * count.max())))
    candidates = [offsets[at : at + int(count[at])] for at in _thinned(best, offsets, width // 4)]
    spread = [float(np.abs(part - np.median(part)).mean()) for part in candidates]
    chosen = min(
        range(len(candidates)),
        key=lambda at: ((spread[at] / width - 1) * len(candidates[at]), abs(_middle(candidates[at]))),
    )
    return _middle(candidates[chosen])


def _width(a: Ends, of_key: dict[int, IntArray]) -> int:
    """How far apart votes for one offset may lie: where collectives follow closely, less than half their distance."""
    distances = [np.diff(a.end_ns[rows]) for rows in of_key.values() if len(rows) > 1]
    if not distances:
        return NEAR_NS
    return int(min(max(float(np.median(np.concatenate(distances))) / 4, NEAR_NS / 30), NEAR_NS))


def _thinned(best: IntArray, offsets: IntArray, apart_ns: int) -> list[int]:
    """One window of votes for each stretch of offsets, the fullest windows only."""
    kept: list[int] = []
    for at in best.tolist():
        if not kept or offsets[at] - offsets[kept[-1]] > apart_ns:
            kept.append(at)
    return kept


def _follow(a: Ends, b: Ends, offset: int, within_ns: int) -> tuple[IntArray, IntArray]:
    """Nearest partners at a followed offset, from where the votes fit best towards both edges."""
    of_key = {key: (a.end_ns[at].tolist(), at.tolist()) for key, at in group_indices(a.key).items()}
    first, start = _seed(b, offset, of_key)
    partner: dict[int, tuple[int, int]] = {}  # row of a -> (distance, row of b)
    for rows in (range(first, len(b)), range(first - 1, -1, -1)):
        recent = [start] * (FOLLOWED // 2)  # so that one wrong partner at the start leads nowhere
        for row in rows:
            if not b.ends_together[row]:
                continue
            at = int(np.median(recent[-FOLLOWED:]))
            found = _nearest(of_key.get(int(b.key[row])), int(b.end_ns[row]) + at)
            if found is None:
                continue
            where, distance = found
            if abs(distance) > within_ns:
                continue
            recent.append(at + distance)
            held = partner.get(where)
            if held is None or abs(distance) < held[0]:
                partner[where] = (abs(distance), row)
    return _monotone(partner)


def _seed(b: Ends, offset: int, of_key: dict[int, tuple[list[int], list[int]]]) -> tuple[int, int]:
    """Row of b in the middle of those that the offset fits, and the offset of those around it."""
    fits: list[tuple[int, int]] = []
    for row in range(len(b)):
        found = _nearest(of_key.get(int(b.key[row])), int(b.end_ns[row]) + offset)
        if found is not None and abs(found[1]) <= NEAR_NS // 2:
            fits.append((row, found[1]))
    if not fits:
        return len(b) // 2, offset
    middle = len(fits) // 2
    around = fits[max(middle - FOLLOWED // 2, 0) : middle + FOLLOWED // 2 + 1]
    return fits[middle][0], offset + _middle(np.array([distance for _, distance in around], np.int64))


def _nearest(ends: tuple[list[int], list[int]] | None, instant: int) -> tuple[int, int] | None:
    """Row of the end nearest to an instant and how much later than the instant it is."""
    if ends is None:
        return None
    times, rows = ends
    at = bisect_left(times, instant)
    around = [i for i in (at - 1, at) if 0 <= i < len(times)]
    best = min(around, key=lambda i: (abs(times[i] - instant), i))
    return rows[best], times[best] - instant


def _monotone(partner: dict[int, tuple[int, int]]) -> tuple[IntArray, IntArray]:
    """The longest run of pairs that ascends in both ranks (patience sorting)."""
    mine = sorted(partner)
    other = [partner[at][1] for at in mine]
    tails: list[int] = []
    index: list[int] = []
    before: list[int] = []
    for at, value in enumerate(other):
        place = bisect_left(tails, value)
        before.append(index[place - 1] if place else -1)
        if place == len(tails):
            tails.append(value)
            index.append(at)
        else:
            tails[place], index[place] = value, at
    chain: list[int] = []
    at = index[-1] if index else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    chain.reverse()
    return np.array([mine[at] for at in chain], np.int64), np.array([other[at] for at in chain], np.int64)


def _fill(a: Ends, b: Ends, mine: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Add what lies between two pairs, or beyond the outermost, where both ranks have the same there.

    Ends that tell nothing go by their order; ends that should lie together may lie further apart than usual,
    but not so far that a neighbour could be meant.
    """
    pairs = [(-1, -1), *zip(mine.tolist(), other.tolist(), strict=True), (len(a), len(b))]
    offset = _middle(a.end_ns[mine] - b.end_ns[other])
    room_a, room_b = np.minimum(_room(a), FAR_NS), np.minimum(_room(b), FAR_NS)
    added = []
    for (a_low, b_low), (a_high, b_high) in pairwise(pairs):
        for tells in (False, True):
            between_a = a_low + 1 + np.flatnonzero(a.ends_together[a_low + 1 : a_high] == tells)
            between_b = b_low + 1 + np.flatnonzero(b.ends_together[b_low + 1 : b_high] == tells)
            if not len(between_a) or not np.array_equal(a.key[between_a], b.key[between_b]):
                continue
            apart = np.abs(a.end_ns[between_a] - b.end_ns[between_b] - offset)
            if not tells or (3 * apart <= np.minimum(room_a[between_a], room_b[between_b])).all():
                added += list(zip(between_a.tolist(), between_b.tolist(), strict=True))
    columns = np.array(sorted([*pairs[1:-1], *added]), np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _room(ends: Ends) -> IntArray:
    """(n,) distance of each end to the nearest other one."""
    order = np.argsort(ends.end_ns, kind="stable")
    gaps = np.diff(ends.end_ns[order], prepend=ends.end_ns.min() - FAR_NS, append=ends.end_ns.max() + FAR_NS)
    room = np.empty(len(ends), np.int64)
    room[order] = np.minimum(gaps[:-1], gaps[1:])
    return room
