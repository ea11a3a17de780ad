"""Which collectives of two ranks are one: their sequences aligned by kind, size and end.

The ends of one synchronizing collective lie within microseconds of one another on all ranks; its starts do
not. Missing records at the edges and in between shift nothing: what has no partner stays alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import median_filter

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
NEARLY_ONE = 0.99
NEARLY_ALL = 0.9
"""... and of ranks that nothing says to belong together: two groups at the same work meet by chance now and then."""

FEWEST = 6
"""So many pairs must end together before ranks that nothing says to belong together are taken to."""
CANDIDATES = 6
"""So many offsets are followed to the end, of all rows and once more of those after a pause ..."""
SIMILAR = 0.10
"""... if so much fewer collectives end together there than at the best."""
PAUSE = 3.0
"""A pause is so many times as long as the median distance of two ends."""
LOSS_NATS = 4.0
"""What a record without a partner costs: about the negative logarithm of 2 %."""
LEAST_STRAY_NS = 500
"""Timestamps are no better than this."""
DEVICES_NS = 50_000
"""Instants of two devices on one host's clock agree to tens of microseconds."""
DOUBT = 2.0
"""Offsets whose costs differ by less than so many square roots of the count explain equally well."""


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


def pair_up(
    a: Ends,
    b: Ends,
    *,
    anchored: bool,
    together: bool = True,
    one_clock: bool = False,
    near_ns: int | None = None,
    within_ns: int = NEAR_NS,
) -> Pairing | None:
    """Pairs of two ranks' collectives; None where no offset makes enough of them end together, or several do.

    ``anchored``: both clocks are wall clocks, so that only offsets within 50 ms are considered.
    ``together``: something says that these two ranks take part in one group. ``one_clock``: both were recorded by
    one clock, so that of several offsets that do equally well the one next to none is meant, if it stands alone.
    ``near_ns``: the offset that other groups gave; then no other one is tried, and ends must meet it to
    ``within_ns``.
    """
    if not len(a) or not len(b):
        return None
    few = min(int(a.ends_together.sum()), int(b.ends_together.sum()))
    alike = near_ns is None and np.array_equal(a.key, b.key) and (together or few >= FEWEST)
    if alike and _coherent(a, b, 1.0, strict=not together):
        return _one_by_one(a, b)
    start = near_ns if near_ns is not None else _chosen(a, b, anchored=anchored, one_clock=one_clock)
    if start is None:
        return _one_by_one(a, b) if alike and _coherent(a, b, NEARLY_ONE, strict=not together) else None
    mine, other = _follow(a, b, start, within_ns if near_ns is not None else NEAR_NS)
    fewest = 1 if together or near_ns is not None else FEWEST
    if not len(mine) or len(mine) < max((ENOUGH if together else NEARLY_ALL) * few, fewest):
        return None
    mine, other = _fill(a, b, mine, other)
    return Pairing(mine, other, _middle((a.end_ns[mine] - b.end_ns[other])[_telling(a, b, mine, other)]))


def _one_by_one(a: Ends, b: Ends) -> Pairing:
    whole = np.arange(len(a))
    return Pairing(whole, whole, _middle((a.end_ns - b.end_ns)[_telling(a, b, whole, whole)]))


def _telling(a: Ends, b: Ends, mine: IntArray, other: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Pairs whose ends tell the offset; all of them where none is known to synchronize."""
    tells = a.ends_together[mine] & b.ends_together[other]
    return tells if tells.any() else np.ones(len(mine), bool)


def _middle(values: IntArray) -> int:
    """The lower median: one of the values themselves."""
    return int(np.sort(values)[(len(values) - 1) // 2])


def _coherent(a: Ends, b: Ends, share: float, *, strict: bool) -> bool:
    """Whether sequences of one content end together one by one, apart from a steady drift.

    ``share``: so many of them must lie nearer to their partner than to its neighbours. ``strict``: only the ends
    say that they belong together, so that they must lie close.
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
    apart = float(np.quantile(np.abs(difference - line), share, method="lower"))
    most = max(float(np.median(np.diff(ends))) / 2, LEAST_STRAY_NS)
    return apart <= (min(most, NEAR_NS) if strict else most)


def _chosen(a: Ends, b: Ends, *, anchored: bool, one_clock: bool) -> int | None:
    """The offset that explains both sequences best; None where there is none, or several do equally well."""
    offsets = _candidates(a, b, anchored=anchored)
    few = min(int(a.ends_together.sum()), int(b.ends_together.sum()))
    if len(offsets) < 2 or few < FEWEST:
        return offsets[0] if offsets else None
    paired = [_follow(a, b, offset, NEAR_NS) for offset in offsets]
    enough = [at for at, (mine, _) in enumerate(paired) if len(mine) >= ENOUGH * few]
    if not enough:
        return None
    costs = {at: _cost(a, b, *paired[at], few) for at in enough}
    best = min(enough, key=lambda at: costs[at])
    margin = DOUBT * few**0.5
    rivals = [at for at in enough if costs[at] - costs[best] < margin and not _same(paired[at], paired[best])]
    if not rivals:
        return offsets[best]
    return _next_to_none([offsets[at] for at in (best, *rivals)]) if one_clock else None


def _next_to_none(offsets: Sequence[int]) -> int | None:
    """The offset nearest to none, where it is much nearer than all others."""
    first, second = sorted(offsets, key=abs)[:2]
    return first if abs(first) <= DEVICES_NS and 2 * abs(first) < abs(second) else None


def _cost(a: Ends, b: Ends, mine: IntArray, other: IntArray, few: int) -> float:
    """How badly a pairing explains both sequences, as a negative log likelihood.

    Distances of the ends of a pair around their neighbours' follow Laplace's law of unknown width; records are
    lost now and then. What one rank recorded before or after the other is nobody's fault.
    """
    difference = (a.end_ns[mine] - b.end_ns[other]).astype(np.float64)
    stray = np.abs(difference - median_filter(difference, size=2 * FOLLOWED + 1, mode="nearest")).mean()
    within_a = a.ends_together[mine[0] : mine[-1] + 1].sum()
    within_b = b.ends_together[other[0] : other[-1] + 1].sum()
    alone = int(within_a + within_b) - 2 * len(mine)
    return LOSS_NATS * alone + few * float(np.log(max(stray, LEAST_STRAY_NS)))


def _same(one: tuple[IntArray, IntArray], other: tuple[IntArray, IntArray]) -> bool:
    """Whether two pairings are the same but for a few pairs."""
    a = set(zip(*(column.tolist() for column in one), strict=True))
    b = set(zip(*(column.tolist() for column in other), strict=True))
    return len(a & b) >= NEARLY_ALL * max(len(a), len(b))


def _candidates(a: Ends, b: Ends, *, anchored: bool) -> list[int]:
    """Offsets at which the most collectives of equal content end together, the most first.

    Those that follow a pause vote once more on their own: among many alike only they tell which is which.
    """
    offsets = _vote(a, b, np.flatnonzero(b.ends_together), a.end_ns >= a.end_ns.min(), anchored=anchored)
    late_a, late_b = _after_pause(a), _after_pause(b) & b.ends_together
    if late_b.any() and late_a.any() and not late_b.all():
        offsets += _vote(a, b, np.flatnonzero(late_b), late_a, anchored=anchored)
    return offsets


def _after_pause(ends: Ends) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
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
    among: np.ndarray[tuple[int], np.dtype[np.bool_]],
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
        key=lambda at: ((spread[at] / width - 1) * len(parts[at]), abs(_middle(parts[at]))),
    )
    return [_middle(parts[at]) for at in order[:CANDIDATES]]


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
            latest = sorted(recent[-FOLLOWED:])
            at = latest[len(latest) // 2]
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
