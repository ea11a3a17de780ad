"""Which windows of the ranks are one step, and the global window of each (attribution contract, section 1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.across.clocks import ClockMap
from analyzer.across.parts import Group, RankPart
from analyzer.reconstruct.windows import Window

_NUMBER = re.compile(r"#(\d+)$")
"""``ProfilerStep#12``: the same number is the same step on every rank."""


@dataclass(frozen=True)
class GlobalWindow:
    """One step of all ranks on the reference clock; ``members``: position of its window by rank.

    ``last_rank`` completes last: the global path ends there.
    """

    step: str
    members: dict[int, int]
    start_ns: int
    end_ns: int
    last_rank: int

    @property
    def empty(self) -> bool:
        """A step whose work had all ended before that of the step before."""
        return self.end_ns == self.start_ns


def match_steps(
    parts: Mapping[int, RankPart], windows: Mapping[int, Sequence[Window]], groups: Sequence[Group]
) -> list[dict[int, int]]:
    """Windows of one step, by rank, in order; only steps that every rank has."""
    ranks = sorted(windows)
    numbers = {rank: _numbers(windows[rank]) for rank in ranks}
    if all(found is not None for found in numbers.values()):
        known = [found for found in numbers.values() if found is not None]
        common = sorted(set(known[0]).intersection(*known[1:]))
        return [{rank: (numbers[rank] or {})[number] for rank in ranks} for number in common]
    first = ranks[0]
    maps = {first: {at: at for at in range(len(windows[first]))}}
    frontier = [first]
    while frontier:
        found: dict[int, dict[int, int]] = {}
        for known_rank in frontier:
            for rank in ranks:
                if rank not in maps and rank not in found:
                    votes = _votes(parts, groups, known_rank, rank)
                    if votes:
                        onto = {there: at for at, there in maps[known_rank].items()}
                        found[rank] = _by_votes(votes, onto)
        maps.update(found)
        frontier = sorted(found)
    if set(maps) != set(ranks):
        return []
    inverse = {rank: {step: at for at, step in of.items()} for rank, of in maps.items()}
    steps = sorted(set(inverse[first]).intersection(*(inverse[rank] for rank in ranks)))
    return _ascending([{rank: inverse[rank][step] for rank in ranks} for step in steps])


def _numbers(windows: Sequence[Window]) -> dict[int, int] | None:
    """Position by step number, None where steps carry none or one twice."""
    found: dict[int, int] = {}
    for at, window in enumerate(windows):
        match = _NUMBER.search(window.step)
        if match is None or int(match.group(1)) in found:
            return None
        found[int(match.group(1))] = at
    return found


def _votes(
    parts: Mapping[int, RankPart], groups: Sequence[Group], a: int, b: int
) -> Counter[tuple[int, int]]:
    """How many common calls two ranks' windows have, by their positions."""
    votes: Counter[tuple[int, int]] = Counter()
    for group in groups:
        if a not in group.members or b not in group.members:
            continue
        columns = group.calls[:, [group.members.index(a), group.members.index(b)]]
        columns = columns[(columns >= 0).all(axis=1)]
        mine = parts[a].arrivals.window[columns[:, 0]].tolist()
        other = parts[b].arrivals.window[columns[:, 1]].tolist()
        votes.update((x, y) for x, y in zip(mine, other, strict=True) if x >= 0 and y >= 0)
    return votes


def _by_votes(votes: Counter[tuple[int, int]], onto: Mapping[int, int]) -> dict[int, int]:
    """Window of the new rank -> step of the known one, each at most once, by most votes."""
    result: dict[int, int] = {}
    taken: set[int] = set()
    steps = {at: step for step, at in onto.items()}
    for (mine, other), _ in sorted(votes.items(), key=lambda item: (-item[1], item[0])):
        step = steps.get(mine)
        if step is None or other in result or step in taken:
            continue
        result[other] = step
        taken.add(step)
    return result


def _ascending(steps: list[dict[int, int]]) -> list[dict[int, int]]:
    """Steps in whose order no rank goes back."""
    kept: list[dict[int, int]] = []
    for step in steps:
        if not kept or all(step[rank] > kept[-1][rank] for rank in step):
            kept.append(step)
    return kept


def global_windows(
    steps: Sequence[dict[int, int]],
    windows: Mapping[int, Sequence[Window]],
    clocks: Mapping[int, ClockMap],
    last_work_ns: Mapping[int, Sequence[tuple[int, int]]],
) -> list[GlobalWindow]:
    """From the last completion of the step before, anywhere, to that of this one.

    The first begins at the earliest host start. A rank whose first window this is has no completion before. At the
    host boundary every one begins at the earliest host start, but not before the step before has ended.
    ``last_work_ns``: by rank and window, start and launch of the work that ends it; of ranks that complete
    together the one whose work comes last in the total order of events ends the step.
    """
    starts, ends = (
        {
            rank: clocks[rank].to_reference(np.array([getattr(w, name) for w in of], np.int64)).tolist()
            for rank, of in windows.items()
        }
        for name in ("start_ns", "end_ns")
    )

    def order(rank: int, at: int) -> list[int]:
        moved: list[int] = clocks[rank].to_reference(np.array(last_work_ns[rank][at], np.int64)).tolist()
        return [ends[rank][at], *moved, rank]

    result: list[GlobalWindow] = []
    for step in steps:
        begun = [starts[rank][at] for rank, at in step.items() if at > 0 and windows[rank][at].thread < 0]
        start = max(begun) if begun else min(starts[rank][at] for rank, at in step.items())
        if result:
            start = max(start, result[-1].end_ns)
        busy = {rank: at for rank, at in step.items() if not windows[rank][at].empty}
        last = max(busy, key=lambda rank: order(rank, step[rank]), default=min(step))
        end = max(start, ends[last][step[last]]) if busy else start
        name = windows[min(step)][step[min(step)]].step
        result.append(GlobalWindow(name, dict(step), start, end, last))
    return result
