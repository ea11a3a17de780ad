"""Waiting and transfer in every collective: who came last, and who waited for it how long.

With A the latest arrival, ``[start_r, A)`` is waiting and ``[A, end_r)`` transfer. Nothing is split where a
rank is missing, a record is, or the operation lets ranks leave before all have come (attribution contract,
section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.across.clocks import Alignment
from analyzer.across.parts import SYNCHRONIZING, Group, RankPart
from analyzer.intervals import Intervals, union
from analyzer.model import IntArray
from analyzer.reconstruct.work import NO_TIME

BoolArray = npt.NDArray[np.bool_]

ALONE = "only one rank of the group is in the capture"
MISSING_RANK = "no file of a rank of the group was given"
MISSING_RECORD = "a rank has no record of the call"
UNSURE_RANKS = "it cannot be told which ranks take part"
UNMATCHED = "the ranks' calls could not be matched"
UNALIGNED = "the ranks' clocks could not be compared"
COMPUTES = "the kernel also computes"
ONE_WAY_CALL = "ranks may leave before all have come: sender, root, or an operation that is not known"
LEFT_EARLY = "ranks leave it before all have come, so it does not synchronize here"


@dataclass(frozen=True)
class Calls:
    """The calls of one group with every member's arrival and end on the reference clock.

    (k, m) columns by member: ``start_ns``, ``end_ns`` (NO_TIME where a member has no record). (k,):
    ``latest_ns`` arrival of the last *observed* rank, ``late`` its column (the highest of several),
    ``margin_ns`` how much earlier the next came, ``split`` whether waiting and transfer can be told apart,
    ``why`` reason where not.
    """

    group: Group
    operation: tuple[str, ...]
    start_ns: IntArray
    end_ns: IntArray
    latest_ns: IntArray
    late: IntArray
    margin_ns: IntArray
    split: BoolArray
    why: tuple[str, ...]
    uncertainty_ns: int

    def __len__(self) -> int:
        return len(self.latest_ns)

    @property
    def present(self) -> BoolArray:
        """(k, m) whether the member recorded the call."""
        return np.asarray(self.start_ns != NO_TIME, bool)

    @property
    def wait_ns(self) -> IntArray:
        """(k, m) from each member's arrival to the latest, at most to its own end; 0 without a record."""
        until = np.minimum(self.latest_ns[:, None], self.end_ns)
        return np.where(self.present, np.maximum(until - self.start_ns, 0), 0)

    @property
    def transfer_ns(self) -> IntArray:
        """(k, m) from the latest arrival to each member's end; 0 without a record."""
        begin = np.maximum(self.latest_ns[:, None], self.start_ns)
        return np.where(self.present, np.maximum(self.end_ns - begin, 0), 0)

    def others_ns(self, column: int) -> IntArray:
        """(k,) median (the lower) of the arrivals of all members but one."""
        others = np.sort(np.delete(self.start_ns, column, axis=1), axis=1)
        middle: IntArray = others[:, (others.shape[1] - 1) // 2]
        return middle


@dataclass(frozen=True)
class RankWaits:
    """What the arrivals of one rank waited for, (n,) columns beside its ``Arrivals``.

    ``until_ns``: latest arrival on this rank's own clock, NO_TIME where nothing is split; ``late_rank``
    and ``late_arrival``: the rank that came last and the position in its arrivals, -1 none; ``certain``: the
    wait is longer than the clocks' uncertainty.
    """

    until_ns: IntArray
    late_rank: IntArray
    late_arrival: IntArray
    certain: BoolArray
    group: IntArray  # position among the groups, -1 none
    call: IntArray  # position among the group's calls, -1 none

    @property
    def split(self) -> BoolArray:
        """(n,) whether waiting and transfer can be told apart."""
        return np.asarray(self.until_ns != NO_TIME, bool)


@dataclass(frozen=True)
class Lateness:
    """Calls in which one rank made the others wait, (n,) columns in time order, on the reference clock."""

    late_rank: IntArray
    since_ns: IntArray  # median (the lower) of the others' arrivals
    until_ns: IntArray  # its own arrival


def lateness(calls: Sequence[Calls]) -> Lateness:
    """All calls in which a rank came later than the median of the others by more than the uncertainty.

    A rank counts that came last, or within the uncertainty of the last: then several of one call do.
    """
    columns = []
    for joint in calls:
        rows = np.flatnonzero(joint.split)
        unsure = max(joint.uncertainty_ns, 1)
        for column, rank in enumerate(joint.group.members if len(rows) else ()):
            start, since = joint.start_ns[rows, column], joint.others_ns(column)[rows]
            late = (joint.latest_ns[rows] - start < unsure) & (start - since >= unsure)
            columns.append(np.stack((np.full(int(late.sum()), rank), since[late], start[late])))
    table = np.concatenate([np.empty((3, 0), np.int64), *columns], axis=1)
    table = table[:, np.lexsort((table[0], table[2]))]
    return Lateness(table[0], table[1], table[2])


def undecided_spans(calls: Sequence[Calls]) -> Intervals:
    """When others may have waited in calls of which the clocks do not tell that anybody came late, as a set.

    From the median of the other arrivals to the last one and the clocks' uncertainty.
    """
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for joint in calls:
        for column in range(len(joint.group.members)):
            rows = np.flatnonzero(joint.split & (joint.late == column))
            if len(rows):
                since = joint.others_ns(column)[rows]
                open_ = joint.latest_ns[rows] - since < max(joint.uncertainty_ns, 1)
                starts.append(since[open_])
                ends.append(joint.latest_ns[rows][open_] + joint.uncertainty_ns)
    return union(np.concatenate(starts), np.concatenate(ends))


def unsplit_spans(calls: Sequence[Calls]) -> Intervals:
    """When any call ran whose waiting could not be told apart, on the reference clock, as a set."""
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for joint in calls:
        rows = np.flatnonzero(~joint.split & joint.present.any(axis=1))
        present = joint.present[rows]
        starts.append(np.where(present, joint.start_ns[rows], np.iinfo(np.int64).max).min(axis=1))
        ends.append(joint.end_ns[rows].max(axis=1))
    return union(np.concatenate(starts), np.concatenate(ends))


def find_calls(
    parts: Sequence[RankPart], groups: Sequence[Group], alignment: Alignment, missing_ranks: Sequence[int]
) -> list[Calls]:
    """Every group's calls on the reference clock."""
    by_rank = {part.rank: part for part in parts}
    return [_calls(group, by_rank, alignment, bool(missing_ranks)) for group in groups]


def _calls(group: Group, by_rank: Mapping[int, RankPart], alignment: Alignment, ranks_missing: bool) -> Calls:
    shape = group.calls.shape
    start, end = np.full(shape, NO_TIME, np.int64), np.full(shape, NO_TIME, np.int64)
    fused = np.zeros(len(group.calls), bool)
    kinds: list[set[str]] = [set() for _ in range(len(group.calls))]
    for column, rank in enumerate(group.members):
        part, rows = by_rank[rank], group.calls[:, column]
        has = np.flatnonzero(rows >= 0)
        arrivals = part.arrivals.take(rows[has])
        clock = alignment.maps.get(rank)
        start[has, column] = arrivals.start_ns if clock is None else clock.to_reference(arrivals.start_ns)
        end[has, column] = arrivals.end_ns if clock is None else clock.to_reference(arrivals.end_ns)
        fused[has] |= arrivals.fused
        for at, code in zip(has.tolist(), arrivals.operation.tolist(), strict=True):
            spelled = part.table.text(code)
            if spelled is not None:
                kinds[at].add(spelled)
    operation = tuple(_one(found) for found in kinds)
    many = len(group.members) > 1 and len(group.calls) > 0
    latest = start.max(axis=1, initial=NO_TIME)
    late = shape[1] - 1 - np.argmax(start[:, ::-1], axis=1) if many else np.zeros(shape[0], np.int64)
    margin = np.zeros(shape[0], np.int64)
    if many:
        ordered = np.sort(start, axis=1)
        margin = np.where(ordered[:, -2] == NO_TIME, 0, ordered[:, -1] - ordered[:, -2])
    reasons = _why_not(group, operation, start, fused, alignment, ranks_missing)
    aligned = [rank for rank in group.members if rank in alignment.maps]
    return Calls(
        group=group,
        operation=operation,
        start_ns=start,
        end_ns=end,
        latest_ns=latest,
        late=late,
        margin_ns=margin,
        split=np.array([not reason for reason in reasons], bool),
        why=reasons,
        uncertainty_ns=alignment.uncertainty_ns(
            aligned, *((int(end[end != NO_TIME].min()), int(end.max())) if many else ())
        ),
    )


def _one(found: set[str]) -> str:
    """The operation of a call whose ranks tell it more or less exactly."""
    exact = found - {"send_recv"}
    if exact == {"send", "recv"}:
        return "send/recv"
    return exact.pop() if len(exact) == 1 else ("send_recv" if found == {"send_recv"} else "unknown")


def _why_not(
    group: Group,
    operation: tuple[str, ...],
    start: IntArray,
    fused: BoolArray,
    alignment: Alignment,
    ranks_missing: bool,
) -> tuple[str, ...]:
    """Why each call cannot be split, "" where it can."""
    general = ""
    if group.problem:
        general = UNMATCHED
    elif group.missing or (group.expected is None and ranks_missing) or not group.whole:
        general = MISSING_RANK
    elif group.doubtful:
        general = UNSURE_RANKS
    elif len(group.members) < 2:
        general = ALONE
    elif not alignment.comparable(group.members):
        general = UNALIGNED
    if general:
        return (general,) * len(operation)
    complete = (start != NO_TIME).all(axis=1)
    result = []
    for kind, has_all, computes in zip(operation, complete.tolist(), fused.tolist(), strict=True):
        if not has_all:
            result.append(MISSING_RECORD)
        elif computes:
            result.append(COMPUTES)
        elif (group.label, kind) in alignment.unsynchronized:
            result.append(LEFT_EARLY)
        elif kind in SYNCHRONIZING or kind == "send/recv":
            result.append("")
        else:
            result.append(ONE_WAY_CALL)
    return tuple(result)


def waits_of(part: RankPart, calls: Sequence[Calls], alignment: Alignment) -> RankWaits:
    """What each arrival of one rank waited for."""
    n = len(part.table)
    until, late_rank = np.full(n, NO_TIME, np.int64), np.full(n, -1, np.int64)
    late_arrival, of_group = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    of_call, certain = np.full(n, -1, np.int64), np.zeros(n, bool)
    clock = alignment.maps.get(part.rank)
    for position, joint in enumerate(calls):
        if part.rank not in joint.group.members:
            continue
        column = joint.group.members.index(part.rank)
        rows = joint.group.calls[:, column]
        here = np.flatnonzero(rows >= 0)
        of_group[rows[here]], of_call[rows[here]] = position, here
        if clock is None:
            continue
        mine = here[joint.split[here]]
        own = rows[mine]
        sends = np.array(
            [part.table.text(int(code)) == "send" for code in part.arrivals.operation[own]], bool
        )
        mine, own = mine[~sends], own[~sends]  # a sender may leave first
        columns = joint.late[mine]
        until[own] = np.where(
            columns == column, part.arrivals.start_ns[own], clock.from_reference(joint.latest_ns[mine])
        )
        members = np.array(joint.group.members, np.int64)
        late_rank[own] = members[columns]
        late_arrival[own] = joint.group.calls[mine, columns]
        unsure = max(joint.uncertainty_ns, 1)
        certain[own] = until[own] - part.arrivals.start_ns[own] >= unsure
    return RankWaits(until, late_rank, late_arrival, certain, of_group, of_call)
