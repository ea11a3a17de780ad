"""What each category of one budget is, in words: where the time was spent in named calls, by their name."""

from __future__ import annotations

from analyzer.diagnosis import Budget, Diagnosis
from analyzer.explain.focus import shown_rank
from analyzer.explain.host.culprits import NOT_RECORDED
from analyzer.report.escape import cell
from analyzer.report.labels import CATEGORY_WORDS

NAME_WIDTH = 44
WAIT = "host.wait"


def category_words(diagnosis: Diagnosis, budget: Budget) -> dict[str, str]:
    """Safe words for every category, to stand in a table beside the times of ``budget``.

    Of all ranks together the names are those of the rank that is shown with them.
    """
    return {**CATEGORY_WORDS, WAIT: _wait(diagnosis, budget)}


def _wait(diagnosis: Diagnosis, budget: Budget) -> str:
    """Blocked in which call: without a record of one nothing says what the CPU waited for."""
    by_name = _names(diagnosis, budget, WAIT)
    if not by_name:
        return CATEGORY_WORDS[WAIT]
    longest = min(by_name, key=lambda name: (-by_name[name], name))
    most = 2 * by_name[longest] > sum(by_name.values())
    how_much = "" if len(by_name) == 1 else ", most of it" if most else ", the largest part"
    if longest == NOT_RECORDED:
        return f"CPU blocked{how_much}{'' if how_much else ','} with no call recorded"
    return f"CPU blocked{how_much} in {cell(longest, NAME_WIDTH)}"


def _names(diagnosis: Diagnosis, budget: Budget, category: str) -> dict[str, int]:
    """Path time in ns of a category by the name of the innermost record."""
    rank = shown_rank(budget, diagnosis.global_)
    result: dict[str, int] = {}
    for row in diagnosis.host_culprits:
        if (row.rank, row.phase, row.category) == (rank, budget.phase, category):
            result[row.name] = result.get(row.name, 0) + row.path_ns
    return result
