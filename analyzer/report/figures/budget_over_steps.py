"""How the parts of the step time change from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from analyzer.analysis import Analysis
from analyzer.diagnosis import Budget, Diagnosis, GlobalWindow, Window
from analyzer.explain.focus import leading_budgets, mean_step
from analyzer.explain.windows import AnyWindow, chosen_windows
from analyzer.model import IntArray
from analyzer.report.budgets import PHASES_IN_FULL
from analyzer.report.figures.marks import (
    FloatArray,
    areas,
    as_float,
    index_ticks,
    plain_ticks,
    scale_of,
    seams,
)
from analyzer.report.figures.palette import PATH_FILLS, SMALLER, Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.figures.text import boundary_text, shown, whose
from analyzer.report.numbers import count, ms, percent

MOST_COLUMNS = 400
SEPARATE_COLUMNS = 80
"""Up to here columns stand apart."""
SMALL_SHARE = 0.01
FAR_ABOVE = 3.0
LEFT_OUT = Fill("#FFFFFF", "xx")
SMALLER_PARTS = "smaller parts"


@dataclass(frozen=True)
class Panel:
    """A phase of one rank or of all. ``parts_ns``: (n, c) path time by category; columns are bins of ``per`` steps."""

    budget: Budget
    index: IntArray  # of the first window of each column
    parts_ns: FloatArray
    slowest_ns: IntArray  # the longest step of each column
    left_out: np.ndarray[tuple[int], np.dtype[np.bool_]]  # holds a step that the mean leaves out
    per: int


def draw(analysis: Analysis) -> Sheet | str:
    """One panel per leading phase; a text says why there is nothing to draw."""
    diagnosis = analysis.diagnosis
    panels = [
        panel
        for budget in leading_budgets(diagnosis.budget)[:PHASES_IN_FULL]
        if (panel := panel_of(diagnosis, budget))
    ]
    if not panels:
        return "no step was found on any rank"
    names = [name for name in PATH_FILLS if any(_is_large(panel, name) for panel in panels)]
    sheet = Sheet(
        title="Step time by what the step waited for, step after step",
        subtitle=f"Path time per step, {count(len(panels), 'phase')}; boundary: {boundary_text(diagnosis)}.",
        data_in=0.6 + 1.9 * len(panels),
        alt_text=_alt_text(panels),
        note=_note(panels),
    )
    axes = sheet.figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    has_smaller = [_draw_panel(ax, panel, names) for ax, panel in zip(axes, panels, strict=True)]
    axes[-1].set_xlabel("step (its number in the capture)")
    entries = [Entry(name, PATH_FILLS[name]) for name in names]
    if any(has_smaller):
        entries.append(Entry(SMALLER_PARTS, SMALLER))
    if any(panel.left_out.any() for panel in panels):
        entries.append(Entry("not in the mean (warm-up, outlier)", LEFT_OUT))
    entries.append(Entry("mean step", Fill("#000000"), width=1.4, dashes="--"))
    sheet.legends = [("", entries)]
    return sheet


def panel_of(diagnosis: Diagnosis, budget: Budget) -> Panel | None:
    """The steps of one phase that its budget is of, one rank's or those of all, binned where there are very many."""
    of_rank = next((rank.windows for rank in diagnosis.ranks if rank.rank == budget.rank), None)
    if of_rank is not None:
        return _panel(budget, of_rank)
    if budget.scope == "global" and diagnosis.global_ is not None:
        return _panel(budget, diagnosis.global_.windows)
    return None


def _panel(budget: Budget, of_all: Sequence[AnyWindow]) -> Panel | None:
    windows = [window for window in of_all if window.phase == budget.phase and not window.empty]
    if not windows:
        return None
    used = {window.index for window in chosen_windows(of_all, budget.phase).used}
    per = -(-len(windows) // MOST_COLUMNS)
    starts = np.arange(0, len(windows), per)
    lengths = np.array([window.end_ns - window.start_ns for window in windows], np.int64)
    sizes = np.diff(np.append(starts, len(windows)))
    return Panel(
        budget,
        np.array([windows[at].index for at in starts], np.int64),
        np.add.reduceat(_parts(windows), starts, axis=0) / sizes[:, None],
        np.maximum.reduceat(lengths, starts),
        np.logical_or.reduceat(np.array([window.index not in used for window in windows]), starts),
        per,
    )


def _parts(windows: Sequence[Window | GlobalWindow]) -> IntArray:
    return np.array([[window.path_ns.get(name, 0) for name in PATH_FILLS] for window in windows], np.int64)


def _is_large(panel: Panel, name: str) -> bool:
    column = list(PATH_FILLS).index(name)
    return bool(panel.parts_ns[:, column].sum() >= SMALL_SHARE * panel.parts_ns.sum() > 0)


def _draw_panel(ax: Axes, panel: Panel, names: list[str]) -> bool:
    """Draw one phase; whether some of its parts are drawn as smaller parts."""
    mean_ns = mean_step(panel.budget)
    per, unit = scale_of(int(mean_ns))
    columns = len(panel.index)
    x = np.arange(columns, dtype=np.float64)
    half = 0.42 if columns <= SEPARATE_COLUMNS else 0.5
    top_ns = _top(panel)
    floor = np.zeros(columns)
    order = list(PATH_FILLS)
    rest = panel.parts_ns.sum(axis=1) - panel.parts_ns[:, [order.index(name) for name in names]].sum(axis=1)
    stacks = [(panel.parts_ns[:, order.index(name)], PATH_FILLS[name]) for name in names] + [(rest, SMALLER)]
    for height, fill in stacks:
        some = height > 0
        low, high = floor / per, (floor + height) / per
        areas(ax, x[some] - half, x[some] + half, low[some], high[some], fill)
        floor = floor + height
        ends = np.flatnonzero(some) if columns <= SEPARATE_COLUMNS else np.empty(0, np.int64)
        level = floor / per
        seams(ax, [((x[at] - half, level[at]), (x[at] + half, level[at])) for at in ends.tolist()], 0.6)
    flagged = panel.left_out
    ceiling = floor[flagged] / per
    areas(
        ax, x[flagged] - half, x[flagged] + half, ceiling * 0, ceiling, Fill("#FFFFFF"), zorder=3, alpha=0.45
    )
    areas(ax, x[flagged] - half, x[flagged] + half, ceiling * 0, ceiling, LEFT_OUT, zorder=3.5, alpha=0.25)
    ax.axhline(float(mean_ns) / per, color="#FFFFFF", linewidth=1.4, zorder=4)  # between the dashes
    ax.axhline(float(mean_ns) / per, color="#000000", linewidth=1.4, linestyle="--", zorder=4)
    _mark_extremes(ax, x, panel, top_ns, per)
    ax.set_xlim(-0.7, max(columns, 3) - 0.3)
    ax.set_ylim(0, top_ns / per)
    ax.set_ylabel(f"{unit} per step")
    plain_ticks(ax, "y", 5)
    index_ticks(ax, x, panel.index.tolist())
    ax.set_title(_panel_title(panel))
    return bool(rest.sum() > 0)


def _top(panel: Panel) -> float:
    """Upper end of the axis: all of it, unless a few steps are far above the others."""
    clean = panel.slowest_ns[~panel.left_out] if not panel.left_out.all() else panel.slowest_ns
    usual = float(np.percentile(clean, 95))
    highest = float(panel.slowest_ns.max())
    return 1.08 * max(highest if highest <= FAR_ABOVE * usual else 1.4 * usual, 1.0)


def _mark_extremes(ax: Axes, x: FloatArray, panel: Panel, top_ns: float, per: int) -> None:
    """Triangles where a column reaches beyond the axis; in bins a dot at the slowest step."""
    slowest = as_float(panel.slowest_ns)
    above = slowest > top_ns
    ax.plot(x[above], np.full(int(above.sum()), 0.97 * top_ns / per), "k^", markersize=4, zorder=6)
    if panel.per > 1:
        ax.plot(x[~above], slowest[~above] / per, "k.", markersize=1.5, zorder=6)


def _panel_title(panel: Panel) -> str:
    budget = panel.budget
    steps = count(budget.windows, "step")
    if budget.windows_excluded:
        steps += f", {budget.windows_excluded:,} left out"
    mean = ms(budget.step_ns_total, max(budget.windows, 1))
    return f"Phase {shown(budget.phase, 40)}, {whose(budget)}: mean step {mean} ms ({steps})"


def _note(panels: list[Panel]) -> str:
    notes = []
    binned = [panel for panel in panels if panel.per > 1]
    if binned:
        phases = ", ".join(f"{panel.per} steps in phase {shown(panel.budget.phase, 30)}" for panel in binned)
        notes.append(
            f"Each column is the mean of consecutive steps ({phases}); dots mark the slowest of them."
        )
    for panel in panels:
        above = panel.slowest_ns > _top(panel)
        if above.any():
            notes.append(
                f"Triangles: {'columns' if panel.per > 1 else 'steps'} beyond the axis"
                f" ({int(above.sum())} in phase {shown(panel.budget.phase, 30)}, the longest step"
                f" {ms(int(panel.slowest_ns.max()))} ms)."
            )
    return " ".join(notes)


def _alt_text(panels: list[Panel]) -> str:
    parts = []
    for panel in panels:
        budget = panel.budget
        name, part = max(budget.path_ns_total.items(), key=lambda item: item[1])
        parts.append(
            f"phase {shown(budget.phase, 40)}, {whose(budget)}: {count(budget.windows, 'step')}, mean"
            f" {ms(budget.step_ns_total, max(budget.windows, 1))} ms, largest part {name}"
            f" ({percent(part, budget.step_ns_total)})"
        )
    return f"Stacked columns of path time per step; {'; '.join(parts)}."
