"""Process groups over all ranks, and the calls that each of them made together.

A *call* is one collective of one group: a row of arrivals, one per member. What has no partner on a member
keeps its row with -1 there; nothing after it shifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analyzer.across.sequences import NEAR_NS, Ends, pair_up
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import Arrivals, ArrivalTable, GroupName

SYNCHRONIZING = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange", "barrier", "dispatch", "combine"}
)
"""Operations that no rank can leave before the last one has come."""
ONE_WAY = frozenset({"send", "recv"})
ENDS_APART = frozenset({"broadcast", "reduce", "send"})
"""Operations whose ends need not lie together: some ranks may leave early."""
_KIND_OF = {
    "send": "one-way", "recv": "one-way",
    "exchange": "send_recv", "all_to_all": "send_recv",
}  # fmt: skip
"""Spellings of what is one kernel (NCCL makes an all-to-all of sends and receives): not every rank tells which."""
SAME_SIZE = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
"""Operations that move the same number of bytes on every rank."""


@dataclass(frozen=True)
class RankPart:
    """What the matching needs of one rank; times on its own corrected clock, relative to the common zero."""

    rank: int
    table: ArrivalTable
    anchored: bool  # its clock is a wall clock: the file knows the epoch
    clock: str | None = None  # host or file whose clock all its times were taken from; None: not known

    @property
    def arrivals(self) -> Arrivals:
        """The rank's collectives."""
        return self.table.arrivals


@dataclass(frozen=True)
class Group:
    """One process group with its calls.

    ``expected``: its ranks as the capture says them, None where nothing does. ``calls``: (k, m) positions
    in each member's arrivals, -1 where a member has none.
    """

    label: str
    description: str | None
    expected: tuple[int, ...] | None
    size: int | None
    members: tuple[int, ...]
    calls: IntArray
    numbered: bool  # matched by recorded sequence numbers
    problem: str = ""

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks of the group of which nothing was captured."""
        return tuple(sorted(set(self.expected or ()) - set(self.members)))

    @property
    def whole(self) -> bool:
        """Whether all ranks of the group are here, as far as the capture can tell."""
        return not self.missing and (self.size is None or self.size == len(self.members))


@dataclass
class _Draft:
    """One group while its members are collected: rank -> positions in its arrivals."""

    label: str
    description: str | None
    expected: tuple[int, ...] | None
    size: int | None
    rows: dict[int, IntArray] = field(default_factory=dict)


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


Offsets = dict[tuple[int, int], tuple[int, int]]
"""By pair of ranks: what must be added to the second one's ends to meet the first one's, and how far they stray."""
TIGHT_NS = 5_000
"""Ends of one collective of ranks whose clocks are known meet at least that well, or this times as well ..."""
TIMES = 3
"""... as those of the groups that the clocks are known by."""


def find_groups(parts: Sequence[RankPart]) -> list[Group]:
    """All groups with their calls: those that the capture names, then those that ends that meet tell."""
    by_rank = {part.rank: part for part in parts}
    offsets: Offsets = {}
    groups: list[Group] = []
    for draft in _named(parts):
        groups.append(_matched(draft, by_rank, offsets))
        _learn(groups[-1], by_rank, offsets)
    found: list[Group] = []
    for draft in _unnamed(parts):
        for group in _split_by_coherence(draft, by_rank, offsets):
            found.append(group)
            _learn(group, by_rank, offsets)
    return _labelled(groups + _merged(found))


def _labelled(groups: Sequence[Group]) -> list[Group]:
    """Groups with labels of their own: names are counters of each process, and two may share one."""
    count = Counter(group.label for group in groups)
    return [
        replace(group, label=f"{group.label} of ranks {_ranks(group.members)}")
        if count[group.label] > 1
        else group
        for group in groups
    ]


def _ranks(members: tuple[int, ...]) -> str:
    """``0-3`` or ``0, 2``; of many the first and how many more."""
    if len(members) > 2 and members == tuple(range(members[0], members[-1] + 1)):
        return f"{members[0]}-{members[-1]}"
    shown = ", ".join(map(str, members[:4]))
    return shown if len(members) <= 4 else f"{shown} and {len(members) - 4} more"


def _learn(group: Group, by_rank: dict[int, RankPart], offsets: Offsets) -> None:
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
        difference = np.sort(
            by_rank[first].arrivals.end_ns[both[tells, 0]] - by_rank[rank].arrivals.end_ns[both[tells, 1]]
        )
        offset = int(difference[(len(difference) - 1) // 2])
        stray = int(np.quantile(np.abs(difference - offset), 0.95))
        offsets[first, rank], offsets[rank, first] = (offset, stray), (-offset, stray)


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


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Unnamed groups of one label and the same ranks as one, in the order of their first call."""
    kept: dict[tuple[str, tuple[int, ...]], Group] = {}
    for group in groups:
        key = group.label, group.members
        held = kept.get(key)
        if held is not None:
            calls = np.concatenate((held.calls, group.calls))
            first = np.where(calls >= 0, calls, np.iinfo(np.int64).max).min(axis=1)
            group = replace(held, calls=calls[np.argsort(first, kind="stable")])
        kept[key] = group
    return list(kept.values())


def _named(parts: Sequence[RankPart]) -> list[_Draft]:
    """Groups that metadata names: by their ranks where those are recorded, else by name and size."""
    drafts: dict[tuple[object, ...], _Draft] = {}
    alike = _named_alike(parts)
    for part in parts:
        seen: dict[tuple[object, ...], int] = {}
        for code, name in enumerate(part.table.groups):
            if name.unnamed:
                continue
            rows = np.flatnonzero(part.arrivals.group == code)
            base = _base_key(name, alike, seen)
            for key, label, pair, mine in _keys_of(part, name, rows, base):
                ranks, size = (pair, 2) if pair is not None else (name.ranks, name.size)
                draft = drafts.setdefault(key, _Draft(label, name.description, ranks, size))
                held = draft.rows.get(part.rank)
                draft.rows[part.rank] = mine if held is None else np.sort(np.concatenate((held, mine)))
    return [drafts[key] for key in sorted(drafts, key=str)]


def _named_alike(parts: Sequence[RankPart]) -> set[tuple[int, ...]]:
    """The sets of ranks whose groups bear the same names on all of them: some rank knows every name."""
    names: dict[tuple[int, ...], list[set[str | None]]] = {}
    for part in parts:
        mine: dict[tuple[int, ...], set[str | None]] = {}
        for name in part.table.groups:
            if not name.unnamed and name.ranks is not None:
                mine.setdefault(name.ranks, set()).add(name.name)
        for ranks, found in mine.items():
            names.setdefault(ranks, []).append(found)
    return {ranks for ranks, found in names.items() if set().union(*found) in found}


def _base_key(
    name: GroupName, alike: set[tuple[int, ...]], seen: dict[tuple[object, ...], int]
) -> tuple[object, ...]:
    """What a group is known by on all ranks.

    Names may be counters of each process, so ranks decide where they are recorded; of several groups over the
    same ranks their names tell them apart where all ranks have the same, else the order of first use.
    """
    if name.ranks is None:
        return ("name", name.name or name.description or "?", name.size)
    if name.ranks in alike:
        return ("ranks", name.ranks, name.name)
    ordinal = seen.setdefault((name.ranks, name.name), sum(key[0] == name.ranks for key in seen))
    return ("ranks", name.ranks, ordinal)


def _keys_of(
    part: RankPart, name: GroupName, rows: IntArray, base: tuple[object, ...]
) -> Iterable[tuple[tuple[object, ...], str, tuple[int, int] | None, IntArray]]:
    """Key, label, pair of ranks and rows of the groups that one name stands for: sends and receives meet in pairs."""
    arrivals = part.arrivals.take(rows)
    operation = np.array([part.table.text(int(code)) or "" for code in arrivals.operation], object)
    # torch writes only the other end: a send has a target, a recv a source
    sources = np.where((operation == "send") & (arrivals.source < 0), part.rank, arrivals.source).astype(
        np.int64
    )
    targets = np.where((operation == "recv") & (arrivals.target < 0), part.rank, arrivals.target).astype(
        np.int64
    )
    one_way = np.isin(operation.astype(str), list(ONE_WAY)) & (sources >= 0) & (targets >= 0)
    label = name.name or name.description or "?"
    for source, target in sorted(set(zip(sources[one_way].tolist(), targets[one_way].tolist(), strict=True))):
        mine = rows[one_way & (sources == source) & (targets == target)]
        yield (*base, "pair", source, target), f"{label}: rank {source} to {target}", (source, target), mine
    rest = rows[~one_way]
    if len(rest):
        yield base, label, None, rest


def _unnamed(parts: Sequence[RankPart]) -> list[_Draft]:
    """Groups that nothing names. Inside replays each place of a collective is one of its own at first."""
    drafts: dict[tuple[str, int], _Draft] = {}
    for part in parts:
        for code, name in enumerate(part.table.groups):
            if not name.unnamed:
                continue
            rows = np.flatnonzero(part.arrivals.group == code)
            places = part.arrivals.in_replay[rows]
            for place in np.unique(places).tolist():
                draft = drafts.setdefault((name.unnamed, place), _Draft(name.unnamed, None, None, None))
                draft.rows[part.rank] = rows[places == place]
    return [drafts[key] for key in sorted(drafts)]


def _ends(part: RankPart, rows: IntArray, keys: _Keys, *, sized: bool) -> Ends:
    arrivals = part.arrivals
    operations = [part.table.text(int(code)) or "?" for code in arrivals.operation[rows]]
    together = np.array([operation not in ENDS_APART for operation in operations], bool)
    return Ends(keys.of(part, rows, sized=sized), arrivals.end_ns[rows], together)


def _ordered(part: RankPart, rows: IntArray) -> IntArray:
    """Rows in the order of their ends."""
    return rows[np.argsort(part.arrivals.end_ns[rows], kind="stable")]


def _sized(draft: _Draft, by_rank: dict[int, RankPart]) -> bool:
    """Whether sizes are recorded for every call on every rank."""
    return all(bool((by_rank[rank].arrivals.bytes[rows] >= 0).all()) for rank, rows in draft.rows.items())


def _matched(draft: _Draft, by_rank: dict[int, RankPart], offsets: Offsets) -> Group:
    """The calls of a group whose members the capture names."""
    members = tuple(sorted(draft.rows))
    numbers = {rank: by_rank[rank].arrivals.sequence[rows] for rank, rows in draft.rows.items()}
    if all(bool((sequence >= 0).all()) for sequence in numbers.values()):
        calls, problem = _by_number(draft, members, by_rank, numbers)
        numbered = True
    else:
        calls, problem, strangers = _by_ends(draft, members, by_rank, offsets, together=True)
        if strangers and not problem:
            who = ", ".join(str(rank) for rank in strangers)
            problem = (
                f"no offset between their clocks makes the collectives of rank {who} and of rank {members[0]} end "
                "together, or several do equally well"
            )
        numbered = False
    return Group(
        draft.label, draft.description, draft.expected, draft.size, members, calls, numbered, problem
    )


def _by_number(
    draft: _Draft, members: tuple[int, ...], by_rank: dict[int, RankPart], numbers: dict[int, IntArray]
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


def _by_ends(
    draft: _Draft,
    members: tuple[int, ...],
    by_rank: dict[int, RankPart],
    offsets: Offsets,
    *,
    together: bool,
) -> tuple[IntArray, str, tuple[int, ...]]:
    """Calls by the alignment of sequences; the ranks that fit to none are named."""
    keys, sized = _Keys(), _sized(draft, by_rank)
    rows = {rank: _ordered(by_rank[rank], draft.rows[rank]) for rank in members}
    ends = {rank: _ends(by_rank[rank], rows[rank], keys, sized=sized) for rank in members}
    call_of = {rank: np.full(len(rows[rank]), -1, np.int64) for rank in members}
    found: dict[int, int] = {members[0]: 0}
    call_of[members[0]][:] = np.arange(len(rows[members[0]]))
    count = len(rows[members[0]])
    strangers = []
    for rank in members[1:]:
        anchored = by_rank[rank].anchored and by_rank[members[0]].anchored
        near, stray = _between(offsets, members[0], rank)
        pairing = pair_up(
            ends[members[0]],
            ends[rank],
            anchored=anchored,
            together=together,
            one_clock=by_rank[rank].clock is not None and by_rank[rank].clock == by_rank[members[0]].clock,
            near_ns=near,
            within_ns=NEAR_NS if together else min(max(TIMES * stray, TIGHT_NS), NEAR_NS),
        )
        if pairing is None:
            strangers.append(rank)
            continue
        call_of[rank][pairing.b] = pairing.a
        found[rank] = pairing.offset_ns
        count = _add_orphans(rank, members, ends, call_of, found, count)
    calls = np.full((count, len(members)), -1, np.int64)
    for column, rank in enumerate(members):
        known = call_of[rank] >= 0
        calls[call_of[rank][known], column] = rows[rank][known]
    return calls[(calls >= 0).any(axis=1)], "", tuple(strangers)


def _add_orphans(
    rank: int,
    members: tuple[int, ...],
    ends: dict[int, Ends],
    call_of: dict[int, IntArray],
    offsets: dict[int, int],
    count: int,
) -> int:
    """Give calls of their own to what the first member does not have, shared with earlier members."""
    orphans = np.flatnonzero(call_of[rank] < 0)
    taken: set[int] = set()
    for row in orphans.tolist():
        instant, key = int(ends[rank].end_ns[row]) + offsets[rank], int(ends[rank].key[row])
        nearest: tuple[int, int] | None = None  # distance, call
        for other in members[1:]:
            if other == rank or other not in offsets:
                continue
            free = (call_of[other] >= len(ends[members[0]])) & (ends[other].key == key)
            for at in np.flatnonzero(free & ~np.isin(call_of[other], list(taken))).tolist():
                distance = abs(int(ends[other].end_ns[at]) + offsets[other] - instant)
                nearest = min(nearest or (NEAR_NS, count), (distance, int(call_of[other][at])))
        call_of[rank][row] = count if nearest is None else nearest[1]
        taken.add(int(call_of[rank][row]))
        count += int(call_of[rank][row] == count)
    return count


def _split_by_coherence(draft: _Draft, by_rank: dict[int, RankPart], offsets: Offsets) -> list[Group]:
    """Without metadata: ranks whose collectives end together are one group, found one group after another."""
    left = tuple(sorted(draft.rows))
    groups: list[Group] = []
    while left:
        part = _Draft(draft.label, None, None, None, {rank: draft.rows[rank] for rank in left})
        calls, _, strangers = _by_ends(part, left, by_rank, offsets, together=len(by_rank) == 2)
        members = tuple(rank for rank in left if rank not in strangers)
        keep = [left.index(rank) for rank in members]
        calls = calls[:, keep]
        calls = calls[(calls >= 0).any(axis=1)]
        groups.append(Group(draft.label, None, None, None, members, calls, False))
        left = strangers
    return groups
