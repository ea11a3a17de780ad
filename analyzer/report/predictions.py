"""What one change would give, as rows that a report and a terminal share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.diagnosis import Diagnosis
from analyzer.predicted import AssumptionUsed, PredictedChange, WhatIf
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import count, fixed, ms
from analyzer.report.tables import table

HEADER = ("Change", "Predicted step, ms", "Against now", "Gain at most, ms", "For")
PHASES_SHOWN, NOTES_SHOWN = 6, 24
MODEL = (
    "A prediction is a model: the capture replayed with one thing changed. Its range holds what the capture leaves "
    "open, not what a new run may do besides."
)

Escape = Callable[[str], str]


def phases(whatif: WhatIf) -> dict[tuple[str, str, int | None], list[PredictedChange]]:
    """Changes by phase, scope and rank, those with the lowest predicted step first, those without last."""
    found: dict[tuple[str, str, int | None], list[PredictedChange]] = {}
    for row in whatif.changes:
        found.setdefault((row.phase, row.scope, row.rank), []).append(row)
    return {key: sorted(rows, key=_order) for key, rows in found.items()}


def _order(row: PredictedChange) -> tuple[bool, int]:
    low_high = row.predicted_step_ns
    return low_high is None, 0 if low_high is None else sum(low_high)


def cells(row: PredictedChange, change: Escape, other: Escape) -> list[str]:
    """One row under HEADER."""
    if row.predicted_step_ns is None or row.step_ns is None:
        return [
            change(row.change),
            "not predicted",
            "-",
            "-",
            ", ".join(other(name) for name in row.hypotheses),
        ]
    return [
        change(row.change),
        f"{ms(row.predicted_step_ns[0])} to {ms(row.predicted_step_ns[1])}",
        against(row.predicted_step_ns, row.step_ns),
        "no bound" if row.gain_upper_bound_ns is None else ms(row.gain_upper_bound_ns),
        ", ".join(other(name) for name in row.hypotheses),
    ]


def against(low_high: tuple[int, int], now_ns: int) -> str:
    """Both ends as signed shares of the step as it is: ``-69 % to -60 %``."""
    if now_ns <= 0:
        return "-"
    low, high = (_signed_percent(end - now_ns, now_ns) for end in low_high)
    return low if low == high else f"{low} to {high}"


def _signed_percent(change_ns: int, now_ns: int) -> str:
    tenths = round(1_000 * change_ns / now_ns)
    return f"{'-' if tenths < 0 else '+' if tenths > 0 else ''}{fixed(abs(tenths), 1)} %"


def now(rows: Sequence[PredictedChange]) -> str:
    """The replayed steps as they are: ``12 steps, mean 3.546 ms as observed``."""
    known = [row for row in rows if row.step_ns is not None]
    if not known:
        return "no step of it is replayed"
    return f"{count(known[0].windows, 'step')}, mean {ms(known[0].step_ns or 0)} ms as observed"


def checked(whatif: WhatIf) -> str:
    """How well the replay reproduces steps that it did not learn from."""
    if whatif.odd_even_error is None or whatif.odd_even_worst is None:
        return ""
    replayed = "" if whatif.steps_replayed == whatif.steps_used else (
        f" Replayed are {whatif.steps_replayed} consecutive steps of {whatif.steps_used}."
    )  # fmt: skip
    return (
        f"Lags learned on odd steps reproduce the even ones within {_share(whatif.odd_even_error)} (median; "
        f"worst {_share(whatif.odd_even_worst)}, {count(whatif.steps_checked, 'step')}).{replayed}"
    )


def _share(error: float) -> str:
    return f"{100 * error:.2f} %"


def assumption(row: AssumptionUsed) -> str:
    """``graph_launch_ns 2,500 to 12,000 (assumed): duration of a graph launch call``."""
    amount = f"{row.low:,}" if row.low == row.high else f"{row.low:,} to {row.high:,}"
    return f"{row.name} {amount} ({row.source}): {row.meaning}"


def notes(rows: Sequence[PredictedChange]) -> list[tuple[str, str]]:
    """(change, what it does, could not change or why it is not predicted), each once."""
    found = [(row.change, text) for row in rows for text in [*row.notes, row.because] if text]
    return list(dict.fromkeys(found))


def predictions(diagnosis: Diagnosis) -> list[str]:
    """The appendix of DIAGNOSIS.md as paragraphs of Markdown."""
    whatif = diagnosis.whatif
    if whatif is None:
        return ["None were made."]
    if whatif.withheld:
        return [f"Withheld: {prose(whatif.withheld)}."]
    parts = [f"{MODEL} {checked(whatif)}"]
    grouped = list(phases(whatif).items())
    for (phase, scope, rank), rows in grouped[:PHASES_SHOWN]:
        where = "all ranks" if scope == "global" else f"rank {rank}"
        parts.append(f"Phase {code(phase)}, {where}: {now(rows)}.")
        parts.append(table(HEADER, [cells(row, cell, cell) for row in rows], left=(0, 4)))
    if len(grouped) > PHASES_SHOWN:
        parts.append(f"{count(len(grouped) - PHASES_SHOWN, 'more table')} in `diagnosis.json` (`whatif`).")
    told = [f"- {cell(change)}: {prose(text)}" for change, text in notes(whatif.changes)[:NOTES_SHOWN]]
    if told:
        parts.append("\n".join(told))
    if whatif.assumptions:
        parts.append(
            "Assumptions, ns where nothing else is said (`tracebound whatif --assume NAME=NS` sets one):\n\n"
            + "\n".join(f"- {prose(assumption(row))}" for row in whatif.assumptions)
        )
    parts.append("`tracebound whatif TRACE --change SPEC` replays others; docs/whatif.md lists them.")
    return parts
