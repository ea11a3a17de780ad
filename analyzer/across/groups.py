"""Process groups over all ranks, and the calls that each of them made together.

A *call* is one collective of one group: a row of arrivals, one per member. What has no partner on a member
keeps its row with -1 there; nothing after it shifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from analyzer.across.matching import Offsets, by_ends, learn, matched, settle
from analyzer.across.parts import ONE_WAY, Draft, Group, RankPart
from analyzer.across.sequences import Unpaired
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import GroupName


def find_groups(parts: Sequence[RankPart]) -> list[Group]:
    """All groups with their calls: those that the capture names, then those that ends that meet tell."""
    by_rank = {part.rank: part for part in parts}
    offsets: Offsets = {}
    named, unnamed = _named(parts), _unnamed(parts)
    found: dict[int, list[Group]] = {}
    pending = list(range(len(named) + len(unnamed)))
    assume = False
    while pending:
        known = len(offsets)
        for at in pending:
            if at < len(named):
                found[at] = [matched(named[at], by_rank, offsets, assume=assume)]
            else:
                found[at] = _split_by_coherence(unnamed[at - len(named)], by_rank, offsets, assume=assume)
            for group in found[at]:
                learn(group, by_rank, offsets)
        # Once more with what the others told of the clocks, or they together.
        pending = [at for at in pending if any(group.problem or group.doubtful for group in found[at])]
        if len(offsets) == known:
            settle([(named + unnamed)[at] for at in pending], by_rank, offsets)
        if len(offsets) == known:
            if assume:
                break
            assume = True  # nothing else tells
    groups = [group for at in range(len(named)) for group in found[at]]
    return _labelled(groups + _merged([group for at in sorted(found)[len(named) :] for group in found[at]]))


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


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Unnamed groups of one label and the same ranks as one, in the order of their first call."""
    kept: dict[tuple[str, tuple[int, ...]], Group] = {}
    for group in groups:
        key = group.label, group.members
        held = kept.get(key)
        if held is not None:
            calls = np.concatenate((held.calls, group.calls))
            first = np.where(calls >= 0, calls, np.iinfo(np.int64).max).min(axis=1)
            group = replace(
                held,
                calls=calls[np.argsort(first, kind="stable")],
                doubtful=tuple(sorted({*held.doubtful, *group.doubtful})),
                assumed=tuple(sorted({*held.assumed, *group.assumed})),
            )
        kept[key] = group
    return list(kept.values())


def _named(parts: Sequence[RankPart]) -> list[Draft]:
    """Groups that metadata names: by their ranks where those are recorded, else by name and size."""
    drafts: dict[tuple[object, ...], Draft] = {}
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
                draft = drafts.setdefault(key, Draft(label, name.description, ranks, size))
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


def _unnamed(parts: Sequence[RankPart]) -> list[Draft]:
    """Groups that nothing names. Inside replays each place of a collective is one of its own at first."""
    drafts: dict[tuple[str, int], Draft] = {}
    for part in parts:
        for code, name in enumerate(part.table.groups):
            if not name.unnamed:
                continue
            rows = np.flatnonzero(part.arrivals.group == code)
            places = part.arrivals.in_replay[rows]
            for place in np.unique(places).tolist():
                draft = drafts.setdefault((name.unnamed, place), Draft(name.unnamed, None, None, None))
                draft.rows[part.rank] = rows[places == place]
    return [drafts[key] for key in sorted(drafts)]


def _split_by_coherence(
    draft: Draft, by_rank: dict[int, RankPart], offsets: Offsets, *, assume: bool
) -> list[Group]:
    """Without metadata: ranks whose collectives end together are one group, found one group after another.

    Ranks of which several offsets make them end with a group's may belong to it: the group doubts them, and
    theirs doubts its ranks.
    """
    left = tuple(sorted(draft.rows))
    groups: list[Group] = []
    doubts: set[tuple[int, int]] = set()
    while left:
        part = Draft(draft.label, None, None, None, {rank: draft.rows[rank] for rank in left})
        found = by_ends(part, left, by_rank, offsets, together=len(by_rank) == 2, assume=assume)
        members = tuple(rank for rank in left if rank not in found.unpaired)
        keep = [left.index(rank) for rank in members]
        calls = found.calls[:, keep]
        calls = calls[(calls >= 0).any(axis=1)]
        groups.append(Group(draft.label, None, None, None, members, calls, False, assumed=found.assumed))
        for rank, why in found.unpaired.items():
            if why is Unpaired.UNSURE:
                doubts |= {(member, rank) for member in members} | {(rank, member) for member in members}
        left = tuple(found.unpaired)
    return [_with_doubts(group, doubts) for group in groups]


def _with_doubts(group: Group, doubts: set[tuple[int, int]]) -> Group:
    """The group with the ranks outside it that any of its members may be together with."""
    others = {other for member, other in doubts if member in group.members} - set(group.members)
    return replace(group, doubtful=tuple(sorted(others)))
