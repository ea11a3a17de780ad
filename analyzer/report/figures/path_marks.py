"""The critical path of a step: a strip on top, a track on each lane, lines where it changes lanes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.report.figures.detail_step import PLOT_IN, Step
from analyzer.report.figures.lanes import STRIP, TRACK, LaneRows, Runs, dominant
from analyzer.report.figures.marks import areas, as_float, label_inside
from analyzer.report.figures.palette import PATH_FILLS
from analyzer.report.figures.sheet import DPI

MOST_JUMPS = 400


def draw_path(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> set[str]:
    """The path in the strip on top and on the tracks of its lanes; returns the categories on it."""
    start, end = step.table.start_ns[step.path], step.table.end_ns[step.path]
    category = step.table.category[step.path].astype(np.int64)
    columns = dominant(start, end, category, step.path_lane, round(PLOT_IN * DPI))
    for one in np.unique(columns.category).tolist():
        mine = columns.category == one
        fill = PATH_FILLS[CATEGORY_NAMES[Category(one)]]
        tracks = [(0.0, STRIP, mine)]
        tracks += [(row.track_top, TRACK, mine & (columns.lane == row.lane)) for row in lanes]
        for top, height, here in tracks:
            left, right = as_float(columns.start_ns[here], per), as_float(columns.end_ns[here], per)
            areas(ax, left, right, np.full(len(left), top), np.full(len(left), top + height), fill, zorder=3)
    _name_path(ax, step, columns, per)
    return {CATEGORY_NAMES[Category(one)] for one in np.unique(columns.category).tolist()}


def _name_path(ax: Axes, step: Step, columns: Runs, per: int) -> None:
    """Categories written into the strip where a stretch is wide enough."""
    for at in range(len(columns.start_ns)):
        low, high = int(columns.start_ns[at]), int(columns.end_ns[at])
        name = CATEGORY_NAMES[Category(int(columns.category[at]))]
        room_in = (high - low) / step.pixel_ns / DPI
        label_inside(ax, name, low / per, high / per, STRIP / 2, PATH_FILLS[name], room_in)


def draw_jumps(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> int:
    """Vertical lines where the path changes lanes, one per pixel and pair of lanes; returns how many."""
    middle = {row.lane: row.track_top + TRACK / 2 for row in lanes}
    known = np.flatnonzero(np.isin(step.path_lane, list(middle)))
    lane = step.path_lane[known]
    at = np.flatnonzero(lane[1:] != lane[:-1])
    when = step.table.start_ns[step.path][known[at + 1]] - step.start_ns
    pixel = (as_float(when) / step.pixel_ns).astype(np.int64)
    key = np.stack([pixel, lane[at], lane[at + 1]], axis=1)
    _, first = np.unique(key, axis=0, return_index=True) if len(key) else (key, np.empty(0, np.int64))
    lines = [
        [(when[i] / per, middle[int(lane[at[i]])]), (when[i] / per, middle[int(lane[at[i] + 1])])]
        for i in sorted(first.tolist())
    ]
    few = len(lines) <= MOST_JUMPS
    ax.add_collection(
        LineCollection(lines, colors="#000000", linewidths=0.8 if few else 0.4, zorder=4, rasterized=not few),
        autolim=False,
    )
    return len(lines)
