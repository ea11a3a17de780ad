"""Subtraction along the path (Amdahl): the most that a change can give, beside what its replay gives.

In a graph of longest paths the old critical path still holds after a change: no step gets shorter by more than what the
change takes off it. That holds for changed lags and durations; where an edge of the path is gone nothing is bounded.
A call that waits for the device may besides return at once where it finds the work done: what its return takes counts.
"""

from __future__ import annotations

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.edges import BoolArray, EdgeKind
from analyzer.predict.event_graph import EventGraph, source_event
from analyzer.predict.forward import NEVER, Scenarios, launched_elsewhere


def path_edges(graph: EventGraph, before: Scenarios, times: IntArray, end: int) -> IntArray:
    """Edges of the critical path that ends with an event, latest first; ``times``: (s,) of the first scenario."""
    table = before.edges
    order = np.argsort(table.target, kind="stable")
    first = np.searchsorted(table.target[order], np.arange(len(graph) + 1))
    source = source_event(graph, table)
    ready = times[source] + np.maximum(before.lag_ns[:, 0], NEVER) + _body(graph, before)[:, 0]
    found: list[int] = []
    event = end
    while True:
        into = order[first[event] : first[event + 1]]
        into = into[ready[into] <= times[event]]  # a call is not held by what had not been launched
        if not len(into):
            return np.array(found, np.int64)
        best = int(into[np.argmax(ready[into])])
        found.append(best)
        event = int(source[best])


def most_gain_ns(
    graph: EventGraph, before: Scenarios, after: Scenarios, path: IntArray, counts: BoolArray, end: int
) -> int | None:
    """Ns that a change takes off the edges of a path whose targets count, and off what begins at its ``end``.

    ``counts``: (s,) events of the steps in question. Edges that a change added bound nothing and take nothing off.
    None where an edge of the path is gone, or a call on it might no longer wait for what another thread launches.
    """
    mine = path[counts[before.edges.target[path]]]
    now = after.lag_ns[mine, 0]
    elsewhere = launched_elsewhere(graph, before.edges)[mine] >= 0
    if (now <= NEVER).any() or elsewhere.any():
        return None
    total = before.lag_ns[mine, 0] - now
    total += (_body(graph, before)[mine] - _body(graph, after)[mine])[:, 0]
    total += np.where(before.edges.kind[mine] == EdgeKind.HELD, now, 0)  # the call may find the work done
    last = before.body_ns[end, 0] - after.body_ns[end, 0] if graph.end_event[end] < 0 else 0
    return int(np.maximum(total, 0).sum() + max(last, 0))


def _body(graph: EventGraph, scenarios: Scenarios) -> IntArray:
    """(e, 1) duration of each edge's source where the lag counts from its end; of collectives that is a lag itself."""
    table = scenarios.edges
    through = table.done & (graph.end_event[table.source] < 0)
    return np.where(through, scenarios.body_ns[table.source, 0], 0)[:, None]
