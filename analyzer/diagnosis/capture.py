"""What was read, how the run came about, and what of it could not be used."""

from __future__ import annotations

import msgspec


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was read."""

    path: str
    kind: str
    profiler_version: str | None
    schema_version: str | None
    ranks: list[int]
    partial: bool
    captured: list[str]
    settings: dict[str, str]
    diagnostics: list[str]


class Constants(msgspec.Struct, frozen=True, kw_only=True):
    """Every constant that the reconstruction used, measured or assumed (``assumed`` names those)."""

    launch_lambda_ns: dict[str, tuple[int, int]]
    launch_samples: dict[str, int]
    stream_tau_ns: int
    turnaround_ns: int
    turnaround_samples: int
    event_hop_ns: int
    quiet_ns: int
    burst_gap_ns: dict[str, int]
    queue_depth_limit: int | None
    uncertainty_ns: int | None
    assumed: list[str]
    thresholds: dict[str, float]


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """How the steps were found."""

    rule: str
    pattern: str | None
    count: int  # of the first rank, as the next two
    warmup_count: int
    outlier_count: int = 0
    confidence: str
    phases: list[str]
    detail: str


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Host/device and cross-rank clock of one rank."""

    offset_ns: int | None
    drift_ppb: int | None
    interval_ns: tuple[int, int] | None  # holds the true offset at the epoch for certain
    uncertainty_ns: int | None  # how far the ends of common collectives stray from the estimate
    reference_rank: int
    epoch_ns: int | None = None  # when the offset holds exactly; it drifts from there
    compared_with: int | None = None  # rank whose collectives gave it
    shared_calls: int | None = None  # how many
    device_shift_ns: int
    device_interval_ns: tuple[int | None, int | None]
    negative_latency_count: int
    early_return_count: int
    pair_count: int
    correction: str  # none | shifted | clipped


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """What the capture says of the device."""

    index: int
    uuid: str | None
    name: str | None
    sm_count: int | None
    memory_bytes_per_s: int | None


class DeviceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """First start to last end of the device work, and its union."""

    start_ns: int
    end_ns: int
    busy_ns: int
    idle_ns: int


class SharedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that several ranks (processes) use: the union of all their work on it."""

    ranks: list[int]
    span_ns: int
    busy_ns: int


class PinnedFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a run pins. ``source``: ``declared`` by the user, or ``found`` on the machine."""

    value: str
    source: str


class RunRank(msgspec.Struct, frozen=True, kw_only=True):
    """How one rank's capture came about, by the run's manifest."""

    rank: int
    host: str | None
    collector: str
    status: str  # running (it did not end) | complete | failed | killed
    exit_code: int | None
    profiled_step_ns: int | None  # median step with the profiler ...
    plain_step_ns: int | None  # ... and without it, in the same run
    profiled_steps: int | None = None  # of how many steps the medians are
    plain_steps: int | None = None
    profiled_interval_ns: tuple[int, int] | None = None  # where each median lies at 95 %; None: not recorded
    plain_interval_ns: tuple[int, int] | None = None
    notes: list[str]


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a capture belongs to, by its manifest."""

    run_id: str
    manifest: str  # its path
    complete: bool  # all ranks are there and ended with their captures written
    pins: dict[str, PinnedFact]
    ranks: list[RunRank]


class Unmeasured(msgspec.Struct, frozen=True, kw_only=True):
    """A question this capture cannot answer, and the capture that would."""

    what: str
    how_to_measure: str


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the data-quality ledger."""

    reason: str
    count: int
    share: float | None
    effect: str
    place: str
