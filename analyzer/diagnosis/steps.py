"""The steps of each rank and of all ranks, and the budgets over them."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.capture import Clock, Constants, Device, DeviceSpan


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
    kernels: int | None  # None, here and below, where such records were not captured
    kernels_in_graphs: int | None  # None also where a replay was recorded as one row
    launches: int | None
    graph_replays: int | None
    collectives: int | None
    copies: int | None

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
