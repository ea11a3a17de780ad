"""Literal collectives of ranks, as the matching reads them: one line per arrival, times in microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.across.clocks import Alignment, align
from analyzer.across.ends import Ends
from analyzer.across.groups import find_groups
from analyzer.across.parts import Group, RankPart
from analyzer.across.waits import Calls, RankWaits, find_calls, waits_of
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import Arrivals, ArrivalTable, GroupName
from analyzer.reconstruct.work import NO_TIME

US = 1_000


@dataclass(frozen=True)
class At:
    """One collective of one rank."""

    start: float
    end: float
    op: str | None = "all_reduce"
    group: GroupName | None = None
    size: int = -1
    number: int = -1
    source: int = -1
    target: int = -1
    replay: int = -1
    place: int = -1
    window: int = 0
    fused: bool = False
    family: str = "nccl"
    kernel: str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def named(
    name: str | None, *ranks: int, size: int | None = None, description: str | None = None
) -> GroupName:
    """A group that metadata names, with its ranks where given."""
    return GroupName(name, description, ranks or None, size or (len(ranks) or None))


UNNAMED = GroupName(unnamed="nccl")


def part(
    rank: int, rows: Iterable[At], *, anchored: bool = True, shift: float = 0, clock: str | None = None
) -> RankPart:
    """What the matching needs of one rank; all times ``shift`` later."""
    given = sorted(rows, key=lambda row: (row.start, row.end))
    texts: dict[str, int] = {}
    groups: dict[GroupName, int] = {}

    def code(text: str | None) -> int:
        return -1 if text is None else texts.setdefault(text, len(texts))

    def numbers(values: Iterable[int]) -> IntArray:
        return np.array(list(values), np.int64)

    codes = np.array([groups.setdefault(row.group or UNNAMED, len(groups)) for row in given], np.int32)
    table = Arrivals(
        start_ns=numbers(round((row.start + shift) * US) for row in given),
        end_ns=numbers(round((row.end + shift) * US) for row in given),
        row=np.arange(len(given)),
        group=codes,
        operation=np.array([code(row.op) for row in given], np.int32),
        dtype=np.full(len(given), -1, np.int32),
        family=np.array([code(row.family) for row in given], np.int32),
        bytes=numbers(row.size for row in given),
        sequence=numbers(row.number for row in given),
        source=numbers(row.source for row in given),
        target=numbers(row.target for row in given),
        replay=numbers(row.replay for row in given),
        in_replay=numbers(row.place for row in given),
        window=numbers(row.window for row in given),
        launched_ns=np.full(len(given), NO_TIME, np.int64),
        kernel=np.array([code(row.kernel) for row in given], np.int32),
        fused=np.array([row.fused for row in given], bool),
    )
    return RankPart(rank, ArrivalTable(table, tuple(groups), tuple(texts)), anchored, clock)


def ends(times: Sequence[float], keys: Sequence[int] | None = None, *, apart: Sequence[int] = ()) -> Ends:
    """Ends of collectives at these microseconds; ``apart``: positions of those whose ends tell nothing."""
    together = np.ones(len(times), bool)
    together[list(apart)] = False
    key = np.zeros(len(times), np.int64) if keys is None else np.array(keys, np.int64)
    return Ends(key, np.array([round(t * US) for t in times], np.int64), together)


@dataclass(frozen=True)
class Joined:
    """Groups, clocks, calls and waits of literal ranks."""

    parts: list[RankPart]
    groups: list[Group]
    alignment: Alignment
    calls: list[Calls]

    def waits(self, rank: int) -> RankWaits:
        (mine,) = [part for part in self.parts if part.rank == rank]
        return waits_of(mine, self.calls, self.alignment)

    @property
    def only(self) -> Calls:
        """The calls of the only group."""
        (calls,) = self.calls
        return calls


def joined(*parts: RankPart, missing: Sequence[int] = ()) -> Joined:
    """The stages between ranks, one after the other."""
    groups = find_groups(parts)
    alignment = align(parts, groups)
    return Joined(list(parts), groups, alignment, find_calls(parts, groups, alignment, missing))


def calls_of(group: Group) -> list[tuple[int, ...]]:
    """The calls of a group as tuples of positions in its members' arrivals."""
    return [tuple(row) for row in group.calls.tolist()]
