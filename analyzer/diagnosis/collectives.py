"""Collective calls, and the ranks that others waited for."""

from __future__ import annotations

import msgspec

from analyzer.errors import UsageError


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


class PriceOfSize(msgspec.Struct, frozen=True, kw_only=True):
    """Transfers of one size: a measurement, whatever a line through the sizes says."""

    bytes: int  # larger of what one rank puts in and gets out
    calls: int  # that were split and count
    median_ns: int
    p05_ns: int
    p95_ns: int
    fitted_ns: float | None  # what the line says, None without one
    fitted_ci95_ns: tuple[float, float] | None
    contended_calls: int  # other work ran on a member's device beside a noticeable part of the transfer
    contended_ratio: float | None  # median of these / median of the others; None with too few of either
    contended_ratio_ci95: tuple[float, float] | None


class PriceInterval(msgspec.Struct, frozen=True, kw_only=True):
    """95 % intervals of a fit. An end of the bandwidth is None where the calls do not bound it."""

    alpha_ns: tuple[float, float]
    beta_bytes_per_s: tuple[float | None, float | None]


class AlphaBeta(msgspec.Struct, frozen=True, kw_only=True):
    """``latency = alpha + bytes / beta`` of the transfers of one kind of collective in one group: a fit.

    A transfer lasts from the last arrival on: the shortest member's duration, which no error of the clocks enters.
    ``bytes`` are the larger of what one rank puts in and gets out, so that ``beta`` is an algorithm bandwidth, not a
    bus bandwidth. Without a fit alpha, beta and the interval are None and ``reason_if_absent`` says why; ``beta`` alone
    is None where latency does not grow measurably with size (then the interval's low end is a lower bound).
    """

    kind: str = "fit"
    group: str
    description: str | None
    op: str
    dtype: str | None
    family: str | None
    algorithm: str | None  # where the kernel's name tells it
    protocol: str | None
    in_graphs: bool
    ranks: list[int]
    hosts: list[str]  # of the ranks, where known
    topology: str | None  # as the manifest declares it
    alpha_ns: float | None
    beta_bytes_per_s: float | None
    ci95: PriceInterval | None
    sizes: int
    range_bytes: (
        tuple[int, int] | None
    )  # sizes of the calls that the fit rests on: it says nothing beyond them
    calls: int
    calls_split: int
    calls_contended: int
    contended_ratio: (
        float | None
    )  # latency of these / of the others of their size; None with too few of either
    contended_ratio_ci95: tuple[float, float] | None
    calls_apart: int  # left out of the fit: far from the other calls of their size
    basis: str | None  # "uncontended" | "all": calls that the fit rests on
    interval_over: str | None  # "steps" | "calls": what was drawn anew for the intervals
    size_ratio: float | None  # largest size / smallest, and median latency there / here; None with one size
    latency_ratio: float | None
    residual_spread: float | None  # half of the calls lie within this share of the line
    reason_if_absent: str | None
    remedy: str | None
    notes: list[str]
    points: list[PriceOfSize]

    def latency_ns(self, size_bytes: float) -> float:
        """What the fit says of a size. Raises UsageError without a fit and outside of its range."""
        place = f"{self.op} in group {self.group}"
        if self.alpha_ns is None or self.range_bytes is None:
            raise UsageError(
                "size", place, f"there is no fit: {self.reason_if_absent}", self.remedy or "measure the size"
            )
        low, high = self.range_bytes
        if not low <= size_bytes <= high:
            raise UsageError(
                "size", place, f"{size_bytes:.15g} bytes lie outside the fitted range, {low} to {high} bytes",
                "measure a size there; a fit says nothing outside its range",
            )  # fmt: skip
        if self.beta_bytes_per_s is not None:
            return self.alpha_ns + size_bytes * 1e9 / self.beta_bytes_per_s
        first, last = self._fitted(low), self._fitted(high)  # beta is not told, but the line has a slope
        return first + (last - first) * (size_bytes - low) / (high - low)

    def _fitted(self, size_bytes: int) -> float:
        """What the line says of a size that was measured."""
        return next(point.fitted_ns or 0.0 for point in self.points if point.bytes == size_bytes)


class CollectiveCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of collective costs the steps of a phase: on the path, and as calls x duration would have it.

    ``naive_ns_per_step`` ignores that calls overlap other work and one another, and that their durations hold waiting:
    a budget. ``path_ns`` is measured; both are means over the same steps.
    """

    phase: str
    scope: str  # "global" | "rank"
    rank: int | None
    group: str
    op: str
    windows: int
    step_ns_total: int
    calls: int  # in these windows; of all ranks together one
    calls_per_step: float
    median_duration_ns: int  # over ranks and calls
    naive_ns_total: int  # of each size: calls x median duration; of calls of unknown size: each one's own
    naive_transfer_ns_total: (
        int | None
    )  # of each size: calls x median transfer; None where a size has no split call
    path_ns_total: dict[str, int]  # collective.transfer, collective.wait, collective.unsplit
