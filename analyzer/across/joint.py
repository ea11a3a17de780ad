"""All ranks together: groups, clocks, calls, and what every arrival waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.across.clocks import Alignment, align
from analyzer.across.groups import find_groups
from analyzer.across.parts import RankPart
from analyzer.across.sequences import Unpaired
from analyzer.across.waits import Calls, RankWaits, find_calls, waits_of


@dataclass(frozen=True)
class Joint:
    """What the ranks of a capture say together; small, whatever the files hold."""

    alignment: Alignment
    calls: tuple[Calls, ...]  # one per group
    waits: dict[int, RankWaits]  # by rank

    def problems(self) -> list[str]:
        """Groups whose calls or members could not be told or had to be assumed, each a sentence."""
        unmatched = [
            f"Collectives of group {group.label} could not be matched: {group.problem}."
            for group in (calls.group for calls in self.calls)
            if group.problem
        ]
        unsure = [
            f"Rank {', '.join(map(str, group.doubtful))} may take part in the collectives of group {group.label}: "
            f"{Unpaired.UNSURE.value}. They are not split."
            for group in (calls.group for calls in self.calls)
            if group.doubtful
        ]
        assumed = [
            f"Group {group.label}: several offsets between the clocks of rank {', '.join(map(str, group.assumed))} "
            f"and rank {group.members[0]} make their collectives end together. The one is taken at which both ranks' "
            "records begin and end together, else the one next to none: an assumption. If it is wrong, times lie a "
            "call off."
            for group in (calls.group for calls in self.calls)
            if group.assumed
        ]
        return unmatched + unsure + assumed

    @property
    def doubted(self) -> set[int]:
        """Ranks of which it cannot be told whether they share collectives with others."""
        return {rank for calls in self.calls for rank in calls.group.doubtful}


def join_ranks(parts: Sequence[RankPart], missing_ranks: Sequence[int]) -> Joint:
    """Match the ranks' collectives, put the ranks on one clock, and say who waited for whom."""
    groups = find_groups(parts)
    alignment = align(parts, groups)
    calls = tuple(find_calls(parts, groups, alignment, missing_ranks))
    return Joint(alignment, calls, {part.rank: waits_of(part, calls, alignment) for part in parts})
