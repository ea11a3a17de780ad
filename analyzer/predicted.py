"""Predictions as ``diagnosis.json`` holds them: models, labelled so, each with its range and what it rests on.

All times are ns. ``None`` is "not predicted", with the reason beside it.
"""

from __future__ import annotations

import msgspec


class AssumptionUsed(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that predictions rest on, at its two ends.

    ``source``: "assumed", "measured" in the capture, or "given" by the user.
    """

    name: str
    low: int
    high: int
    source: str
    meaning: str


class PredictedChange(msgspec.Struct, frozen=True, kw_only=True):
    """The step time that a replay gives with one change, of one phase and scope.

    ``step_ns``: mean of the replayed steps as observed. ``predicted_step_ns``: lower and upper end of the mean with the
    change, None with the reason in ``because``. ``gain_upper_bound_ns``: what the change takes off the critical path
    per step, a bound; None where it has none. ``hypotheses``: ids of those whose intervention this is.
    """

    change: str
    phase: str
    scope: str  # "global" | "rank"
    rank: int | None
    windows: int
    step_ns: int | None
    predicted_step_ns: tuple[int, int] | None
    gain_upper_bound_ns: int | None
    because: str
    hypotheses: list[str]
    assumptions: list[str]
    notes: list[str]


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What the replay of the capture predicts, and how well it reproduces steps that it did not learn from.

    ``odd_even_error``: median over even steps of |replayed - observed| / observed with lags learned on odd steps; None
    where there were too few. ``withheld``: why nothing is predicted, "" where something is.
    """

    odd_even_error: float | None
    odd_even_worst: float | None
    steps_checked: int
    steps_replayed: int
    steps_used: int  # those of the budgets; more than replayed where the capture is long
    withheld: str
    assumptions: list[AssumptionUsed]
    changes: list[PredictedChange]
