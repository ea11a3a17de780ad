"""What came of the first run's predictions, for COMPARISON.md and a terminal."""

from __future__ import annotations

from analyzer.comparison.result import Comparison, Prediction
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import ms
from analyzer.report.tables import table


def tested(comparison: Comparison) -> list[Prediction]:
    """Predictions that this pair of runs tests."""
    return [row for row in comparison.predictions if row.verdict != "not-tested"]


def tested_table(comparison: Comparison) -> str:
    """One row per tested prediction; empty without any."""
    rows = tested(comparison)
    if not rows:
        return ""
    cells = [
        [
            cell(row.change),
            cell(row.hypothesis),
            f"{ms(row.predicted_step_ns[0])} to {ms(row.predicted_step_ns[1])}",
            "-" if row.observed_step_ns is None else ms(row.observed_step_ns),
            "-" if row.observed_ci95_ns is None else " to ".join(ms(end) for end in row.observed_ci95_ns),
            row.verdict,
        ]
        for row in rows
    ]
    header = ["Change", "For", "Predicted mean step, ms", "Observed, ms", "95 % interval", "Verdict"]
    told = [f"{code(row.change)}: {prose(row.because)}." for row in rows if row.because]
    return "\n\n".join([table(header, cells, left=(0, 1, 5)), *told])


def not_tested(comparison: Comparison) -> str:
    """The others on one line."""
    rows = [row for row in comparison.predictions if row.verdict == "not-tested"]
    if not comparison.predictions:
        return "the first run's diagnosis holds none."
    if not rows:
        return "all are held against this pair above."
    names = ", ".join(code(row.change) for row in rows)
    return f"not tested by this pair: {names} (`--tested` names those whose change B made)."


def line(comparison: Comparison) -> str:
    """The tested predictions for a terminal; empty without any."""
    return "; ".join(
        f"{row.change}: predicted {ms(row.predicted_step_ns[0])} to {ms(row.predicted_step_ns[1])} ms, {row.verdict}"
        for row in tested(comparison)
    )
