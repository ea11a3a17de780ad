"""Areas and axes as all figures draw them: many bars are one collection, ticks are plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analyzer.model import IntArray
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.sheet import SMALL_POINTS
from analyzer.report.figures.text import fitted, width_in

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
RASTER_FROM = 2_000
"""Polygons from which on a collection becomes an image inside the SVG."""


def areas(
    ax: Axes,
    left: FloatArray,
    right: FloatArray,
    bottom: FloatArray,
    top: FloatArray,
    fill: Fill,
    zorder: float = 2,
    alpha: float | None = None,
) -> None:
    """Rectangles of one fill, (n,) edges in data coordinates each. Nothing where n is 0."""
    if not len(left):
        return
    corners = np.stack(
        [
            np.column_stack([left, bottom]),
            np.column_stack([left, top]),
            np.column_stack([right, top]),
            np.column_stack([right, bottom]),
        ],
        axis=1,
    )
    ax.add_collection(
        PolyCollection(
            list(corners),
            facecolors=fill.colour,
            edgecolors=fill.ink,
            linewidths=0,
            hatch=fill.hatch or None,
            antialiaseds=False,
            zorder=zorder,
            alpha=alpha,
            rasterized=len(left) > RASTER_FROM,
        ),
        autolim=False,
    )


def seams(ax: Axes, lines: Sequence[tuple[tuple[float, float], tuple[float, float]]], width: float) -> None:
    """White hairlines between areas of which one ends where the next begins."""
    if lines:
        ax.add_collection(
            LineCollection(
                lines, colors="#FFFFFF", linewidths=width, zorder=2.5, rasterized=len(lines) > RASTER_FROM
            ),
            autolim=False,
        )


def plain_ticks(ax: Axes, which: str, steps: int = 8, whole: bool = False) -> None:
    """At most ``steps`` ticks with plain numbers, only whole ones if asked."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(
        MaxNLocator(steps, steps=[1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10], integer=whole)
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def number(value: float) -> str:
    """A tick's number: no exponent, no mathtext, no trailing zeros."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def index_ticks(ax: Axes, positions: FloatArray, labels: Sequence[int], most: int = 12) -> None:
    """Ticks at up to ``most`` of the columns, labelled with what each column is."""
    n = len(labels)
    step = max(1, -(-n // most))
    chosen = range(0, n, step)
    ax.set_xticks([float(positions[at]) for at in chosen], [str(labels[at]) for at in chosen])


def scale_of(span_ns: int) -> tuple[int, str]:
    """Nanoseconds of the unit in which a span reads well, and its name."""
    for per, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")):
        if span_ns >= 2 * per:
            return per, unit
    return 1, "ns"


def label_inside(
    ax: Axes, text: str, left: float, right: float, middle: float, fill: Fill, room_in: float
) -> None:
    """``text`` in the middle of an area, if it fits whole."""
    if width_in(text, SMALL_POINTS) + 0.04 > room_in:
        return
    box = {"facecolor": fill.colour, "edgecolor": "none", "pad": 0.8} if fill.hatch else None
    written = ax.text(
        (left + right) / 2,
        middle,
        text,
        ha="center",
        va="center",
        color=fill.ink,
        fontsize=SMALL_POINTS,
        bbox=box,
    )
    written.set_in_layout(False)
    written.set_zorder(5)


def name_inside(ax: Axes, name: str, left: float, middle: float, room_in: float, least: int = 4) -> None:
    """The beginning of ``name`` from the left edge of an area, if at least ``least`` characters fit."""
    text = fitted(name, SMALL_POINTS, room_in - 0.05)
    if len(text) < min(least, len(name)) or not text:
        return
    written = ax.text(
        left, middle, f" {text}", ha="left", va="center", fontsize=SMALL_POINTS, color="#000000", clip_on=True
    )
    written.set_in_layout(False)
    written.set_zorder(5)


def as_float(values: IntArray, per: int = 1) -> FloatArray:
    """Integers as floats in another unit, for drawing only."""
    return np.asarray(values, np.float64) / per
