"""The detail step: what ran on threads and streams, and the path through it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Detail, DetailKind, DetailTable, SegmentTable
from analyzer.model import IntArray
from analyzer.report.figures.lanes import (
    ROW,
    STRIP,
    TRACK,
    LaneRows,
    Runs,
    arrange,
    dominant,
    merged,
    path_lanes,
)
from analyzer.report.figures.marks import (
    areas,
    as_float,
    label_inside,
    name_inside,
    plain_ticks,
    scale_of,
    seams,
)
from analyzer.report.figures.palette import (
    FAMILY_COLOURS,
    GROUP_COLOURS,
    OTHER_KERNELS,
    PATH_FILLS,
    Fill,
    family,
)
from analyzer.report.figures.sheet import DPI, SMALL_POINTS, Entry, Sheet
from analyzer.report.figures.text import boundary_text, fitted, shown
from analyzer.report.numbers import count, ms, percent

PLOT_IN = 8.2
LANE_TEXT_IN = 1.35
ROW_IN = 0.155
MOST_LABELS = 250
MOST_JUMPS = 400
WIDE_PIXELS = 5
NESTED_FILLS = {
    DetailKind.RANGE: Fill("#C0D2E6"),
    DetailKind.OP: Fill("#EFECDD"),
    DetailKind.FRAME: Fill("#EFECDD", "--"),
}
CALL_FILLS = {
    DetailKind.LAUNCH: Fill(GROUP_COLOURS["launches"]),
    DetailKind.HELD: Fill("#9A9A9A", "////"),
    DetailKind.API: Fill("#9A9A9A"),
    DetailKind.OS: Fill(GROUP_COLOURS["other"], "//"),
    DetailKind.PROFILER: Fill(GROUP_COLOURS["other"]),
}
KIND_WORDS = {
    DetailKind.RANGE: "range",
    DetailKind.OP: "framework op",
    DetailKind.FRAME: "Python frame",
    DetailKind.LAUNCH: "launch call",
    DetailKind.HELD: "call that the device held",
    DetailKind.API: "other CUDA call",
    DetailKind.OS: "operating system call",
    DetailKind.PROFILER: "profiler overhead",
}
DEVICE_FAMILIES = {
    DetailKind.COLLECTIVE: "collective",
    DetailKind.COPY: "copy, fill",
    DetailKind.GRAPH: "graph, prior work",
    DetailKind.PRIOR: "graph, prior work",
}


@dataclass(frozen=True)
class Step:
    """The step that is drawn and its path segments."""

    about: Detail
    events: DetailTable
    table: SegmentTable
    path: IntArray  # rows of the table
    path_lane: IntArray  # (n,) lane of each, -1 none
    start_ns: int
    end_ns: int

    @property
    def pixel_ns(self) -> float:
        """Time under one pixel of the PNG."""
        return (self.end_ns - self.start_ns) / (PLOT_IN * DPI)


def draw(analysis: Analysis) -> Sheet | str:
    """Lanes of the detail step under its path; a text says why there is nothing to draw."""
    step = _step(analysis)
    if step is None:
        return "the events of one step are not part of this result"
    lane_ns = np.zeros(len(step.events.lanes) + 1, np.int64)  # the last place takes what has no lane
    np.add.at(lane_ns, step.path_lane, (step.table.end_ns - step.table.start_ns)[step.path])
    lanes, hidden = arrange(step.events, lane_ns[:-1].tolist())
    bottom = lanes[-1].bottom if lanes else STRIP
    per, unit = scale_of(step.end_ns - step.start_ns)
    about = step.about
    sheet = Sheet(
        title=f"Rank {about.rank}, {shown(about.step, 60)}: threads, streams and the critical path",
        subtitle=f"{ms(step.end_ns - step.start_ns)} ms, {shown(about.why, 90)};"
        f" {count(len(step.events), 'event')}; boundary: "
        f"{boundary_text(analysis.diagnosis)}.",
        data_in=0.5 + ROW_IN * bottom,
        alt_text=_alt_text(step, lane_ns),
    )
    ax = sheet.figure.subplots()
    ax.set_xlim(0, (step.end_ns - step.start_ns) / per)
    ax.set_ylim(bottom + 0.2, -0.2)
    ax.spines["left"].set_visible(False)
    host, device = _draw_lanes(ax, step, lanes, per)
    categories = _draw_path(ax, step, lanes, per)
    jumps = _draw_jumps(ax, step, lanes, per)
    ticks = [(STRIP / 2, "critical path")] + [((row.top + row.bottom) / 2, _lane_text(row)) for row in lanes]
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"time since the start of the step, {unit}")
    plain_ticks(ax, "x", 12)
    sheet.note = _note(step, lanes, hidden, categories)
    sheet.legends = _legends(categories, jumps, host, device)
    return sheet


def _legends(
    categories: set[str], jumps: int, host: set[int], device: set[str]
) -> list[tuple[str, list[Entry]]]:
    path = [Entry(name, PATH_FILLS[name]) for name in PATH_FILLS if name in categories]
    if jumps:
        path.append(Entry("the path changes lanes", Fill("#000000"), width=0.8))
    fills = NESTED_FILLS | CALL_FILLS
    legends = [
        ("Critical path (top, and below each lane's bars)", path),
        ("CPU", [Entry(word, fills[kind]) for kind, word in KIND_WORDS.items() if kind in host]),
        ("Device work", [Entry(one, Fill(FAMILY_COLOURS[one])) for one in FAMILY_COLOURS if one in device]),
    ]
    return [(title, entries) for title, entries in legends if entries]


def _step(analysis: Analysis) -> Step | None:
    about, events, table = analysis.diagnosis.detail, analysis.detail, analysis.segment_table
    if about is None or events is None or table is None:
        return None
    path = np.flatnonzero((table.rank == about.rank) & (table.window == about.window))
    if not len(path):
        return None
    lanes = path_lanes(table, path, events.lanes)
    return Step(
        about, events, table, path, lanes, int(table.start_ns[path].min()), int(table.end_ns[path].max())
    )


def _lane_text(row: LaneRows) -> str:
    text = shown(row.text, 40)
    device, blank, stream = text.partition(" stream ")
    if blank and row.levels == 0:
        return f"{device}\nstream {fitted(stream, SMALL_POINTS, 0.8)}"
    head, _, name = text.partition(" (")
    parts = [head, f"({name}"] if name else [head]
    return "\n".join(fitted(part, SMALL_POINTS, LANE_TEXT_IN) for part in parts)


def _draw_lanes(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> tuple[set[int], set[str]]:
    """All bars; returns the host kinds and the device families that occur."""
    host: set[int] = set()
    device: set[str] = set()
    labels = 0
    first_stream = len(step.events.lanes) - step.events.device_lanes
    for at, row in enumerate(lanes):
        if at % 2 == 0:
            ax.axhspan(row.top - 0.15, row.bottom + 0.15, color="#F7F7F7", linewidth=0, zorder=0)
        events = np.flatnonzero(step.events.lane == row.lane)
        if row.lane >= first_stream:
            device |= _draw_stream(ax, step, row, events, per)
        else:
            labels += _draw_nesting(ax, step, row, events, per, MOST_LABELS - labels)
            drawn = (row.level >= 0) & (row.level < row.levels)
            host |= set(step.events.kind[events[drawn]].tolist())
            host |= _draw_calls(ax, step, row, events, per)
    return host, device


def _bars(
    ax: Axes, step: Step, events: IntArray, top: float, fill: Fill, per: int, height: float = 0.9
) -> None:
    """Bars of one row and fill, clipped to the step; what is below a pixel gets one."""
    start = np.maximum(step.events.start_ns[events], step.start_ns)
    end = np.minimum(step.events.end_ns[events], step.end_ns)
    order = np.argsort(start, kind="stable")
    _, start, end = merged(start[order], end[order], step.pixel_ns)
    _spans(ax, step, start, end, top, height, fill, per)


def _spans(
    ax: Axes, step: Step, start: IntArray, end: IntArray, top: float, height: float, fill: Fill, per: int
) -> None:
    left, right = as_float(start - step.start_ns), as_float(end - step.start_ns)
    right = np.maximum(right, left + step.pixel_ns)
    edge = np.full(len(left), top)
    areas(ax, left / per, right / per, edge, edge + height, fill)
    # a seam where the next wide bar begins: two calls or kernels back to back are not one
    wide = left[right - left > WIDE_PIXELS * step.pixel_ns] / per
    seams(ax, [((x, top), (x, top + height)) for x in wide.tolist()], 0.5)


def _draw_stream(ax: Axes, step: Step, row: LaneRows, events: IntArray, per: int) -> set[str]:
    table = step.events
    families = np.array([_family(table, at) for at in events.tolist()], object)
    found = [name for name in FAMILY_COLOURS if (families == name).any()]
    for name in found:
        _bars(ax, step, events[families == name], row.calls_top, Fill(FAMILY_COLOURS[name]), per)
    return set(found)


def _family(table: DetailTable, at: int) -> str:
    kind = DetailKind(int(table.kind[at]))
    if kind in DEVICE_FAMILIES:
        return DEVICE_FAMILIES[kind]
    code = int(table.class_[at])
    return family(table.names[code]) if code >= 0 else OTHER_KERNELS


def _draw_nesting(ax: Axes, step: Step, row: LaneRows, events: IntArray, per: int, labels: int) -> int:
    """Ranges, ops or frames by level, the widest with their names; returns how many names were written."""
    table = step.events
    for level in range(row.levels):
        for kind, fill in NESTED_FILLS.items():
            chosen = events[(row.level == level) & (table.kind[events] == kind)]
            _bars(ax, step, chosen, row.top + level * ROW, fill, per)
    drawn = np.flatnonzero((row.level >= 0) & (row.level < row.levels))
    start = np.maximum(table.start_ns[events[drawn]], step.start_ns)
    length = np.minimum(table.end_ns[events[drawn]], step.end_ns) - start
    room_in = as_float(length) / step.pixel_ns / DPI
    widest = [at for at in np.argsort(-room_in, kind="stable")[:labels].tolist() if room_in[at] > 0.25]
    for at in widest:
        name = shown(table.names[table.name[events[drawn[at]]]], 60)
        middle = row.top + (row.level[drawn[at]] + 0.47) * ROW
        name_inside(ax, name, (start[at] - step.start_ns) / per, middle, float(room_in[at]))
    return len(widest)


def _draw_calls(ax: Axes, step: Step, row: LaneRows, events: IntArray, per: int) -> set[int]:
    kinds = step.events.kind[events]
    found = [kind for kind in CALL_FILLS if (kinds == kind).any()]
    # launches last, so that calls around them do not hide them
    for kind in reversed(found):
        _bars(ax, step, events[kinds == kind], row.calls_top, CALL_FILLS[kind], per)
    return {int(kind) for kind in found}


def _draw_path(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> set[str]:
    """The path in the strip on top and on the tracks of its lanes; returns the categories on it."""
    start, end = step.table.start_ns[step.path], step.table.end_ns[step.path]
    category = step.table.category[step.path].astype(np.int64)
    columns = dominant(start, end, category, step.path_lane, round(PLOT_IN * DPI))
    for one in np.unique(columns.category).tolist():
        mine = columns.category == one
        fill = PATH_FILLS[CATEGORY_NAMES[Category(one)]]
        tracks = [(0.0, STRIP, mine)]
        tracks += [(row.track_top, TRACK, mine & (columns.lane == row.lane)) for row in lanes]
        for top, height, here in tracks:
            left, right = as_float(columns.start_ns[here], per), as_float(columns.end_ns[here], per)
            areas(ax, left, right, np.full(len(left), top), np.full(len(left), top + height), fill, zorder=3)
    _name_path(ax, step, columns, per)
    return {CATEGORY_NAMES[Category(one)] for one in np.unique(columns.category).tolist()}


def _name_path(ax: Axes, step: Step, columns: Runs, per: int) -> None:
    """Categories written into the strip where a stretch is wide enough."""
    for at in range(len(columns.start_ns)):
        low, high = int(columns.start_ns[at]), int(columns.end_ns[at])
        name = CATEGORY_NAMES[Category(int(columns.category[at]))]
        room_in = (high - low) / step.pixel_ns / DPI
        label_inside(ax, name, low / per, high / per, STRIP / 2, PATH_FILLS[name], room_in)


def _draw_jumps(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> int:
    """Vertical lines where the path changes lanes, one per pixel and pair of lanes; returns how many."""
    middle = {row.lane: row.track_top + TRACK / 2 for row in lanes}
    known = np.flatnonzero(np.isin(step.path_lane, list(middle)))
    lane = step.path_lane[known]
    at = np.flatnonzero(lane[1:] != lane[:-1])
    when = step.table.start_ns[step.path][known[at + 1]] - step.start_ns
    pixel = (as_float(when) / step.pixel_ns).astype(np.int64)
    key = np.stack([pixel, lane[at], lane[at + 1]], axis=1)
    _, first = np.unique(key, axis=0, return_index=True) if len(key) else (key, np.empty(0, np.int64))
    lines = [
        [(when[i] / per, middle[int(lane[at[i]])]), (when[i] / per, middle[int(lane[at[i] + 1])])]
        for i in sorted(first.tolist())
    ]
    few = len(lines) <= MOST_JUMPS
    ax.add_collection(
        LineCollection(lines, colors="#000000", linewidths=0.8 if few else 0.4, zorder=4, rasterized=not few),
        autolim=False,
    )
    return len(lines)


def _note(step: Step, lanes: list[LaneRows], hidden: int, categories: set[str]) -> str:
    notes = ["Bars narrower than a pixel are drawn one pixel wide."]
    unseen = [CATEGORY_NAMES[Category(code)] for code in np.unique(step.table.category[step.path]).tolist()]
    unseen = [name for name in unseen if name not in categories]
    if unseen:
        notes.append(f"On the path, but nowhere the most of a pixel: {', '.join(unseen)}.")
    if hidden:
        notes.append(f"{count(hidden, 'lane')} with less path time and work not drawn.")
    deeper = max((row.deeper for row in lanes), default=0)
    if deeper:
        notes.append(f"Up to {count(deeper, 'deeper nesting level')} not drawn.")
    if step.about.left_out:
        notes.append(f"{count(step.about.left_out, 'short event')} left out of the table.")
    return " ".join(notes)


def _alt_text(step: Step, lane_ns: IntArray) -> str:
    span = step.end_ns - step.start_ns
    order = np.argsort(-lane_ns[:-1], kind="stable")[:3]
    shares = ", ".join(
        f"{percent(int(lane_ns[lane]), span)} on {shown(step.events.lanes[lane], 40)}"
        for lane in order.tolist()
        if lane_ns[lane]
    )
    return (
        f"Timeline of {shown(step.about.step, 50)} on rank {step.about.rank}, {ms(span)} ms, with"
        f" {len(step.events.lanes) - step.events.device_lanes} threads and {step.events.device_lanes} streams;"
        f" the critical path runs {shares or 'outside of the recorded lanes'}."
    )
