"""The collectives table: per group and kind of call who waited, what transfer takes, and what dominates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.across.joint import Joint
from analyzer.across.parts import RankPart
from analyzer.across.waits import Calls
from analyzer.diagnosis import Collective, Spread
from analyzer.model import IntArray
from analyzer.stats import quantile

DOMINATES = 2 / 3
"""A call's time is mostly one thing from this share of all ranks' time in it on."""
UNSKEWED = 0.10
"""Ranks arrive together when they are no further apart than this share of the shortest member's duration ..."""
BASELINE_CALLS = 3
"""... and that many such calls of one size are a baseline."""
_KINDS = (
    ("tensor", ("tp", "tensor")),
    ("expert", ("ep", "expert", "moe")),
    ("pipeline", ("pp", "pipe")),
    ("data", ("dp", "data", "fsdp", "ddp")),
    ("context", ("cp", "context", "sequence", "sp")),
    ("world", ("world", "default_pg", "default")),
)


@dataclass(frozen=True)
class Kind:
    """What calls of one row have in common."""

    operation: str
    dtype: str | None
    bytes: int | None
    family: str | None
    in_graph: bool


def collectives(
    parts: Sequence[RankPart], joint: Joint, steps: Mapping[int, Mapping[int, int]]
) -> list[Collective]:
    """One row per group and kind of call, longest in total first.

    ``steps``: by rank, the global step of each of its windows.
    """
    by_rank = {part.rank: part for part in parts}
    rows = []
    for calls in joint.calls:
        kinds = kinds_of(calls, by_rank)
        for kind in dict.fromkeys(kinds):
            mine = np.array([at for at, other in enumerate(kinds) if other == kind], np.int64)
            rows.append(_row(calls, kind, mine, by_rank, steps))
    return sorted(rows, key=lambda row: (-row.total_ns, row.group, row.op, row.bytes or -1, row.in_graphs))


def kinds_of(calls: Calls, by_rank: Mapping[int, RankPart]) -> list[Kind]:
    """What each call is, by the first member that recorded it."""
    found = []
    for at in range(len(calls)):
        column = int(np.flatnonzero(calls.group.calls[at] >= 0)[0])
        part = by_rank[calls.group.members[column]]
        row = int(calls.group.calls[at, column])
        arrivals = part.arrivals
        size = int(arrivals.bytes[row])
        found.append(
            Kind(
                calls.operation[at],
                part.table.text(int(arrivals.dtype[row])),
                None if size < 0 else size,
                part.table.text(int(arrivals.family[row])),
                bool(arrivals.replay[row] >= 0),
            )
        )
    return found


def _row(
    calls: Calls,
    kind: Kind,
    mine: IntArray,
    by_rank: Mapping[int, RankPart],
    steps: Mapping[int, Mapping[int, int]],
) -> Collective:
    group, present = calls.group, calls.present[mine]
    duration = np.where(present, calls.end_ns[mine] - calls.start_ns[mine], 0)
    split = calls.split[mine]
    inside = mine[split]
    step_of = steps_of(calls, mine, by_rank, steps)
    late, decided = calls.late[inside], calls.margin_ns[inside] >= max(calls.uncertainty_ns, 1)
    counts = Counter(group.members[column] for column in late[decided].tolist())
    late_steps, seen_steps = _late_steps(group.members, late, decided, step_of[split])
    baseline = _baseline(calls, inside)
    wait, transfer = calls.wait_ns[inside], calls.transfer_ns[inside]
    class_, note = _class(calls, mine, wait, transfer, baseline)
    known_steps = set(step_of[step_of >= 0].tolist())
    return Collective(
        group=group.label,
        description=group.description,
        parallelism=parallelism(group.description),
        op=kind.operation,
        dtype=kind.dtype,
        bytes=kind.bytes,
        family=kind.family,
        in_graphs=kind.in_graph,
        ranks=list(group.members),
        missing_ranks=list(group.missing),
        calls_total=len(mine),
        calls_per_step=int((step_of >= 0).sum()) / len(known_steps) if known_steps else None,
        total_ns=int(duration.sum()),
        split_calls=len(inside),
        unsplit=dict(sorted(Counter(calls.why[at] for at in mine[~split].tolist()).items())),
        class_=class_,
        class_note=note,
        transfer_ns=_spread(transfer.max(axis=1)) if len(inside) else None,
        wait_ns={
            rank: quantile(wait[:, column], 0.5) for column, rank in enumerate(group.members)
        } if len(inside) else None,
        wait_total_ns={
            rank: int(wait[:, column].sum()) for column, rank in enumerate(group.members)
        } if len(inside) else None,
        arrival_spread_ns=_spread(_arrival_spread(calls, inside)) if len(inside) else None,
        duration_ns={
            rank: quantile(duration[present[:, column], column], 0.5)
            for column, rank in enumerate(group.members)
            if present[:, column].any()
        },
        shortest_ns=_spread(shortest(calls, mine)),
        baseline_ns=None if baseline is None else baseline[0],
        baseline_calls=0 if baseline is None else baseline[1],
        late_rank_counts={rank: counts[rank] for rank in group.members} if len(inside) else {},
        late_undecided=int((~decided).sum()),
        late_rank_steps=late_steps,
        steps=seen_steps,
        latest_observed=_latest_observed(calls, mine[~split]),
        observed_only=not bool(split.all()),
        assumed_complete=group.expected is None and group.size is None,
    )  # fmt: skip


def parallelism(description: str | None) -> str | None:
    """What kind of parallelism a group serves, by the description that its program gave it."""
    if not description:
        return None
    text = description.lower()
    words = set("".join(char if char.isalpha() else " " for char in text).split())
    for kind, names in _KINDS:
        if words & set(names) or any(len(name) > 4 and name in text for name in names):
            return kind
    return None


def _spread(values: IntArray) -> Spread:
    return Spread(median=quantile(values, 0.5), p95=quantile(values, 0.95))


def _arrival_spread(calls: Calls, rows: IntArray) -> IntArray:
    """(k,) from the first to the last arrival."""
    first: IntArray = calls.start_ns[rows].min(axis=1)
    return calls.latest_ns[rows] - first


def shortest(calls: Calls, rows: IntArray) -> IntArray:
    """(k,) shortest duration over the members: an upper bound of the transfer that needs no clocks."""
    duration = np.where(
        calls.present[rows], calls.end_ns[rows] - calls.start_ns[rows], np.iinfo(np.int64).max
    )
    least: IntArray = duration.min(axis=1)
    return least


def steps_of(
    calls: Calls, rows: IntArray, by_rank: Mapping[int, RankPart], steps: Mapping[int, Mapping[int, int]]
) -> IntArray:
    """(k,) global step of each call by the first member whose window is known, -1 none."""
    found = np.full(len(rows), -1, np.int64)
    for column, rank in enumerate(calls.group.members):
        of_window = steps.get(rank, {})
        for at in np.flatnonzero(found < 0).tolist():
            row = int(calls.group.calls[rows[at], column])
            if row >= 0:
                found[at] = of_window.get(int(by_rank[rank].arrivals.window[row]), -1)
    return found


def _late_steps(
    members: tuple[int, ...], late: IntArray, decided: npt.NDArray[np.bool_], step_of: IntArray
) -> tuple[dict[int, int], int]:
    """In how many steps each rank was the one that came last most often, and in how many that could be told."""
    by_step: dict[int, Counter[int]] = {}
    for step, column, sure in zip(step_of.tolist(), late.tolist(), decided.tolist(), strict=True):
        if step >= 0 and sure:
            by_step.setdefault(step, Counter())[members[column]] += 1
    leaders = Counter(min(found, key=lambda rank: (-found[rank], rank)) for found in by_step.values())
    return {rank: leaders[rank] for rank in members if leaders[rank]}, len(by_step)


def _baseline(calls: Calls, rows: IntArray) -> tuple[int, int] | None:
    """Median duration of calls in which the ranks came together, and how many; None where there are too few."""
    if not len(rows):
        return None
    least = shortest(calls, rows)
    limit = np.maximum(calls.uncertainty_ns, UNSKEWED * least)
    together = least[_arrival_spread(calls, rows) <= limit]
    return (quantile(together, 0.5), len(together)) if len(together) >= BASELINE_CALLS else None


def _class(
    calls: Calls, mine: IntArray, wait: IntArray, transfer: IntArray, baseline: tuple[int, int] | None
) -> tuple[str, str]:
    """What dominates the ranks' time in these calls, and a remark."""
    if not len(wait):
        reasons = Counter(calls.why[at] for at in mine.tolist())
        return "inconclusive", reasons.most_common(1)[0][0]
    waited, moved = float(wait.sum()), float(transfer.sum())
    whole = max(waited + moved, 1.0)
    unsure = calls.uncertainty_ns * wait.size
    low, high = max(waited - unsure, 0.0) / whole, min(waited + unsure, whole) / whole
    note = ""
    if baseline is not None and len(transfer):
        typical = quantile(transfer.max(axis=1), 0.5)
        note = f"{baseline[1]} calls of equal size without skew take {baseline[0]} ns"
        if typical > 1.5 * baseline[0]:
            note += "; after the last arrival these take much longer: contention, or clocks further apart than thought"
    if low >= DOMINATES:
        return "skew-dominated", note
    if high <= 1 - DOMINATES:
        return "transfer-dominated", note
    if high - low > 1 - DOMINATES:
        return "inconclusive", "the clocks' uncertainty is too large for these calls"
    return "mixed", note


def _latest_observed(calls: Calls, rows: IntArray) -> dict[int, int]:
    """Of calls that cannot be split: how often each rank came last among those observed."""
    several = rows[calls.present[rows].sum(axis=1) > 1]
    counts = Counter(calls.group.members[column] for column in calls.late[several].tolist())
    return {rank: counts[rank] for rank in calls.group.members if counts[rank]}
