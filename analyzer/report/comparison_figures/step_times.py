"""How the step times of both runs are distributed, and how they go over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analyzer.comparison.result import Comparison
from analyzer.model import IntArray
from analyzer.report.comparison_figures.words import phase_text, subtitle, title, warnings
from analyzer.report.figures.marks import RASTER_FROM, FloatArray, as_float, number, plain_ticks
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.numbers import NS_PER_MS, count, ms

CUT_FROM_STEPS = 5
"""Of fewer steps none is beyond the axis."""
TAIL = 0.025
REACH = 1.5
"""The axis reaches this many spans of the middle 95 % beyond them."""
LEAST_SPAN = 0.01
"""Of the step time: the axis does not magnify differences far below it."""
FROM_ZERO = 0.3
"""Axes whose lower end is below this part of the upper end start at 0."""
MOST_IN_CURVE = 1_000
DENSE_FROM = 1_000
"""Steps of one side above which dots merge."""


class Series(NamedTuple):
    """The step times of one side in order of time, and how its curve looks."""

    side: str
    times_ns: IntArray
    median_ns: int
    fill: Fill
    dashes: Literal["-", "--"]


A_FILL = Fill(GROUP_COLOURS["kernels"])
B_FILL = Fill("#D07C1F")
MEDIAN = Fill("#000000")


def draw(comparison: Comparison) -> Sheet | str:
    """Each step of A, each step of B, and both distributions; a text says why there is nothing to draw."""
    if not comparison.pairs:
        return "no phase of A stands against one of B"
    every = _series(comparison)
    for one in every:
        if not len(one.times_ns):
            return f"no step time of {one.side} is part of this result"
    low_ns, high_ns = axis_range([one.times_ns for one in every])
    a, b = every
    sheet = Sheet(
        title=title(
            comparison, f"time of each step; medians A → B: {ms(a.median_ns)} → {ms(b.median_ns)} ms"
        ),
        subtitle=subtitle(comparison),
        data_in=3.5,
        alt_text=_alt_text(comparison, every),
        note=_note(every, low_ns, high_ns),
    )
    *each, both = sheet.figure.subplots(1, 3, sharey=True)
    for ax, one in zip(each, every, strict=True):
        _draw_steps(ax, one, low_ns, high_ns)
    _draw_shares(both, every)
    each[0].set_ylim(low_ns / NS_PER_MS, high_ns / NS_PER_MS)
    each[0].set_ylabel("ms per step")
    plain_ticks(each[0], "y", 7)
    entries = [Entry(one.side, one.fill, width=1.8, dashes=one.dashes) for one in every]
    sheet.legends = [("", [*entries, Entry("median", MEDIAN, width=0.9)])]
    return sheet


def _series(comparison: Comparison) -> tuple[Series, Series]:
    a, b = comparison.a, comparison.b
    return (
        Series("A", np.array(a.step_times_ns, np.int64), a.step_ns.median, A_FILL, "-"),
        Series("B", np.array(b.step_times_ns, np.int64), b.step_ns.median, B_FILL, "--"),
    )


def axis_range(sides: Sequence[IntArray]) -> tuple[float, float]:
    """Ends of the axis (ns): all steps, unless a few lie far from the others."""
    inner = [_middle(side) for side in sides]
    low, high = min(one for one, _ in inner), max(two for _, two in inner)
    reach = REACH * max(high - low, LEAST_SPAN * high)
    low = max(low - reach, float(min(side.min() for side in sides)))
    high = min(high + reach, float(max(side.max() for side in sides)))
    pad = max(0.06 * (high - low), LEAST_SPAN * high / 2, 1.0)
    bottom = low - pad
    return (0.0 if bottom < FROM_ZERO * high else bottom), high + pad


def _middle(times_ns: IntArray) -> tuple[float, float]:
    """The ends of the middle 95 %, themselves steps; of few steps all."""
    if len(times_ns) < CUT_FROM_STEPS:
        return float(times_ns.min()), float(times_ns.max())
    low = np.quantile(times_ns, TAIL, method="higher")
    high = np.quantile(times_ns, 1 - TAIL, method="lower")
    return float(low), float(high)


def _draw_steps(ax: Axes, one: Series, low_ns: float, high_ns: float) -> None:
    """Every step as a dot in order of time; those beyond the axis as triangles at its end."""
    n = len(one.times_ns)
    x, y = np.arange(1, n + 1, dtype=np.float64), as_float(one.times_ns, NS_PER_MS)
    above, below = one.times_ns > high_ns, one.times_ns < low_ns
    within = ~(above | below)
    _dots(ax, x[within], y[within], "o", _dot_points(n), one.fill)
    edge = 0.02 * (high_ns - low_ns)
    for outside, level, marker in ((above, high_ns - edge, "^"), (below, low_ns + edge, "v")):
        at = x[outside]
        _dots(ax, at, np.full(len(at), level / NS_PER_MS), marker, 4.5, MEDIAN)
    median = one.median_ns / NS_PER_MS
    # behind dots that can be counted, which it would hide; across those that merge, set off from them
    dense = n > DENSE_FROM
    if dense:
        ax.axhline(median, color="#FFFFFF", linewidth=2.2, zorder=4)
    ax.axhline(median, color=MEDIAN.colour, linewidth=0.9, zorder=4 if dense else 2)
    pad = max(0.6, 0.02 * n)
    ax.set_xlim(1 - pad, n + pad)
    ticks = [tick for tick in MaxNLocator(5, integer=True).tick_values(1, n) if 1 <= tick <= n]
    ax.set_xticks(ticks, [number(tick) for tick in ticks])
    ax.set_xlabel("step, in order of time")
    ax.set_title(f"{one.side}: {count(n, 'step')}\nmedian {ms(one.median_ns)} ms")


def _dot_points(n: int) -> float:
    return 4.0 if n <= 100 else 2.5 if n <= DENSE_FROM else 1.0


def _dots(ax: Axes, x: FloatArray, y: FloatArray, marker: str, points: float, fill: Fill) -> None:
    ax.plot(
        x,
        y,
        linestyle="none",
        marker=marker,
        markersize=points,
        markeredgewidth=0,
        color=fill.colour,
        rasterized=len(x) > RASTER_FROM,
        zorder=3,
    )


def _draw_shares(ax: Axes, every: Sequence[Series]) -> None:
    """Cumulative distributions on their sides, so that all three panels share the axis of time."""
    for one in every:
        share, level = _curve(one.times_ns)
        ax.plot(
            share,
            level / NS_PER_MS,
            color=one.fill.colour,
            linewidth=1.8,
            linestyle=one.dashes,
            zorder=3,
        )
        ax.hlines(one.median_ns / NS_PER_MS, 0, 50, color=MEDIAN.colour, linewidth=0.9, zorder=2)
    ax.axvline(50, color=MEDIAN.colour, linewidth=0.9, zorder=2)
    ax.set_xlim(0, 100)
    ax.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])
    ax.set_xlabel("share of steps that took no longer, %")
    ax.set_title("Cumulative distribution\nof both sides")


def _curve(times_ns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Share of steps (%) and time (ns): a stair of all steps, of very many a line through some of them."""
    n = len(times_ns)
    ordered = as_float(np.sort(times_ns))
    if n > MOST_IN_CURVE:
        at = np.linspace(0, n - 1, MOST_IN_CURVE).round().astype(np.int64)
        return as_float(100 * (at + 1)) / n, ordered[at]
    shares = np.arange(n + 1, dtype=np.float64) * 100 / n
    return np.repeat(shares, 2)[1:-1], np.repeat(ordered, 2)


def _note(every: Sequence[Series], low_ns: float, high_ns: float) -> str:
    notes = [
        text
        for one in every
        for text in (
            _beyond(one.side, one.times_ns[one.times_ns > high_ns], "above", "longest"),
            _beyond(one.side, one.times_ns[one.times_ns < low_ns], "below", "shortest"),
        )
        if text
    ]
    told = f"Triangles are steps beyond the axis: {'; '.join(notes)}. " if notes else ""
    return told + (f"The axis of time starts at {ms(round(low_ns))} ms, not at 0." if low_ns > 0 else "")


def _beyond(side: str, times_ns: IntArray, where: str, most: str) -> str:
    if not len(times_ns):
        return ""
    extreme = int(times_ns.max() if where == "above" else times_ns.min())
    if len(times_ns) == 1:
        return f"1 of {side} {where} ({ms(extreme)} ms)"
    return f"{len(times_ns):,} of {side} {where} (the {most} {ms(extreme)} ms)"


def _alt_text(comparison: Comparison, every: Sequence[Series]) -> str:
    parts = [
        f"{one.side}: {count(len(one.times_ns), 'step')}, {ms(int(one.times_ns.min()))} to"
        f" {ms(int(one.times_ns.max()))} ms, median {ms(one.median_ns)} ms"
        for one in every
    ]
    verdict = "".join(f"; {word}" for word in warnings(comparison))
    return (
        f"Time of each step in order of time, and cumulative distributions, {phase_text(comparison.pairs[0])}{verdict}."
        f" {'; '.join(parts)}."
    )
