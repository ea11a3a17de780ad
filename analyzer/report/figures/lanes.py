"""Which rows the timeline has: threads with their nesting levels, then streams, each with a path track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.tables import DetailKind, DetailTable, SegmentTable

MOST_THREADS = 4
MOST_STREAMS = 8
LEVELS = {1: 6, 2: 4}
FEWEST_LEVELS = 3
ROW = 1.0
TRACK = 0.42
SPACE = 0.5
STRIP = 1.2
NESTED = (DetailKind.RANGE, DetailKind.OP)
CALLS = (DetailKind.LAUNCH, DetailKind.HELD, DetailKind.API, DetailKind.OS, DetailKind.PROFILER)


@dataclass(frozen=True)
class LaneRows:
    """Where one lane is drawn; y grows downwards, in rows."""

    lane: int
    text: str
    top: float
    levels: int  # nesting rows above the row of calls; 0 on streams
    calls: bool
    deeper: int  # levels that are not drawn
    level: IntArray  # (e,) of the lane's events: nesting row, -1 for others

    @property
    def calls_top(self) -> float:
        """Top of the row of calls, or of a stream's work."""
        return self.top + self.levels * ROW

    @property
    def track_top(self) -> float:
        """Top of the path track."""
        return self.calls_top + (ROW if self.calls else 0.0)

    @property
    def bottom(self) -> float:
        """End of the lane."""
        return self.track_top + TRACK


def arrange(detail: DetailTable, path_ns: Sequence[int]) -> tuple[list[LaneRows], int]:
    """The lanes that are drawn, top down, and how many are not. ``path_ns``: path time per lane."""
    first_stream = len(detail.lanes) - detail.device_lanes
    busy = np.zeros(len(detail.lanes), np.int64)
    np.add.at(busy, detail.lane, detail.end_ns - detail.start_ns)
    threads = _most_important(range(first_stream), path_ns, busy, MOST_THREADS)
    streams = _most_important(range(first_stream, len(detail.lanes)), path_ns, busy, MOST_STREAMS)
    most_levels = LEVELS.get(len(threads), FEWEST_LEVELS)
    top = STRIP + SPACE
    rows = []
    for lane in (*threads, *streams):
        events = np.flatnonzero(detail.lane == lane)
        is_thread = lane < first_stream
        level = _levels(detail, events) if is_thread else np.full(len(events), -1, np.int64)
        depth = int(level.max(initial=-1)) + 1
        calls = not is_thread or bool(np.isin(detail.kind[events], CALLS).any())
        row = LaneRows(
            lane, detail.lanes[lane], top, min(depth, most_levels), calls, max(0, depth - most_levels), level
        )
        rows.append(row)
        top = row.bottom + SPACE
    return rows, len(detail.lanes) - len(rows)


def _most_important(lanes: range, path_ns: Sequence[int], busy: IntArray, most: int) -> list[int]:
    """The lanes with the most path time, then the busiest; in their own order."""
    ordered = sorted(lanes, key=lambda lane: (-path_ns[lane], -int(busy[lane]), lane))
    return sorted(lane for lane in ordered[:most] if busy[lane] or path_ns[lane])


def _levels(detail: DetailTable, events: IntArray) -> IntArray:
    """Nesting among ranges and ops alone; Python frames only where a thread has neither."""
    kinds = detail.kind[events]
    nested = np.isin(kinds, NESTED)
    if not nested.any():
        nested = kinds == DetailKind.FRAME
    level = np.full(len(events), -1, np.int64)
    open_ends: list[int] = []
    for at in np.flatnonzero(nested).tolist():
        begin, end = int(detail.start_ns[events[at]]), int(detail.end_ns[events[at]])
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        level[at] = len(open_ends)
        open_ends.append(end)
    return level


def path_lanes(table: SegmentTable, rows: IntArray, lanes: Sequence[str]) -> IntArray:
    """(n,) lane of each of the path segments ``rows``, -1 where it has none."""
    at = {text: lane for lane, text in enumerate(lanes)}
    of_place = np.array([*(at.get(place, -1) for place in table.places), -1], np.int64)
    return of_place[table.place[rows]]


def merged(start_ns: IntArray, end_ns: IntArray, pixel_ns: float) -> tuple[IntArray, IntArray, IntArray]:
    """Bars sorted by start, runs of those below a pixel joined: (first row, start, end) of each.

    Only bars narrower than a pixel whose gap is below a pixel are joined, so nothing moves by more.
    """
    if not len(start_ns):
        return np.empty(0, np.int64), start_ns, end_ns
    narrow = end_ns - start_ns < pixel_ns
    close = start_ns[1:] - end_ns[:-1] < pixel_ns
    opens = np.append(True, ~(narrow[1:] & narrow[:-1] & close))
    first = np.flatnonzero(opens)
    return first, start_ns[first], np.maximum.reduceat(end_ns, first)


@dataclass(frozen=True)
class Runs:
    """Stretches of the path as the timeline shows them, (n,) each; times are ns since the step's start."""

    start_ns: IntArray
    end_ns: IntArray
    category: IntArray
    lane: IntArray


def dominant(start_ns: IntArray, end_ns: IntArray, category: IntArray, lane: IntArray, columns: int) -> Runs:
    """The path in ``columns`` pixels, each given to the category and lane with the most of its time.

    The segments are a partition in time order. Neighbouring pixels of one category and lane are one run, so
    that a thousand short gaps show as the share of pixels that they are and no more.
    """
    zero, span = int(start_ns[0]), int(end_ns[-1] - start_ns[0])
    columns = max(1, min(columns, span))
    edges = span * np.arange(columns + 1, dtype=np.int64) // columns
    bounds = np.unique(np.concatenate([edges, start_ns - zero]))
    length = np.diff(bounds)
    owner = np.searchsorted(start_ns - zero, bounds[:-1], "right") - 1
    pixel = np.searchsorted(edges, bounds[:-1], "right") - 1
    key = np.stack([pixel, category[owner], lane[owner]], axis=1)
    keys, inverse = np.unique(key, axis=0, return_inverse=True)
    time = np.zeros(len(keys), np.int64)
    np.add.at(time, inverse.reshape(-1), length)
    order = np.lexsort((-time, keys[:, 0]))
    best = keys[order[np.append(True, np.diff(keys[order, 0]) != 0)]]
    opens = np.flatnonzero(np.append(True, np.any(best[1:, 1:] != best[:-1, 1:], axis=1)))
    return Runs(edges[opens], np.append(edges[opens[1:]], span), best[opens, 1], best[opens, 2])
