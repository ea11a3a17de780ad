"""Collective calls, and the ranks that others waited for."""

from __future__ import annotations

import msgspec


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Two order statistics, each one of the values itself (ns)."""

    median: int
    p95: int


class Collective(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one kind in one process group.

    With A the latest arrival, waiting is from a rank's start to A and transfer from A to its end. Figures of
    waiting, transfer and late ranks rest on ``split_calls``; ``unsplit`` counts the others by reason.
    """

    group: str
    description: str | None  # as the program called the group
    parallelism: str | None  # tensor | expert | pipeline | data | context | world, by that description
    op: str
    dtype: str | None
    bytes: int | None  # larger of what one rank puts in and gets out
    family: str | None  # who made the kernel: nccl, custom, deepep, nvshmem, ...
    in_graphs: bool
    ranks: list[int]
    missing_ranks: list[int]
    calls_total: int
    calls_per_step: float | None
    total_ns: int  # durations over all ranks and calls, summed: no wall time
    split_calls: int
    unsplit: dict[str, int]
    class_: str = msgspec.field(name="class")  # transfer-dominated | skew-dominated | mixed | inconclusive
    class_note: str
    transfer_ns: Spread | None  # per call: of the rank that leaves last
    wait_ns: dict[int, int] | None  # by rank, median
    wait_total_ns: dict[int, int] | None
    arrival_spread_ns: Spread | None  # per call: first to last arrival
    duration_ns: dict[int, int]  # by rank, median
    shortest_ns: Spread  # per call: shortest member's duration, a bound of the transfer that needs no clocks
    baseline_ns: int | None  # median duration of calls of this kind in which the ranks came together
    baseline_calls: int
    late_rank_counts: dict[
        int, int
    ]  # calls in which the rank came last, by more than the clocks' uncertainty
    late_undecided: int  # calls in which the last two came within it
    late_rank_steps: dict[int, int]  # steps in which the rank came last most often
    steps: int  # in which that could be told
    latest_observed: dict[int, int]  # of calls that are not split: who came last among those observed
    observed_only: bool
    assumed_complete: bool  # nothing says which ranks take part: those given are taken for all


class LateRank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank that others waited for in the calls of one group: how often, by how much, because of what."""

    rank: int
    group: str
    late_calls: int  # it was the last, or within the clocks' uncertainty of the last
    alone_last_calls: int  # it was the last beyond doubt
    of_calls: int
    late_steps: int
    of_steps: int
    behind_ns: Spread  # per late call: after the median of the other arrivals
    wait_total_ns: int  # that the others waited in these calls, over all ranks: no wall time
    cause_ns: dict[str, int]  # what the rank's own path spent in that time, by category
    cause: str  # in words
    suspects: list[str]  # what ran longest there, by name
