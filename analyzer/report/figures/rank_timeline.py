"""One step of all ranks: each rank's own path as a lane, and the path through all of them as a line."""

from __future__ import annotations

from matplotlib.axes import Axes

from analyzer.analysis import Analysis
from analyzer.diagnosis import GlobalWindow
from analyzer.report.figures.marks import plain_ticks, scale_of
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.rank_marks import (
    BAR,
    LINE_AT,
    LINE_POINTS,
    draw_bars,
    draw_line,
    draw_waits,
)
from analyzer.report.figures.rank_step import BLANK, LOOKS, WAITING, RankStep, step_of
from analyzer.report.figures.sheet import Entry, Sheet
from analyzer.report.figures.text import boundary_text, shown
from analyzer.report.numbers import count, ms, percent

PLOT_SHARE = 6.0
"""Width of the lanes over that of the column beside them."""
LANE_IN = 0.4
MOST_NAMED = 4
LARGE_SHARE = 1 / 3
MATTERS = 0.02
"""Shares of a step's late calls and of its time from which on a late rank stands out."""


def draw(analysis: Analysis) -> Sheet | str:
    """Lanes of the ranks and the line through them; a text says why there is nothing to draw."""
    step = step_of(analysis)
    if isinstance(step, str):
        return step
    window = step.window
    rows = len(step.lanes) + step.path_leaves
    per, unit = scale_of(step.span_ns)
    sheet = Sheet(
        title=f"All ranks, {shown(window.step, 60)}: who waited for whom",
        subtitle=f"{ms(step.span_ns)} ms, {_which(step)}; boundary: {boundary_text(analysis.diagnosis)}."
        f" {_finding(window, step.span_ns)}",
        data_in=0.65 + LANE_IN * rows,
        alt_text=_alt_text(window, step.span_ns),
    )
    lanes, waits = sheet.figure.subplots(1, 2, sharey=True, width_ratios=[PLOT_SHARE, 1.0])
    lanes.set_xlim(0, step.span_ns / per)
    lanes.set_ylim(rows - 0.02, -0.15)
    looks = draw_bars(lanes, step, per)
    jumps = draw_line(lanes, step, per)
    draw_waits(waits, step)
    _label(lanes, step)
    lanes.set_xlabel(f"time since the start of the step, {unit}")
    plain_ticks(lanes, "x", 10)
    sheet.note = _note(step, jumps, looks)
    entries = [Entry(name, fill) for name, fill in LOOKS.items() if name in looks]
    line = Entry(
        "path through all ranks: what the step as a whole waited for", Fill("#000000"), width=LINE_POINTS
    )
    sheet.legends = [("", [*entries, line])]
    return sheet


def _label(ax: Axes, step: RankStep) -> None:
    """Each lane's rank, late ones in bold with how often they were late."""
    texts = []
    for lane in step.lanes:
        late = f"\nlate in {count(lane.late_calls, 'call')}" if lane.late_calls else ""
        texts.append(f"rank {lane.rank}{late}")
    places = [at + BAR / 2 for at in range(len(texts))]
    if step.path_leaves:
        texts.append("ranks without\na lane")
        places.append(len(step.lanes) + LINE_AT - 0.2)
    ax.set_yticks(places, texts)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    main = main_late_ranks(step.window)
    for lane, label in zip(step.lanes, ax.get_yticklabels(), strict=False):
        label.set(fontweight="bold" if lane.late_calls else "normal")
        if lane.rank in main:
            label.set(color="#FFFFFF", bbox={"facecolor": "#000000", "edgecolor": "none", "pad": 2.5})


def main_late_ranks(window: GlobalWindow) -> set[int]:
    """Ranks that most of the waiting is for: a large share of the late calls, unless the waits matter little."""
    calls = sum(window.late_calls.values())
    if window.waited_ns < MATTERS * (window.end_ns - window.start_ns):
        return set()
    return {rank for rank, late in window.late_calls.items() if late >= LARGE_SHARE * calls}


def _which(step: RankStep) -> str:
    if step.phase_steps == 1:
        return f"the one step of phase {shown(step.window.phase, 40)}"
    return f"window {step.window.index}, the median step of phase {shown(step.window.phase, 40)}"


def _finding(window: GlobalWindow, span_ns: int) -> str:
    if not window.late_ranks:
        return "No rank is known to have waited for the one that the path was on."
    return (
        f"For {ms(window.waited_ns)} ms of it ({percent(window.waited_ns, span_ns)}) at least one rank waited for"
        f" {_late(window)}."
    )


def _late(window: GlobalWindow) -> str:
    named = [
        f"rank {rank} ({count(window.late_calls[rank], 'call')})" for rank in window.late_ranks[:MOST_NAMED]
    ]
    more = len(window.late_ranks) - len(named)
    if more > 0:
        named.append(f"{count(more, 'more rank')}")
    return f"{', '.join(named[:-1])} or {named[-1]}" if len(named) > 1 else named[0]


def _note(step: RankStep, jumps: int, looks: set[str]) -> str:
    notes = []
    if WAITING in looks:
        notes.append(
            "Hatched: waits on the rank's own path. One behind which its own CPU was as slow cost it nothing and"
            " does not show."
        )
    if any(lane.late_calls for lane in step.lanes):
        notes.append("Late: others waited for the rank in a collective while the path was on it.")
    if any((lane.runs.category == BLANK).any() for lane in step.lanes):
        notes.append("Blank: outside of the rank's steps.")
    if step.hidden:
        notes.append(
            f"Drawn are late ranks, those on the path, and some others: {count(step.hidden, 'rank')} not drawn."
        )
    unseen = len(step.window.ranks_visited) - 1 - jumps
    if unseen > 0:
        where = ", or between ranks without a lane" if step.path_leaves else ""
        notes.append(f"{count(unseen, 'change')} of rank on the path not drawn: too close together{where}.")
    return " ".join(notes)


def _alt_text(window: GlobalWindow, span_ns: int) -> str:
    """In words; of numbers only those that diagnosis.json has too."""
    text = f"Timeline of {shown(window.step, 50)} on all ranks, {ms(span_ns)} ms, one lane per rank, waiting hatched."
    if window.late_ranks:
        text += f" Ranks waited {ms(window.waited_ns)} ms for {_late(window)}."
    return f"{text} The path through all ranks ends on rank {window.last_rank}."
