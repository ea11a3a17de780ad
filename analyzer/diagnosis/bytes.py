"""Bytes and arithmetic of a step: floors by a ledger, what counters counted, and how near the peaks kernels ran."""

from __future__ import annotations

from typing import Literal

import msgspec

from analyzer.diagnosis.verdicts import Share

BandwidthBasis = Literal["ledger", "driver", "datasheet"]


class FloorPart(msgspec.Struct, frozen=True, kw_only=True):
    """Phases of the ledger that run at the same time, or one alone: their floors add up to the step's (a bound)."""

    phases: list[str]
    floor_ns: float
    rank: int  # that sets it


class ByteFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The least time of a step by its bytes, beside the step that was measured.

    ``scope`` as in budgets: of all ranks on one clock, or of one rank. Intervals are 95 % of the mean step; null with
    fewer than two steps. ``unexplained_ns`` and the fractions are null where the step is shorter than its floor: then
    bytes, bandwidth and step do not belong together.
    """

    phase: str
    scope: str
    rank: int | None
    ranks: list[int]  # over which it is a floor
    windows: int
    step_ns: float
    step_interval_ns: tuple[float, float] | None
    floor_ns: float
    parts: list[FloorPart]
    fraction: float | None  # floor / step
    fraction_interval: tuple[float, float] | None
    unexplained_ns: float | None  # step - floor
    unexplained_interval_ns: tuple[float, float] | None
    achievable_ns: float | None  # the same bytes at each rank's measured copy bandwidth
    fraction_of_achievable: float | None
    tokens_per_step: float | None
    ceiling_tokens_per_s: float | None  # of pipeline stages: with a batch of its own in each
    observed_tokens_per_s: float | None
    fraction_of_ceiling: float | None = None  # observed / ceiling
    notes: list[str]


class KindBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one kind in one phase of the ledger, of one rank per step (a model)."""

    phase: str
    kind: str
    bytes: int
    basis: list[str]
    sources: list[str]


class MeasuredBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that counters counted per step. ``interval``: what the counters leave open.

    ``of_kernel_time``: share of the kernels' durations that has counters. ``disagreement``: over what the ledger
    models, less 1; null where there is no ledger or where too little was counted.
    """

    by: Literal["nsight-compute", "gpu-metrics"]
    bytes: float
    interval: tuple[float, float | None]  # upper end null: not known
    of_kernel_time: float
    disagreement: float | None


class RankBytes(msgspec.Struct, frozen=True, kw_only=True):
    """One rank in one phase: modelled and measured, side by side. Null: not known."""

    phase: str
    rank: int
    windows: int
    bandwidth_bytes_per_s: float | None
    bandwidth_basis: BandwidthBasis | None
    bandwidth_source: str
    copy_bytes_per_s: float | None  # measured on this device, read and written bytes together
    modelled_bytes: int | None
    modelled: list[KindBytes]
    floor_ns: float | None  # of this rank alone
    kernel_ns: float | None  # summed durations of the kernels that move them, mean per step
    measured: list[MeasuredBytes]
    flop: int | None
    flop_complete: bool | None  # whether every entry tells its own
    flop_per_byte: float | None
    ridge_flop_per_byte: float | None  # at which memory and arithmetic take equally long
    ridge_dtype: str | None  # the one with most flop
    peak_source: str | None = None  # where the arithmetic peak behind the ridge is from
    near_bandwidth_modelled: Share | None  # share of the step
    near_peak_modelled: Share | None


class CounterSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file of Nsight Compute, or the sampled metrics of a rank."""

    kind: Literal["nsight-compute", "gpu-metrics"]
    path: str
    rank: int | None  # null: stands for every rank
    names: list[str]  # metrics, or kernels that no rank of the trace ran
    kernels: int  # kernel names in the file; 0 for metrics
    launches: int


class Bytes(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about bytes and peaks of a diagnosis. ``ledger``: null where none was given."""

    ledger: str | None
    ledger_name: str | None
    floors: list[ByteFloor]
    ranks: list[RankBytes]
    counters: list[CounterSource]
    uncounted: int  # tensors that a step may read and that the ledger could not place
    uncounted_bytes: int
    why_no_floor: str  # "" where there is one
    findings: list[str]

    def with_floats(self) -> list[msgspec.Struct]:
        """Every struct that holds floats."""
        rows: list[msgspec.Struct] = [*self.floors, *self.ranks]
        rows += [part for floor in self.floors for part in floor.parts]
        rows += [measured for rank in self.ranks for measured in rank.measured]
        return rows + [
            share
            for rank in self.ranks
            for share in (rank.near_bandwidth_modelled, rank.near_peak_modelled)
            if share
        ]
