"""Collectives that could not be matched but end together on several ranks: taken, as an inference, to be one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

TOGETHER_NS = 2_000
"""Ends of one call lie so close on one clock, beyond what the clocks' comparison leaves open."""
SHARE = 0.5
"""At least this share of a rank's calls of one name must find partners, else they met by chance."""


@dataclass(frozen=True)
class Unmatched:
    """One rank's part of a call that nobody could match; ns on the reference clock."""

    rank: int
    event: int  # at which it starts
    name: str
    start_ns: int
    end_ns: int
    nbytes: int


def likely_meetings(found: Iterable[Unmatched], uncertainty_ns: int) -> list[list[Unmatched]]:
    """Calls of one name and size on at least two ranks that end together and overlap, each member once."""
    by_name: defaultdict[tuple[str, int], list[Unmatched]] = defaultdict(list)
    for one in found:
        by_name[one.name, one.nbytes].append(one)
    meetings: list[list[Unmatched]] = []
    for calls in by_name.values():
        meetings += _trusted(calls, list(_clusters(calls, TOGETHER_NS + uncertainty_ns)))
    return sorted(meetings, key=lambda members: members[0].end_ns)


def _clusters(calls: Sequence[Unmatched], apart_ns: int) -> Iterator[list[Unmatched]]:
    ordered = sorted(calls, key=lambda one: (one.end_ns, one.rank, one.event))
    cluster = ordered[:1]
    for before, after in pairwise(ordered):
        if after.end_ns - before.end_ns > apart_ns:
            yield cluster
            cluster = []
        cluster.append(after)
    if cluster:
        yield cluster


def _trusted(calls: Sequence[Unmatched], clusters: Sequence[list[Unmatched]]) -> list[list[Unmatched]]:
    meetings = [members for members in clusters if _is_meeting(members)]
    all_of: defaultdict[int, int] = defaultdict(int)
    met: defaultdict[int, int] = defaultdict(int)
    for one in calls:
        all_of[one.rank] += 1
    for one in (one for members in meetings for one in members):
        met[one.rank] += 1
    return [
        members for members in meetings if all(met[one.rank] >= SHARE * all_of[one.rank] for one in members)
    ]


def _is_meeting(members: Sequence[Unmatched]) -> bool:
    ranks = {one.rank for one in members}
    overlap = max(one.start_ns for one in members) < min(one.end_ns for one in members)
    return 1 < len(ranks) == len(members) and overlap
