"""Steps of a replayed graph: when each window begins and ends."""

from __future__ import annotations

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.event_graph import EventGraph, Placed


def window_bounds(graph: EventGraph, place: Placed, times: IntArray, body_ns: IntArray) -> IntArray:
    """(w + 1, m) bounds of one rank's windows at the device boundary, which tile its steps.

    ``times``: (s, m) instants; ``body_ns``: (s, m) durations.
    """
    own, m = place.graph, times.shape[1]
    rows = np.flatnonzero(own.rows.window >= 0)
    events = place.rows(rows)
    done = times[events] + body_ns[events]
    end = graph.end_event[events]
    done[end >= 0] = times[end[end >= 0]]
    bounds = np.full((own.windows + 1, m), np.iinfo(np.int64).min, np.int64)
    np.maximum.at(bounds, own.rows.window[rows] + 1, done)
    bounds[0] = _start(place, times)
    return np.maximum.accumulate(bounds, axis=0)


def _start(place: Placed, times: IntArray) -> IntArray:
    """(m,) when the first window begins."""
    if place.graph.first_event >= 0:
        return np.asarray(times[place.host + place.graph.first_event])
    earliest = np.asarray(times[place.row])
    entry = place.graph.rows.entry
    launched = times[place.host + entry[entry >= 0]]
    return np.minimum(earliest, launched.min(axis=0)) if len(launched) else earliest


def window_lengths(graph: EventGraph, place: Placed, times: IntArray, body_ns: IntArray) -> IntArray:
    """(w, m) ns that each window of one rank takes, at the boundary of the analysis."""
    if place.graph.host_windows is not None:
        begin, end = (times[place.host + place.graph.host_windows[:, side]] for side in (0, 1))
        return np.asarray(end - begin)
    return np.diff(window_bounds(graph, place, times, body_ns), axis=0)
