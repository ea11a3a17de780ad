"""Step budgets: what bounds the step (the path), beside it what the device did (exposed time)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from analyzer.categories import CATEGORY_NAMES
from analyzer.diagnosis import Budget, Diagnosis
from analyzer.explain.focus import headline_budgets, leading_budgets, mean_step
from analyzer.report import whole_capture
from analyzer.report.category_words import category_words
from analyzer.report.escape import cell, code, prose
from analyzer.report.labels import (
    CATEGORY_WORDS,
    DEVICE_BUSY,
    DEVICE_PATH,
    EXPOSURE_WORDS,
    PATH_GROUPS,
)
from analyzer.report.numbers import count, fixed, ms, ms_parts, percent, percent_parts, percent_units
from analyzer.report.outliers import left_out, mean_with
from analyzer.report.tables import table

PHASES_IN_FULL = 3
PHASES_LISTED = 20
WORST_RANKS = 3
DISAGREEMENT = Fraction(1, 20)
"""Share of the step from which on a difference between path and device is explained."""


@dataclass(frozen=True)
class BudgetView:
    """One phase as the template lays it out."""

    title: str
    intro: str
    path: str
    exposed: str
    disagreement: str
    ranks: str


def leading(diagnosis: Diagnosis) -> list[Budget]:
    """One budget per phase, the phases with the most time first: the global one, else the slowest rank's.

    The client's where the report has that boundary.
    """
    return headline_budgets(diagnosis)


def budget_views(diagnosis: Diagnosis) -> list[BudgetView]:
    """The phases that are shown in full; those of the client's boundary with those of the device's behind them."""
    shown = leading(diagnosis)[:PHASES_IN_FULL]
    if any(budget.scope == "client" for budget in shown):
        shown += leading_budgets(diagnosis.budget)[:PHASES_IN_FULL]
    return [_view(diagnosis, budget) for budget in shown]


def other_phases(diagnosis: Diagnosis) -> str:
    """The remaining phases, one line each; empty where there are none."""
    others = leading(diagnosis)[PHASES_IN_FULL:]
    rows = []
    for budget in others[:PHASES_LISTED]:
        name, part = max(_ordered(budget.path_ns_total, CATEGORY_NAMES.values()), key=lambda item: item[1])
        largest = f"{name} ({percent(part, budget.step_ns_total)})" if part else "-"
        per = max(budget.windows, 1)
        rows.append([cell(budget.phase), f"{budget.windows:,}", ms(budget.step_ns_total, per), largest])
    if not rows:
        return ""
    text = table(["Other phase", "Steps", "Mean step, ms", "Largest part"], rows, left=(0, 3))
    left = len(others) - PHASES_LISTED
    return f"{text}\n\n{count(left, 'more phase')} in `budget.csv`." if left > 0 else text


def _ordered(values: Mapping[str, int], names: Iterable[str]) -> list[tuple[str, int]]:
    known = [name for name in names if name in values]
    return [(name, values[name]) for name in known + [name for name in values if name not in known]]


def _partition(values: Mapping[str, int], words: Mapping[str, str], budget: Budget, head: str) -> str:
    """A table whose columns each sum, as shown, to the last row. Parts without time are left out."""
    rows = [item for item in _ordered(values, words) if item[1]]
    parts, per, phase = [part for _, part in rows], max(budget.windows, 1), budget.phase
    columns = zip(ms_parts(parts, per), ms_parts(parts), percent_parts(parts), strict=True)
    cells = [
        [name, words.get(name, ""), mean, *whole_capture.steps_only(phase, total), share]
        for (name, _), (mean, total, share) in zip(rows, columns, strict=True)
    ]
    every = sum(parts)
    sums = [ms(every, per), *whole_capture.steps_only(phase, ms(every)), percent(every, every)]
    cells.append(["**sum**", "", *sums])
    header = [
        head,
        "What it is",
        whole_capture.head(phase),
        *whole_capture.steps_only(phase, "Total, ms"),
        "Share",
    ]
    return table(header, cells, left=(0, 1))


def _shown_share(values: Mapping[str, int], words: Mapping[str, str], members: frozenset[str]) -> str:
    """The share of ``members`` as the table's own figures add up, so that text and table agree."""
    rows = [item for item in _ordered(values, words) if item[1]]
    shown = percent_units([part for _, part in rows])
    units = sum(unit for (name, _), unit in zip(rows, shown, strict=True) if name in members)
    return f"{fixed(units, 1)} %"


def _view(diagnosis: Diagnosis, budget: Budget) -> BudgetView:
    peers = [
        other
        for other in diagnosis.budget
        if other.phase == budget.phase and other.scope == "rank" and other.windows
    ]
    per = max(budget.windows, 1)
    exposed = "Not captured: no device work was recorded."
    if budget.scope == "client":
        peers, exposed = [], "What the device did meanwhile stands with the steps of the device boundary."
    elif budget.scope != "rank":
        exposed = "What each rank's device did: [budget.csv](diagnosis/budget.csv)."
    if budget.exposed_ns_total is not None:
        exposed = _partition(budget.exposed_ns_total, EXPOSURE_WORDS, budget, "Device")
    return BudgetView(
        title=f"Phase {code(budget.phase)}: {ms(budget.step_ns_total, per)} ms {whole_capture.per(budget.phase)}",
        intro=_intro(budget, len(peers)),
        path=_partition(budget.path_ns_total, category_words(diagnosis, budget), budget, "On the path"),
        exposed=exposed,
        disagreement=disagreement(budget),
        ranks=_rank_table(peers) if len(peers) > 1 else "",
    )


def _intro(budget: Budget, peers: int) -> str:
    where = "to the client's receipt" if budget.scope == "client" else "all ranks"
    if budget.scope == "rank":
        where = f"rank {budget.rank}" + (f", the slowest of {count(peers, 'rank')}" if peers > 1 else "")
    whole = budget.phase == whole_capture.PHASE
    mean = "No step: the capture as a whole" if whole else f"Mean of {count(budget.windows, 'step')}"
    text = f"{mean}, {where}"
    text += f"; {left_out(budget)}." if budget.windows_excluded else "."
    if budget.outliers:
        text += f" With the outliers the mean step is {mean_with(budget)} ms."
    if budget.inferred_ns_total:
        text += (
            f" {ms(budget.inferred_ns_total, max(budget.windows, 1))} ms {'of it' if whole else 'of the mean step'} is"
            " inferred: gaps and CPU time whose cause was not recorded."
        )
    return f"{text} {prose(budget.note)}" if budget.note else text


def disagreement(budget: Budget) -> str:
    """Why path and device differ, where they do; empty where nothing can be said."""
    exposed = budget.exposed_ns_total
    if exposed is None or not budget.step_ns_total:
        return ""
    step, word = budget.step_ns_total, whole_capture.word(budget.phase)
    bound = sum(part for name, part in budget.path_ns_total.items() if name in DEVICE_PATH)
    busy = sum(part for name, part in exposed.items() if name in DEVICE_BUSY)
    on_path = _shown_share(budget.path_ns_total, CATEGORY_WORDS, DEVICE_PATH)
    running = _shown_share(exposed, EXPOSURE_WORDS, DEVICE_BUSY)
    if abs(busy - bound) < DISAGREEMENT * step:
        return (
            f"Path and device agree: device work is {on_path} of the path, and the device is busy"
            f" {running} of the {word}."
        )
    if busy > bound:
        return (
            f"The two differ: the device is busy {running} of the {word}, yet device work is only {on_path}"
            f" of the path. The rest of the device work ran while the {word} waited for something else, so it"
            f" is not what the {word} waits for."
        )
    return (
        f"The two differ: device work is {on_path} of the path, more than the {running} of the {word} in"
        " which the device is busy. The quality ledger may say why."
    )


def _rank_table(peers: list[Budget]) -> str:
    """The slowest few, the middle and the fastest rank: bounded for any number of ranks."""
    ordered = sorted(peers, key=lambda budget: (-mean_step(budget), budget.rank or 0))
    last = len(ordered) - 1
    picked = dict.fromkeys(index for index in (*range(WORST_RANKS), len(ordered) // 2, last) if index <= last)
    rows = []
    for index in picked:
        budget = ordered[index]
        role = "slowest" if index == 0 else "fastest" if index == last else ""
        role = "median" if index == len(ordered) // 2 and not role else role
        parts = [sum(budget.path_ns_total.get(name, 0) for name in group) for group in PATH_GROUPS.values()]
        per = budget.windows
        shown = ms_parts(parts, per)
        rows.append([str(budget.rank), role, f"{per:,}", *shown, ms(sum(parts), per)])
    return table(["Rank", "", "Steps", *PATH_GROUPS, "mean step"], rows, left=(1,))
