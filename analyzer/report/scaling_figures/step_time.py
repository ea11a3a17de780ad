"""The mean step over the ranks: measured with its interval, and the fit with its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from analyzer.report.figures.marks import plain_ticks
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.numbers import NS_PER_MS, share
from analyzer.report.scaling_figures.axis import FITTED, MEASURED, error_bars, rank_axis, subject
from analyzer.report.scaling_words import ms, of_ranks
from analyzer.study.scaling_result import CurvePoint, Scaling

TOP = 1.08
"""End of the axis over the highest interval measured."""


def draw(scaling: Scaling) -> Sheet | str:
    """Points, error bars and the curve between them."""
    points = scaling.points
    used = [run for run in scaling.runs if run.used]
    sheet = Sheet(
        title=_title(scaling),
        subtitle=subject(scaling),
        data_in=3.4,
        alt_text=_alt_text(scaling),
        note=_note(scaling),
    )
    ax = sheet.figure.subplots()
    if scaling.fit is not None:
        _draw_curve(ax, scaling.fit.curve)
    ax.plot(
        [run.ranks for run in used],
        [run.mean_step_ns / NS_PER_MS for run in used],
        "o",
        color=MEASURED.colour,
        markersize=5,
        zorder=5,
    )
    ends = [
        None if run.ci95_ns is None else (run.ci95_ns[0] / NS_PER_MS, run.ci95_ns[1] / NS_PER_MS)
        for run in used
    ]
    error_bars(ax, [run.ranks for run in used], ends, MEASURED)
    rank_axis(ax, [point.ranks for point in points])
    ax.set_ylim(0, TOP * max(_highest(scaling)))
    plain_ticks(ax, "y", 6)
    ax.set_ylabel("ms per step")
    entries = [Entry("mean step of a run, measured, with 95 % interval", MEASURED, width=1.4)]
    if scaling.fit is not None:
        entries.append(Entry("S + P / N, fitted; shaded: its 95 % interval", FITTED, width=1.6, dashes="--"))
    sheet.legends = [("", entries)]
    return sheet


def _draw_curve(ax: Axes, curve: Sequence[CurvePoint]) -> None:
    ranks = np.array([one.ranks for one in curve])
    ax.plot(
        ranks,
        np.array([one.step_ns for one in curve]) / NS_PER_MS,
        color=FITTED.colour,
        linewidth=1.6,
        linestyle="--",
        zorder=3,
    )
    ends = [one.ci95_ns for one in curve if one.ci95_ns is not None]
    if len(ends) == len(curve):
        low, high = np.array(ends).T / NS_PER_MS
        ax.fill_between(ranks, low, high, color=FITTED.colour, alpha=0.25, linewidth=0, zorder=1)


def _highest(scaling: Scaling) -> list[float]:
    used = [run for run in scaling.runs if run.used]
    tops = [run.ci95_ns[1] if run.ci95_ns is not None else run.mean_step_ns for run in used]
    return [top / NS_PER_MS for top in tops]


def _title(scaling: Scaling) -> str:
    first, last = scaling.points[0], scaling.points[-1]
    told = f"{ms(first.mean_step_ns)} ms at {of_ranks(first.ranks)}"
    if last is not first:
        told += f", {ms(last.mean_step_ns)} ms at {of_ranks(last.ranks)}"
    if scaling.fit is None or scaling.fit.serial_share is None:
        return f"Mean step: {told}; no serial share"
    return f"Mean step: {told}; serial share of the fit {share(scaling.fit.serial_share, 1)}"


def _note(scaling: Scaling) -> str:
    fit = scaling.fit
    if fit is None:
        return scaling.fit_because
    if fit.method == "exact":
        return (
            "Two runs always lie on the curve: S and P absorb communication and everything else that changed."
        )
    text = "The shaded interval holds how runs scatter about the curve. Nothing is said beyond the ranks measured."
    reach = [end for one in fit.curve for end in one.ci95_ns or ()]
    if reach and (min(reach) < 0 or max(reach) / NS_PER_MS > TOP * max(_highest(scaling))):
        text += " It is cut at the ends of the axis."
    return text


def _alt_text(scaling: Scaling) -> str:
    told = "; ".join(f"{of_ranks(point.ranks)}: {ms(point.mean_step_ns)} ms" for point in scaling.points)
    if scaling.fit is None:
        return f"Mean step over ranks: {told}. No fit."
    return f"Mean step over ranks: {told}. Fitted S {ms(scaling.fit.serial_ns)} ms, P {ms(scaling.fit.parallel_ns)} ms."
