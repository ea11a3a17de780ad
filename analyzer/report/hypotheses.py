"""The appendix of all hypotheses: each verdict on one line, and each wording once."""

from __future__ import annotations

from collections import Counter

from analyzer.diagnosis import Diagnosis, Hypothesis
from analyzer.report.escape import cell, code, prose
from analyzer.report.findings import Finding, gain_text, share_text, value_text
from analyzer.report.labels import VERDICT_ORDER
from analyzer.report.numbers import count
from analyzer.report.tables import table

ROWS_SHOWN = 48


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
            _rank(row),
            row.verdict,
            share_text(row),
            value_text(row),
            "-" if row.measured is None else row.measured.kind,
            gain_text(row),
            f"{cell(row.evidence[0].file, 30)} {row.evidence[0].line:,}" if row.evidence else "-",
        ]
        for row in rows[:ROWS_SHOWN]
    ]
    header = [
        "Hypothesis", "Phase", "Rank", "Verdict", "Share", "Value", "Kind", "Gain (bound)",
        "Longest, by line",
    ]  # fmt: skip
    text = table(header, cells, left=(0, 1, 3, 6))
    left = len(rows) - ROWS_SHOWN
    return f"{text}\n\n{count(left, 'more row')} in `hypotheses.csv`." if left > 0 else text


def _rank(row: Hypothesis) -> str:
    if row.scope == "client":
        return "client"
    return "all" if row.rank is None or row.scope == "global" else str(row.rank)


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
    if not names:
        return ""
    most = _most_frequent_advice(diagnosis)
    shared = f" To measure those of which nothing else is said below: {prose(most)}." if most else ""
    return f"Unmeasured: {', '.join(names)}.{shared}"


def _most_frequent_advice(diagnosis: Diagnosis) -> str:
    """What would measure more than half of the unmeasured hypotheses; "" where they differ."""
    advice = {row.id: row.verdict_note for row in diagnosis.hypotheses if row.verdict == "unmeasured"}
    most, times = max(Counter(advice.values()).items(), key=lambda pair: pair[1], default=("", 0))
    return most if times > 2 and 2 * times > len(advice) else ""


def hypothesis_notes(diagnosis: Diagnosis) -> list[Finding]:
    """Claim, check, intervention, disproof and undo of each hypothesis, once per wording."""
    seen: dict[tuple[str, ...], Finding] = {}
    said = _most_frequent_advice(diagnosis)
    for row in sorted(diagnosis.hypotheses, key=_order):
        unmeasured = row.verdict == "unmeasured"
        lines = [
            (
                "To measure it" if unmeasured else "Note",
                "" if unmeasured and row.verdict_note == said else prose(row.verdict_note),
            ),
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
