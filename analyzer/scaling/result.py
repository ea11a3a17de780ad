"""``scaling.json``: step times at several rank counts, and what of them does not shrink with the ranks."""

from __future__ import annotations

from typing import Literal

import msgspec

from analyzer import strict_json

FORMAT = "tracebound.scaling"
FORMAT_VERSION = 1
Interval = tuple[float, float]
Behaviour = Literal["grows", "spreads", "not told"]
Change = Literal["better", "worse", "not told"]
StepChange = Literal["shorter", "longer", "not told"]


class ScalingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``unlike``: pins that it declares otherwise than most; then it is not ``used`` unless asked."""

    name: str
    inputs: list[str]
    ranks: int  # of the whole run
    ranks_from: Literal["capture", "declared"]
    ranks_captured: int
    boundary: str
    steps_rule: str
    phase: str
    shape: str | None  # batch shape that most steps' names tell
    scope: str  # global: all ranks together | rank
    rank: int | None
    steps: int
    steps_excluded: int  # warm-up and outliers
    mean_step_ns: float
    ci95_ns: Interval | None  # of the mean, from this run's steps
    mean_ns: dict[str, int]  # mean step by category; sums to the rounded mean step
    used: bool
    unlike: list[str]


class ScalingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """All used runs of one rank count. Speedup and efficiency are against the fewest ranks measured."""

    ranks: int
    runs: int
    mean_step_ns: float
    variance_ns2: float | None  # of that mean: of its steps, or of repeated runs where that is more
    degrees_of_freedom: float
    ci95_ns: Interval | None
    fitted_ns: float | None
    fitted_ci95_ns: Interval | None
    speedup: float
    speedup_ci95: Interval | None
    efficiency: float  # speedup / ratio of ranks
    efficiency_ci95: Interval | None
    than_before: StepChange | None  # the step against that of the next smaller count; None: the first


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The fit at a rank count between those measured, which need not be whole, and its 95 % interval (ns)."""

    ranks: float
    step_ns: float
    ci95_ns: Interval | None


class ScalingFit(msgspec.Struct, frozen=True, kw_only=True):
    """``T(N) = S + P / N``. ``method``: exact through two runs, else least squares.

    ``growing_ns``: of S, what categories add that grow with the ranks (their -P): no serial time of the program, but a
    price of the ranks. ``own_serial_share``: the serial share without it.
    """

    method: Literal["exact", "least squares"]
    serial_ns: float
    serial_ci95_ns: Interval | None
    parallel_ns: float
    parallel_ci95_ns: Interval | None
    serial_share: float | None  # S / (S + P); None where S or P is negative
    serial_share_ci95: Interval | None
    growing_ns: float
    own_serial_share: (
        float | None
    )  # (S - growing) / (S + P); None where that or serial_share would be negative
    residuals_ns: list[float] | None  # measured - fitted, in the order of the used runs; None: exact
    rms_residual_ns: float | None
    misfit_p: float | None  # of residuals as large, if steps' noise were all that scatters
    between_runs: bool  # whether the intervals hold how runs differ
    limit_speedup: float | None  # a model: (S + P) / S, without end of ranks
    curve: list[CurvePoint]  # from the fewest to the most ranks, at equal ratios
    cautions: list[str]


class CategoryFit(msgspec.Struct, frozen=True, kw_only=True):
    """One category of the step budget, fitted with the weights of the whole: all sum to S and P of the fit."""

    category: str
    mean_ns: dict[int, float]  # by rank count
    serial_ns: float
    serial_ci95_ns: Interval | None
    parallel_ns: float
    parallel_ci95_ns: Interval | None
    behaviour: Behaviour  # grows: P below 0 beyond chance and 0.1 % of the step; spreads: above 0 likewise


class CommonCount(msgspec.Struct, frozen=True, kw_only=True):
    """One rank count that both studies have. ``ratio``: the other study's step over this one's."""

    ranks: int
    this_ns: float
    other_ns: float
    ratio: float
    ratio_ci95: Interval | None
    change: Change


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """A study held against an earlier one: absolute times and scaling, which can go opposite ways.

    ``speedup_*``: from the fewest to the most of the common rank counts; None where there is one such count only.
    """

    other: str
    common: list[CommonCount]
    fewest: int | None
    most: int | None
    speedup_this: float | None
    speedup_other: float | None
    speedup_change: Change
    serial_share_this: float | None
    serial_share_other: float | None
    differences: list[str]  # pins that the studies declare unequally
    speedup_this_ci95: Interval | None = None
    speedup_other_ci95: Interval | None = None
    serial_share_this_ci95: Interval | None = None
    serial_share_other_ci95: Interval | None = None


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """What ``scaling.json`` holds. Runs and points stand in the order of their rank counts."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tracebound_version: str
    runs: list[ScalingRun]
    points: list[ScalingPoint]
    fit: ScalingFit | None
    fit_because: str  # why there is none
    categories: list[CategoryFit]
    stops_improving_at: int | None  # the fewest that all larger counts are shown not to beat by over 1 %
    stops_because: str  # why that is not known
    pins: dict[str, str]  # that all used runs share
    differing: dict[str, list[str]]  # pins that differ by design (or not): one value per run, "" undeclared
    undeclared: list[str]
    against: Against | None
    notes: list[str]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        return strict_json.encode(self)
