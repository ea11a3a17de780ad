"""Pairs of collectives that end together at one offset between two clocks, which may drift."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from analyzer.across.ends import NEAR_NS, Ends, middle
from analyzer.model import IntArray
from analyzer.reconstruct.work import group_indices

FOLLOWED = 16
"""The offset is followed over the median of so many matches: clocks drift."""


def follow(a: Ends, b: Ends, offset: int, within_ns: int) -> tuple[IntArray, IntArray]:
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
    centre = len(fits) // 2
    around = fits[max(centre - FOLLOWED // 2, 0) : centre + FOLLOWED // 2 + 1]
    return fits[centre][0], offset + middle(np.array([distance for _, distance in around], np.int64))


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
