"""Which collectives of two ranks are one: their sequences aligned by kind, size and end.

The ends of one synchronizing collective lie within microseconds of one another on all ranks; its starts do
not. Missing records at the edges and in between shift nothing: what has no partner stays alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

import numpy as np
from scipy.ndimage import median_filter

from analyzer.across.ends import NEAR_NS, Ends, middle
from analyzer.across.following import FOLLOWED, follow
from analyzer.across.offsets import candidates
from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray

FAR_NS = 1_000_000
"""Between collectives that were matched the ends of another may lie up to so far apart."""
ENOUGH = 0.5
"""Share of the shorter sequence that must find partners at one offset, else nothing can be matched ..."""
NEARLY_ALL = 0.9
"""... and of ranks that nothing says to belong together: two groups at the same work meet by chance now and then."""
FEWEST = 6
"""So many pairs must end together before ranks that nothing says to belong together are taken to."""
LOSS_NATS = 4.0
"""What a record without a partner costs: about the negative logarithm of 2 %."""
LEAST_STRAY_NS = 500
"""Timestamps are no better than this."""
DEVICES_NS = 50_000
"""Instants of two devices on one host's clock agree to tens of microseconds."""
DOUBT = 3.0
"""So many square roots of the count are noise in what the ends say for one offset and against another ..."""
EXPECTED = 2.0
"""... and so many times more where one of them is expected: next to none on one clock."""
LOST_BY_CHANCE = 2.0
"""So many square roots of the records without a partner are noise in their number: those at the edges do not count."""
DECISIVE = 3 * LOSS_NATS
"""Evidence beyond noise that decides."""
ALIKE = 1.5
"""Ends may stray so many times less with the next call than with their own.

Where one rank is always last, the next call follows the end of its call: then that end and the *next* one of the other
rank stray by one rank's jitter, and two ends of one call by both ranks'.
"""
CHANCE = 0.05
"""An offset that much nearer to none than to the next candidate is hardly there by chance."""


@dataclass(frozen=True)
class Pairing:
    """Positions that belong together, ascending in both, and the median difference of their ends."""

    a: IntArray
    b: IntArray
    offset_ns: int
    assumed: bool = False
    """Other offsets explain the ends as well; at this one both ranks' sequences begin and end together."""


class Unpaired(Enum):
    """Why the collectives of two ranks are not paired."""

    APART = "no offset between their clocks makes enough of them end together"
    UNSURE = "several offsets between their clocks make them end together, or they are too few to tell"


def pair_up(
    a: Ends,
    b: Ends,
    *,
    anchored: bool,
    together: bool = True,
    one_clock: bool = False,
    near_ns: int | None = None,
    within_ns: int = NEAR_NS,
    assume: bool = False,
) -> Pairing | Unpaired:
    """Pairs of two ranks' collectives, or why there are none.

    ``anchored``: both clocks are wall clocks, so that only offsets within 50 ms are considered.
    ``together``: something says that these two ranks take part in one group. ``one_clock``: both were recorded by
    one clock, so that of several offsets that do equally well the one next to none is meant, if it stands alone.
    ``near_ns``: the offset that other groups gave; then no other one is tried, and ends must meet it to
    ``within_ns``. ``assume``: where several offsets do equally well, the one at which both sequences begin and end
    together is taken.
    """
    if not len(a) or not len(b):
        return Unpaired.APART
    few = min(int(a.ends_together.sum()), int(b.ends_together.sum()))
    start, assumed = near_ns, False
    if start is None:
        in_order = _in_order(a, b, few, strict=not together)
        if in_order is not None and few < FEWEST:
            return in_order  # so few: order is all there is
        found = _chosen(
            a, b, anchored=anchored, one_clock=one_clock, in_order=in_order if assume else None, assume=assume
        )
        if not isinstance(found, _Chosen):
            return found
        start, assumed = found.offset_ns, found.assumed
    mine, other = follow(a, b, start, within_ns if near_ns is not None else NEAR_NS)
    if not len(mine) or len(mine) < (ENOUGH if together else NEARLY_ALL) * few:
        return Unpaired.APART
    if not together and near_ns is None and len(mine) < FEWEST:
        return Unpaired.UNSURE
    mine, other = _fill(a, b, mine, other)
    offset = middle((a.end_ns[mine] - b.end_ns[other])[_telling(a, b, mine, other)])
    return Pairing(mine, other, offset, assumed)


def _in_order(a: Ends, b: Ends, few: int, *, strict: bool) -> Pairing | None:
    """The k-th with the k-th, where both ranks have the same sequence and its ends stay together."""
    if not np.array_equal(a.key, b.key) or (strict and few < FEWEST) or not _coherent(a, b, strict=strict):
        return None
    whole = np.arange(len(a))
    return Pairing(whole, whole, middle((a.end_ns - b.end_ns)[_telling(a, b, whole, whole)]))


def _telling(a: Ends, b: Ends, mine: IntArray, other: IntArray) -> BoolArray:
    """Pairs whose ends tell the offset; all of them where none is known to synchronize."""
    tells = a.ends_together[mine] & b.ends_together[other]
    return tells if tells.any() else np.ones(len(mine), bool)


def _coherent(a: Ends, b: Ends, *, strict: bool) -> bool:
    """Whether sequences of one content end nearer to their partner than to its neighbours, apart from a steady drift.

    ``strict``: only the ends say that they belong together, so that they must lie close.
    """
    whole = np.arange(len(a))
    tells = _telling(a, b, whole, whole)
    ends = a.end_ns[tells]
    difference = ends - b.end_ns[tells]
    if len(ends) < 3:
        return True  # so few of one content: order is all there is
    third = max(len(ends) // 3, 1)
    low, high = middle(difference[:third]), middle(difference[-third:])
    span = max(middle(ends[-third:]) - middle(ends[:third]), 1)
    line = low + (high - low) * (ends - middle(ends[:third])) / span
    apart = float(np.abs(difference - line).max())
    most = max(float(np.median(np.diff(ends))) / 2, LEAST_STRAY_NS)
    return apart <= (min(most, NEAR_NS) if strict else most)


@dataclass(frozen=True)
class _Chosen:
    """An offset between two clocks; ``assumed``: others explain the ends as well."""

    offset_ns: int
    assumed: bool = False


def _chosen(
    a: Ends, b: Ends, *, anchored: bool, one_clock: bool, in_order: Pairing | None, assume: bool
) -> _Chosen | Pairing | Unpaired:
    """The offset that explains both sequences best, or the pairs in order if they do as well, or why there is none."""
    offsets = candidates(a, b, anchored=anchored)
    few = min(int(a.ends_together.sum()), int(b.ends_together.sum()))
    if len(offsets) < 2 or few < FEWEST:
        return _Chosen(offsets[0]) if offsets else (in_order or Unpaired.APART)
    pairings = [_Pairs(offset, *follow(a, b, offset, NEAR_NS)) for offset in offsets]
    enough = [pairs for pairs in pairings if len(pairs) >= ENOUGH * few]
    if not enough:
        return in_order or Unpaired.APART
    best = min(enough, key=lambda pairs: sum(_cost(a, b, pairs, few)))
    lost_at_best, strayed_at_best = _cost(a, b, best, few)
    noise = DOUBT * few**0.5

    def worse(pairs: _Pairs, times: float = 1.0) -> bool:
        """Whether it explains less than the best beyond ``times`` the noise."""
        lost, strayed = _cost(a, b, pairs, few)
        more = strayed - strayed_at_best
        allowed = times * noise + (few * float(np.log(ALIKE)) if pairs.is_next_to(best) else 0.0)
        fewer = lost - lost_at_best
        by_chance = LOSS_NATS * LOST_BY_CHANCE * (max(lost, lost_at_best, 0.0) / LOSS_NATS) ** 0.5
        evidence = max(fewer - by_chance, min(fewer, 0.0)) + max(more - allowed, min(more, 0.0))
        return bool(evidence >= DECISIVE)

    expected = _next_to_none([pairs for pairs in enough if not worse(pairs, EXPECTED)]) if one_clock else None
    rivals = [pairs for pairs in enough if not worse(pairs) and not pairs.is_same(best)]
    if expected is not None or not rivals:
        return _Chosen(best.offset_ns if expected is None else expected)
    if in_order is not None:
        telling = np.flatnonzero(_telling(a, b, in_order.a, in_order.b))
        if not worse(_Pairs(in_order.offset_ns, telling, telling)):
            return replace(in_order, assumed=True)
    return _assumed([best, *rivals], a, b, anchored=anchored) if assume else Unpaired.UNSURE


def _assumed(open_: Sequence[_Pairs], a: Ends, b: Ends, *, anchored: bool) -> _Chosen | Unpaired:
    """Of candidates that do equally well the one that an assumption picks.

    That records begin and end together, else that two wall clocks are one.
    """
    fullest = _fullest(open_, a, b)
    near = (
        _hardly_by_chance([pairs.offset_ns for pairs in open_]) if anchored and fullest is None else fullest
    )
    return Unpaired.UNSURE if near is None else _Chosen(near, assumed=True)


@dataclass(frozen=True)
class _Pairs:
    """What follows from one offset: positions that belong together, ascending in both."""

    offset_ns: int
    mine: IntArray
    other: IntArray

    def __len__(self) -> int:
        return len(self.mine)

    def is_same(self, pairs: _Pairs) -> bool:
        """Whether two pairings are the same but for a few pairs."""
        one = set(zip(self.mine.tolist(), self.other.tolist(), strict=True))
        two = set(zip(pairs.mine.tolist(), pairs.other.tolist(), strict=True))
        return len(one & two) >= NEARLY_ALL * max(len(one), len(two))

    def is_next_to(self, pairs: _Pairs) -> bool:
        """Whether each is paired with the one before or after that of the other pairing."""
        _, here, there = np.intersect1d(self.mine, pairs.mine, return_indices=True)
        return len(here) > 0 and abs(float(np.median(self.other[here] - pairs.other[there]))) <= 1


def _fullest(open_: Sequence[_Pairs], a: Ends, b: Ends) -> int | None:
    """The offset that leaves the fewest alone.

    None unless all others leave twice as many, which is what beginning or ending a call later does.
    """
    whole = int(a.ends_together.sum() + b.ends_together.sum())
    first = max(open_, key=len)
    fewest = whole - 2 * len(first)
    others = [whole - 2 * len(pairs) for pairs in open_ if not pairs.is_same(first)]
    return first.offset_ns if all(alone >= fewest + max(2, fewest) for alone in others) else None


def _hardly_by_chance(offsets: Sequence[int]) -> int | None:
    """Of offsets between wall clocks the one next to none, where it is nearly none beside their distances."""
    first, second = sorted(offsets, key=abs)[:2]
    return first if abs(first) <= min(CHANCE * abs(second - first), DEVICES_NS) else None


def _next_to_none(open_: Sequence[_Pairs]) -> int | None:
    """The offset nearest to none, where it is much nearer than all others."""
    first, *others = sorted((pairs.offset_ns for pairs in open_), key=abs)
    alone = all(2 * abs(first) < abs(other) for other in others)
    return first if abs(first) <= DEVICES_NS and alone else None


def _cost(a: Ends, b: Ends, pairs: _Pairs, few: int) -> tuple[float, float]:
    """How badly a pairing explains both sequences, as negative log likelihoods: of what has no partner, of the ends.

    Distances of the ends of a pair around their neighbours' follow Laplace's law of unknown width; records are
    lost now and then. What one rank recorded before or after the other is nobody's fault.
    """
    mine, other = pairs.mine, pairs.other
    difference = (a.end_ns[mine] - b.end_ns[other]).astype(np.float64)
    stray = np.abs(difference - median_filter(difference, size=2 * FOLLOWED + 1, mode="nearest")).mean()
    within_a = a.ends_together[mine[0] : mine[-1] + 1].sum()
    within_b = b.ends_together[other[0] : other[-1] + 1].sum()
    alone = int(within_a + within_b) - 2 * len(mine)
    return LOSS_NATS * alone, few * float(np.log(max(stray, LEAST_STRAY_NS)))


def _fill(a: Ends, b: Ends, mine: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Add what lies between two pairs, or beyond the outermost, where both ranks have the same there.

    Ends that tell nothing go by their order; ends that should lie together may lie further apart than usual,
    but not so far that a neighbour could be meant.
    """
    pairs = [(-1, -1), *zip(mine.tolist(), other.tolist(), strict=True), (len(a), len(b))]
    offset = middle(a.end_ns[mine] - b.end_ns[other])
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
