"""Which rank and phase a reader sees first."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.diagnosis import Budget, Diagnosis, GlobalAccount, Rank

_SCOPES = ("rank", "global", "client")
"""The later, the more it stands for: the path of all ranks, and that to the client where it was asked for."""


def mean_step(budget: Budget) -> Fraction:
    """Mean step time, exact."""
    return Fraction(budget.step_ns_total, budget.windows) if budget.windows else Fraction(0)


def leading_budgets(budgets: Sequence[Budget]) -> list[Budget]:
    """One budget per phase, the phases with the most time first.

    The client's where there is one among them, else the global one, else the slowest rank's.
    """
    chosen: dict[str, Budget] = {}
    for budget in budgets:
        held = chosen.get(budget.phase)
        if held is None or _precedence(budget) > _precedence(held):
            chosen[budget.phase] = budget
    return sorted(chosen.values(), key=lambda budget: -budget.step_ns_total)


def headline_budgets(diagnosis: Diagnosis) -> list[Budget]:
    """The leading budgets at the report's own boundary: the client's steps where that was asked for."""
    client = diagnosis.service.budget if diagnosis.service is not None else []
    return leading_budgets(
        [*client, *diagnosis.budget] if diagnosis.boundary == "client" else diagnosis.budget
    )


def _precedence(budget: Budget) -> tuple[int, Fraction, int]:
    return _SCOPES.index(budget.scope), mean_step(budget), -(budget.rank or 0)


def shown_rank(budget: Budget, joint: GlobalAccount | None) -> int | None:
    """The rank whose own work a reader sees beside a budget: for all ranks the one with most of their path."""
    if budget.rank is not None:
        return budget.rank
    time: dict[int, int] = {}
    for window in joint.windows if joint is not None else ():
        if window.phase == budget.phase and not window.left_out:
            for rank, ns in window.rank_ns.items():
                time[rank] = time.get(rank, 0) + ns
    return min(time, key=lambda rank: (-time[rank], rank), default=None)


def focus_rank(
    budgets: Sequence[Budget], ranks: Sequence[Rank], joint: GlobalAccount | None = None
) -> int | None:
    """The rank that a reader looks at first, of the phase with the most time; without a budget the first."""
    for budget in leading_budgets(budgets):
        shown = shown_rank(budget, joint)
        if shown is not None:
            return shown
    return ranks[0].rank if ranks else None
