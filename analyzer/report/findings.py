"""The verdicts: at most three findings at the top, all hypotheses in the appendix."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.diagnosis import Diagnosis, Hypothesis, Measured
from analyzer.report.escape import cell, code, prose
from analyzer.report.labels import VERDICT_ORDER
from analyzer.report.numbers import count, ms, plain, share
from analyzer.report.tables import table

FINDINGS_SHOWN = 3
ROWS_SHOWN = 48


@dataclass(frozen=True)
class Finding:
    """One supported hypothesis as the template lays it out."""

    title: str
    claim: str
    lines: list[tuple[str, str]]


def supported(diagnosis: Diagnosis) -> list[Hypothesis]:
    """Supported hypotheses, those that cover the most time of the capture first."""
    steps = {(row.phase, row.scope, row.rank): row.step_ns_total for row in diagnosis.budget}

    def covered(row: Hypothesis) -> float:
        weight = steps.get((row.phase, row.scope, row.rank), 0)
        return row.share.value * weight if row.share else 0.0

    rows = [row for row in diagnosis.hypotheses if row.verdict == "supported"]
    return sorted(rows, key=lambda row: -covered(row))


def findings(diagnosis: Diagnosis) -> list[Finding]:
    """The first few supported hypotheses."""
    return [_finding(row) for row in supported(diagnosis)[:FINDINGS_SHOWN]]


def no_finding(diagnosis: Diagnosis) -> str:
    """Why there is no finding, with the nearest candidate."""
    if not diagnosis.hypotheses:
        return "None: no hypothesis was tested."
    open_rows = [row for row in diagnosis.hypotheses if row.verdict == "inconclusive" and row.share]
    if not open_rows:
        return "None: the evidence supports no explanation, and none is left open by a measured share."
    best = max(open_rows, key=lambda row: row.share.interval[1] if row.share else 0.0)
    return (
        f"None: no explanation is supported. The largest one left open is {code(best.id)} in"
        f" {_where(best)}, {share_text(best)} of the step."
    )


def more_supported(diagnosis: Diagnosis) -> str:
    """How many supported hypotheses stand only in the appendix."""
    left = len(supported(diagnosis)) - FINDINGS_SHOWN
    if left <= 0:
        return ""
    verb = "is" if left == 1 else "are"
    return f"{count(left, 'more explanation')} {verb} supported too: see all hypotheses below."


def _where(row: Hypothesis) -> str:
    rank = f", rank {row.rank}" if row.scope == "rank" and row.rank is not None else ""
    return f"phase {code(row.phase)}{rank}"


def share_text(row: Hypothesis) -> str:
    """``62.0 % (55.1 to 66.0 %)``."""
    if row.share is None:
        return "-"
    low, high = row.share.interval
    return f"{share(row.share.value)} ({share(low)[:-2]} to {share(high)})"


def measured_text(measured: Measured | None) -> str:
    """The number with its name and its kind."""
    if measured is None:
        return "-"
    where = f", rank {measured.rank}" if measured.rank is not None else ""
    kind = f"{measured.kind}{where}, {count(measured.windows, 'step')}"
    return f"{_value(measured)} ({kind}): {prose(measured.name)}"


def _value(measured: Measured | None) -> str:
    if measured is None:
        return "-"
    unit, _, rest = measured.unit.partition(" ")
    if unit == "ns" and measured.value.is_integer():
        return f"{ms(int(measured.value))} ms {prose(rest)}".rstrip()
    return f"{plain(measured.value)} {prose(measured.unit)}".rstrip()


def gain_text(row: Hypothesis) -> str:
    """The bound on what one change could give."""
    if row.gain_upper_bound_ns is None:
        return "-"
    return f"at most {ms(row.gain_upper_bound_ns)} ms per step"


def _finding(row: Hypothesis) -> Finding:
    lines = [
        ("Measured", measured_text(row.measured)),
        ("Gain", f"{gain_text(row)} (an upper bound, not a prediction)"),
        ("Change to try", prose(row.intervention)),
        ("Next check", prose(row.discriminating_check)),
        ("Disproof", prose(row.disproof)),
    ]
    if row.gain_upper_bound_ns is None:
        lines[1] = ("Gain", "no bound known")
    if row.predicted_step_ns is not None:
        low, high = row.predicted_step_ns
        lines.insert(2, ("Predicted step", f"{ms(low)} to {ms(high)} ms (model)"))
    if row.overlaps_with:
        others = ", ".join(code(other) for other in row.overlaps_with)
        lines.append(("Overlaps", f"its share must not be added to that of {others}"))
    note = f" {prose(row.verdict_note)}" if row.verdict_note else ""
    return Finding(
        title=f"{code(row.id)}: {share_text(row)} of the step, {_where(row)}",
        claim=prose(row.claim) + note,
        lines=[(head, text) for head, text in lines if text],
    )


def _order(row: Hypothesis) -> tuple[int, float]:
    return VERDICT_ORDER.index(row.verdict), -(row.share.value if row.share else 0.0)


def hypothesis_table(diagnosis: Diagnosis) -> str:
    """Every measured hypothesis on one line (bounded; the whole list is in hypotheses.csv)."""
    rows = sorted((row for row in diagnosis.hypotheses if row.verdict != "unmeasured"), key=_order)
    if not rows:
        return "None of them is measured."
    cells = [
        [
            cell(row.id),
            cell(row.phase, 40),
            "all" if row.rank is None else str(row.rank),
            row.verdict,
            share_text(row),
            _value(row.measured),
            "-" if row.measured is None else row.measured.kind,
            gain_text(row),
        ]
        for row in rows[:ROWS_SHOWN]
    ]
    header = ["Hypothesis", "Phase", "Rank", "Verdict", "Share of the step", "Value", "Kind", "Gain (bound)"]
    text = table(header, cells, left=(0, 1, 3, 6))
    left = len(rows) - ROWS_SHOWN
    return f"{text}\n\n{count(left, 'more row')} in `hypotheses.csv`." if left > 0 else text


def unmeasured_ids(diagnosis: Diagnosis) -> str:
    """The unmeasured hypotheses by name, with their phases where that is not all of them."""
    phases = {row.phase for row in diagnosis.hypotheses}
    found: dict[str, list[str]] = {}
    for row in diagnosis.hypotheses:
        if row.verdict == "unmeasured":
            found.setdefault(row.id, []).append(row.phase)
    names = [
        code(name) + ("" if set(where) == phases else f" ({count(len(set(where)), 'phase')})")
        for name, where in found.items()
    ]
    return f"Unmeasured: {', '.join(names)}." if names else ""


def hypothesis_notes(diagnosis: Diagnosis) -> list[Finding]:
    """Claim, check, intervention, disproof and undo of each hypothesis, once per wording."""
    seen: dict[tuple[str, ...], Finding] = {}
    for row in sorted(diagnosis.hypotheses, key=_order):
        unmeasured = row.verdict == "unmeasured"
        lines = [
            ("To measure it" if unmeasured else "Note", prose(row.verdict_note)),
            ("Quantity", prose(row.measured.name) if row.measured else ""),
            ("Check", prose(row.discriminating_check)),
            ("Change", prose(row.intervention)),
            ("Disproof", prose(row.disproof)),
            ("Undo", prose(row.undo)),
            ("Overlaps", ", ".join(code(other) for other in row.overlaps_with)),
        ]
        shown = [(head, text) for head, text in lines if text]
        title = code(row.id) + (" (unmeasured)" if unmeasured else "")
        wording = (row.id, row.claim, *(text for _, text in lines))
        seen.setdefault(wording, Finding(title=title, claim=prose(row.claim), lines=shown))
    return list(seen.values())[:ROWS_SHOWN]
