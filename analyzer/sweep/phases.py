"""Which phase of each run stands in the grid: one kind of work, never two mixed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.explain.focus import leading_budgets, mean_step
from analyzer.reconstruct.phases import kind_of
from analyzer.reconstruct.step_markers import BATCH, shape_of

WHOLE_CAPTURE = "whole capture"
"""The phase of a capture without steps: it is no step, and in no sweep."""
NOT_GENERATING = ("prefill", "mixed", "idle")
"""Kinds of steps of which not every sequence gets a token."""


def generates(phase: str) -> bool:
    """Whether each sequence of a step may be taken to get one token."""
    return kind_of(phase) not in NOT_GENERATING


def common_kind(diagnoses: Sequence[Diagnosis], pattern: str | None) -> str:
    """The kind of phase to sweep: by ``pattern``, else what most runs have, of these the one with the most time.

    Raises UsageError where no run has a phase, or none that matches.
    """
    held: dict[str, tuple[int, int]] = {}
    for diagnosis in diagnoses:
        time: dict[str, int] = {}
        for budget in leading_budgets(diagnosis.budget):
            if budget.phase != WHOLE_CAPTURE and (pattern is None or re.search(pattern, budget.phase)):
                kind = kind_of(budget.phase)
                time[kind] = time.get(kind, 0) + budget.step_ns_total
        for kind, ns in time.items():
            runs, total = held.get(kind, (0, 0))
            held[kind] = runs + 1, total + ns
    if held:
        return min(held, key=lambda kind: (-held[kind][0], -held[kind][1], kind))
    phases = sorted(
        {budget.phase for diagnosis in diagnoses for budget in diagnosis.budget} - {WHOLE_CAPTURE}
    )
    if not phases:
        raise UsageError("sweep", "", "no run holds a step", "name the steps with --steps")
    raise UsageError(
        "--phase", "", f"{pattern!r} matches none of {', '.join(phases[:12])}", "give a pattern that does"
    )


def phase_in(diagnosis: Diagnosis, kind: str, batch: int | None) -> str | None:
    """The phase of a kind in one run: of several batch shapes the declared one, else the one with the most time.

    Time is that of a mean step by its steps; None where the run has no such phase.
    """
    mine = [budget for budget in leading_budgets(diagnosis.budget) if kind_of(budget.phase) == kind]
    exact = [budget for budget in mine if budget.phase == f"{kind} batch {batch}"]
    chosen = exact or mine
    if not chosen:
        return None
    return max(chosen, key=lambda budget: (budget.step_ns_total, mean_step(budget), budget.phase)).phase


def batch_in(diagnosis: Diagnosis, phase: str) -> int | None:
    """The batch that all steps of a phase tell by their names; None where they tell none, or several."""
    sizes = {
        shape.size if (shape := shape_of(window.step)) is not None and shape.unit == BATCH else None
        for rank in diagnosis.ranks
        for window in rank.windows
        if window.phase == phase and not window.empty and not window.left_out
    }
    return sizes.pop() if len(sizes) == 1 else None
