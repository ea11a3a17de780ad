"""The result of a sweep over context and batch as ``sweep.json`` holds it.

Times are ns, slopes over context ns per 1,000 tokens, slopes over batch ns per sequence. ``None`` is "not known",
never 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from analyzer import strict_json
from analyzer.diagnosis import Hypothesis
from analyzer.errors import TraceError

FORMAT = "tracebound.sweep"
FORMAT_VERSION = 1

Source = Literal["grid", "manifest", "step names", "undeclared"]
Axis = Literal["context", "batch"]
Finding = Literal["grows", "shrinks", "no growth seen", "not told", "two points", "no interval"]


class Estimated(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its 95 % interval, None where nothing tells one."""

    value: float
    ci95: tuple[float, float] | None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cell lies on one axis and who says so. ``value`` None: nobody, or (``told``) no number."""

    value: int | None
    source: Source
    told: str | None = None


class Unlike(msgspec.Struct, frozen=True, kw_only=True):
    """A pin in which a cell differs from most of the grid."""

    pin: str
    value: str
    most: str


class ClassMean(msgspec.Struct, frozen=True, kw_only=True):
    """Mean path time per step of one kernel class on ``rank``'s own path. ``error_ns``: its standard error."""

    class_: str = msgspec.field(name="class")
    mean_ns: float
    error_ns: float | None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the grid. ``mean_ns`` sums to ``step_ns.value`` up to rounding of a float.

    ``scope``: "global" (the path through all ranks) or "rank"; ``rank``: the slowest, whose own path ``classes`` and
    ``attention_ns`` (of attention and its cache together, per step) are of.
    ``step_ns``: mean with the interval that its own steps give. ``tokens_per_s``: batch / mean step, one token per
    sequence and step, None for phases that do not generate or without a batch.
    """

    name: str
    inputs: list[str]
    run_id: str | None
    fingerprint: str
    context: Place
    batch: Place
    cache_initialization: str | None
    cache_source: Source
    pins: dict[str, str]
    undeclared: list[str]
    unlike: list[Unlike]
    fitted: bool
    left_out_because: str
    phase: str
    scope: str
    rank: int
    steps: int
    steps_left_out: int
    step_ns: Estimated
    rank_step_ns: float
    mean_ns: dict[str, float]
    classes: list[ClassMean]
    attention_ns: float | None
    replays_unresolved: bool
    tokens_per_s: float | None
    tokens_per_s_per_stream: float | None


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """The slope between two neighbouring places of a line."""

    low: int
    high: int
    slope: Estimated


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Mean step time over one axis, the other held at ``at``: a fit through the means of runs.

    ``categories`` sum to ``slope``. ``classes``: on the slowest rank's own path, as ``rank_slope``; empty without
    device work.
    ``described``: whether the residuals lie within the noise of the steps (None: nothing tells).
    ``between_runs``: whether the intervals hold the scatter between runs; two runs show none.
    """

    axis: Axis
    at: int | None
    cache_initialization: str | None
    cells: list[str]
    places: list[int]  # of each cell
    unit: str
    slope: Estimated
    intercept_ns: Estimated
    categories: dict[str, Estimated]
    rank_slope: Estimated
    classes: dict[str, Estimated]
    attention: Estimated | None  # of the classes of attention and KV cache together
    residuals_ns: list[float]
    misfit_p: float | None
    described: bool | None
    between_runs: bool
    pieces: list[Piece]
    finding: Finding
    statement: str


class BatchPoint(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one batch size. ``marginal_ns``: per sequence added since the batch size before.

    ``expert_union``: experts read per layer and step, a model of uniform routing; None where none is declared.
    """

    batch: int
    cells: list[str]
    step_ns: Estimated
    tokens_per_s: Estimated
    tokens_per_s_per_stream: Estimated
    marginal_ns: Estimated | None
    expert_union: float | None


class Batching(msgspec.Struct, frozen=True, kw_only=True):
    """Step time and rates against the batch at one context, measured.

    ``stops_at``: the smallest batch beyond which no larger one is shown to have a higher aggregate rate; None: the rate
    still rises at the largest, or (``statement``) nothing tells.
    """

    context: int | None
    cache_initialization: str | None
    points: list[BatchPoint]
    stops_at: int | None
    statement: str


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What ``sweep.json`` holds."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tracebound_version: str
    phase: str
    boundary: str
    thresholds: dict[str, float]
    cells: list[Cell]
    lines: list[Line]
    batching: list[Batching]
    experts: tuple[int, int] | None  # experts and experts per token, as declared
    kv_context: Hypothesis  # at the largest context
    kv_by_cell: dict[str, Hypothesis]  # of each cell on a line along context, for its own step
    cache_undeclared: list[str]  # cells
    unplaced: list[str]  # sentences: what lies nowhere on the grid, and why
    varying: list[str]  # pins that most cells do not share
    undeclared: list[str]
    notes: list[str]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        strict_json.require_finite(_structs(self))
        return strict_json.encode(self)


def _structs(value: object) -> Iterator[msgspec.Struct]:
    """A result and every struct inside it."""
    if isinstance(value, msgspec.Struct):
        yield value
        for inner in msgspec.structs.asdict(value).values():
            yield from _structs(inner)
    elif isinstance(value, dict):
        yield from (found for inner in value.values() for found in _structs(inner))
    elif isinstance(value, list):
        yield from (found for inner in value for found in _structs(inner))


def from_json(data: bytes, path: str) -> Sweep:
    """Read ``sweep.json`` back. Raises TraceError, naming ``path``."""
    try:
        found = msgspec.json.decode(data, type=Sweep)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(path, "", str(error), "pass a sweep.json that tracebound sweep wrote") from error
    if found.format != FORMAT or found.format_version != FORMAT_VERSION:
        raise TraceError(
            path,
            "",
            f"format {found.format!r} version {found.format_version} is not {FORMAT!r} version {FORMAT_VERSION}",
            "make the sweep again with this version of tracebound",
        )
    return found
