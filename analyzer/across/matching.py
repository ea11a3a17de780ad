"""The calls of one group: by sequence numbers where they are recorded, else by sequences that end together."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from analyzer.across.ends import NEAR_NS, Ends, middle
from analyzer.across.parts import ENDS_APART, ONE_WAY, Draft, Group, RankPart
from analyzer.across.sequences import Pairing, Unpaired, pair_up
from analyzer.model import IntArray

_KIND_OF = {
    "send": "one-way", "recv": "one-way",
    "exchange": "send_recv", "all_to_all": "send_recv",
}  # fmt: skip
"""Spellings of what is one kernel (NCCL makes an all-to-all of sends and receives): not every rank tells which."""
SAME_SIZE = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
"""Operations that move the same number of bytes on every rank."""
Offsets = dict[tuple[int, int], tuple[int, int]]
"""By pair of ranks: what must be added to the second one's ends to meet the first one's, and how far they stray."""
TIGHT_NS = 5_000
"""Ends of one collective of ranks whose clocks are known meet at least that well, or this times as well ..."""
TIMES = 3
"""... as those of the groups that the clocks are known by."""


class _Keys:
    """Codes for contents, the same on all ranks."""

    def __init__(self) -> None:
        self._codes: dict[tuple[object, ...], int] = {}

    def of(self, part: RankPart, rows: IntArray, *, sized: bool) -> IntArray:
        """(n,) content of each arrival: operation, place in its replay, size where all ranks must agree."""
        arrivals = part.arrivals.take(rows)
        codes = []
        for at in range(len(rows)):
            operation = part.table.text(int(arrivals.operation[at])) or "?"
            size = int(arrivals.bytes[at]) if sized and operation in SAME_SIZE else -1
            kind = _KIND_OF.get(operation, operation)
            content = (kind, int(arrivals.in_replay[at]), size)
            codes.append(self._codes.setdefault(content, len(self._codes)))
        return np.array(codes, np.int64)


def learn(group: Group, by_rank: dict[int, RankPart], offsets: Offsets) -> None:
    """Remember the offsets between the clocks of a group's ranks."""
    for column, rank in enumerate(group.members[1:], 1):
        first = group.members[0]
        if (first, rank) in offsets:
            continue
        both = group.calls[(group.calls[:, [0, column]] >= 0).all(axis=1)][:, [0, column]]
        tells = np.array(
            [by_rank[rank].table.text(int(code)) not in ENDS_APART
             for code in by_rank[rank].arrivals.operation[both[:, 1]]], bool
        )  # fmt: skip
        if not tells.any():
            continue
        one, other = by_rank[first].arrivals.end_ns, by_rank[rank].arrivals.end_ns
        _remember(offsets, first, rank, one[both[tells, 0]] - other[both[tells, 1]])


def _remember(offsets: Offsets, first: int, rank: int, difference: IntArray) -> None:
    """Note what the distances of ends that belong together say of two ranks' clocks."""
    offset = middle(difference)
    stray = int(np.quantile(np.abs(difference - offset), 0.95))
    offsets[first, rank], offsets[rank, first] = (offset, stray), (-offset, stray)


def settle(drafts: Sequence[Draft], by_rank: dict[int, RankPart], offsets: Offsets) -> None:
    """Learn offsets that no group alone tells: one offset must fit all that two ranks may have in common."""
    ranks = sorted({rank for draft in drafts for rank in draft.rows})
    for first, second in combinations(ranks, 2):
        both = [draft for draft in drafts if first in draft.rows and second in draft.rows]
        if len(both) < 2 or _between(offsets, first, second)[0] is not None:
            continue
        keys = _Keys()
        one, other = (_all_ends(both, by_rank[rank], by_rank, keys) for rank in (first, second))
        found = pair_up(one, other, together=False, **_clocks(by_rank[first], by_rank[second]))
        if isinstance(found, Pairing) and not found.assumed:
            _remember(offsets, first, second, one.end_ns[found.a] - other.end_ns[found.b])


def _all_ends(drafts: Sequence[Draft], part: RankPart, by_rank: dict[int, RankPart], keys: _Keys) -> Ends:
    """What a rank has in several groups as one sequence; contents of two groups are never the same."""
    each = []
    for number, draft in enumerate(drafts):
        ends = _ends(part, draft.rows[part.rank], keys, sized=_sized(draft, by_rank))
        each.append(replace(ends, key=ends.key * len(drafts) + number))
    order = np.argsort(np.concatenate([ends.end_ns for ends in each]), kind="stable")
    return Ends(
        np.concatenate([ends.key for ends in each])[order],
        np.concatenate([ends.end_ns for ends in each])[order],
        np.concatenate([ends.ends_together for ends in each])[order],
    )


def _clocks(one: RankPart, other: RankPart) -> dict[str, bool]:
    """What is known of the clocks of two ranks, for the pairing."""
    return {
        "anchored": one.anchored and other.anchored,
        "one_clock": one.clock is not None and one.clock == other.clock,
    }


def _between(offsets: Offsets, a: int, b: int) -> tuple[int | None, int]:
    """Offset from b's clock to a's, directly or over other ranks, and how far it strays; None where none is known."""
    reached = {a: (0, 0)}
    frontier = [a]
    while frontier and b not in reached:
        following = []
        for (first, second), (offset, stray) in offsets.items():
            if first in frontier and second not in reached:
                through, so_far = reached[first]
                reached[second] = (through + offset, so_far + stray)
                following.append(second)
        frontier = following
    return reached.get(b, (None, 0))


def _ends(part: RankPart, rows: IntArray, keys: _Keys, *, sized: bool) -> Ends:
    arrivals = part.arrivals
    operations = [part.table.text(int(code)) or "?" for code in arrivals.operation[rows]]
    together = np.array([operation not in ENDS_APART for operation in operations], bool)
    return Ends(keys.of(part, rows, sized=sized), arrivals.end_ns[rows], together)


def _ordered(part: RankPart, rows: IntArray) -> IntArray:
    """Rows in the order of their ends."""
    return rows[np.argsort(part.arrivals.end_ns[rows], kind="stable")]


def _sized(draft: Draft, by_rank: dict[int, RankPart]) -> bool:
    """Whether sizes are recorded for every call on every rank."""
    return all(bool((by_rank[rank].arrivals.bytes[rows] >= 0).all()) for rank, rows in draft.rows.items())


def matched(draft: Draft, by_rank: dict[int, RankPart], offsets: Offsets, *, assume: bool = False) -> Group:
    """The calls of a group whose members the capture names. ``assume``: see ``pair_up``."""
    members = tuple(sorted(draft.rows))
    assumed: tuple[int, ...] = ()
    numbers = {rank: by_rank[rank].arrivals.sequence[rows] for rank, rows in draft.rows.items()}
    if all(bool((sequence >= 0).all()) for sequence in numbers.values()):
        calls, problem = _by_number(draft, members, by_rank, numbers)
        numbered = True
    else:
        found = by_ends(draft, members, by_rank, offsets, together=True, assume=assume)
        calls, unpaired, assumed = found.calls, found.unpaired, found.assumed
        problem = "; ".join(
            f"rank {', '.join(map(str, ranks))} and rank {members[0]}: {why.value}"
            for why in Unpaired
            if (ranks := [rank for rank, found in unpaired.items() if found is why])
        )
        numbered = False
    return Group(
        draft.label, draft.description, draft.expected, draft.size, members, calls, numbered, problem,
        assumed=assumed,
    )  # fmt: skip


def _by_number(
    draft: Draft, members: tuple[int, ...], by_rank: dict[int, RankPart], numbers: dict[int, IntArray]
) -> tuple[IntArray, str]:
    """Calls by recorded sequence number; equal numbers of one rank by their order."""
    table: dict[tuple[int, int], list[int]] = {}
    for column, rank in enumerate(members):
        count: dict[int, int] = {}
        for row, number in zip(draft.rows[rank].tolist(), numbers[rank].tolist(), strict=True):
            nth = count.get(number, 0)
            count[number] = nth + 1
            table.setdefault((number, nth), [-1] * len(members))[column] = row
    keys = sorted(table)
    calls = np.array([table[key] for key in keys], np.int64).reshape(-1, len(members))
    for key, call in zip(keys, calls.tolist(), strict=True):
        found = {
            rank: by_rank[rank].table.text(int(by_rank[rank].arrivals.operation[row]))
            for rank, row in zip(members, call, strict=True)
            if row >= 0
        }
        kinds = {("one-way" if kind in ONE_WAY else kind) for kind in found.values()}
        if len(kinds) > 1:
            who = ", ".join(f"rank {rank} has {kind}" for rank, kind in sorted(found.items()))
            return calls[:0], f"at sequence number {key[0]} {who}"
    return calls, ""


@dataclass(frozen=True)
class ByEnds:
    """What the ends tell of a group.

    ``unpaired``: ranks that could not be paired with the first one. ``assumed``: ranks that were paired in order
    though other offsets explain their ends as well.
    """

    calls: IntArray
    unpaired: dict[int, Unpaired]
    assumed: tuple[int, ...]


def by_ends(
    draft: Draft,
    members: tuple[int, ...],
    by_rank: dict[int, RankPart],
    offsets: Offsets,
    *,
    together: bool,
    assume: bool = False,
) -> ByEnds:
    """Calls by the alignment of sequences."""
    keys, sized = _Keys(), _sized(draft, by_rank)
    rows = {rank: _ordered(by_rank[rank], draft.rows[rank]) for rank in members}
    ends = {rank: _ends(by_rank[rank], rows[rank], keys, sized=sized) for rank in members}
    call_of = {rank: np.full(len(rows[rank]), -1, np.int64) for rank in members}
    call_of[members[0]][:] = np.arange(len(rows[members[0]]))
    orphans = _Orphans(len(rows[members[0]]))
    unpaired: dict[int, Unpaired] = {}
    assumed: list[int] = []
    for rank in members[1:]:
        near, stray = _between(offsets, members[0], rank)
        pairing = pair_up(
            ends[members[0]],
            ends[rank],
            together=together,
            assume=assume,
            **_clocks(by_rank[members[0]], by_rank[rank]),
            near_ns=near,
            within_ns=NEAR_NS if together else min(max(TIMES * stray, TIGHT_NS), NEAR_NS),
        )
        if isinstance(pairing, Unpaired):
            unpaired[rank] = pairing
            continue
        if pairing.assumed:
            assumed.append(rank)
        call_of[rank][pairing.b] = pairing.a
        alone = np.flatnonzero(call_of[rank] < 0)
        call_of[rank][alone] = orphans.join(ends[rank], alone, pairing.offset_ns)
    calls = np.full((orphans.count, len(members)), -1, np.int64)
    for column, rank in enumerate(members):
        known = call_of[rank] >= 0
        calls[call_of[rank][known], column] = rows[rank][known]
    return ByEnds(calls[(calls >= 0).any(axis=1)], unpaired, tuple(assumed))


class _Orphans:
    """Calls that the first member does not have: later members may have them in common."""

    def __init__(self, first: int) -> None:
        self.count = first  # calls so far
        self._known: dict[
            int, list[tuple[int, int]]
        ] = {}  # content -> (end on the first member's clock, call)

    def join(self, ends: Ends, rows: IntArray, offset: int) -> list[int]:
        """The call of each row: that of an earlier member that ended with it, or one of its own."""
        calls: list[int] = []
        own: list[tuple[int, tuple[int, int]]] = []
        taken: set[int] = set()
        for row in rows.tolist():
            instant, key = int(ends.end_ns[row]) + offset, int(ends.key[row])
            call = self._nearest(self._known.get(key, []), instant, taken)
            if call is None:
                call = self.count
                self.count += 1
                own.append((key, (instant, call)))
            taken.add(call)
            calls.append(call)
        for key, entry in own:
            insort(self._known.setdefault(key, []), entry)
        return calls

    @staticmethod
    def _nearest(known: list[tuple[int, int]], instant: int, taken: set[int]) -> int | None:
        since, until = (bisect_left(known, (instant + side, -1)) for side in (-NEAR_NS, NEAR_NS + 1))
        free = [(abs(end - instant), call) for end, call in known[since:until] if call not in taken]
        return min(free)[1] if free else None
