"""The frozen result of an analysis: everything that reports, comparisons and the store need.

Structs mirror ``diagnosis.json`` field by field; ``None`` is "not captured" (listed in
``unmeasured``), never 0. Units stand in names. Times are ns relative to ``time_zero_ns``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from analyzer.predicted import WhatIf

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
    outlier: bool = False  # its time lies far outside its phase's, and not because the loop was warming up
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

    @property
    def left_out(self) -> bool:
        """Whether the phase's mean leaves it out."""
        return self.warmup or self.outlier


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
    """Integer totals over the ordinary windows of one phase; ``path_ns_total`` sums to ``step_ns_total``.

    Left out are ``windows_excluded`` of the phase's windows: warm-up and, ``outliers`` of them, outliers.
    """

    phase: str
    scope: str
    rank: int | None
    windows: int
    windows_excluded: int
    outliers: int = 0
    outlier_ns_total: int = 0  # time of the outliers; beside step_ns_total, never in it
    step_ns_total: int
    path_ns_total: dict[str, int]
    exposed_ns_total: dict[str, int] | None
    inferred_ns_total: int
    note: str


class Outlier(msgspec.Struct, frozen=True, kw_only=True):
    """A step that a phase's budget leaves out because its time lies far outside the phase's. ``rank`` None: of all."""

    phase: str
    scope: str
    rank: int | None
    window: int
    step: str
    duration_ns: int
    median_ns: int  # of the steps that the budget rests on
    times_median: float
    category: str  # of its path, in which it differs most from the mean of the budget
    category_ns: int
    category_mean_ns: int  # in the mean of the budget


class GlobalWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One step of all ranks, on the reference rank's clock. ``path_ns`` sums to ``end_ns - start_ns``.

    The path leaves a rank where it waited in a collective and goes on where the late rank arrived.
    """

    index: int
    step: str
    phase: str
    start_ns: int
    end_ns: int
    warmup: bool
    warmup_reasons: list[str]
    outlier: bool = False  # its time lies far outside its phase's, and not because the loop was warming up
    empty: bool
    path_ns: dict[str, int]
    inferred_ns: int
    windows: dict[int, int]  # each rank's window of this step, by rank
    last_rank: int  # completes last: the path ends there
    ranks_visited: list[int]  # in order of time, neighbours differ
    rank_ns: dict[int, int]  # path time on each rank
    late_ranks: list[int]  # ranks that others waited for while the path was on them, the longest first
    late_calls: dict[int, int]  # how often, by rank
    late_wait_ns: dict[int, int]  # how long, by rank, as a union
    waited_ns: int  # union of these waits and of those over which the path went to another rank
    waited_at_most_ns: int  # the same with all time in which others may have waited and nothing tells whether
    launch_stagger_ns: int | None  # first to last rank's first launch of the step; None: not recorded on all

    @property
    def left_out(self) -> bool:
        """Whether the phase's mean leaves it out."""
        return self.warmup or self.outlier


class GlobalAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The step as all ranks together spent it."""

    reference_rank: int
    windows: list[GlobalWindow]


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
    shapes: int  # distinct launch shapes; the next three are those of the shape with the most time
    coverage: float | None
    occupancy: float | None
    limiter: str | None


class KernelShape(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels of one name, grid, block, registers and shared memory on one rank. Sizes are bytes.

    Coverage (grid against device) and occupancy (warps against a full SM) are two things and never mixed.
    ``note`` says why a figure is null, or that it is an upper bound.
    """

    rank: int
    name: str
    class_: str = msgspec.field(name="class")
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    registers_per_thread: int | None
    shared_memory_bytes: int | None  # per block, static and dynamic together
    calls_total: int
    total_ns: int
    path_ns: int
    coverage: float | None  # min(blocks, SMs) / SMs
    waves: float | None  # blocks / (SMs x resident blocks per SM)
    tail_idle: float | None  # share of the last wave's block slots that stay empty
    occupancy: float | None  # resident warps / warps of a full SM, theoretical
    resident_blocks_per_sm: int | None
    limiter: str | None  # all that bind, joined by "+"
    trace_occupancy_pct: int | None  # the trace's own "est. achieved occupancy"
    note: str


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Order statistics of ``count`` values, each one of the values itself (ns unless said otherwise)."""

    count: int
    p05: int
    median: int
    p95: int
    max: int


class StepWork(msgspec.Struct, frozen=True, kw_only=True):
    """Device work that the steps of one phase's budget launched on one rank: what makes two runs comparable.

    Equal rows are one: of kernels by ``name`` (one spelling for all profilers), grid and block; of copies and sets by
    direction and bytes; of collectives by what their metadata says, else by name, and by the kernel that ran.
    ``total_ns`` sums durations.
    """

    rank: int
    phase: str
    kind: str  # kernel | copy | set | collective | graph (a replay recorded as one row)
    name: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    bytes: int | None  # of one copy or set; of a collective the larger of what goes in and comes out
    dtype: str | None
    group_size: int | None
    kernel: str | None = None  # of a collective: which kernel ran (with NCCL's algorithm and protocol)
    kernel_operation: str | None = None  # what that kernel's name alone tells of the operation
    calls_total: int
    calls_in_graphs: int
    total_ns: int


class SequenceSection(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a step's work: ``repeats`` times the same body, place by place."""

    repeats: int
    work: list[int]  # position among the rows of ``step_work`` of this phase and rank, from 0
    ns: list[int]  # durations at each place of the body, summed over the repeats and ``steps_alike``


class StepSequence(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one step of a phase in the order of its submission, nodes of a replay by their start.

    The sequence that most steps of the phase's budget share; loops are folded. Only the first ``recorded`` works are
    held: a longer step is cut off.
    """

    rank: int
    phase: str
    window: int  # a step that ran it
    step: str
    steps: int  # of the phase's budget
    steps_alike: int  # that ran exactly this sequence
    length: int
    recorded: int
    sections: list[SequenceSection]


class LaunchBill(msgspec.Struct, frozen=True, kw_only=True):
    """What submitting the work of one phase costs one rank, over the windows of its budget.

    Sums of durations on several threads are no wall time. ``slot_ns`` is a budget: the mean step over the
    launches of a step, not what a launch costs.
    """

    rank: int
    phase: str
    windows: int
    launches_total: int  # kernel launch calls, a graph launch counts once
    graph_launches_total: int
    copy_calls_total: int  # copies and sets
    kernels_total: int | None  # recorded one by one; None: no device work was recorded
    kernels_in_graphs_total: int | None  # None also where replays were recorded as one row each
    launch_api_ns_total: int  # durations of launch calls that the device did not hold, summed
    held_launches_total: int
    path_launch_ns_total: int  # launch.* on the path
    slot_ns: int | None
    api_ns: Quantiles | None  # per launch call that was not held
    latency_ns: Quantiles | None  # from the start of the call to the start of its (first) work
    idle_latency_ns: Quantiles | None  # the same where the device was idle at the call
    depth_at_launch: Quantiles | None  # submissions before it that are not finished (a count, no ns)
    run_ahead_ns: Quantiles | None  # at the end of the call: how long until its work starts


class GraphReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Replays of one executable graph in one phase of one rank."""

    rank: int
    phase: str
    graph: str  # executable as the capture names it, else its first and last node
    replays: int
    kernels_per_replay: float | None  # None: replays were recorded as one row each
    kernels_total: int | None = None  # that the phase's steps launched with it; None as above
    steps: int | None = None  # of the phase's budget, that replay it
    shapes: list[str] = []  # batch shapes of these steps, where their names tell one
    device_ns_total: int  # durations summed
    path_ns: int


class ShapeReplays(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the steps of one phase and batch shape were replayed, on one rank.

    Steps of the budget, and the outliers that it leaves out (``outlier_steps``): a step that fell
    back to launching one by one is often far longer than its group. Times are sums over steps.
    """

    rank: int
    phase: str
    shape: str | None  # "batch 8", "512 tokens"; None: the steps' names tell none
    steps: int
    outlier_steps: int
    step_ns_total: int
    kernels_total: int  # recorded one by one
    kernels_in_graphs_total: int | None  # None where what a replay held was not recorded
    replayed_steps: int  # that launch a graph
    eager_steps: int  # that launch kernels and no graph
    eager_outlier_steps: int
    eager_ns_total: int


class SmallKernels(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels of one phase and rank that are shorter than ``below_ns``."""

    rank: int
    phase: str
    below_ns: int
    kernels_total: int
    of_kernels: int
    total_ns: int
    of_total_ns: int
    path_ns: int


class ClassTime(msgspec.Struct, frozen=True, kw_only=True):
    """Device work of one class in one phase of one rank, over the windows of its budget."""

    rank: int
    phase: str
    class_: str = msgspec.field(name="class")
    events: int
    total_ns: int
    path_ns: int


class HostRollup(msgspec.Struct, frozen=True, kw_only=True):
    """Path time on the CPU of one phase and rank, rolled up ``by`` one kind of record."""

    rank: int
    phase: str
    by: str  # call (CUDA) | os (OS runtime call) | op | range | frame | thread
    name: str  # "(none recorded)": no such record was open; "(other)": all beyond those listed
    category: str  # with the most of this path time
    path_ns: int
    windows: int
    windows_with: int  # windows in which it was on the path
    segments: int


class LookFirst(msgspec.Struct, frozen=True, kw_only=True):
    """The one record on the CPU to look at first in one phase, and why that one."""

    rank: int
    phase: str
    name: str
    by: str  # as in HostRollup
    category: str
    path_ns: int
    per_step_ns: int  # mean over the windows of the budget, rounded down
    segments_per_step: float
    share_of_host: float  # of the path time on the CPU, 0..1
    windows_with: int
    why: str


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """The step that the timeline shows, and why that one."""

    rank: int
    window: int
    step: str
    phase: str
    why: str
    events: int
    left_out: int  # the shortest records beyond the limit


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
    windows: int  # of the budget
    windows_with: int  # windows in which it was on the path


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
    held_launches: int = 0
    api_ns: int  # durations of its launch calls that the device did not hold, summed
    latency_ns: Quantiles | None  # from the start of a launch call to the start of its first work


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
    """Where to look: a line of segments.csv and the event of the input behind it."""

    file: str
    line: int  # the header is line 1
    rank: int
    window: int
    start_ns: int
    end_ns: int
    event: str
    input: str  # the file that holds the event
    event_start_ns: int | None  # its start as that file has it (Kineto: ts x 1000); None: nothing recorded


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


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What ``diagnosis.json`` holds. The tables travel beside it (``tables``)."""

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
    global_: GlobalAccount | None = msgspec.field(name="global", default=None)
    budget: list[Budget]
    outliers: list[Outlier] = []
    collectives: list[Collective] = []
    late_ranks: list[LateRank] = []
    alpha_beta: list[None] = []
    kernels: list[Kernel]
    host_culprits: list[HostCulprit]
    hypotheses: list[Hypothesis]
    whatif: WhatIf | None = None
    run: RunFacts | None = None  # None without a manifest
    undeclared: list[str]
    unmeasured: list[Unmeasured]
    quality: list[Quality]
    ranges: list[RangeTime] = []
    kernel_shapes: list[KernelShape] = []
    classes: list[ClassTime] = []
    launch_bill: list[LaunchBill] = []
    graph_replays: list[GraphReplay] = []
    shape_replays: list[ShapeReplays] = []
    small_kernels: list[SmallKernels] = []
    step_work: list[StepWork] = []
    step_sequences: list[StepSequence] = []
    host_rollups: list[HostRollup] = []
    look_first: list[LookFirst] = []
    detail: Detail | None = None
    rules: list[str] = []  # rules files read after the built-in one
    shared_devices: list[SharedDevice] = []
    notes: list[str]
