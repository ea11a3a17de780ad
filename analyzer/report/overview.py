"""The answer in a few lines, and the compact budget behind it: what a reader sees before any appendix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES
from analyzer.diagnosis import Budget, Diagnosis, Hypothesis, Share
from analyzer.report import whole_capture
from analyzer.report.budgets import disagreement, leading
from analyzer.report.category_words import category_words
from analyzer.report.escape import cell, code
from analyzer.report.numbers import count, fixed, ms, ms_parts, percent, percent_parts, percent_units, share
from analyzer.report.tables import table

PHASES_ANSWERED = 2
PARTS_SHOWN = 7
LEAST_SHOWN = Fraction(1, 1000)
PHASES_LISTED = 8
IDS_SHOWN = 8


@dataclass(frozen=True)
class Compact:
    """The budget of the phase with the most time, as the template lays it out."""

    title: str
    path: str
    device: str
    disagreement: str
    phases: str


def answer(diagnosis: Diagnosis) -> list[str]:
    """One line per leading phase: how long a step takes and what the evidence says of each explanation."""
    budgets = leading(diagnosis)
    lines = [_answer(diagnosis, budget) for budget in budgets[:PHASES_ANSWERED]]
    left = len(budgets) - PHASES_ANSWERED
    if left > 0:
        lines.append(f"{count(left, 'more phase')} below.")
    return lines or ["No step with any time in it was found: nothing is explained."]


def _answer(diagnosis: Diagnosis, budget: Budget) -> str:
    rows = [row for row in diagnosis.hypotheses if row.phase == budget.phase]
    shown = [
        f"**{head}**: {text}"
        for head, text in (
            ("Supported", _with_shares(rows, "supported", budget)),
            ("Open", _with_shares(rows, "inconclusive", budget)),
            ("Contradicted", _ids(rows, "contradicted")),
            ("Unmeasured", _ids(rows, "unmeasured")),
        )
        if text
    ]
    step = ms(budget.step_ns_total, max(budget.windows, 1))
    head = f"Phase {code(budget.phase)}, {_where(diagnosis, budget)}: **{step} ms {whole_capture.per(budget.phase)}**"
    return f"{head}{whole_capture.mean_of(budget)}. {'. '.join(shown)}."


def _where(diagnosis: Diagnosis, budget: Budget) -> str:
    if budget.scope == "client":
        return "to the client's receipt"
    if budget.scope != "rank":
        return "all ranks"
    peers = sum(row.phase == budget.phase and row.scope == "rank" for row in diagnosis.budget)
    return f"rank {budget.rank}" + (f" (the slowest of {peers})" if peers > 1 else "")


def _with_shares(rows: Sequence[Hypothesis], verdict: str, budget: Budget) -> str:
    """The hypotheses with that verdict, largest share first, those without one last; of another rank: with it.

    Of an open one both ends: a value between them would pass for what is known.
    """
    mine = [row for row in rows if row.verdict == verdict]
    mine.sort(key=lambda row: -(row.share.value if row.share else -1.0))
    texts = [
        f"{code(row.id)} {_share_in_short(row.share, verdict)}" + _of_what(row, budget)
        if row.share is not None
        else f"{code(row.id)} (no share)"
        for row in mine[:IDS_SHOWN]
    ]
    if verdict == "supported" and not mine:
        return "none"
    return ", ".join(texts)


def _share_in_short(of: Share, verdict: str) -> str:
    low, high = of.interval
    return f"{share(low)[:-2]} to {share(high)}" if verdict == "inconclusive" else share(of.value)


def _of_what(row: Hypothesis, budget: Budget) -> str:
    """Whose step a share is of, where it is not the step that the budget is of."""
    if "client" in (row.scope, budget.scope) and row.scope != budget.scope:
        return " of the client's step" if row.scope == "client" else " of the device's step"
    return f" (rank {row.rank})" if row.scope == "rank" and row.rank not in (None, budget.rank) else ""


def _ids(rows: Sequence[Hypothesis], verdict: str) -> str:
    return ", ".join(code(row.id) for row in rows if row.verdict == verdict)


def compact(diagnosis: Diagnosis) -> Compact | None:
    """The leading phase's budget, its smaller parts in one row; every phase in one line."""
    budgets = leading(diagnosis)
    if not budgets:
        return None
    budget = budgets[0]
    step = ms(budget.step_ns_total, max(budget.windows, 1))
    return Compact(
        title=f"Phase {code(budget.phase)}, {_where(diagnosis, budget)}: {step} ms {whole_capture.per(budget.phase)}",
        path=_path_table(budget, category_words(diagnosis, budget)),
        device=_device_line(budget),
        disagreement=disagreement(budget),
        phases=_phase_table(diagnosis, budgets) if len(budgets) > 1 else "",
    )


def _path_table(budget: Budget, in_words: Mapping[str, str]) -> str:
    """The largest parts; parts and their shares add up to the last row as shown."""
    parts = sorted(
        ((ns, name) for name, ns in budget.path_ns_total.items() if ns), key=lambda p: (-p[0], p[1])
    )
    worth = sum(ns >= LEAST_SHOWN * budget.step_ns_total for ns, _ in parts[:PARTS_SHOWN])
    shown, small = parts[:worth], parts[worth:]
    rows = [(name, in_words.get(name, ""), ns) for ns, name in shown]
    if small:
        rows.append((count(len(small), "smaller part"), "", sum(ns for ns, _ in small)))
    values = [ns for _, _, ns in rows]
    cells = [
        [name, words, mean, part]
        for (name, words, _), mean, part in zip(
            rows, ms_parts(values, max(budget.windows, 1)), percent_parts(values), strict=True
        )
    ]
    total = sum(values)
    cells.append(["**sum**", "", ms(total, max(budget.windows, 1)), percent(total, total)])
    what = "What bounds it" if budget.phase == whole_capture.PHASE else "What bounds the step"
    return table([what, "In words", whole_capture.head(budget.phase), "Share"], cells, left=(0, 1))


def _device_line(budget: Budget) -> str:
    """What the device did meanwhile, as one partition."""
    exposed = budget.exposed_ns_total
    if budget.scope == "client":
        return "What the device did meanwhile stands with the steps of the device boundary, below."
    if budget.scope != "rank":
        return "What each rank's device did meanwhile stands with its own budget below."
    if exposed is None:
        return "What the device did meanwhile was not captured."
    rows = [(name, exposed[name]) for name in EXPOSURE_NAMES.values() if exposed.get(name)]
    units = percent_units([ns for _, ns in rows]) if rows else []
    shown = sorted(zip(rows, units, strict=True), key=lambda item: -item[1])
    parts = ", ".join(f"{name} {fixed(unit, 1)} %" for (name, _), unit in shown)
    return f"The device meanwhile: {parts}." if parts else ""


def _phase_table(diagnosis: Diagnosis, budgets: Sequence[Budget]) -> str:
    cells = [
        [
            cell(budget.phase, 44),
            "all" if budget.rank is None else str(budget.rank),
            f"{budget.windows:,}",
            ms(budget.step_ns_total, max(budget.windows, 1)),
            ", ".join(_largest(budget.path_ns_total, budget.step_ns_total)),
            ", ".join(_supported(diagnosis, budget.phase)) or "-",
        ]
        for budget in budgets[:PHASES_LISTED]
    ]
    header = ["Phase", "Rank", "Steps", "Mean step, ms", "Largest parts", "Supported"]
    text = table(header, cells, left=(0, 4, 5))
    left = len(budgets) - PHASES_LISTED
    return f"{text}\n\n{count(left, 'more phase')} in `budget.csv`." if left > 0 else text


def _largest(parts: Mapping[str, int], total: int) -> Iterator[str]:
    for name in sorted(CATEGORY_NAMES.values(), key=lambda name: -parts.get(name, 0))[:3]:
        if parts.get(name):
            yield f"{name} {percent(parts[name], total)}"


def _supported(diagnosis: Diagnosis, phase: str) -> list[str]:
    return [row.id for row in diagnosis.hypotheses if row.phase == phase and row.verdict == "supported"]
