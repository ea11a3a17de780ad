"""One critical path through all ranks: where a rank waited, the path goes on at the late rank's arrival.

Composed of the chains that every rank handed out (attribution contract, section 4), on the reference clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from analyzer.across.clocks import ClockMap
from analyzer.across.waits import RankWaits
from analyzer.categories import Category
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import Arrivals

CHAIN, BODY, NOTHING = 0, 1, 2
"""What a piece of a global path is: a segment of a chain, the body of a collective, or unknown time."""


@dataclass(frozen=True)
class RankLinks:
    """The chains of one rank (see ``reconstruct.chains``) as columns, with their segments' edges.

    Times on the rank's own clock; ``window_chain``: (w,) the chain that ends each window.
    """

    arrivals: Arrivals
    waits: RankWaits
    clock: ClockMap
    start_ns: IntArray  # (s,) segments of all chains
    end_ns: IntArray
    edges: IntArray
    high_ns: IntArray
    reached: IntArray
    merged: IntArray
    at_ns: IntArray
    body_category: IntArray  # (c,) category of each collective's own body where it is not split

    def reference(self, instant: int) -> int:
        """An instant of this rank on the reference clock."""
        return int(self.clock.to_reference(np.array([instant], np.int64))[0])


@dataclass
class Pieces:
    """Pieces of one window's global path as they are found, latest first; times on the reference clock."""

    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(start, end, rank, CHAIN or BODY or NOTHING, row of the chain's segments or arrival, category, late rank)"""
    crossed: list[tuple[int, int]] = field(default_factory=list)
    """The waits over which the path goes to another rank: from the arrival of the one that it leaves to that
    of the late one."""
    visited: list[int] = field(default_factory=list)

    def add(
        self, start: int, end: int, rank: int, kind: int, row: int, category: int, late: int = -1
    ) -> None:
        """Note one piece unless it is empty."""
        if end > start:
            self.rows.append((start, end, rank, kind, row, category, late))


def walk(
    low: int, high: int, rank: int, chain: int, links: Mapping[int, RankLinks], *, hops: bool = True
) -> Pieces:
    """The global path of ``[low, high)`` that ends with a chain of a rank. Sorted, gapless, exact.

    Without ``hops`` it stays on the rank and names the waits: the rank's own path.
    """
    pieces = Pieces(visited=[rank])
    instant, seen = high, set()
    while instant > low:
        here = links[rank]
        if (rank, chain, instant) in seen:  # clocks that contradict one another: no way down
            break
        seen.add((rank, chain, instant))
        _emit_chain(pieces, here, rank, chain, low, instant)
        instant = max(min(instant, here.reference(int(here.at_ns[chain]))), low)
        arrival = int(here.reached[chain])
        if arrival < 0:
            if here.merged[chain] < 0:
                break
            chain = int(here.merged[chain])
            continue
        rank, chain, instant = _through(pieces, here, rank, arrival, low, instant, hops=hops)
        if rank != pieces.visited[-1]:
            pieces.visited.append(rank)
    if instant > low:
        pieces.add(low, instant, rank, NOTHING, -1, Category.UNATTRIBUTED)
    pieces.rows.reverse()
    pieces.visited.reverse()
    return pieces


def _emit_chain(pieces: Pieces, here: RankLinks, rank: int, chain: int, low: int, high: int) -> None:
    """The segments of a chain within ``[low, high)``, latest first."""
    first, last = int(here.edges[chain]), int(here.edges[chain + 1])
    if first == last:
        return
    own = here.clock.from_reference(np.array([low, high], np.int64))
    # One segment more at each side: the way back from the reference clock may be off by 1 ns.
    until = first + int(np.searchsorted(here.start_ns[first:last], own[1] + 2, side="left"))
    since = first + max(int(np.searchsorted(here.end_ns[first:last], own[0] - 2, side="right")) - 1, 0)
    starts = here.clock.to_reference(here.start_ns[since:until]).tolist()
    ends = here.clock.to_reference(here.end_ns[since:until]).tolist()
    for at in range(until - since - 1, -1, -1):
        pieces.add(max(starts[at], low), min(ends[at], high), rank, CHAIN, since + at, -1)


def _through(
    pieces: Pieces,
    here: RankLinks,
    rank: int,
    arrival: int,
    low: int,
    instant: int,
    *,
    hops: bool,
) -> tuple[int, int, int]:
    """Over the body of a collective: to what led to it on this rank, or over to the rank it waited for."""
    waits = here.waits
    begin = min(here.reference(int(here.high_ns[arrival])), instant)
    if here.body_category[arrival] != Category.COLLECTIVE_UNSPLIT or not waits.split[arrival]:
        pieces.add(max(begin, low), instant, rank, BODY, arrival, int(here.body_category[arrival]))
        return rank, arrival, max(begin, low)
    until = min(max(here.reference(int(waits.until_ns[arrival])), begin), instant)
    late = int(waits.late_rank[arrival])
    pieces.add(max(until, low), instant, rank, BODY, arrival, Category.COLLECTIVE_TRANSFER)
    if until <= low:
        return rank, arrival, low
    if late != rank and until > begin and waits.certain[arrival]:
        if not hops:
            pieces.add(max(begin, low), until, rank, BODY, arrival, Category.COLLECTIVE_WAIT, late)
            return rank, arrival, max(begin, low)
        came = here.reference(int(here.arrivals.start_ns[arrival]))
        pieces.crossed.append((max(came, low), until))
        return late, int(waits.late_arrival[arrival]), until
    pieces.add(max(begin, low), until, rank, BODY, arrival, Category.COLLECTIVE_UNSPLIT)
    return rank, arrival, max(begin, low)
