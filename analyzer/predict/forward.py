"""The forward pass: when every event happens, once what it waited for is known, for several scenarios at once."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.edges import BoolArray, EdgeKind, Edges
from analyzer.predict.event_graph import EventGraph, source_event, time_order

NEVER = np.iinfo(np.int64).min // 4
"""Lag of an edge that does not hold in a scenario."""


@dataclass(frozen=True)
class Scenarios:
    """The graph under m scenarios: its edges, (e, m) their lags, and (s, m) how long device work runs, ns.

    ``added``: whether edges were added that need not follow the observed order of time.
    """

    edges: Edges
    lag_ns: IntArray
    body_ns: IntArray
    added: bool = False


def observed(graph: EventGraph, *, usual: bool = False) -> IntArray:
    """(e,) lag of each edge: what was observed where it binds, else the least (or the usual) one, if shorter."""
    table = graph.edges
    since = np.where(table.done, graph.done_ns[table.source], graph.at_ns[table.source])
    seen = graph.at_ns[table.target] - since
    return np.where(table.binds, seen, np.minimum(table.usual_ns if usual else table.least_ns, seen))


def replay(graph: EventGraph, scenarios: Scenarios) -> IntArray:
    """(s, m) instant of every event in every scenario. Events that wait for nothing happen when they did."""
    table, s, m = scenarios.edges, len(graph), scenarios.lag_ns.shape[1]
    by_target = np.argsort(table.target, kind="stable")
    target = table.target[by_target]
    source = source_event(graph, table)[by_target]
    pure = scenarios.lag_ns[by_target]
    lag = pure.copy()
    through = (table.done & (graph.end_event[table.source] < 0))[by_target]
    lag[through] += scenarios.body_ns[table.source[by_target][through]]
    held = (table.kind == EdgeKind.HELD)[by_target]
    first = np.searchsorted(target, np.arange(s + 1))
    launch = launched_elsewhere(graph, table)[by_target]
    order = _order(graph, target, source, first) if scenarios.added else time_order(graph)

    root, since = _chains(graph, target, source, lag, held, launch, first)
    reached, lag = root[source], lag + since[source]
    times = np.empty((s, m), np.int64)
    times[:] = graph.at_ns[:, None]
    conditional = np.zeros(s, bool)
    conditional[target[held]] = True
    # Rows as objects made once: the loop does little else than look them up.
    at, by, edge_from = list(times), list(lag), reached.tolist()
    begins, entry = first.tolist(), graph.entry.tolist()
    waits = conditional.tolist()
    other = np.empty(m, np.int64)
    for event in order[root[order] == order].tolist():
        low, high = begins[event], begins[event + 1]
        if low == high:
            continue
        if waits[event] and entry[event] >= 0:
            ready = times[edge_from[low:high]] + lag[low:high]
            ended = ready - pure[low:high]
            free = _not_held(times, at[entry[event]], ended, launch[low:high])
            ready[held[low:high, None] & free] = NEVER
            np.max(ready, axis=0, out=at[event])
            continue
        now = at[event]
        np.add(at[edge_from[low]], by[low], out=now)
        for edge in range(low + 1, high):
            np.add(at[edge_from[edge]], by[edge], out=other)
            np.maximum(now, other, out=now)
    chained = np.flatnonzero(root != np.arange(s))
    times[chained] = times[root[chained]] + since[chained]
    return times


def _not_held(times: IntArray, began: IntArray, ended: IntArray, launch: IntArray) -> BoolArray:
    """Work that had ended, or was not launched yet, when a call began does not hold it."""
    return np.asarray((ended <= began) | ((launch >= 0)[:, None] & (times[launch] >= began)), bool)


def launched_elsewhere(graph: EventGraph, table: Edges) -> IntArray:
    """(e,) of work that a call waits for the event at which another thread launched it, else -1."""
    launch = graph.launch[table.source]
    call = graph.entry[table.target]
    other = (table.kind == EdgeKind.HELD) & (launch >= 0) & (call >= 0)
    other &= graph.thread[launch] != graph.thread[call]
    return np.where(other, launch, -1)


def _chains(
    graph: EventGraph,
    target: IntArray,
    source: IntArray,
    lag: IntArray,
    held: BoolArray,
    launch: IntArray,
    first: IntArray,
) -> tuple[IntArray, IntArray]:
    """(s,) the event that alone decides when each happens, itself where several may; and (s, m) how much later."""
    s = len(graph)
    root: IntArray = np.arange(s)
    since: IntArray = np.zeros((s, lag.shape[1]), np.int64)
    single = np.diff(first) == 1
    single[target[held]] = False
    single[graph.entry[graph.entry >= 0]] = False
    single[launch[launch >= 0]] = False
    only = np.flatnonzero(single)
    alive = only[(lag[first[only]] > NEVER // 2).all(axis=1)]
    root[alive] = source[first[alive]]
    since[alive] = lag[first[alive]]
    while True:
        beyond = root[root]
        moved = np.flatnonzero(beyond != root)
        if not len(moved):
            return root, since
        since[moved] += since[root[moved]]
        root[moved] = beyond[moved]


def _order(graph: EventGraph, target: IntArray, source: IntArray, first: IntArray) -> IntArray:
    """A topological order, by observed time where the edges leave it open. Ends of what a circle holds come last."""
    s = len(graph)
    by_time = np.empty(s, np.int64)
    by_time[time_order(graph)] = np.arange(s)
    missing = np.diff(first).tolist()
    by_source = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[by_source], np.arange(s + 1)).tolist()
    follows = target[by_source].tolist()
    rank = by_time.tolist()
    of_rank = np.argsort(by_time).tolist()
    ready = [rank[event] for event in range(s) if missing[event] == 0]
    heapq.heapify(ready)
    result: list[int] = []
    while ready:
        event = of_rank[heapq.heappop(ready)]
        result.append(event)
        for at in range(starts[event], starts[event + 1]):
            after = follows[at]
            missing[after] -= 1
            if missing[after] == 0:
                heapq.heappush(ready, rank[after])
    if len(result) < s:
        raise CircleError
    return np.array(result, np.int64)


class CircleError(Exception):
    """A change would make events wait for one another for ever."""
