"""Mean steps along one axis: a panel per line, stacks by group of categories, intervals, and the fitted line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from analyzer.report.figures.marks import areas, number, plain_ticks
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.figures.text import shown
from analyzer.report.labels import PATH_GROUPS
from analyzer.report.numbers import NS_PER_MS, count
from analyzer.swept import Axis, Cell, Line, Sweep

PANELS = 6
"""Lines that are drawn: those with the most cells."""
ACROSS = 3
BAR = 0.035
"""Width of a stack as a share of the axis."""
AXIS_WORDS = {"context": "context, tokens", "batch": "batch, sequences"}
PER = {"context": 1_000.0, "batch": 1.0}
FIT = Fill("#000000")
ATTENTION = Fill("#469358")


def draw_axis(sweep: Sweep, axis: Axis) -> Sheet | str:
    """The lines along ``axis``; a text says why there is none."""
    every = [line for line in sweep.lines if line.axis == axis]
    if not every:
        return f"no two cells lie at two places of the {axis} axis with all else equal"
    most = sorted(every, key=lambda line: -len(line.cells))[:PANELS]
    lines = [line for line in every if line in most]
    cells = {cell.name: cell for cell in sweep.cells}
    rows = -(-len(lines) // ACROSS)
    sheet = Sheet(
        title=f"Mean step time over {axis}, phase {shown(sweep.phase, 40)}",
        subtitle=_subtitle(axis, lines, len(every)),
        data_in=2.9 * rows,
        alt_text=_alt_text(axis, lines),
        note=_note(lines),
    )
    grid = sheet.figure.subplots(rows, min(ACROSS, len(lines)), sharey=True, squeeze=False)
    panels = list(grid.flat)
    top = max(_reach(cells[name]) for line in lines for name in line.cells)
    for ax, line in zip(panels, lines, strict=False):
        _panel(ax, line, [cells[name] for name in line.cells], top)
    for ax in panels[len(lines) :]:
        ax.set_visible(False)
    for row in grid:
        row[0].set_ylabel("mean step, ms")
    sheet.legends.append(("What bounds the step", _entries(cells, lines)))
    two = [line.finding == "two points" for line in lines]
    may_be = [
        (not all(two), Entry("fitted line", FIT, width=1.2)),
        (any(two), Entry("two points: no line", FIT, width=1.2, dashes="--")),
        (_attends(cells, lines), Entry("attention and KV-cache kernels", ATTENTION, width=1.6)),
    ]
    sheet.legends.append(("", [entry for drawn, entry in may_be if drawn]))
    return sheet


def _attends(cells: Mapping[str, Cell], lines: Sequence[Line]) -> bool:
    return any(cells[name].attention_ns is not None for line in lines for name in line.cells)


def _panel(ax: Axes, line: Line, cells: Sequence[Cell], top_ns: float) -> None:
    low, high = min(line.places), max(line.places)
    pad = 0.08 * (high - low)
    half = BAR * (high - low) / 2
    ax.set_xlim(low - pad, high + pad)
    ax.set_ylim(0, 1.05 * top_ns / NS_PER_MS)
    x = np.array(line.places, np.float64)
    bottom = np.zeros(len(cells))
    for group, names in PATH_GROUPS.items():
        tall = np.array([sum(one.mean_ns.get(name, 0.0) for name in names) for one in cells]) / NS_PER_MS
        areas(ax, x - half, x + half, bottom, bottom + tall, Fill(GROUP_COLOURS[group]))
        bottom = bottom + tall
    for at, one in zip(x.tolist(), cells, strict=True):
        if one.step_ns.ci95 is not None:
            low_ns, high_ns = one.step_ns.ci95
            ax.vlines(at, low_ns / NS_PER_MS, high_ns / NS_PER_MS, color="#000000", linewidth=1.4, zorder=4)
    ends = np.array([low, high], np.float64)
    fitted = line.intercept_ns.value + line.slope.value * ends / PER[line.axis]
    dashes = "--" if line.finding == "two points" else "-"
    ax.plot(ends, fitted / NS_PER_MS, color=FIT.colour, linewidth=1.0, linestyle=dashes, zorder=3)
    _attention(ax, line, cells)
    ticks = sorted({*line.places})
    ax.set_xticks(_apart(ticks), [number(tick) for tick in _apart(ticks)], rotation=0)
    plain_ticks(ax, "y", 6)
    ax.set_xlabel(AXIS_WORDS[line.axis])
    ax.set_title(_panel_title(line))


def _attention(ax: Axes, line: Line, cells: Sequence[Cell]) -> None:
    """Path time of attention and its cache on the slowest rank, a part of the stacks' kernels."""
    points = [
        (place, one.attention_ns / NS_PER_MS)
        for place, one in zip(line.places, cells, strict=True)
        if one.attention_ns is not None
    ]
    if points:
        x, y = zip(*points, strict=True)
        ax.plot(x, y, color="#FFFFFF", linewidth=2.6, zorder=4.5)
        ax.plot(x, y, color=ATTENTION.colour, linewidth=1.6, marker="o", markersize=3, zorder=5)


def _apart(ticks: Sequence[int]) -> list[int]:
    """Of close places only the larger is labelled."""
    span = max(ticks) - min(ticks)
    kept: list[int] = []
    for tick in reversed(ticks):
        if not kept or kept[-1] - tick >= 0.16 * span:
            kept.append(tick)
    return kept[::-1]


def _panel_title(line: Line) -> str:
    other = "batch" if line.axis == "context" else "context"
    at = f"{other} undeclared" if line.at is None else f"{other} {line.at:,}"
    cache = "CACHE UNDECLARED" if line.cache_initialization is None else shown(line.cache_initialization, 24)
    return f"{at}\n{cache}"


def _reach(cell: Cell) -> float:
    return max(cell.step_ns.value, cell.step_ns.ci95[1] if cell.step_ns.ci95 is not None else 0.0)


def _entries(cells: dict[str, Cell], lines: Sequence[Line]) -> list[Entry]:
    used = [cells[name] for line in lines for name in line.cells]
    return [
        Entry(group, Fill(GROUP_COLOURS[group]))
        for group, names in PATH_GROUPS.items()
        if any(one.mean_ns.get(name) for one in used for name in names)
    ]


def _subtitle(axis: Axis, lines: Sequence[Line], number_of_lines: int) -> str:
    other = "batch" if axis == "context" else "context"
    text = f"A panel for each {other} and cache initialization; black bars: 95 % interval of a mean by its own steps."
    if number_of_lines > len(lines):
        text += f" The {len(lines)} lines with the most cells of {number_of_lines}."
    return text


def _note(lines: Sequence[Line]) -> str:
    notes = []
    if any(line.finding == "two points" for line in lines):
        notes.append("Dashed: two points, which establish no slope and no constancy.")
    if any(line.described is False for line in lines):
        notes.append("A line does not describe every panel: see the report.")
    return " ".join(notes)


def _alt_text(axis: Axis, lines: Sequence[Line]) -> str:
    parts = [
        f"{_panel_title(line).replace(chr(10), ', ')}: {count(len(line.cells), 'run')} from {min(line.places):,} to"
        f" {max(line.places):,}, slope {line.slope.value:,.0f} {line.unit}"
        for line in lines
    ]
    return f"Mean step time over {axis}. {'; '.join(parts)}."
