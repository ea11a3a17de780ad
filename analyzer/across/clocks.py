"""One clock for all ranks: what must be added to each rank's times, and how sure that is.

No rank leaves a synchronizing collective before the last one has come: each call bounds the offset between
two clocks from both sides. The ends, which lie close together, give the estimate inside those bounds
(attribution contract, section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.stats import theilslopes

from analyzer.across.parts import SYNCHRONIZING, Group, RankPart
from analyzer.model import IntArray

MOST_DRIFT_PPB = 100_000
"""Two clocks of real machines drift apart by less than 100 ppm (crystals: 50 ppm each). Assumed, not measured."""
FEW = 3
"""Fewer common collectives than this tell nothing about how well their ends agree ..."""
ASSUMED_NS = 50_000
"""... and this is assumed instead: ends of one collective lie within tens of microseconds on one node."""
ENOUGH_FOR_DRIFT = 8
SLOPES = 300
"""The drift is fitted to at most so many points, evenly taken (Theil and Sen: the median of all slopes)."""
SURE = 0.99
"""Confidence with which a drift must differ from none."""
WITHIN = 0.95
ODD = 0.10
"""So few calls that contradict all others are themselves at fault, not the clocks."""
NEVER = np.iinfo(np.int64).min // 4
"""Stands for "no bound"."""
PPB = 1_000_000_000
CONTRADICTED = 0.05
"""Share of calls that someone leaves before all have come, from which on an operation does not synchronize here."""


@dataclass(frozen=True)
class ClockMap:
    """From one rank's clock to the reference rank's: ``t + offset_ns + drift_ppb * (t - epoch_ns) / 1e9``.

    ``interval_ns`` holds the true offset at the epoch for certain, unless the clocks drift by more than
    MOST_DRIFT_PPB; None for the reference itself and where calls contradict one another or it is only assumed which
    of them are one, here or on the way to the reference. ``uncertainty_ns``: how far the ends of the collectives
    stray from the map, at the epoch. ``parent``: the rank that this one was compared with.
    """

    rank: int
    offset_ns: int
    drift_ppb: int
    drift_unsure_ppb: int
    epoch_ns: int
    interval_ns: tuple[int, int] | None
    uncertainty_ns: int
    parent: int | None
    shared_calls: int
    reference: int
    contradictions: int = 0

    def unsure_at(self, instant: int) -> int:
        """How far the map may be off at an instant of the reference, ns: the drift is known to some degree only."""
        away = abs(instant - self.offset_ns - self.epoch_ns)
        return self.uncertainty_ns + self.drift_unsure_ppb * away // PPB

    def slack_ns(self, times: IntArray) -> IntArray:
        """(n,) how far the map can be off at most at instants of this rank.

        Guaranteed where there is an interval; without one ASSUMED_NS stands for it, and nothing that is derived
        from it is called certain.
        """
        if self.parent is None:
            return np.zeros(len(times), np.int64)
        low, high = self.interval_ns or (self.offset_ns - ASSUMED_NS, self.offset_ns + ASSUMED_NS)
        most = max(high - self.offset_ns, self.offset_ns - low)
        return most + (MOST_DRIFT_PPB + abs(self.drift_ppb)) * np.abs(times - self.epoch_ns) // PPB

    def to_reference(self, times: IntArray) -> IntArray:
        """(n,) instants of this rank on the reference clock."""
        moved = times + self.offset_ns
        if self.drift_ppb:
            moved = moved + np.rint((times - self.epoch_ns) * (self.drift_ppb / PPB)).astype(np.int64)
        return moved

    def from_reference(self, times: IntArray) -> IntArray:
        """(n,) instants of the reference clock on this rank's, to within 1 ns of the inverse."""
        raw = times - self.offset_ns
        if self.drift_ppb:
            raw = raw - np.rint((raw - self.epoch_ns) * (self.drift_ppb / (PPB + self.drift_ppb))).astype(
                np.int64
            )
        return raw


@dataclass(frozen=True)
class Alignment:
    """The clock maps of all ranks that could be compared, by rank.

    ``alone``: ranks that share no collective with others; ``contradictory``: those whose calls contradict one
    another at every offset.
    """

    maps: dict[int, ClockMap]
    alone: tuple[int, ...]
    contradictory: tuple[int, ...]
    unsynchronized: frozenset[tuple[str, str]]  # (group label, operation) that someone left early

    @property
    def references(self) -> tuple[int, ...]:
        """The reference ranks: one for all ranks that collectives link, directly or over others."""
        return tuple(sorted({clock.reference for clock in self.maps.values()}))

    def comparable(self, ranks: Sequence[int]) -> bool:
        """Whether these ranks are all on one clock."""
        return all(rank in self.maps for rank in ranks) and len({self.maps[r].reference for r in ranks}) <= 1

    def uncertainty_ns(self, ranks: Sequence[int], since: int | None = None, until: int | None = None) -> int:
        """How far the clocks of these ranks may stray from one another, at their epochs or over a stretch of time."""
        instants = [instant for instant in (since, until) if instant is not None]
        return max(
            (
                max([self.maps[rank].uncertainty_ns, *(self.maps[rank].unsure_at(t) for t in instants)])
                for rank in ranks
            ),
            default=0,
        )


@dataclass(frozen=True)
class _Edge:
    """Common calls of two ranks in time order; (k,) columns, ``q`` the rank to be mapped onto ``p``'s clock."""

    p_start: IntArray
    p_end: IntArray
    q_start: IntArray
    q_end: IntArray
    q_waits: npt.NDArray[np.bool_]  # q cannot leave before p has come
    p_waits: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.p_start)

    def take(self, rows: npt.NDArray[np.generic]) -> _Edge:
        return _Edge(*(column[rows] for column in vars(self).values()))


def align(parts: Sequence[RankPart], groups: Sequence[Group]) -> Alignment:
    """Map every rank onto the clock of the lowest one that it shares collectives with, over others if need be."""
    calls = [_Calls(group, parts) for group in groups if len(group.members) > 1 and len(group.calls)]
    ranks = sorted({part.rank for part in parts})
    maps: dict[int, ClockMap] = {}
    contradictory: set[int] = set()
    for reference in ranks:
        if reference in maps:
            continue
        linked = _linked(reference, [rank for rank in ranks if rank not in maps], calls)
        if linked:
            maps[reference] = ClockMap(reference, 0, 0, 0, 0, None, 0, None, 0, reference)
            for rank, parent in linked:
                found = _mapped(rank, maps[parent], _edge(calls, parent, rank)) if parent in maps else None
                if found is not None:
                    assumed = any(c.assumed(parent, rank) for c in calls)
                    maps[rank] = replace(found, interval_ns=None) if assumed else found
                elif parent in maps:
                    contradictory.add(rank)
    unsynchronized = frozenset(key for c in calls for key in c.left_early(maps))
    contradictory -= set(maps)
    maps |= _by_messages(parts, set(ranks) - set(maps) - contradictory, maps)
    alone = tuple(rank for rank in ranks if rank not in maps and rank not in contradictory)
    return Alignment(maps, alone, tuple(sorted(contradictory)), unsynchronized)


def _by_messages(
    parts: Sequence[RankPart], alone: set[int], maps: Mapping[int, ClockMap]
) -> dict[int, ClockMap]:
    """Maps of ranks that share no collective, by messages that bound their wall clocks against rank 0's.

    On one kernel both are the same clock; else how far they drift from the epoch on is not known.
    """
    bounds = {part.rank: part.bound_ns for part in parts if part.bound_ns is not None}
    if 0 not in bounds or len(bounds) < 2 or not alone & set(bounds):
        return {}
    if 0 in maps:
        if maps[0].parent is not None:
            return {}
        known = {}
    else:
        known = {0: ClockMap(0, 0, 0, 0, 0, None, 0, None, 0, 0)}
    for rank in sorted(alone & set(bounds) - {0}):
        low, high = bounds[rank]
        middle = low + (high - low) // 2
        known[rank] = ClockMap(
            rank=rank, offset_ns=middle, drift_ppb=0, drift_unsure_ppb=0 if low == high else MOST_DRIFT_PPB,
            epoch_ns=0, interval_ns=(low, high),
            uncertainty_ns=high - middle, parent=0, shared_calls=0, reference=0,
        )  # fmt: skip
    return known


def _linked(reference: int, ranks: Sequence[int], calls: Sequence[_Calls]) -> list[tuple[int, int]]:
    """Ranks that are linked to a reference, each with the rank nearer to it that it shares the most calls with."""
    found: list[tuple[int, int]] = []
    known, frontier = {reference}, [reference]
    while frontier:
        best: dict[int, tuple[int, int]] = {}
        for parent in frontier:
            for rank in ranks:
                if rank not in known:
                    count = sum(c.common(parent, rank) for c in calls)
                    if count and (rank not in best or count > best[rank][0]):
                        best[rank] = (count, parent)
        frontier = sorted(best)
        known.update(frontier)
        found += [(rank, best[rank][1]) for rank in frontier]
    return found


class _Calls:
    """The calls of one group as columns by member."""

    def __init__(self, group: Group, parts: Sequence[RankPart]) -> None:
        self.group = group
        of = {part.rank: part for part in parts}
        self.start = np.zeros(group.calls.shape, np.int64)
        self.end = np.zeros(group.calls.shape, np.int64)
        self.has = group.calls >= 0
        self.operation = np.full(group.calls.shape, "", object)
        for column, rank in enumerate(group.members):
            rows, has = group.calls[:, column], self.has[:, column]
            arrivals = of[rank].arrivals
            self.start[has, column] = arrivals.start_ns[rows[has]]
            self.end[has, column] = arrivals.end_ns[rows[has]]
            texts = np.array([*of[rank].table.texts, "?"], object)
            self.operation[has, column] = texts[arrivals.operation[rows[has]]]

    def assumed(self, p: int, q: int) -> bool:
        """Whether it is an assumption which calls of the two are one."""
        return {p, q} <= set(self.group.members) and bool({p, q} & set(self.group.assumed))

    def common(self, p: int, q: int) -> int:
        """How many calls both ranks have that tell something about their clocks."""
        if p not in self.group.members or q not in self.group.members:
            return 0
        return int(
            (self.waits(p) & self.has[:, self._at(q)] | self.waits(q) & self.has[:, self._at(p)]).sum()
        )

    def _at(self, rank: int) -> int:
        return self.group.members.index(rank)

    def waits(self, rank: int) -> npt.NDArray[np.bool_]:
        """(k,) calls that the rank cannot leave before the others have come."""
        operation = self.operation[:, self._at(rank)]
        held = np.isin(operation.astype(str), [*SYNCHRONIZING, "recv"])
        return held & self.has[:, self._at(rank)]

    def edge(self, p: int, q: int) -> _Edge:
        """The calls that tell something about the clocks of both."""
        i, j = self._at(p), self._at(q)
        both = self.has[:, i] & self.has[:, j]
        rows = np.flatnonzero(both & (self.waits(p) | self.waits(q)))
        return _Edge(
            self.start[rows, i], self.end[rows, i], self.start[rows, j], self.end[rows, j],
            self.waits(q)[rows], self.waits(p)[rows],
        )  # fmt: skip

    def left_early(self, maps: dict[int, ClockMap]) -> set[tuple[str, str]]:
        """Operations of this group that ranks leave before all have come, beyond what the clocks explain."""
        members = [column for column, rank in enumerate(self.group.members) if rank in maps]
        if len(members) < 2:
            return set()
        start, end, slack = [], [], 0
        for column in members:
            clock = maps[self.group.members[column]]
            has = self.has[:, column]
            start.append(np.where(has, clock.to_reference(self.start[:, column]), np.iinfo(np.int64).min))
            end.append(np.where(has, clock.to_reference(self.end[:, column]), np.iinfo(np.int64).max))
            slack = max(slack, clock.uncertainty_ns)
        early = np.min(end, axis=0) + slack < np.max(start, axis=0)
        names = self.operation.max(axis=1).astype(str)
        return {
            (self.group.label, name)
            for name in np.unique(names).tolist()
            if early[names == name].mean() > CONTRADICTED
        }


def _edge(calls: Sequence[_Calls], p: int, q: int) -> _Edge:
    edges = [c.edge(p, q) for c in calls if p in c.group.members and q in c.group.members]
    columns = zip(*(vars(edge).values() for edge in edges), strict=True)
    joined = _Edge(*(np.concatenate(column) for column in columns))
    return joined.take(np.argsort(joined.q_end, kind="stable"))


def _mapped(rank: int, parent: ClockMap, edge: _Edge) -> ClockMap | None:
    """The map of one rank from what it shares with a mapped one; None where no offset comes near to all calls."""
    p_start, p_end = parent.to_reference(edge.p_start), parent.to_reference(edge.p_end)
    early, late = parent.slack_ns(edge.p_start), parent.slack_ns(edge.p_end)
    low = np.where(edge.q_waits, p_start - early - edge.q_end, NEVER)
    high = np.where(edge.p_waits, p_end + late - edge.q_start, -NEVER)
    tightest = int(np.argmin(high - low))
    epoch = int(edge.q_start[tightest] + (edge.q_end[tightest] - edge.q_start[tightest]) // 2)
    ends = edge.q_waits & edge.p_waits
    if not ends.any():
        ends = np.ones(len(edge), bool)
    times, difference = edge.q_end[ends], (p_end - edge.q_end)[ends]
    drift, unsure_ppb = _drift(times - epoch, difference)
    line = np.rint((times - epoch) * (drift / PPB)).astype(np.int64)
    ordered = np.sort(difference - line)
    offset = int(ordered[(len(ordered) - 1) // 2])
    stray = np.sort(np.abs(difference - line - offset))
    spread = int(stray[min(int(np.ceil(WITHIN * len(stray))), len(stray) - 1)])
    if len(stray) < FEW:
        spread = max(spread, ASSUMED_NS)
    spread += unsure_ppb * abs(int(np.median(times)) - epoch) // PPB
    interval = _bounds(edge, low, high, epoch, offset)
    contradictions = 0
    if interval is None:
        at_end, at_start = (
            offset + drift * (edge.q_end - epoch) // PPB,
            offset + drift * (edge.q_start - epoch) // PPB,
        )
        if _bounds(edge, low - ASSUMED_NS, high + ASSUMED_NS, epoch, offset) is None:
            odd = (low - ASSUMED_NS > at_end + spread) | (high + ASSUMED_NS < at_start - spread)
            return _mapped(rank, parent, edge.take(~odd)) if 0 < odd.mean() <= ODD else None
        contradictions = int(((low > at_end + spread) | (high < at_start - spread)).sum())
    else:
        clipped = min(max(offset, interval[0]), interval[1])
        spread = min(max(spread, abs(clipped - offset)), max(interval[1] - clipped, clipped - interval[0]))
        offset = clipped
    return ClockMap(
        rank=rank,
        offset_ns=offset,
        drift_ppb=drift,
        drift_unsure_ppb=unsure_ppb,
        epoch_ns=epoch,
        interval_ns=interval if parent.parent is None or parent.interval_ns is not None else None,
        uncertainty_ns=spread + parent.unsure_at(epoch + offset),
        parent=parent.rank,
        shared_calls=len(edge),
        reference=parent.reference,
        contradictions=contradictions,
    )


def _drift(times: IntArray, difference: IntArray) -> tuple[int, int]:
    """Drift in ppb where it surely differs from none, else 0; and how far the true one may be from that."""
    if len(times) < ENOUGH_FOR_DRIFT or times[-1] == times[0]:
        return 0, MOST_DRIFT_PPB
    rows = np.arange(len(times))
    if len(rows) > SLOPES:
        rows = np.linspace(0, len(rows) - 1, SLOPES).astype(np.int64)
    middle = difference[len(difference) // 2]
    slope, _, low, high = theilslopes(
        (difference[rows] - middle).astype(np.float64), times[rows].astype(np.float64), alpha=SURE
    )
    widest = min(max(abs(low), abs(high)) * PPB, MOST_DRIFT_PPB)
    if low <= 0 <= high or abs(slope) * PPB > MOST_DRIFT_PPB:
        return 0, round(widest)
    return round(float(slope) * PPB), round(min((high - low) * PPB, MOST_DRIFT_PPB))


def _bounds(edge: _Edge, low: IntArray, high: IntArray, epoch: int, near: int) -> tuple[int, int] | None:
    """Least and largest offset at the epoch that no call contradicts; None where there is none.

    A linear program in offset and drift, in us and ppm so that both are of order one.
    """
    lower, upper = edge.q_waits, edge.p_waits
    matrix = np.concatenate(
        (
            np.stack((-np.ones(lower.sum()), -(edge.q_end[lower] - epoch) / 1e9), axis=1),
            np.stack((np.ones(upper.sum()), (edge.q_start[upper] - epoch) / 1e9), axis=1),
        )
    )
    limit = np.concatenate(((near - low[lower]) / 1e3, (high[upper] - near) / 1e3))
    most = MOST_DRIFT_PPB / 1e3
    answers = []
    for sign in (1.0, -1.0):
        solved = linprog([sign, 0.0], A_ub=matrix, b_ub=limit, bounds=[(None, None), (-most, most)])
        if solved.status == 2:
            return None
        answers.append(float(solved.x[0]) if solved.status == 0 else None)
    least, largest = answers
    unbounded = np.iinfo(np.int64).max // 8
    return (
        -unbounded if least is None else near + int(np.floor(least * 1e3)) - 1,
        unbounded if largest is None else near + int(np.ceil(largest * 1e3)) + 1,
    )
