"""Which device work the step waited for, by name and by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from analyzer.analysis import Analysis
from analyzer.categories import DEVICE_CATEGORIES
from analyzer.diagnosis import Budget, Diagnosis
from analyzer.explain.focus import leading_budgets
from analyzer.explain.windows import chosen_windows, used_windows
from analyzer.model import NO_NAME
from analyzer.report.figures.marks import areas, plain_ticks, scale_of
from analyzer.report.figures.palette import FAMILY_COLOURS, SMALLER, Fill, family
from analyzer.report.figures.sheet import SMALL_POINTS, Entry, Sheet
from analyzer.report.figures.text import boundary_text, fitted, middle_fitted, shown, whose
from analyzer.report.numbers import count, ms, percent
from analyzer.tables import SegmentTable

UNKNOWN = "other"
TOP_KERNELS = 12
TOP_CLASSES = 12
NAME_IN = 6.2
CLASS_IN = 1.3


@dataclass(frozen=True)
class Bar:
    """Path time of one kernel, of one class or of a rest, over the steps of the budget."""

    label: str
    path_ns: int
    class_: str | None  # None: several

    @property
    def fill(self) -> Fill:
        """Its colour: the family of its class."""
        return SMALLER if self.class_ is None else Fill(FAMILY_COLOURS[family(self.class_)])


def draw(analysis: Analysis) -> Sheet | str:
    """Bars by name and by class of the phase with the most time; a text says why there is nothing."""
    diagnosis = analysis.diagnosis
    budget = next(iter(leading_budgets(diagnosis.budget)), None)
    if budget is None:
        return "no step was found on any rank"
    table = analysis.segment_table if budget.rank is not None else analysis.global_segments
    if table is None:
        return "the path segments are not part of this result"
    totals = path_by_name(diagnosis, table, budget)
    if not totals:
        return f"no device work lies on the path of phase {shown(budget.phase, 40)}, {whose(budget)}"
    names, classes = _bars(diagnosis, budget, totals)
    largest = names[0]
    sheet = Sheet(
        title="Device work that the step waited for",
        subtitle=f"Path time per step and share of the step: phase {shown(budget.phase, 40)}, {whose(budget)},"
        f" mean of {count(budget.windows, 'step')} of {ms(budget.step_ns_total, budget.windows)} ms; boundary: "
        f"{boundary_text(diagnosis)}.",
        data_in=0.8 + 0.36 * max(len(names), 5),
        alt_text=f"Path time of device work by name and by class, phase {shown(budget.phase, 40)}, {whose(budget)}."
        f" The largest: {largest.label}.",
    )
    left, right = sheet.figure.subplots(1, 2, width_ratios=(2.4, 1))
    _draw_names(left, names, budget)
    _draw_classes(right, classes, budget)
    used = {family(bar.class_) for bar in (*names, *classes) if bar.class_ is not None}
    entries = [Entry(name, Fill(colour)) for name, colour in FAMILY_COLOURS.items() if name in used]
    if any(bar.class_ is None for bar in (*names, *classes)):
        entries.append(Entry("several names", SMALLER))
    sheet.legends = [("", entries)]
    return sheet


def path_by_name(diagnosis: Diagnosis, table: SegmentTable, budget: Budget) -> dict[str, int]:
    """Path time in ns of device work by name, largest first, over the steps of a budget.

    ``table``: of one rank's budget the segments, of all ranks' those of the path through all.
    """
    rows = np.flatnonzero(
        _of_whom(diagnosis, table, budget)
        & np.isin(table.category, [int(category) for category in DEVICE_CATEGORIES])
    )
    totals: dict[str, int] = {}
    codes, at = np.unique(table.name[rows], return_inverse=True)
    sums = np.zeros(len(codes), np.int64)
    np.add.at(sums, at, (table.end_ns - table.start_ns)[rows])
    for code, total in zip(codes.tolist(), sums.tolist(), strict=True):
        name = table.names[code] if code >= 0 else NO_NAME
        totals[name] = totals.get(name, 0) + total
    return dict(
        sorted(((name, ns) for name, ns in totals.items() if ns), key=lambda item: (-item[1], item[0]))
    )


def _of_whom(diagnosis: Diagnosis, table: SegmentTable, budget: Budget) -> npt.NDArray[np.bool_]:
    """Which segments are of the windows that the budget rests on."""
    if budget.rank is None:
        windows = diagnosis.global_.windows if diagnosis.global_ is not None else []
        return np.isin(table.window, [one.index for one in chosen_windows(windows, budget.phase).used])
    rank = next(rank for rank in diagnosis.ranks if rank.rank == budget.rank)
    used = [window.index for window in used_windows(rank, budget.phase)]
    mine: npt.NDArray[np.bool_] = (table.rank == rank.rank) & np.isin(table.window, used)
    return mine


def _bars(diagnosis: Diagnosis, budget: Budget, totals: Mapping[str, int]) -> tuple[list[Bar], list[Bar]]:
    class_of = {row.name: row.class_ for row in diagnosis.kernels if budget.rank in (None, row.rank)}
    by_class: dict[str, int] = {}
    for name, path_ns in totals.items():
        key = class_of.get(name, UNKNOWN)
        by_class[key] = by_class.get(key, 0) + path_ns
    names = [
        Bar(middle_fitted(name, SMALL_POINTS, NAME_IN), ns, class_of.get(name, UNKNOWN))
        for name, ns in totals.items()
    ]
    classes = [
        Bar(middle_fitted(name, SMALL_POINTS, CLASS_IN), ns, name)
        for name, ns in sorted(by_class.items(), key=lambda item: (-item[1], item[0]))
    ]
    return _with_rest(names, TOP_KERNELS, "name"), _with_rest(classes, TOP_CLASSES, "class")


def _with_rest(bars: list[Bar], most: int, noun: str) -> list[Bar]:
    if len(bars) <= most + 1:
        return bars
    rest = sum(bar.path_ns for bar in bars[most:])
    words = count(len(bars) - most, f"more {noun}", "more classes" if noun == "class" else None)
    return [*bars[:most], Bar(words, rest, None)]


def _draw_names(ax: Axes, bars: Sequence[Bar], budget: Budget) -> None:
    _draw_bars(ax, bars, budget, thickness=0.2)
    for y, bar in enumerate(bars):
        label = ax.text(
            0,
            y - 0.26,
            f" {bar.label}",
            fontsize=SMALL_POINTS,
            va="center",
            zorder=5,
        )
        label.set_in_layout(False)
    ax.set_yticks([])
    ax.set_ylim(len(bars) - 0.55, -0.6)
    ax.set_title("By name")


def _draw_classes(ax: Axes, bars: Sequence[Bar], budget: Budget) -> None:
    _draw_bars(ax, bars, budget, thickness=0.3)
    ax.set_yticks(range(len(bars)), [bar.label for bar in bars])
    ax.set_ylim(max(len(bars), 7) - 0.4, -0.6)
    ax.set_title("By class")


def _draw_bars(ax: Axes, bars: Sequence[Bar], budget: Budget, thickness: float) -> None:
    per_step = [bar.path_ns / budget.windows for bar in bars]
    per, unit = scale_of(int(budget.step_ns_total / budget.windows))
    middle = 0.12 if thickness < 0.3 else 0.0
    for y, (bar, ns) in enumerate(zip(bars, per_step, strict=True)):
        low, high = np.array([y + middle - thickness]), np.array([y + middle + thickness])
        areas(ax, np.zeros(1), np.array([ns / per]), low, high, bar.fill)
        value = f" {ms(bar.path_ns, budget.windows)} ms, {percent(bar.path_ns, budget.step_ns_total)}"
        if thickness < 0.3 and bar.class_ is not None:
            value += f", {fitted(shown(bar.class_, 40), SMALL_POINTS, 1.0)}"
        label = ax.text(ns / per, y + middle, value, fontsize=SMALL_POINTS, va="center")
        label.set_in_layout(False)
    # room for the figures behind the longest bar
    ax.set_xlim(0, max(per_step) / per * (1.55 if thickness < 0.3 else 2.1))
    if thickness < 0.3:
        ax.set_xlabel(f"path time per step, {unit}")
        plain_ticks(ax, "x", 6)
    else:
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
