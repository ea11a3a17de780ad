"""What several tables share: a titled table, the rank that is shown, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.diagnosis import Diagnosis
from analyzer.explain import focus
from analyzer.report.numbers import count


@dataclass(frozen=True)
class View:
    """A table with the sentence that says what it shows."""

    intro: str
    table: str


def focus_rank(diagnosis: Diagnosis) -> int | None:
    """The rank whose work the tables show."""
    return focus.focus_rank(diagnosis.budget, diagnosis.ranks, diagnosis.global_)


def focus_phase(diagnosis: Diagnosis) -> str | None:
    """The phase with the most time."""
    leading = focus.leading_budgets(diagnosis.budget)
    return leading[0].phase if leading else None


def focus_text(diagnosis: Diagnosis) -> str:
    """Which rank that is, where there are several."""
    if len(diagnosis.ranks) < 2:
        return ""
    return f"Rank {focus_rank(diagnosis)}; the other ranks stand in the CSV file."


def rest(total: int, shown: int, file: str) -> str:
    """A line that counts what a table leaves out."""
    return f"\n\n{count(total - shown, 'more row')} in `{file}`." if total > shown else ""
