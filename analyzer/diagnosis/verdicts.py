"""Candidate explanations and what the evidence says of them."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["supported", "contradicted", "inconclusive", "unmeasured"]
MeasureKind = Literal["measurement", "model", "bound", "fit", "budget"]


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
