"""Literal predictions, small enough to check by hand: a mean step of 10 ms over 3 steps."""

from __future__ import annotations

from typing import Any

from analyzer.predicted import AssumptionUsed, PredictedChange, WhatIf

MS = 1_000_000


def change(spec: str = "graph-capture", **changes: Any) -> PredictedChange:
    """4 to 6 ms of 10, at most 6.5 ms less, for ``launch-bound``."""
    values: dict[str, Any] = {
        "change": spec,
        "phase": "decode",
        "scope": "rank",
        "rank": 0,
        "windows": 3,
        "step_ns": 10 * MS,
        "predicted_step_ns": (4 * MS, 6 * MS),
        "gain_upper_bound_ns": 6_500_000,
        "because": "",
        "hypotheses": ["launch-bound"],
        "assumptions": ["graph_launch_ns"],
        "notes": ["300 launches in 3 bursts become 3 graph launches"],
    }
    return PredictedChange(**{**values, **changes})


def refused(spec: str = "no-skew") -> PredictedChange:
    return change(
        spec,
        step_ns=None,
        predicted_step_ns=None,
        gain_upper_bound_ns=None,
        because="no collective of the capture is split into waiting and transfer",
        hypotheses=[],
        assumptions=[],
        notes=[],
    )


def whatif(*rows: PredictedChange, **changes: Any) -> WhatIf:
    values: dict[str, Any] = {
        "odd_even_error": 0.0042,
        "odd_even_worst": 0.0123,
        "steps_checked": 3,
        "steps_replayed": 3,
        "steps_used": 4,
        "withheld": "",
        "assumptions": [
            AssumptionUsed(
                name="graph_launch_ns",
                low=2_500,
                high=12_000,
                source="assumed",
                meaning="duration of a graph launch call, without its nodes",
            ),
        ],
        "changes": list(rows) or [change(), refused()],
    }
    return WhatIf(**{**values, **changes})


def withheld() -> WhatIf:
    return whatif(
        odd_even_error=0.052,
        steps_replayed=0,
        withheld="lags learned on odd steps miss",
        assumptions=[],
        changes=[],
    )
