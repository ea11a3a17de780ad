"""Kernels, copies, graph replays: what ran on the device."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.quantiles import Quantiles


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
    kernels_total: int | None  # recorded one by one
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
    """Device work of one class in one phase of one rank, over the windows of its budget.

    ``path_error_ns``: standard error of the mean path time per window; None of fewer than 5 windows.
    """

    rank: int
    phase: str
    class_: str = msgspec.field(name="class")
    events: int
    total_ns: int
    path_ns: int
    path_error_ns: float | None = None


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
