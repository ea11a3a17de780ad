"""What the step waited for beside what the device did, per phase and rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from analyzer.analysis import Analysis
from analyzer.diagnosis import Budget, Diagnosis
from analyzer.explain.focus import leading_budgets, mean_step
from analyzer.report.budgets import PHASES_IN_FULL
from analyzer.report.figures.marks import areas, label_inside, seams
from analyzer.report.figures.palette import EXPOSURE_FILLS, PATH_FILLS, SMALLER, Fill
from analyzer.report.figures.sheet import SMALL_POINTS, Entry, Sheet
from analyzer.report.figures.text import boundary_text, fitted, shown
from analyzer.report.numbers import count, ms, percent

MOST_ROWS = 16
SMALL_SHARE = 0.01
ROW_IN = 0.32
PANEL_IN = 3.9
LABEL_IN = 1.75


def draw(analysis: Analysis) -> Sheet | str:
    """Two bars per row: the path and the device; a text says why there is nothing to draw."""
    diagnosis = analysis.diagnosis
    rows, hidden = rows_of(diagnosis)
    if not rows:
        return "no device work was recorded, so nothing was exposed"
    sheet = Sheet(
        title="What the step waited for, and what the device did meanwhile",
        subtitle="Shares of the mean step of each phase and rank, which need not agree; boundary: "
        f"{boundary_text(diagnosis)}.",
        data_in=0.8 + ROW_IN * max(len(rows), 3),
        alt_text=_alt_text(rows),
        note=f"The slowest ranks first; {count(hidden, 'row')} more in budget.csv." if hidden else "",
    )
    left, right = sheet.figure.subplots(1, 2, sharey=True)
    path_entries = _stack(left, [(row.path_ns_total, row.step_ns_total) for row in rows], PATH_FILLS)
    device = [(row.exposed_ns_total or {}, row.step_ns_total) for row in rows]
    device_entries = _stack(right, device, EXPOSURE_FILLS)
    left.set_title("Path: what the step waited for")
    right.set_title("Device: what it did, exposed time")
    labels = ["\n".join(_row_label(row)) for row in rows]
    left.set_yticks(range(len(rows)), labels)
    left.set_ylim(max(len(rows), 3) - 0.4, -0.6)
    right.tick_params(axis="y", length=0, labelleft=False)
    sheet.legends = [("Path", path_entries), ("Device", device_entries)]
    return sheet


def rows_of(diagnosis: Diagnosis) -> tuple[list[Budget], int]:
    """Budgets with device work, slowest rank first per leading phase, and how many were not taken."""
    chosen = leading_budgets(diagnosis.budget)[:PHASES_IN_FULL]
    each = max(1, MOST_ROWS // max(len(chosen), 1))
    rows: list[Budget] = []
    hidden = 0
    for lead in chosen:
        ranks = [
            row
            for row in diagnosis.budget
            if row.phase == lead.phase
            and row.scope == "rank"
            and row.windows
            and row.exposed_ns_total is not None
        ]
        ranks.sort(key=lambda row: (-mean_step(row), row.rank or 0))
        rows += ranks[:each]
        hidden += max(0, len(ranks) - each)
    return rows, hidden


def _row_label(row: Budget) -> tuple[str, str]:
    phase = fitted(f"{shown(row.phase, 40)}, rank {row.rank}", SMALL_POINTS, LABEL_IN)
    return phase, f"{ms(row.step_ns_total, row.windows)} ms"


def _stack(ax: Axes, rows: Sequence[tuple[Mapping[str, int], int]], fills: Mapping[str, Fill]) -> list[Entry]:
    """Stacked bars of 0..100 %; returns the legend of what was drawn."""
    names = [
        name for name in fills if any(parts.get(name, 0) >= SMALL_SHARE * step > 0 for parts, step in rows)
    ]
    floor = np.zeros(len(rows))
    y = np.arange(len(rows), dtype=np.float64)
    rest = [sum(parts.values()) - sum(parts.get(name, 0) for name in names) for parts, _ in rows]
    stacks = [(name, [parts.get(name, 0) for parts, _ in rows], fills[name]) for name in names]
    stacks.append(("smaller parts", rest, SMALLER))
    entries = []
    for name, values, fill in stacks:
        width = np.array(
            [100 * value / step if step else 0.0 for value, (_, step) in zip(values, rows, strict=True)]
        )
        some = width > 0
        if not some.any():
            continue
        areas(ax, floor[some], (floor + width)[some], y[some] - 0.36, y[some] + 0.36, fill)
        for at in np.flatnonzero(some).tolist():
            text = percent(values[at], rows[at][1])
            room = width[at] / 100 * PANEL_IN * 0.95
            label_inside(ax, text, floor[at], floor[at] + width[at], y[at], fill, room)
        floor = floor + width
        ends = [
            ((floor[at], y[at] - 0.36), (floor[at], y[at] + 0.36)) for at in np.flatnonzero(some).tolist()
        ]
        seams(ax, ends, 0.8)
        entries.append(Entry(name, fill))
    ax.set_xlim(0, 100)
    ax.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])
    ax.set_xlabel("share of the mean step, %")
    return entries


def _alt_text(rows: list[Budget]) -> str:
    parts = []
    for row in rows[:4]:
        name, part = max((row.exposed_ns_total or {}).items(), key=lambda item: item[1])
        parts.append(
            f"phase {shown(row.phase, 40)}, rank {row.rank}, mean step {ms(row.step_ns_total, row.windows)} ms:"
            f" most of the step the device was in {name} ({percent(part, row.step_ns_total)})"
        )
    more = f"; {count(len(rows) - 4, 'more row')}" if len(rows) > 4 else ""
    return f"Stacked bars of path time and of exposed device time; {'; '.join(parts)}{more}."
