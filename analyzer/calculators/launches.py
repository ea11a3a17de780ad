"""Launches: the time slot that a step leaves for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from analyzer.calculators.checks import positive, whole
from analyzer.calculators.result import Kind, Result, figure


@dataclass(frozen=True, kw_only=True)
class Slot(Result):
    """Result of ``slot``."""

    calculator: ClassVar[str] = "slot"
    kind: ClassVar[Kind] = "budget"
    slot_ns: float = figure("time slot per launch", "ns")


def slot(step_ns: float, launches: int) -> Slot:
    """``step_ns / launches``: a budget, not what a launch costs."""
    return Slot(
        slot_ns=positive("step_ns", step_ns) / whole("launches", launches, 1),
        assumptions=(
            "a budget: the step's time shared out evenly over its launches, not the measured cost of one",
            "whether launches set the step's time is seen in a trace, not here",
        ),
    )
