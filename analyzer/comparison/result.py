"""The frozen result of a comparison, field by field as in ``comparison.json``.

``None`` is "not captured" or "not claimed", never 0. Differences are B minus A: negative where B is faster.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from analyzer import strict_json

FORMAT = "tracebound.comparison"
FORMAT_VERSION = 1

SameWork = Literal["identical", "equivalent", "different", "unverifiable"]
Ran = Literal["replayed", "partly", "some steps eager", "eager", "no replay"]
Change = Literal["added", "removed", "slower", "faster", "same", "not known"]
"""``not known``: the other side lacks it, and has replays recorded as one row each, in which it may run."""


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of the ``n`` steps that a budget rests on (ns); the mean is rounded to whole ns."""

    n: int
    median: int
    mean: int
    p05: int
    p95: int


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels that a graph replay launched, of all kernels of the phase, over all ranks.

    ``share`` is None where replays were recorded as one row each, and where no kernel was recorded.
    """

    kernels: int
    in_graphs: int
    whole_replays: int
    share: float | None


class GraphUse(msgspec.Struct, frozen=True, kw_only=True):
    """Replays of one executable graph in one phase, on the ranks that hold it under that label."""

    phase: str
    graph: str
    ranks: list[int]
    shapes: list[str]  # batch shapes of the steps that replay it
    replays: int  # over these ranks
    kernels_per_replay: float | None  # None: replays were recorded as one row each
    share: float | None  # of the kernels that the phase's steps launch on these ranks


class ShapeUse(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of one phase and batch shape: replayed or launched one by one. Means are over ranks and steps.

    ``ran``: "eager" where no step launched a graph although another shape of the run did, "some steps eager",
    "partly" where less than half of the largest share of kernels inside replays was reached, "replayed", and
    "no replay" where nothing of the run was replayed.
    """

    phase: str
    shape: str | None  # None: the steps' names tell none
    ran: Ran
    steps: int  # on the rank with the most of them
    eager_steps: int
    eager_outlier_steps: int  # of these, left out of the budget as outliers
    step_ns: int  # mean of all
    eager_step_ns: int | None
    other_step_ns: int | None  # of the steps with a replay, or without kernels
    share: float | None  # of the kernels inside replays; None where that was not recorded


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs: its headline phase."""

    inputs: list[str]
    kinds: list[str]  # nsys-sqlite, kineto-json
    boundary: str
    steps_rule: str
    phase: str
    scope: str  # global | rank
    rank: int | None  # None for the global scope
    ranks: list[int]
    step_ns: StepTimes
    step_times_ns: list[int]  # in order of time
    warmup_excluded: int  # steps left out of the mean: warm-up and outliers
    replayed: Replayed
    replayed_kernel_share: float | None
    graphs: list[GraphUse] = []  # of all phases
    shapes: list[ShapeUse] = []


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the two sides do not share."""

    what: str
    a: str
    b: str


class StepDelta(msgspec.Struct, frozen=True, kw_only=True):
    """B minus A (ns). ``ci95``: of the mean; None where there are too few steps. ``shown``: it excludes 0."""

    mean: int
    median: int
    ci95: tuple[int, int] | None
    shown: bool
    because: str


class WorkChange(msgspec.Struct, frozen=True, kw_only=True):
    """Device work of one key in a mean step, over all ranks compared. None on the side that lacks it."""

    name: str
    kind: str  # kernel | copy | set | graph | collective
    detail: str  # grid and block, or bytes
    change: Change
    calls_a: float | None
    calls_b: float | None
    ns_a: int | None  # sum of durations per step, no wall time
    ns_b: int | None


class PlacedWork(msgspec.Struct, frozen=True, kw_only=True):
    """Device work of one key, by name."""

    name: str
    kind: str
    detail: str


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """Work of A and the work that stands at the same place of B's step, over all ranks compared.

    Calls and times (ns, sums of durations) are per mean step; ``changes`` do not hold them again.
    """

    a: list[PlacedWork]  # in their order
    b: list[PlacedWork]
    change: Change  # of the time: slower | faster | same
    places: int  # in the steps that were aligned
    after: PlacedWork | None  # what both steps run before the first of these places; None: nothing
    calls_a: float
    calls_b: float
    ns_a: int
    ns_b: int


class WorkCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one pair of phases did the same work."""

    same_work: SameWork
    because: str
    unmatched_share_a: float | None  # of the device time of a step
    unmatched_share_b: float | None
    differences: list[Difference]


class PhasePair(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of one scope on both sides. ``delta_ns`` sums to ``step_delta_ns.mean``."""

    phase_a: str
    phase_b: str
    scope: str
    rank_a: int | None
    rank_b: int | None
    a: StepTimes
    b: StepTimes
    step_delta_ns: StepDelta
    delta_ns: dict[str, int]
    a_ns: dict[str, int]  # mean step by category, sums to a.mean
    b_ns: dict[str, int]
    work: WorkCheck
    speedup: float | None
    speedup_ci95: tuple[float, float] | None = None  # None also where a side has fewer than 5 steps
    replayed_a: Replayed
    replayed_b: Replayed


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction of the first run's diagnosis, held against the second run.

    ``hypothesis``: the one whose intervention it is, else the change itself. Confirmed: the interval of the observed
    mean step and the predicted range overlap; that interval is A's mean plus the interval of the difference, since the
    prediction starts from A's mean. ``because``: why it was not tested, or what limits the verdict.
    """

    hypothesis: str
    change: str
    predicted_step_ns: tuple[int, int]
    observed_step_ns: int | None
    observed_ci95_ns: tuple[int, int] | None
    verdict: Literal["confirmed", "refuted", "not-tested"]
    because: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What ``comparison.json`` holds. Top-level figures are those of the headline pair, ``pairs[0]``."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tracebound_version: str
    a: Side
    b: Side
    same_work: SameWork
    same_work_because: str
    level: str  # what both captures can show: "kernels", "whole replays" or "host"
    differences: list[Difference]
    checks: list[Difference]  # boundary, step rule, pins and the like where they differ
    step_delta_ns: StepDelta
    delta_ns: dict[str, int]
    speedup: float | None
    speedup_ci95: tuple[float, float] | None = None  # contains 1 exactly where no difference is shown
    speedup_because: str
    pairs: list[PhasePair]
    unpaired_phases: list[Difference]
    changes: list[WorkChange]  # with ``replaced`` all device work of a mean step, each once
    replaced: list[Replaced] = []
    matched_by: Literal["place", "name"] = "name"  # how ``changes`` were found
    matched_because: str = ""  # why not by place
    predictions: list[Prediction]
    undeclared: list[str]
    notes: list[str]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        return strict_json.encode(self)
