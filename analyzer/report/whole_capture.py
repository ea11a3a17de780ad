"""Words for a budget that covers the whole capture, as no steps were found: it is of no step."""

from __future__ import annotations

from analyzer.diagnosis import Budget
from analyzer.report.numbers import count
from analyzer.report.outliers import mean_with

PHASE = "whole capture"
"""The phase's name in a diagnosis."""


def per(phase: str) -> str:
    """What a time of this phase is of, behind it."""
    return "for the whole capture" if phase == PHASE else "per step"


def mean_of(budget: Budget) -> str:
    """How many steps it is a mean of, and what it is with outliers, in parentheses behind a space.

    Empty for the whole capture.
    """
    if budget.phase == PHASE:
        return ""
    outliers = f"; {mean_with(budget)} ms with {count(budget.outliers, 'outlier')}" if budget.outliers else ""
    return f" (mean of {count(budget.windows, 'step')}{outliers})"


def word(phase: str) -> str:
    """What the budget covers."""
    return "capture" if phase == PHASE else "step"


def head(phase: str) -> str:
    """Of a column of times."""
    return "Whole capture, ms" if phase == PHASE else "Mean per step, ms"


def steps_only(phase: str, column: str) -> list[str]:
    """A column, or a cell of one, that says nothing of a whole capture."""
    return [] if phase == PHASE else [column]
