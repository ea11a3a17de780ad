"""What a store holds, field by field as ``tracebound history --format json`` prints it.

``None`` is "not captured", "not predicted" or "not claimed", never 0. Units stand in names. Moments are decimal
strings of ns since the Unix epoch, as ``time_zero_ns`` of ``diagnosis.json`` is: they exceed what JSON readers
hold exactly.
"""

from __future__ import annotations

import msgspec

from analyzer import strict_json

FORMAT = "tracebound.history"
FORMAT_VERSION = 1
KEY_SHOWN = 8
"""Characters of a workload's key that texts show."""


class StoredInput(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a run's diagnosis was made from, where it lay then."""

    path: str
    kind: str
    profiler_version: str | None
    partial: bool


class StoredPin(msgspec.Struct, frozen=True, kw_only=True):
    """What a run pins. ``source``: ``declared`` by the user, ``found`` on the machine, or told by the ``capture``."""

    value: str
    source: str


class StoredBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one phase, of one rank or of all together. Parts sum to their whole, to the nanosecond.

    ``path_ns_total`` sums to ``step_ns_total``, ``path_ns`` (of the mean step) to ``mean_ns``.
    """

    phase: str
    scope: str  # global | rank
    rank: int | None
    steps: int
    steps_excluded: int
    step_ns_total: int
    mean_ns: int
    median_ns: int | None
    p05_ns: int | None
    p95_ns: int | None
    inferred_ns_total: int
    path_ns_total: dict[str, int]
    path_ns: dict[str, int]


class StoredOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a prediction in one comparison, of which ``run`` is the run after the change."""

    comparison: int
    run: int
    observed_step_ns: int | None
    verdict: str  # confirmed | refuted | not-tested


class CheckedPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction as its comparison tells it, also where no stored one is like it."""

    hypothesis: str
    predicted_step_ns: tuple[int, int]
    observed_step_ns: int | None
    verdict: str


class StoredPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """What one change would give at most (a bound), and the step time predicted for it (a model) if there is one."""

    hypothesis: str
    phase: str
    scope: str
    rank: int | None
    verdict: str  # on the hypothesis, by the diagnosis
    share: float | None  # of the step, 0..1
    share_interval: tuple[float, float] | None
    gain_upper_bound_ns: int | None
    intervention: str
    predicted_step_ns: tuple[int, int] | None
    assumptions: str | None
    disproof: str
    outcomes: list[StoredOutcome]


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One diagnosis. ``same_capture_as``: the first run in the store that was made from the same capture."""

    run: int
    recorded_ns: str
    captured_ns: str | None
    same_capture_as: int | None
    tracebound_version: str
    boundary: str
    steps_rule: str
    run_id: str | None  # by the manifest
    ranks: int  # how many
    inputs: list[StoredInput]
    pins: dict[str, StoredPin]
    undeclared: list[str]
    budgets: list[StoredBudget]
    predictions: list[StoredPrediction]


class StoredComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The headline of one comparison: run ``b`` against run ``a``. Differences are B minus A."""

    comparison: int
    a: int
    b: int
    recorded_ns: str
    tracebound_version: str
    phase_a: str
    phase_b: str
    scope: str
    rank_a: int | None
    rank_b: int | None
    same_work: str
    same_work_because: str
    mean_a_ns: int
    mean_b_ns: int
    delta_mean_ns: int
    delta_median_ns: int
    ci95_ns: tuple[int, int] | None  # of the mean
    shown: bool  # the interval excludes 0
    speedup: float | None  # None unless the work is identical or equivalent
    speedup_ci95: tuple[float, float] | None = None  # None also where it was not recorded
    speedup_because: str
    predictions: list[CheckedPrediction]


class StoredWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that were asked for the same work, by the pins that say what was asked. In order of time.

    Where ``undeclared`` names such pins, whether it was the same work is not known.
    """

    workload: str  # digest of these pins
    pins: dict[str, str]
    undeclared: list[str]
    runs: list[StoredRun]
    comparisons: list[StoredComparison]  # whose run A is of this workload


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All that was asked for of one store."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tracebound_version: str
    store: str  # without password
    workloads: list[StoredWorkload]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        return strict_json.encode(self)
