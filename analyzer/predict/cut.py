"""The event graph of a long capture cut to consecutive steps: a replay costs time and memory for every event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.edges import BoolArray
from analyzer.predict.rank_graph import RankGraph

LEAST_WINDOWS = 6
"""So many steps are kept however large they are, within reason ..."""
MOST_TIMES = 2
"""... which is so many times the usual number of events; beyond there is no replay."""


def cut(graph: RankGraph, wanted: int, most_events: int) -> RankGraph | None:
    """The graph from the step before ``wanted`` on, as many steps as ``most_events`` allow; None: too large steps.

    A graph that is small enough stays whole.
    """
    if len(graph.host) + len(graph.rows) <= most_events:
        return graph
    first = max(wanted - 1, 0)
    per_window = np.zeros(graph.windows, np.int64)
    for window in (graph.host_window, graph.rows.window):
        inside = window[(window >= 0) & (window < graph.windows)]
        per_window += np.bincount(inside, minlength=graph.windows)
    total = np.cumsum(per_window[first:])
    fits = int(np.searchsorted(total, most_events, side="right"))
    kept = min(max(fits, LEAST_WINDOWS), len(total))
    if total[kept - 1] > MOST_TIMES * most_events:
        return None
    last = first + kept - 1
    host, rows = (
        np.asarray((window >= first) & (window <= last), bool)
        for window in (graph.host_window, graph.rows.window)
    )
    return _kept(graph, host, rows, first, last)


def _kept(graph: RankGraph, host: BoolArray, rows: BoolArray, first: int, last: int) -> RankGraph:
    new_host, new_row = _numbers(host), _numbers(rows)
    shifted = np.where(new_row >= 0, new_row + int(host.sum()), -1)
    number = np.concatenate((new_host, shifted))
    table = graph.edges
    inside = (number[table.target] >= 0) & (number[table.source] >= 0)
    table = table.take(inside)
    events = graph.host.take(host)
    own = graph.rows.take(rows)
    steps = graph.step_events
    return replace(
        graph,
        host=replace(events, entry=_moved(new_host, events.entry)),
        rows=replace(own, entry=_moved(new_host, own.entry)),
        edges=replace(table, target=number[table.target], source=number[table.source]),
        host_window=graph.host_window[host],
        collective_row=_moved(new_row, graph.collective_row),
        step_events=None if steps is None else _moved(new_host, steps),
        host_windows=None if graph.host_windows is None else _moved(new_host, graph.host_windows),
        first=first,
        last=last,
    )


def _numbers(kept: BoolArray) -> IntArray:
    """New number of each row, -1 of those that are gone."""
    return np.where(kept, np.cumsum(kept) - 1, -1)


def _moved(numbers: IntArray, rows: IntArray) -> IntArray:
    """Old numbers as new ones; -1 stays."""
    if not len(numbers):
        return np.full(rows.shape, -1, np.int64)
    return np.where(rows >= 0, numbers[np.maximum(rows, 0)], -1)
