"""Literal diagnoses and comparisons to keep."""

from __future__ import annotations

from typing import Any

import msgspec

from analyzer.comparison.result import Comparison, Prediction
from analyzer.diagnosis import Diagnosis, PinnedFact, RunFacts
from tests.report.builder import diagnosis, hypothesis
from tests.report.comparison_builder import comparison

MS = 1_000_000
CAPTURED_NS = 1_712_195_495_519_689_047
DAY_NS = 86_400_000_000_000
PINS = {"model": "llama-8b", "precision": "bf16", "batch": "1", "flags": "--enforce-eager"}


def run(number: int = 0, pins: dict[str, str] | None = None, **changes: Any) -> Diagnosis:
    """Captured on the ``number``-th day. It predicts 4 to 6 ms for its launch-bound step of 10 ms."""
    pinned = PINS if pins is None else pins
    values: dict[str, Any] = {
        "time_zero_ns": str(CAPTURED_NS + number * DAY_NS),
        "run": RunFacts(
            run_id=f"run-{number}",
            manifest="run/manifest.json",
            complete=True,
            pins={name: PinnedFact(value=value, source="declared") for name, value in pinned.items()},
            ranks=[],
        ),
        "undeclared": ["weights", "clocks"],
        "hypotheses": [
            hypothesis(predicted_step_ns=(4 * MS, 6 * MS)),
            hypothesis("kernel-bound", verdict="inconclusive", gain_upper_bound_ns=2 * MS),
            hypothesis("kv-context", verdict="unmeasured", share=None, gain_upper_bound_ns=None),
        ],
    }
    return diagnosis(**{**values, **changes})


def compared(*predictions: Prediction) -> Comparison:
    """9 ms against 8 ms, 95 % interval of the difference -1.04 to -0.96 ms."""
    return msgspec.structs.replace(comparison(predictions=list(predictions)), speedup_ci95=(1.12, 1.13))


def checked(verdict: Any = "refuted", observed: int | None = 8 * MS, **changes: Any) -> Prediction:
    made = Prediction(
        hypothesis="launch-bound",
        change="graph-capture",
        predicted_step_ns=(4 * MS, 6 * MS),
        observed_step_ns=observed,
        observed_ci95_ns=None if observed is None else (observed - MS // 25, observed + MS // 25),
        verdict=verdict,
        because="",
    )
    return msgspec.structs.replace(made, **changes)
