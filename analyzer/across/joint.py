"""All ranks together: groups, clocks, calls, and what every arrival waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.across.clocks import Alignment, align
from analyzer.across.groups import find_groups
from analyzer.across.parts import RankPart
from analyzer.across.waits import Calls, RankWaits, find_calls, waits_of


@dataclass(frozen=True)
class Joint:
    """What the ranks of a capture say together; small, whatever the files hold."""

    alignment: Alignment
    calls: tuple[Calls, ...]  # one per group
    waits: dict[int, RankWaits]  # by rank

    def problems(self) -> list[str]:
        """Groups whose calls could not be matched, each a sentence."""
        return [
            f"Collectives of group {calls.group.label} could not be matched: {calls.group.problem}."
            for calls in self.calls
            if calls.group.problem
        ]


def join_ranks(parts: Sequence[RankPart], missing_ranks: Sequence[int]) -> Joint:
    """Match the ranks' collectives, put the ranks on one clock, and say who waited for whom."""
    groups = find_groups(parts)
    alignment = align(parts, groups)
    calls = tuple(find_calls(parts, groups, alignment, missing_ranks))
    return Joint(alignment, calls, {part.rank: waits_of(part, calls, alignment) for part in parts})
