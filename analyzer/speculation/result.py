"""``speculation.json``: measured acceptance, the model beside it, and the speedup at measured step times."""

from __future__ import annotations

from typing import Literal

import msgspec

from analyzer import strict_json

FORMAT = "tracebound.speculation"
FORMAT_VERSION = 1
Interval = tuple[float, float]
Kind = Literal["measurement", "model"]


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Chance that the drafted token at ``position`` (from 1) is accepted, given that all before it were."""

    position: int
    trials: int  # cycles that drafted it and accepted all before it
    accepted: int
    chance: float | None  # None without a trial
    ci95: Interval | None


class ConstantChance(msgspec.Struct, frozen=True, kw_only=True):
    """The model with one chance for all positions that fits the counts best, and whether it describes them.

    ``describes``: False where a G test rejects it at 1 %; None where the test has no freedom.
    """

    chance: float
    ci95: Interval | None
    expected_tokens: float  # by the model, per cycle of a full draft
    statistic: float | None  # G, divided by the design effect
    degrees_of_freedom: int
    design_effect: float
    p_value: float | None
    describes: bool | None
    shape: Literal["falls", "rises", "mixed", "constant", "untested"]
    because: str


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted drafts as they were counted. ``tokens_per_cycle`` is a measurement: 1 + accepted / cycles."""

    source: str
    form: str  # cycles | histogram | positions | totals
    cycles: int | None
    requests: int | None  # None: nothing tells them apart
    draft_tokens: int | None  # of the longest draft
    accepted: int
    drafted: int | None
    tokens_per_cycle: float | None
    tokens_ci95: Interval | None
    tokens_because: str  # what the interval rests on, or why there is none
    accepted_per_drafted: float | None  # an engine's average counter; no chance of the model
    positions: list[Position]
    constant: ConstantChance | None
    constant_because: str  # why there is none


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """Mean time of one step, or one cycle. ``source``: ``measured`` in a capture, or ``given``."""

    source: Literal["measured", "given"]
    inputs: list[str]
    phase: str | None
    shape: str | None  # batch shape that most steps' names tell
    scope: str | None
    rank: int | None
    steps: int | None
    passes_per_step: (
        float | None
    )  # marked forward passes that a cycle was put together from; None: a step is one
    mean_ns: float
    ci95_ns: Interval | None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A pin that both captures declare, unequally."""

    what: str
    baseline: str
    speculative: str


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """The constant-chance model at the same times: beside the measurement, not in place of it."""

    expected_tokens: float
    speedup: float
    breakeven_chance: float | None  # None: no chance breaks even


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """What ``speculation.json`` holds. ``speedup``: tokens per cycle x baseline step / cycle time."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tracebound_version: str
    acceptance: Acceptance
    baseline: StepTime | None
    cycle: StepTime | None
    breakeven_tokens: float | None  # tokens per cycle at which speculation neither gains nor loses
    breakeven_ci95: Interval | None
    speedup: float | None
    speedup_ci95: Interval | None
    speedup_kind: Kind | None
    speedup_because: str  # why there is none, or no interval
    verdict: Literal["faster", "slower", "not told"] | None
    model: Model | None
    differences: list[Difference]
    undeclared: list[str]
    notes: list[str]
    beside: list[Difference] = []  # differs besides speculation; the speedup holds it, too

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        return strict_json.encode(self)
