"""Gaps between tokens at the client beside device steps, and how long tokens spend behind the device."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from analyzer.analysis import Analysis
from analyzer.diagnosis import Diagnosis, Stage
from analyzer.explain.focus import leading_budgets, shown_rank
from analyzer.model import IntArray
from analyzer.report.figures.marks import number
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.numbers import count, ms
from analyzer.tables import NO_EVENT, TokenTable

GAP = Fill(GROUP_COLOURS["launches"])
STEP = Fill(GROUP_COLOURS["kernels"])
STAGES = {
    "output": Fill(GROUP_COLOURS["CPU"]),
    "transport": Fill(GROUP_COLOURS["copies"]),
    "buffering": Fill(GROUP_COLOURS["collectives"]),
}
LEAST_NS = 1_000
"""Shorter times are drawn here: a logarithm has no place for 0."""
MOST_POINTS = 2_000


def draw(analysis: Analysis) -> Sheet | str:
    """Two panels of cumulative shares; a text says why there is nothing to draw."""
    tokens, service = analysis.tokens, analysis.diagnosis.service
    if tokens is None or service is None:
        return "the tokens are not part of this result"
    gaps = tokens.gap_ns[tokens.gap_ns >= 0]
    if not len(gaps):
        return "no gap between two tokens was logged"
    steps = _steps(analysis.diagnosis)
    sheet = Sheet(
        title="Gaps between tokens at the client, and the time tokens spend behind the device",
        subtitle=f"Shares of {count(len(gaps), 'gap')}, {count(len(steps), 'step')} and"
        f" {count(len(tokens), 'token')} that are at most so long. Times below 1 µs are drawn at 1 µs.",
        data_in=3.2,
        alt_text=f"Cumulative shares. Left: gaps between tokens, median {ms(service.gap_median_ns or 0)} ms, beside"
        f" device steps. Right: {', '.join(map(_stage_text, service.stages))}.",
        note=_note(service.stages),
    )
    left, right = sheet.figure.subplots(1, 2, sharey=True)
    entries = [_line(left, gaps, GAP, "gap between tokens at the client")]
    if len(steps):
        entries.append(_line(left, steps, STEP, "step at the device"))
    left.set_title("What the client waits, beside what a step takes")
    left.set_ylabel("share at most so long, %")
    right.set_title("Behind the device")
    stages = [
        _line(right, values, fill, name)
        for name, fill in STAGES.items()
        if len(values := _of_stage(tokens, name))
    ]
    for ax in (left, right):
        _log_axis(ax)
    sheet.legends = [("Left", entries), ("Right", stages)]
    return sheet


def _stage_text(stage: Stage) -> str:
    return f"{stage.name}, median {ms(stage.median_ns)} ms"


def _note(stages: list[Stage]) -> str:
    names = [stage.name for stage in stages if stage.above_smallest]
    return (
        f"Of {' and '.join(names)} only what exceeds the smallest one: the clocks are not one."
        if names
        else ""
    )


def _steps(diagnosis: Diagnosis) -> IntArray:
    """Lengths of the device steps of the leading phase that its budget rests on."""
    for budget in leading_budgets(diagnosis.budget):
        if diagnosis.global_ is not None:
            windows = [w for w in diagnosis.global_.windows if w.phase == budget.phase]
            return np.array([w.end_ns - w.start_ns for w in windows if not (w.empty or w.left_out)], np.int64)
        rank = shown_rank(budget, None)
        of_rank = next((row for row in diagnosis.ranks if row.rank == rank), None)
        mine = [w for w in of_rank.windows if w.phase == budget.phase] if of_rank is not None else []
        return np.array([w.end_ns - w.start_ns for w in mine if not (w.empty or w.left_out)], np.int64)
    return np.empty(0, np.int64)


def _of_stage(tokens: TokenTable, name: str) -> IntArray:
    if name == "buffering":
        return tokens.buffering_ns[tokens.buffering_ns >= 0].copy()
    start, end = {
        "output": (tokens.held_ns, tokens.emission_ns),
        "transport": (tokens.last_emission_ns, tokens.arrival_ns),
    }[name]
    known = (start != NO_EVENT) & (end != NO_EVENT)
    spent: IntArray = np.maximum(end[known] - start[known], 0)
    return spent


def _line(ax: Axes, values: IntArray, fill: Fill, label: str) -> Entry:
    shown = np.sort(np.maximum(values, LEAST_NS))
    share = 100 * np.arange(1, len(shown) + 1) / len(shown)
    if len(shown) > MOST_POINTS:
        at = np.unique(np.linspace(0, len(shown) - 1, MOST_POINTS).astype(np.int64))
        shown, share = shown[at], share[at]
    x = np.concatenate((shown[:1], shown)) / 1e6
    ax.step(x, np.concatenate(([0.0], share)), where="post", color=fill.colour, linewidth=1.6)
    return Entry(label, fill, width=1.6)


def _log_axis(ax: Axes) -> None:
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    if high < 10 * low:
        low, high = low / 2, high * 2
    ax.set_xlim(low, high)
    ax.set_ylim(0, 102)
    ax.set_yticks([0, 25, 50, 75, 100])
    ax.set_xlabel("ms")
    ax.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if high > 50 * low else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(axis="both", color="#E4E4E4", linewidth=0.6)
    ax.set_axisbelow(True)
