"""Speedup and efficiency over the ranks, beside what even sharing of all work would give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from analyzer.report.figures.marks import plain_ticks
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.numbers import share
from analyzer.report.scaling_figures.axis import IDEAL, MEASURED, error_bars, rank_axis, subject
from analyzer.report.scaling_words import of_ranks
from analyzer.study.scaling_result import Interval, Scaling, ScalingPoint


def draw(scaling: Scaling) -> Sheet | str:
    """Two panels; a text says why there is nothing to draw."""
    points = scaling.points
    if len(points) < 2:
        return "runs that are alike have one rank count only"
    last = points[-1]
    sheet = Sheet(
        title=f"{last.speedup:.2f}x at {of_ranks(last.ranks)}, efficiency {share(last.efficiency)}",
        subtitle=f"Measured, against {of_ranks(points[0].ranks)}; {subject(scaling)}",
        data_in=3.0,
        alt_text=_alt_text(points),
        note="Efficiency: speedup over the ratio of ranks.",
    )
    left, right = sheet.figure.subplots(1, 2)
    counts = [point.ranks for point in points]
    most = counts[-1] / counts[0]
    _panel(left, points, lambda one: (one.speedup, one.speedup_ci95))
    even = np.geomspace(1, most, 65)
    left.plot(counts[0] * even, even, color=IDEAL.colour, linewidth=1.0, linestyle="--", zorder=2)
    left.set_ylabel("speedup")
    left.set_ylim(0, 1.08 * max(most, *(_top(one.speedup_ci95, one.speedup) for one in points)))
    _panel(right, points, lambda one: (one.efficiency, one.efficiency_ci95))
    right.axhline(1, color=IDEAL.colour, linewidth=1.0, linestyle="--", zorder=2)
    right.set_ylabel("efficiency")
    right.set_ylim(0, 1.08 * max(1.0, *(_top(one.efficiency_ci95, one.efficiency) for one in points)))
    sheet.legends = [
        (
            "",
            [
                Entry("measured, with 95 % interval", MEASURED, width=1.6),
                Entry("all work shared evenly, nothing added (a model)", IDEAL, width=1.0, dashes="--"),
            ],
        )
    ]
    return sheet


def _top(ends: Interval | None, value: float) -> float:
    return value if ends is None else ends[1]


def _panel(
    ax: Axes,
    points: list[ScalingPoint],
    value: Callable[[ScalingPoint], tuple[float, Interval | None]],
) -> None:
    counts = [point.ranks for point in points]
    told = [value(point) for point in points]
    ax.plot(
        counts, [one for one, _ in told], "o-", color=MEASURED.colour, linewidth=1.6, markersize=5, zorder=3
    )
    error_bars(ax, counts, [ends for _, ends in told], MEASURED)
    rank_axis(ax, counts)
    plain_ticks(ax, "y", 6)


def _alt_text(points: list[ScalingPoint]) -> str:
    told = "; ".join(
        f"{of_ranks(point.ranks)}: {point.speedup:.3f}x, efficiency {share(point.efficiency)}"
        for point in points
    )
    return f"Speedup and efficiency over ranks. {told}."
