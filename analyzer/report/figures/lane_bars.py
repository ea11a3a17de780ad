"""What ran on each thread and stream of a step, as bars."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from analyzer.model import IntArray
from analyzer.report.figures.detail_step import Step
from analyzer.report.figures.lanes import ROW, LaneRows, merged
from analyzer.report.figures.marks import areas, as_float, name_inside, seams
from analyzer.report.figures.palette import FAMILY_COLOURS, GROUP_COLOURS, OTHER_KERNELS, Fill, family
from analyzer.report.figures.sheet import DPI
from analyzer.report.figures.text import shown
from analyzer.tables import DetailKind, DetailTable

MOST_LABELS = 250
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


def draw_lanes(ax: Axes, step: Step, lanes: list[LaneRows], per: int) -> tuple[set[int], set[str]]:
    """All bars, times in units of ``per`` ns; returns the host kinds and the device families that occur."""
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
