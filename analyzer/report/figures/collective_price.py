"""Duration of collectives against size: medians with their spread, the fit and its interval."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from analyzer.analysis import Analysis
from analyzer.diagnosis import AlphaBeta, PriceOfSize
from analyzer.report.figures.marks import FloatArray, number
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import TEXT_POINTS, WIDTH_IN, Entry, Sheet
from analyzer.report.figures.text import fitted, shown
from analyzer.report.numbers import count

PANELS = 4
PANEL_IN = 2.9
MEASURED, LINE, BAND = GROUP_COLOURS["collectives"], "#000000", "#BDBDBD"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def draw(analysis: Analysis) -> Sheet | str:
    """A panel for each of the kinds with most calls that have a fit; a text says why there is none."""
    rows = [row for row in analysis.diagnosis.alpha_beta if row.alpha_ns is not None]
    if not rows:
        return "no collective has a fit over its sizes"
    drawn = rows[:PANELS]
    columns = min(len(drawn), 2)
    lines = -(-len(drawn) // columns)
    left = len(rows) - len(drawn)
    more = f" {count(left, 'more fit')} in diagnosis.json." if left else ""
    sheet = Sheet(
        title="What a collective costs by its size",
        subtitle="Transfers alone, from the last arrival on: median of each size with 5 % to 95 % of its calls, and the"
        " fit alpha + bytes / beta with its 95 % interval. The fit says nothing outside the sizes that it was made"
        f" from. Both axes are logarithmic.{more}",
        data_in=PANEL_IN * lines,
        alt_text=f"Transfer time of collectives against size with a fitted line, {count(len(drawn), 'panel')}:"
        f" {', '.join(shown(row.op, 24) for row in drawn)}.",
    )
    axes = np.atleast_1d(sheet.figure.subplots(lines, columns, squeeze=False)).ravel()
    for ax, row in zip(axes, drawn, strict=False):
        _panel(ax, row, WIDTH_IN / columns - 1.2)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    sheet.legends = [
        ("", [
            Entry("median of a size, 5 % to 95 %", Fill(MEASURED), width=2.0),
            Entry("fit", Fill(LINE), width=1.2),
            Entry("95 % interval of the fit", Fill(BAND)),
        ])
    ]  # fmt: skip
    return sheet


def _panel(ax: Axes, row: AlphaBeta, room_in: float) -> None:
    points = row.points
    size = np.array([point.bytes for point in points], np.float64)
    low, high, middle = (_us(points, name) for name in ("p05_ns", "p95_ns", "median_ns"))
    ax.vlines(size, low, high, colors=MEASURED, linewidths=1.4, zorder=3)
    ax.plot(size, middle, "o", color=MEASURED, markersize=4, zorder=4)
    inside = [point for point in points if _in_range(row, point)]
    at = np.array([point.bytes for point in inside], np.float64)
    grid = np.geomspace(at[0], at[-1], 100)
    edges = [point.fitted_ci95_ns for point in inside if point.fitted_ci95_ns is not None]
    below, above = (np.interp(grid, at, [edge[side] / 1000 for edge in edges]) for side in (0, 1))
    ax.fill_between(grid, below, above, color=BAND, linewidth=0, zorder=1)
    slope = 0.0 if row.beta_bytes_per_s is None else 1e9 / row.beta_bytes_per_s
    ax.plot(grid, ((row.alpha_ns or 0.0) + slope * grid) / 1000, color=LINE, linewidth=1.2, zorder=2)
    _axes(ax, size, np.concatenate((low, high)))
    words = ", ".join(shown(word, 24) for word in (row.dtype, row.algorithm) if word)
    title = f"{shown(row.op, 24)}{f' ({words})' if words else ''}, group {shown(row.group, 24)}, {len(row.ranks)} ranks"
    ax.set_title(fitted(title, TEXT_POINTS + 1, 0.88 * room_in))


def _in_range(row: AlphaBeta, point: PriceOfSize) -> bool:
    low, high = row.range_bytes or (0, 0)
    return low <= point.bytes <= high


def _us(points: list[PriceOfSize], name: str) -> FloatArray:
    return np.array([max(getattr(point, name), 1) / 1000 for point in points], np.float64)


def _axes(ax: Axes, size: FloatArray, us: FloatArray) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlim(size[0] / 1.5, size[-1] * 1.5)
    ax.set_ylim(us.min() / 1.4, us.max() * 1.4)
    ax.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("bytes: the larger of what one rank puts in and gets out")
    ax.set_ylabel("transfer, µs")


def bytes_text(size: float) -> str:
    """A tick's size in binary units."""
    for per, unit in _UNITS:
        if size >= per:
            return f"{number(size / per)} {unit}"
    return f"{number(size)} B"
