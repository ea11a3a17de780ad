"""What the matching works on: the collectives of each rank, and the groups that they form."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import Arrivals, ArrivalTable

SYNCHRONIZING = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange", "barrier", "dispatch", "combine"}
)
"""Operations that no rank can leave before the last one has come."""
ONE_WAY = frozenset({"send", "recv"})
ENDS_APART = frozenset({"broadcast", "reduce", "send"})
"""Operations whose ends need not lie together: some ranks may leave early."""


@dataclass(frozen=True)
class RankPart:
    """What the matching needs of one rank; times on its own corrected clock, relative to the common zero."""

    rank: int
    table: ArrivalTable
    anchored: bool  # its clock is a wall clock: the file knows the epoch
    clock: str | None = None  # host or file whose clock all its times were taken from; None: not known
    bound_ns: tuple[int, int] | None = None
    """What must be added to its wall clock to get rank 0's lies between these for certain; None: not known."""

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
    doubtful: tuple[int, ...] = ()  # ranks of which it cannot be told whether they take part
    assumed: tuple[
        int, ...
    ] = ()  # ranks of which it is an assumption which of their calls are the first one's

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks of the group of which nothing was captured."""
        return tuple(sorted(set(self.expected or ()) - set(self.members)))

    @property
    def whole(self) -> bool:
        """Whether all ranks of the group are here, as far as the capture can tell."""
        return not self.missing and (self.size is None or self.size == len(self.members))


@dataclass
class Draft:
    """One group while its members are collected: rank -> positions in its arrivals."""

    label: str
    description: str | None
    expected: tuple[int, ...] | None
    size: int | None
    rows: dict[int, IntArray] = field(default_factory=dict)
