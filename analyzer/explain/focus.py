"""Which rank and phase a reader sees first."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.diagnosis import Budget, Rank


def mean_step(budget: Budget) -> Fraction:
    """Mean step time, exact."""
    return Fraction(budget.step_ns_total, budget.windows) if budget.windows else Fraction(0)


def leading_budgets(budgets: Sequence[Budget]) -> list[Budget]:
    """One budget per phase, the phases with the most time first: the global one, else the slowest rank's."""
    chosen: dict[str, Budget] = {}
    for budget in budgets:
        held = chosen.get(budget.phase)
        if held is None or _precedence(budget) > _precedence(held):
            chosen[budget.phase] = budget
    return sorted(chosen.values(), key=lambda budget: -budget.step_ns_total)


def _precedence(budget: Budget) -> tuple[bool, Fraction, int]:
    return budget.scope == "global", mean_step(budget), -(budget.rank or 0)


def focus_rank(budgets: Sequence[Budget], ranks: Sequence[Rank]) -> int | None:
    """The slowest rank of the phase with the most time; without a budget the first rank."""
    for budget in leading_budgets(budgets):
        if budget.rank is not None:
            return budget.rank
    return ranks[0].rank if ranks else None
