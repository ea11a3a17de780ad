"""The frozen result of an analysis: everything that reports, comparisons and the store need.

Structs mirror ``diagnosis.json`` field by field; ``None`` is "not captured" (listed in
``unmeasured``), never 0. Units stand in names. Times are ns relative to ``time_zero_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

FORMAT = "tracebound.diagnosis"
FORMAT_VERSION = 1

Verdict = Literal["supported", "contradicted", "inconclusive", "unmeasured"]
MeasureKind = Literal["measurement", "model", "bound", "fit", "budget"]


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
    count: int
    warmup_count: int
    confidence: str
    phases: list[str]
    detail: str


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Host/device and cross-rank clock of one rank."""

    offset_ns: int | None
    drift_ppb: int | None
    interval_ns: tuple[int, int] | None
    uncertainty_ns: int | None
    reference_rank: int
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


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one rank. ``path_ns`` and ``exposed_ns`` each sum to ``end_ns - start_ns``."""

    index: int
    step: str
    phase: str
    start_ns: int
    end_ns: int
    host_start_ns: int | None
    host_end_ns: int | None
    warmup: bool
    warmup_reasons: list[str]
    empty: bool
    path_ns: dict[str, int]
    exposed_ns: dict[str, int] | None
    inferred_ns: int
    overlap_ns: dict[str, int] | None
    kernels: int
    kernels_in_graphs: int
    launches: int
    graph_replays: int
    collectives: int
    copies: int


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one process."""

    rank: int
    host: str | None
    pid: str
    source: str
    device: Device | None
    device_span: DeviceSpan | None
    device_events: int
    linked_events: int
    unlinked_events: int
    prior_events: int
    prior_ns: int
    held_launches: int
    shared_gpu_with: list[int]
    clock: Clock
    constants: Constants
    windows: list[Window]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Integer totals over the unflagged windows of one phase; ``path_ns_total`` sums to ``step_ns_total``."""

    phase: str
    scope: str
    rank: int | None
    windows: int
    windows_excluded: int
    step_ns_total: int
    path_ns_total: dict[str, int]
    exposed_ns_total: dict[str, int] | None
    inferred_ns_total: int
    note: str


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """All device work of one name on one rank (``total_ns`` is a sum of durations, not wall time)."""

    rank: int
    name: str
    kind: str
    class_: str = msgspec.field(name="class")
    calls_total: int
    calls_per_step: float | None
    calls_in_graphs: int
    total_ns: int
    clipped_ns: int
    path_ns: int
    exposed_ns: int | None
    coverage: float | None
    occupancy: float | None
    limiter: str | None


class HostCulprit(msgspec.Struct, frozen=True, kw_only=True):
    """Path time on the CPU by what the CPU was doing: the answer to "what ran in the gaps"."""

    rank: int
    phase: str
    category: str
    thread: str
    name: str
    stack: list[str]
    frame: str | None
    path_ns: int
    segments: int


class RangeTime(msgspec.Struct, frozen=True, kw_only=True):
    """Device work by the innermost range in which its launching thread was at the call.

    ``name`` None: launched outside every range. ``total_ns`` is a sum of durations, not wall time.
    """

    rank: int
    name: str | None
    thread: str
    launches: int
    device_events: int
    total_ns: int


class SharedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that several ranks (processes) use: the union of all their work on it."""

    ranks: list[int]
    span_ns: int
    busy_ns: int


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the step (0..1) with its interval."""

    value: float
    interval: tuple[float, float]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The number a verdict rests on, with the kind of number it is."""

    name: str
    value: float
    unit: str
    kind: MeasureKind
    rank: int | None
    windows: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look: a row of segments.csv and the event behind it."""

    file: str
    window: int
    start_ns: int
    end_ns: int
    event: str


class Hypothesis(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate explanation and what the evidence says of it."""

    id: str
    phase: str
    scope: str
    rank: int | None
    claim: str
    verdict: Verdict
    verdict_note: str
    share: Share | None
    overlaps_with: list[str]
    measured: Measured | None
    gain_upper_bound_ns: int | None
    intervention: str
    predicted_step_ns: tuple[int, int] | None
    disproof: str
    undo: str
    discriminating_check: str
    evidence: list[Evidence]


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


@dataclass(frozen=True)
class SegmentTable:
    """Every path segment, (n,) columns, sorted by (rank, window, start). Lives in segments.csv."""

    rank: npt.NDArray[np.int32]
    window: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    category: npt.NDArray[np.int8]  # Category
    binding: npt.NDArray[np.int8]  # Binding
    inferred: npt.NDArray[np.bool_]
    name: npt.NDArray[np.int32]  # index into names, -1 none
    place: npt.NDArray[np.int32]  # index into places (stream or thread), -1 none
    names: tuple[str, ...]
    places: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start_ns)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``diagnosis.json`` holds. The segments travel beside it (segments.csv)."""

    format: str
    format_version: int
    tracebound_version: str
    time_zero_ns: str | None
    inputs: list[Input]
    boundary: str
    constants: Constants  # of the first rank; each rank carries its own
    steps: Steps
    ranks: list[Rank]
    missing_ranks: list[int]
    rank_basis: str
    global_: None = msgspec.field(name="global", default=None)  # until ranks are aligned
    budget: list[Budget]
    collectives: list[None] = []  # likewise
    alpha_beta: list[None] = []
    kernels: list[Kernel]
    host_culprits: list[HostCulprit]
    hypotheses: list[Hypothesis]
    whatif: None = None
    undeclared: list[str]
    unmeasured: list[Unmeasured]
    quality: list[Quality]
    ranges: list[RangeTime] = []
    shared_devices: list[SharedDevice] = []
    notes: list[str]
