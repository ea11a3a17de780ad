"""Marks of the cross-rank timeline: bars of the ranks, the line through them, the column of waits beside them.

Lanes lie at 0, 1, 2 and so on; y grows downwards.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from analyzer.report.figures.marks import RASTER_FROM, FloatArray, areas, as_float, label_inside
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.rank_step import LOOKS, WAITING, RankStep
from analyzer.report.figures.sheet import DPI, SMALL_POINTS
from analyzer.report.figures.text import width_in
from analyzer.report.numbers import percent

BAR = 0.54
LINE_AT = 0.68
HEAD = 0.13
"""As shares of a lane: height of its bar, the place of its line, half an arrow's head."""
LINE_POINTS = 2.6
JUMP_POINTS = 1.3
HALO_POINTS = 1.4
MOST_JUMPS = 100
"""Changes of lane that can still be told apart."""


def draw_bars(ax: Axes, step: RankStep, per: int) -> set[str]:
    """Each rank's own path; returns the looks that occur."""
    runs = [lane.runs for lane in step.lanes]
    lane = np.repeat(np.arange(len(runs), dtype=np.float64), [len(one.category) for one in runs])
    look = np.concatenate([one.category for one in runs])
    left = as_float(np.concatenate([one.start_ns for one in runs]), per)
    right = as_float(np.concatenate([one.end_ns for one in runs]), per)
    found: set[str] = set()
    for code, (name, fill) in enumerate(LOOKS.items()):
        here = look == code
        if here.any():
            _one_area(ax, left[here], right[here], lane[here], fill)
            found.add(name)
    for at in range(len(runs)):
        _name_longest_wait(ax, step, at, per)
    return found


def _one_area(ax: Axes, left: FloatArray, right: FloatArray, top: FloatArray, fill: Fill) -> None:
    """Bars of one fill as one shape: a thousand hatched ones by themselves take seconds."""
    x = np.column_stack([left, left, right, right, left])
    y = np.column_stack([top, top + BAR, top + BAR, top, top])
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(left))
    shape = Path(np.column_stack([x.ravel(), y.ravel()]), codes)
    ax.add_artist(
        PathPatch(
            shape,
            facecolor=fill.colour,
            edgecolor=fill.ink,
            linewidth=0,
            hatch=fill.hatch or None,
            antialiased=False,
            zorder=2,
            rasterized=len(left) > RASTER_FROM,
        )
    ).set_in_layout(False)


def _name_longest_wait(ax: Axes, step: RankStep, at: int, per: int) -> None:
    """Which rank is waited for, in the widest wait of a lane if it fits."""
    runs = step.lanes[at].runs
    waits = np.flatnonzero(runs.category == list(LOOKS).index(WAITING))
    if not len(waits):
        return
    widest = waits[int(np.argmax((runs.end_ns - runs.start_ns)[waits]))]
    low, high = int(runs.start_ns[widest]), int(runs.end_ns[widest])
    room_in = (high - low) / step.pixel_ns / DPI
    late = f"rank {runs.lane[widest]}"
    fitting = [t for t in (f"waits for {late}", f"for {late}") if width_in(t, SMALL_POINTS) < room_in - 0.1]
    if fitting:
        label_inside(ax, fitting[0], low / per, high / per, at + BAR / 2, LOOKS[WAITING], room_in)


def draw_line(ax: Axes, step: RankStep, per: int) -> int:
    """The path along its lanes and from lane to lane; returns how many lines between lanes are drawn."""
    path = step.path
    y = path.lane + LINE_AT
    left, right = as_float(path.start_ns, per), as_float(path.end_ns, per)
    along = [[(a, v), (b, v)] for a, b, v in zip(left.tolist(), right.tolist(), y.tolist(), strict=True)]
    at = np.flatnonzero(path.lane[1:] != path.lane[:-1])
    across = [[(left[i + 1], y[i]), (left[i + 1], y[i + 1])] for i in at.tolist()]
    few = len(at) <= MOST_JUMPS
    for lines, width, colour, order in (
        (across if few else [], JUMP_POINTS + HALO_POINTS, "#FFFFFF", 3.8),
        (across if few else [], JUMP_POINTS, "#000000", 4.0),
        (along, LINE_POINTS, "#000000", 4.0),
    ):
        drawn = LineCollection(
            lines, colors=colour, linewidths=width, zorder=order, capstyle="butt", clip_on=False
        )
        drawn.set_in_layout(False)
        ax.add_collection(drawn, autolim=False)
    for marker, down in (("v", 1), ("^", -1)) if few else ():
        to = at[np.sign(path.lane[at + 1] - path.lane[at]) == down] + 1
        if len(to):
            (heads,) = ax.plot(left[to], y[to] - down * HEAD, f"k{marker}", markersize=5, zorder=4.2)
            heads.set(clip_on=False, in_layout=False)
    return len(at) if few else 0


def draw_waits(ax: Axes, step: RankStep) -> None:
    """How much of the step each rank waited."""
    part = np.array([100 * lane.waited_ns / step.span_ns for lane in step.lanes])
    top = np.arange(len(step.lanes), dtype=np.float64)
    some = part > 0
    areas(ax, part[some] * 0, part[some], top[some], top[some] + BAR, LOOKS[WAITING])
    for at, lane in enumerate(step.lanes):
        text = percent(lane.waited_ns, step.span_ns)
        written = ax.text(
            part[at] + 4, top[at] + BAR / 2, text, ha="left", va="center", fontsize=SMALL_POINTS
        )
        written.set_in_layout(False)
    ax.set_xlim(0, 165)
    ax.set_xticks([0, 50, 100], ["0", "50", "100"])
    ax.spines["bottom"].set_bounds(0, 100)
    ax.set_xlabel("waited, % of step")
    ax.tick_params(axis="y", length=0, labelleft=False)
