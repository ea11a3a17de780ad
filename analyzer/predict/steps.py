"""Steps of a replayed graph: how long each window takes, on one rank or over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.event_graph import EventGraph, Placed


def window_bounds(graph: EventGraph, place: Placed, times: IntArray, body_ns: IntArray) -> IntArray:
    """(w + 1, m) bounds of one rank's windows at the device boundary, which tile its steps.

    Of windows that the graph does not cover they are meaningless.
    ``times``: (s, m) instants; ``body_ns``: (s, m) durations. Work belongs to the step that had begun last when it was
    launched: of other threads that may be another one than before.
    """
    own, m = place.graph, times.shape[1]
    rows = np.flatnonzero((own.rows.window >= 0) | (own.rows.entry >= 0))
    events = place.rows(rows)
    done = times[events] + body_ns[events]
    end = graph.end_event[events]
    done[end >= 0] = times[end[end >= 0]]
    bounds = np.full((own.windows + 1, m), np.iinfo(np.int64).min, np.int64)
    for column in range(m):
        step = _steps_of(place, rows, times[:, column])
        mine = step >= 0
        np.maximum.at(bounds[:, column], step[mine] + 1, done[mine, column])
    bounds[own.first] = np.maximum(bounds[own.first], _start(place, times))
    return np.maximum.accumulate(bounds, axis=0)


def _steps_of(place: Placed, rows: IntArray, times: IntArray) -> IntArray:
    """(n,) step of each row; one that belonged to none stays outside."""
    own = place.graph
    before = own.rows.window[rows]
    entry = own.rows.entry[rows]
    if own.step_events is None:
        return before
    covered = own.step_events[own.first : own.last + 1]
    starts = times[place.host + covered[:, 0]]
    launched = times[place.host + np.maximum(entry, 0)]
    step = np.searchsorted(starts, launched, side="right") - 1
    if len(starts) > 1 and covered[-1, 1] >= 0:
        reach = max(starts[-1] + np.diff(starts).max(), times[place.host + covered[-1, 1]])
        step = np.where(launched >= reach, -1, step)
    return np.where(entry >= 0, np.where(step >= 0, step + own.first, -1), before)


def _start(place: Placed, times: IntArray) -> IntArray:
    """(m,) when the first window begins."""
    if place.graph.step_events is not None:
        return np.asarray(times[place.host + place.graph.step_events[place.graph.first, 0]])
    earliest = np.asarray(times[place.row])
    entry = place.graph.rows.entry
    launched = times[place.host + entry[entry >= 0]]
    return np.minimum(earliest, launched.min(axis=0)) if len(launched) else earliest


def _host_ranges(place: Placed, times: IntArray) -> tuple[IntArray, IntArray] | None:
    """(w, m) when each window begins and ends at the host boundary, None at the device's."""
    events = place.graph.host_windows
    if events is None:
        return None
    return np.asarray(times[place.host + events[:, 0]]), np.asarray(times[place.host + events[:, 1]])


def window_lengths(graph: EventGraph, place: Placed, times: IntArray, body_ns: IntArray) -> IntArray:
    """(w, m) ns that each window of one rank takes, at the boundary of the analysis."""
    ranges = _host_ranges(place, times)
    if ranges is not None:
        return np.asarray(ranges[1] - ranges[0])
    return np.diff(window_bounds(graph, place, times, body_ns), axis=0)


@dataclass(frozen=True)
class Steps:
    """The steps that a figure is the mean of.

    Of one rank: positions of its windows. Over all ranks (``rank`` None): ``members``, of each step pairs of a rank
    and the position of its window there.
    """

    rank: int | None
    windows: tuple[int, ...] = ()
    members: tuple[tuple[tuple[int, int], ...], ...] = ()

    def __len__(self) -> int:
        return len(self.windows) if self.rank is not None else len(self.members)


def step_lengths(graph: EventGraph, steps: Steps, times: IntArray, body_ns: IntArray) -> IntArray:
    """(n, m) ns that each of the steps takes."""
    if steps.rank is not None:
        place = graph.placed(steps.rank)
        assert place is not None
        return window_lengths(graph, place, times, body_ns)[list(steps.windows)]
    places = [
        place
        for place in graph.ranks
        if any(place.graph.rank == rank for step in steps.members for rank, _ in step)
    ]
    ranges = {place.graph.rank: _host_ranges(place, times) for place in places}
    on_host = {rank: found for rank, found in ranges.items() if found is not None}
    if on_host:
        return np.stack([_global_host_length(on_host, step) for step in steps.members])
    bounds = {place.graph.rank: window_bounds(graph, place, times, body_ns) for place in places}
    return np.stack([_global_length(bounds, step) for step in steps.members])


def _global_host_length(
    ranges: Mapping[int, tuple[IntArray, IntArray]], step: Sequence[tuple[int, int]]
) -> IntArray:
    """From the first rank's range, but not before the last one of the step before has ended, to the last one's end."""
    start = np.min([ranges[rank][0][at] for rank, at in step], axis=0)
    before = [ranges[rank][1][at - 1] for rank, at in step if at > 0]
    if before:
        start = np.maximum(start, np.max(before, axis=0))
    end = np.max([ranges[rank][1][at] for rank, at in step], axis=0)
    return np.asarray(np.maximum(end - start, 0))


def _global_length(bounds: Mapping[int, IntArray], step: Sequence[tuple[int, int]]) -> IntArray:
    start, end = _global_bounds(bounds, step)
    return np.asarray(np.maximum(end - start, 0))


def _global_bounds(
    bounds: Mapping[int, IntArray], step: Sequence[tuple[int, int]]
) -> tuple[IntArray, IntArray]:
    """From the last completion of the step before, anywhere, to that of this one."""
    completed = [bounds[rank][at] for rank, at in step if at > 0]
    start = np.max(completed, axis=0) if completed else np.min([bounds[rank][0] for rank, _ in step], axis=0)
    return start, np.max([bounds[rank][at + 1] for rank, at in step], axis=0)


def covered_steps(graph: EventGraph, steps: Steps) -> Steps:
    """Those of the steps that the graph covers; of a cut graph the first one only leads in."""
    cover = {place.graph.rank: (place.graph.first, place.graph.last) for place in graph.ranks}

    def inside(rank: int, window: int) -> bool:
        if rank not in cover:
            return False
        first, last = cover[rank]
        return first < window <= last or window == first == 0

    if steps.rank is not None:
        rank = steps.rank
        return Steps(rank, tuple(window for window in steps.windows if inside(rank, window)))
    members = [step for step in steps.members if all(inside(rank, at) for rank, at in step)]
    return Steps(None, (), tuple(members))


@dataclass(frozen=True)
class Span:
    """When some steps ran, (n, 2) ns, and the event whose end is the last one's."""

    bounds_ns: IntArray
    last_event: int


def step_span(graph: EventGraph, steps: Steps, times: IntArray, body_ns: IntArray) -> Span | None:
    """Where the steps lie in the first scenario; None at the host boundary, whose steps end on no device work."""
    places = [place for place in graph.ranks if steps.rank in (None, place.graph.rank)]
    if any(place.graph.host_windows is not None for place in places):
        return None
    bounds = {place.graph.rank: window_bounds(graph, place, times, body_ns)[:, 0] for place in places}
    if steps.rank is not None:
        own = bounds[steps.rank]
        found = [(own[at], own[at + 1]) for at in steps.windows]
    else:
        found = [_global_bounds(bounds, step) for step in steps.members]
    last_ns = max(end for _, end in found)
    events = np.concatenate([place.rows(np.arange(len(place.graph.rows))) for place in places])
    done = times[events, 0] + body_ns[events, 0]
    ends = graph.end_event[events]
    done[ends >= 0] = times[ends[ends >= 0], 0]
    at = int(np.flatnonzero(done == last_ns)[-1])
    return Span(np.array(found, np.int64), int(ends[at]) if ends[at] >= 0 else int(events[at]))


def global_steps(members: Sequence[Mapping[int, int]]) -> Steps:
    """Steps over all ranks: for each the position of its window by rank."""
    return Steps(None, (), tuple(tuple(sorted(step.items())) for step in members))
