"""One step of all ranks: each rank's own path as a lane, and the path through all of them as a line."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from analyzer.analysis import Analysis
from analyzer.diagnosis import GlobalWindow
from analyzer.report.figures.marks import areas, as_float, label_inside, plain_ticks, scale_of
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.rank_step import BLANK, LOOKS, WAITING, RankStep, step_of
from analyzer.report.figures.sheet import DPI, MUTED, SMALL_POINTS, Entry, Sheet
from analyzer.report.figures.text import boundary_text, shown
from analyzer.report.numbers import count, ms, percent

LANE = 1.0
BAR = 0.54
LINE_AT = 0.72
LANE_IN = 0.4
"""Height of a lane; its bar and the middle of its line as shares of it."""
LINE_POINTS = 2.6
JUMP_POINTS = 1.3
MOST_ARROWS = 80
MOST_NAMED = 4
BLACK = Fill("#000000")


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
    lanes.set_ylim(rows * LANE - 0.02, -0.15)
    looks = _draw_bars(lanes, step, per)
    jumps = _draw_line(lanes, step, per)
    _draw_waits(waits, step)
    _label(lanes, step)
    lanes.set_xlabel(f"time since the start of the step, {unit}")
    plain_ticks(lanes, "x", 10)
    sheet.note = _note(step, jumps, looks)
    entries = [Entry(name, fill) for name, fill in LOOKS.items() if name in looks]
    line = Entry("path through all ranks: what the step as a whole waited for", BLACK, width=LINE_POINTS)
    sheet.legends = [("", [*entries, line])]
    return sheet


PLOT_SHARE = 6.0


def _draw_bars(ax: Axes, step: RankStep, per: int) -> set[str]:
    """Each rank's own path; returns the looks that occur."""
    names = list(LOOKS)
    found: set[str] = set()
    for at, lane in enumerate(step.lanes):
        top = at * LANE
        if lane.late_calls:
            ax.axhspan(top - 0.1, top + LANE - 0.1, color="#E4E4E4", linewidth=0, zorder=0)
        for look in np.unique(lane.runs.category).tolist():
            if look == BLANK:
                continue
            here = lane.runs.category == look
            left, right = as_float(lane.runs.start_ns[here], per), as_float(lane.runs.end_ns[here], per)
            edge = np.full(len(left), top)
            areas(ax, left, right, edge, edge + BAR, LOOKS[names[look]])
            found.add(names[look])
        _name_longest_wait(ax, step, at, per)
    return found


def _name_longest_wait(ax: Axes, step: RankStep, at: int, per: int) -> None:
    """Which rank is waited for, in the widest wait of a lane if it fits."""
    lane = step.lanes[at]
    waits = np.flatnonzero(lane.runs.category == list(LOOKS).index(WAITING))
    if not len(waits) or lane.waited_for < 0:
        return
    length = lane.runs.end_ns[waits] - lane.runs.start_ns[waits]
    widest = waits[int(np.argmax(length))]
    low, high = int(lane.runs.start_ns[widest]), int(lane.runs.end_ns[widest])
    room_in = (high - low) / step.pixel_ns / DPI
    text = f"waits for rank {lane.waited_for}"
    label_inside(ax, text, low / per, high / per, at * LANE + BAR / 2, LOOKS[WAITING], room_in)


def _draw_line(ax: Axes, step: RankStep, per: int) -> int:
    """The path along its lanes and from lane to lane; returns how many changes of lane are drawn."""
    path = step.path
    y = path.lane * LANE + LINE_AT
    left, right = as_float(path.start_ns, per), as_float(path.end_ns, per)
    along = [[(a, v), (b, v)] for a, b, v in zip(left.tolist(), right.tolist(), y.tolist(), strict=True)]
    at = np.flatnonzero(path.lane[1:] != path.lane[:-1])
    across = [[(left[i + 1], y[i]), (left[i + 1], y[i + 1])] for i in at.tolist()]
    for lines, width, colour, order in (
        (across, JUMP_POINTS + 2, "#FFFFFF", 3.8),
        (across, JUMP_POINTS, "#000000", 4.0),
        (along, LINE_POINTS, "#000000", 4.0),
    ):
        ax.add_collection(
            LineCollection(
                lines, colors=colour, linewidths=width, zorder=order, capstyle="butt", clip_on=False
            ),
            autolim=False,
        )
    if len(at) <= MOST_ARROWS:
        for marker, sign in (("v", 1), ("^", -1)):
            to = at[np.sign(path.lane[at + 1] - path.lane[at]) == sign]
            ax.plot(left[to + 1], y[to + 1] - sign * 0.13, f"k{marker}", markersize=5, zorder=4.2, clip_on=False)
    return len(at)


def _draw_waits(ax: Axes, step: RankStep) -> None:
    """How much of the step each rank waited."""
    part = np.array([100 * lane.waited_ns / step.span_ns for lane in step.lanes])
    top = np.arange(len(step.lanes)) * LANE
    some = part > 0
    areas(ax, part[some] * 0, part[some], top[some], top[some] + BAR, LOOKS[WAITING])
    for at, lane in enumerate(step.lanes):
        text = percent(lane.waited_ns, step.span_ns)
        written = ax.text(part[at] + 4, top[at] + BAR / 2, text, ha="left", va="center", fontsize=SMALL_POINTS)
        written.set_in_layout(False)
    ax.set_xlim(0, 165)
    ax.set_xticks([0, 50, 100], ["0", "50", "100"])
    ax.set_xlabel("waited, % of step")
    ax.tick_params(axis="y", length=0, labelleft=False)


def _label(ax: Axes, step: RankStep) -> None:
    """Each lane's rank, late ones in bold with how often they were late."""
    texts = []
    for lane in step.lanes:
        late = f"\nlate in {count(lane.late_calls, 'call')}" if lane.late_calls else ""
        texts.append(f"rank {lane.rank}{late}")
    places = [at * LANE + BAR / 2 + 0.06 for at in range(len(texts))]
    if step.path_leaves:
        texts.append("ranks without\na lane")
        places.append(len(step.lanes) * LANE + LINE_AT - 0.2)
    ax.set_yticks(places, texts)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    for at, label in enumerate(ax.get_yticklabels()):
        is_late = at < len(step.lanes) and step.lanes[at].late_calls
        label.set(fontweight="bold" if is_late else "normal", color="#000000" if is_late else MUTED)


def _which(step: RankStep) -> str:
    if step.phase_steps == 1:
        return f"the one step of phase {shown(step.window.phase, 40)}"
    return f"window {step.window.index}, the median step of phase {shown(step.window.phase, 40)}"


def _finding(window: GlobalWindow, span_ns: int) -> str:
    if not window.late_ranks:
        return "No rank kept this step waiting for long enough to tell which."
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
            "Hatched are waits on a rank's own path: one during which its own CPU took as long cost it nothing."
        )
    if any(lane.late_calls for lane in step.lanes):
        notes.append("Late: the path was on the rank while others waited for it in a collective.")
    if any((lane.runs.category == BLANK).any() for lane in step.lanes):
        notes.append("Blank: outside of the rank's steps.")
    if step.hidden:
        notes.append(f"{count(step.hidden, 'rank')} not drawn.")
    changes = len(step.window.ranks_visited) - 1
    if jumps < changes:
        notes.append(f"The path changes ranks {count(changes, 'time')}; {jumps:,} of these are drawn.")
    if jumps > MOST_ARROWS:
        notes.append("The path changes ranks too often for arrows.")
    return " ".join(notes)


def _alt_text(window: GlobalWindow, span_ns: int) -> str:
    """In words; of numbers only those that diagnosis.json has too."""
    text = (
        f"Timeline of {shown(window.step, 50)} on all ranks, {ms(span_ns)} ms, one lane per rank, waiting hatched."
    )
    if window.late_ranks:
        text += f" Ranks waited {ms(window.waited_ns)} ms for {_late(window)}."
    return f"{text} The path through all ranks ends on rank {window.last_rank}."
