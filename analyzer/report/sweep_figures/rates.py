"""Aggregate and per-stream token rate against the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from analyzer.report.figures.marks import number, plain_ticks
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.figures.text import shown
from analyzer.swept import Batching, BatchPoint, Estimated, Sweep

SERIES = 5
"""Contexts that are drawn: those with the most batch sizes."""
COLOURS = ("#11378D", "#C85F2D", "#469358", "#9E376D", "#69ADC8")
MARKERS = ("o", "s", "^", "D", "v")


def draw(sweep: Sweep) -> Sheet | str:
    """Both rates over the batch, a curve per context; a text says why there is none."""
    if not sweep.batching:
        return "no two batch sizes were measured at one context, or the phase does not generate tokens"
    most = sorted(sweep.batching, key=lambda one: -len(one.points))[:SERIES]
    every = [one for one in sweep.batching if one in most]
    sheet = Sheet(
        title=f"Token rates over batch, phase {shown(sweep.phase, 40)}",
        subtitle="Batch over measured mean step: one token per sequence and step. Bars: 95 % intervals. Straight"
        " connections guide the eye; nothing was measured between the points.",
        data_in=3.1,
        alt_text=_alt_text(every),
    )
    total, stream = sheet.figure.subplots(1, 2)
    for at, one in enumerate(every):
        _curve(total, one, at, lambda point: point.tokens_per_s)
        _curve(stream, one, at, lambda point: point.tokens_per_s_per_stream)
    total.set_title("All streams together")
    stream.set_title("One stream")
    for ax in (total, stream):
        ticks = sorted({point.batch for one in every for point in one.points})
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [number(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
        plain_ticks(ax, "y", 6)
        ax.set_xlabel("batch, sequences")
        ax.set_ylabel("tokens/s")
    sheet.legends.append(
        ("", [Entry(_name(one), Fill(COLOURS[at]), width=1.6) for at, one in enumerate(every)])
    )
    return sheet


def _curve(ax: Axes, one: Batching, at: int, of: Callable[[BatchPoint], Estimated]) -> None:
    x = np.array([point.batch for point in one.points], np.float64)
    rates = [of(point) for point in one.points]
    y = np.array([rate.value for rate in rates])
    ax.plot(x, y, color=COLOURS[at], linewidth=1.4, marker=MARKERS[at], markersize=4, zorder=3)
    for place, rate in zip(x.tolist(), rates, strict=True):
        if rate.ci95 is not None:
            ax.vlines(place, rate.ci95[0], rate.ci95[1], color=COLOURS[at], linewidth=2.4, zorder=2)


def _name(one: Batching) -> str:
    context = "context undeclared" if one.context is None else f"{one.context:,} tokens of context"
    cache = one.cache_initialization
    return f"{context}, {'cache undeclared' if cache is None else shown(cache, 24)}"


def _alt_text(every: Sequence[Batching]) -> str:
    parts = []
    for one in every:
        rates = [f"batch {point.batch:,} {point.tokens_per_s.value:,.0f} tokens/s" for point in one.points]
        parts.append(f"{_name(one)}: {', '.join(rates)}")
    return f"Token rates over batch. {'; '.join(parts)}."
