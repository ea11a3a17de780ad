"""How far the CPU runs ahead of the device: queue depth and launch latency over time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from analyzer.analysis import Analysis
from analyzer.diagnosis import Diagnosis, Rank
from analyzer.model import IntArray
from analyzer.report.figures.marks import FloatArray, as_float, number, plain_ticks, scale_of
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.figures.text import boundary_text
from analyzer.report.numbers import count
from analyzer.report.views import focus_rank
from analyzer.tables import QueueTable

DEPTH = Fill(GROUP_COLOURS["kernels"])
BAND = Fill(GROUP_COLOURS["copies"])
MEDIAN = Fill("#000000")
BOUNDARY = Fill("#8C8C8C")
LIMIT = Fill(GROUP_COLOURS["launches"])
MOST_BOUNDARIES = 100
FEW_BINS = 60


def draw(analysis: Analysis) -> Sheet | str:
    """Two panels over time; a text says why there is nothing to draw."""
    focus = focus_rank(analysis.diagnosis)
    rank = next((rank for rank in analysis.diagnosis.ranks if rank.rank == focus), None)
    if analysis.queue is None or rank is None:
        return "the queue over time is not part of this result"
    rows = np.flatnonzero(analysis.queue.rank == rank.rank)
    if not len(rows):
        return "no launch could be followed to its device work, so the queue is not known"
    return _sheet(analysis.diagnosis, analysis.queue, rows, rank)


def _sheet(diagnosis: Diagnosis, queue: QueueTable, rows: IntArray, rank: Rank) -> Sheet:
    zero = int(queue.start_ns[rows[0]])
    per, unit = scale_of(int(queue.end_ns[rows[-1]]) - zero)
    edges = as_float(np.append(queue.start_ns[rows], queue.end_ns[rows[-1]]) - zero, per)
    low, high = as_float(queue.depth_low[rows]), as_float(queue.depth_high[rows])
    launched = queue.latency_median_ns[rows] >= 0
    launches = int(queue.launches[rows].sum())
    sheet = Sheet(
        title=f"How far the CPU runs ahead of the device, rank {rank.rank}",
        subtitle=f"Over {count(len(rank.windows), 'step')} in {count(len(rows), 'bin')} of equal length;"
        f" {count(launches, 'launch call')} followed to their work;"
        f" boundary: {boundary_text(diagnosis)}.",
        data_in=4.5,
        alt_text="Launches whose work is not finished, as lowest and highest depth, and below it launch latency on"
        f" a logarithmic scale, both over time on rank {rank.rank}.",
    )
    upper, lower = sheet.figure.subplots(2, 1, sharex=True)
    entries = [_depth(upper, edges, low, high, rank)]
    lower_entries = _latency(lower, edges, queue, rows, launched)
    every = _boundaries((upper, lower), rank, zero, per)
    lower.set_xlim(edges[0], edges[-1])
    lower.set_xlabel(f"time since the start of the first step, {unit}")
    plain_ticks(lower, "x", 10)
    marks = "start of a step" if every == 1 else f"start of every {every}th step"
    limit = [Entry(f"queue limit ({rank.constants.queue_depth_limit})", LIMIT, width=1.2, dashes="--")]
    shown_limit = _limit_shown(rank, high)
    sheet.legends = [
        ("Queue depth", entries + (limit if shown_limit else []) + [Entry(marks, BOUNDARY, width=0.8)]),
        ("Launch latency", lower_entries),
    ]
    return sheet


def _limit_shown(rank: Rank, high: FloatArray) -> bool:
    limit = rank.constants.queue_depth_limit
    return limit is not None and limit <= 1.5 * float(high.max())


def _depth(ax: Axes, edges: FloatArray, low: FloatArray, high: FloatArray, rank: Rank) -> Entry:
    # a bin whose depth does not change still shows as a line
    thick = 0.008 * max(float(high.max()), 1)
    ax.fill_between(
        edges, np.append(low, low[-1]) - thick, np.append(high, high[-1]) + thick, step="post",
        color=DEPTH.colour, linewidth=0, zorder=2,
    )  # fmt: skip
    top = max(float(high.max()), 1) * 1.08
    if _limit_shown(rank, high):
        limit = float(rank.constants.queue_depth_limit or 0)
        ax.axhline(limit, color=LIMIT.colour, linewidth=1.2, linestyle="--")
        top = max(top, 1.05 * limit)
    ax.set_ylim(-0.02 * top, top)
    ax.set_ylabel("launches in flight")
    plain_ticks(ax, "y", 6, whole=True)
    ax.set_title("Queue depth: launches whose work is not finished")
    return Entry("lowest to highest in the bin", DEPTH)


def _latency(
    ax: Axes,
    edges: FloatArray,
    queue: QueueTable,
    rows: IntArray,
    launched: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> list[Entry]:
    ax.set_title("Launch latency: from the start of a launch call to the start of its work")
    ax.set_ylabel("latency")
    if not launched.any():
        ax.set_yticks([])
        return [Entry("no launch in any bin", Fill("#FFFFFF"))]
    # a logarithm has no place for 0: such a latency is drawn as 1 ns
    low, median, high = (
        np.where(launched, np.maximum(as_float(column[rows]), 1), np.nan)
        for column in (queue.latency_low_ns, queue.latency_median_ns, queue.latency_high_ns)
    )
    low, median, high = (np.append(values, values[-1]) for values in (low, median, high))
    ax.set_yscale("log")
    bottom, top = float(np.nanmin(low)) / 1.5, float(np.nanmax(high)) * 1.5
    if top < 10 * bottom:
        bottom, top = bottom / 2, top * 2
    ax.set_ylim(bottom, top)
    ax.fill_between(edges, low, high, step="post", color=BAND.colour, linewidth=0, zorder=2)
    ax.step(edges, median, where="post", color=MEDIAN.colour, linewidth=1.0, zorder=3)
    if launched.sum() <= FEW_BINS:
        # a bin by itself would be a dash of two pixels
        middle = (edges[:-1] + edges[1:]) / 2
        ax.vlines(middle, low[:-1], high[:-1], color=BAND.colour, linewidth=3, zorder=2)
        ax.plot(middle, median[:-1], ".", color=MEDIAN.colour, markersize=6, zorder=3)
    ax.yaxis.set_major_locator(LogLocator(10, subs=(1.0,) if top > 50 * bottom else (1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _with_unit(value)))
    ax.yaxis.set_minor_locator(NullLocator())
    return [Entry("lowest to highest", BAND), Entry("median of the bin", MEDIAN, width=1.0)]


def _with_unit(latency_ns: float) -> str:
    for per, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if latency_ns >= per:
            return f"{number(latency_ns / per)} {unit}"
    return f"{number(latency_ns)} ns"


def _boundaries(axes: tuple[Axes, ...], rank: Rank, zero: int, per: int) -> int:
    """Lines where steps start; returns that every n-th step has one."""
    starts = sorted(window.start_ns for window in rank.windows if not window.empty)
    every = max(1, -(-len(starts) // MOST_BOUNDARIES))
    for ax in axes:
        for start in starts[::every]:
            ax.axvline((start - zero) / per, color=BOUNDARY.colour, linewidth=0.8, zorder=1)
    return every
