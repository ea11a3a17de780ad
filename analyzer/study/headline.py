"""The steps that a study of several runs speaks of: of one phase, of all ranks together where they are aligned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.categories import CATEGORY_NAMES
from analyzer.comparison.sides import budget_of, mean_ns
from analyzer.diagnosis import Budget, Diagnosis, GlobalWindow, Window
from analyzer.errors import UsageError
from analyzer.explain.windows import chosen_windows, used_windows
from analyzer.reconstruct.step_markers import shape_of


@dataclass(frozen=True)
class Headline:
    """Steps of one phase in order of time. ``rank``: None for all ranks together.

    ``step_ns``: (n,) each step; ``path_ns``: by category, (n,) each; they sum to the steps one by one.
    """

    phase: str
    scope: str
    rank: int | None
    step_ns: list[int]
    path_ns: dict[str, list[int]]
    mean_ns: dict[str, int]
    excluded: int
    shape: str | None = None  # batch shape that most steps' names tell

    @property
    def mean_step_ns(self) -> float:
        """Mean of the steps."""
        return sum(self.step_ns) / len(self.step_ns)


def phases(diagnosis: Diagnosis, pattern: str | None = None) -> list[str]:
    """Phases that have a budget, the longest in total time first; those that ``pattern`` finds."""
    names = list(dict.fromkeys(budget.phase for budget in diagnosis.budget))
    return [name for name in names if pattern is None or re.search(pattern, name)]


def common_phase(runs: Sequence[tuple[str, Diagnosis]], pattern: str | None = None) -> str | None:
    """The leading phase of the first run that every run has; None where no phase bears the same name in all.

    Raises UsageError, naming the run, where one has no (such) step.
    """
    every = []
    for name, diagnosis in runs:
        mine = phases(diagnosis, pattern)
        if not mine:
            why = "holds no step" if pattern is None else f"has no phase that {pattern!r} finds"
            known = ", ".join(phases(diagnosis)[:5])
            hint = f"its phases are: {known}" if known else "name the steps with --steps"
            raise UsageError(name, "", why, hint)
        every.append(mine)
    shared = set.intersection(*(set(mine) for mine in every))
    return next((phase for phase in every[0] if phase in shared), None)


def headline(diagnosis: Diagnosis, phase: str) -> Headline:
    """Steps of a phase: of all ranks together where the run has that account, else of its slowest rank."""
    together = budget_of(diagnosis, phase, None)
    budget = together or _slowest(diagnosis, phase)
    windows = _windows(diagnosis, budget)
    names = list(CATEGORY_NAMES.values())
    return Headline(
        phase=phase,
        scope=budget.scope,
        rank=budget.rank,
        step_ns=[window.end_ns - window.start_ns for window in windows],
        path_ns={name: [window.path_ns[name] for window in windows] for name in names},
        mean_ns=mean_ns(budget),
        excluded=budget.windows_excluded,
        shape=_shape([window.step for window in windows]),
    )


def _shape(steps: Sequence[str]) -> str | None:
    shapes = Counter(str(shape) for step in steps if (shape := shape_of(step)) is not None)
    return shapes.most_common(1)[0][0] if shapes else None


def _slowest(diagnosis: Diagnosis, phase: str) -> Budget:
    """Of the ranks' budgets: the longest mean step; the lower rank where they are equal."""
    mine = [budget for budget in diagnosis.budget if budget.phase == phase]
    return max(mine, key=lambda budget: (budget.step_ns_total / budget.windows, -(budget.rank or 0)))


def _windows(diagnosis: Diagnosis, budget: Budget) -> Sequence[Window | GlobalWindow]:
    """The windows that a budget rests on."""
    if budget.rank is None:
        joint = [] if diagnosis.global_ is None else diagnosis.global_.windows
        return chosen_windows(joint, budget.phase).used
    rank = next(rank for rank in diagnosis.ranks if rank.rank == budget.rank)
    return used_windows(rank, budget.phase)


def world_size(diagnosis: Diagnosis) -> int:
    """Ranks of the run, those without a file among them, as far as the capture tells."""
    return len(diagnosis.ranks) + len(diagnosis.missing_ranks)
