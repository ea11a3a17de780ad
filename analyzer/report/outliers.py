"""The steps that a mean leaves out as outliers: which, how long, and what they have more of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.diagnosis import Budget, Diagnosis, Outlier
from analyzer.explain.focus import leading_budgets
from analyzer.report.escape import cell, code
from analyzer.report.numbers import count, fixed, ms
from analyzer.report.tables import table
from analyzer.report.views import View

SHOWN = 6


def mean_with(budget: Budget) -> str:
    """The mean step in ms with the outliers that the budget leaves out."""
    return ms(budget.step_ns_total + budget.outlier_ns_total, max(budget.windows + budget.outliers, 1))


def left_out(budget: Budget) -> str:
    """Steps that a budget leaves out, by reason; empty where it has all."""
    warmup = budget.windows_excluded - budget.outliers
    parts = [f"{count(warmup, 'step')} left out as warm-up"] if warmup else []
    if budget.outliers:
        steps = count(budget.outliers, "step")
        parts.append(f"{steps} {'' if warmup else 'left out '}as {plural(budget.outliers)}")
    return ", ".join(parts)


def plural(number: int) -> str:
    """``outlier`` or ``outliers``."""
    return "outlier" if number == 1 else "outliers"


def outlier_view(diagnosis: Diagnosis) -> View | None:
    """The outliers of the budget that a reader sees first; None where nothing was left out as one."""
    leading = leading_budgets(diagnosis.budget)
    if not leading or not diagnosis.outliers:
        return None
    budget = leading[0]
    mine = [row for row in diagnosis.outliers if (row.phase, row.rank) == (budget.phase, budget.rank)]
    others = len(diagnosis.outliers) - len(mine)
    elsewhere = f"{count(others, 'more outlier')} on other ranks or in other phases: `outliers` in the JSON."
    if not mine:
        return View(elsewhere, "")
    where = "all ranks together" if budget.rank is None else f"rank {budget.rank}"
    intro = (
        f"{_steps_are(mine)} far outside the others of phase {code(budget.phase)}, {where}, and"
        f" {'is' if len(mine) == 1 else 'are'} in no mean and no verdict of this report: the mean step is"
        f" {ms(budget.step_ns_total, max(budget.windows, 1))} ms without {'it' if len(mine) == 1 else 'them'},"
        f" {mean_with(budget)} ms with {'it' if len(mine) == 1 else 'them'}."
    )
    if budget.rank is not None:
        intro += " To have one explained, give its number: `--step-index`."
    if others:
        intro += f" {elsewhere}"
    return View(intro, _table(mine))


def _table(rows: Sequence[Outlier]) -> str:
    """The longest first."""
    ordered = sorted(rows, key=lambda row: (-row.duration_ns, row.window))
    cells = [
        [
            cell(row.step, 44),
            str(row.window),
            ms(row.duration_ns),
            fixed(round(Fraction(row.duration_ns, row.median_ns) * 10), 1),
            row.category,
            ms(row.category_ns),
            ms(row.category_mean_ns),
        ]
        for row in ordered[:SHOWN]
    ]
    header = ["Step", "Number", "Time, ms", "Times the median", "Differs most in", "There, ms",
              "In the mean, ms"]  # fmt: skip
    left = len(rows) - SHOWN
    more = f"\n\n{count(left, 'more outlier')} in `windows.csv` (outlier)." if left > 0 else ""
    return table(header, cells, left=(0, 4)) + more


def _steps_are(rows: Sequence[Outlier]) -> str:
    return f"{count(len(rows), 'step')} {'lies' if len(rows) == 1 else 'lie'}"
