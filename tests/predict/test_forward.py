from __future__ import annotations

import numpy as np
import pytest

from analyzer.predict.edges import EdgeKind, Edges, edges, join_edges
from analyzer.predict.event_graph import EventGraph
from analyzer.predict.forward import NEVER, CircleError, Scenarios, launched_elsewhere, observed, replay
from tests.builders import Schedule
from tests.predict.builders import graph_of, loop

GEMM, NORM = 38, 39
"""Starts of the second step's kernels; its calls are events 7, 8, 9, and 10 is the return."""


def scenarios(graph: EventGraph, lag_ns: np.ndarray, body_ns: np.ndarray | None = None) -> Scenarios:
    body = graph.body_ns if body_ns is None else body_ns
    return Scenarios(graph.edges, lag_ns[:, None], body[:, None])


def with_more(graph: EventGraph, more: Edges) -> Scenarios:
    lag = np.concatenate((observed(graph), np.zeros(len(more), np.int64)))
    return Scenarios(join_edges([graph.edges, more]), lag[:, None], graph.body_ns[:, None], added=True)


def test_a_binding_edge_keeps_what_was_observed_another_its_least_or_usual_but_no_more() -> None:
    graph = graph_of(loop())
    of = {
        (EdgeKind(kind).name, int(source), int(target)): (int(low), int(usual))
        for kind, source, target, low, usual in zip(
            graph.edges.kind, graph.edges.source, graph.edges.target,
            observed(graph), observed(graph, usual=True), strict=True,
        )
    }  # fmt: skip
    assert of["SUBMISSION", 7, GEMM] == (10_000, 10_000)  # binds
    assert of["SUBMISSION", 8, NORM] == (10_000, 10_000)  # of the 45 that passed
    assert of["STREAM", GEMM, NORM] == (1_000, 1_000)
    assert of["HELD", NORM, 10] == (6_000, 6_000)


def test_shorter_work_moves_all_that_waited_for_it() -> None:
    graph = graph_of(loop())
    body = graph.body_ns.copy()
    body[GEMM] -= 15_000
    times = replay(graph, scenarios(graph, observed(graph), body))[:, 0]
    moved = graph.at_ns - times
    assert (moved[:GEMM][graph.at_ns[:GEMM] < 187_000] == 0).all()
    assert set(moved[NORM : len(graph)].tolist()) == {15_000}


def test_scenarios_do_not_touch_one_another() -> None:
    graph = graph_of(loop())
    lag = np.repeat(observed(graph)[:, None], 3, axis=1)
    body = np.repeat(graph.body_ns[:, None], 3, axis=1)
    body[GEMM, 1] *= 2
    together = replay(graph, Scenarios(graph.edges, lag, body))
    for column in range(3):
        alone = replay(graph, Scenarios(graph.edges, lag[:, [column]], body[:, [column]]))
        assert np.array_equal(together[:, column], alone[:, 0])
    assert (together[:, 0] == graph.at_ns).all() and (together[:, 1] != graph.at_ns).any()


def test_an_edge_that_does_not_hold_is_as_if_it_were_not_there() -> None:
    graph = graph_of(loop())
    lag = observed(graph)
    into = graph.edges.target == NORM
    lag[into & (graph.edges.kind == EdgeKind.STREAM)] = NEVER
    assert replay(graph, scenarios(graph, lag))[NORM, 0] == 116_000 + 10_000


def test_work_that_has_ended_holds_no_call() -> None:
    """The kernels last nothing: the norm starts at 126 and is done; the wait that begins at 122 is held by it."""
    graph = graph_of(loop())
    body = graph.body_ns.copy()
    body[[GEMM, NORM]] = 0
    lag = observed(graph)
    assert replay(graph, scenarios(graph, lag, body))[10, 0] == 126_000 + 6_000
    lag[(graph.edges.target == NORM) & (graph.edges.kind == EdgeKind.SUBMISSION)] = 5_000
    assert replay(graph, scenarios(graph, lag, body))[10, 0] == 122_000 + 2_000


def other_launches(built: Schedule, at: int) -> Schedule:
    """Another thread launches what the main thread waits for, 5 us before the wait."""
    built.thread("main").range(at, at + 99, "step").launch(at, at + 4, runs=(at + 10, at + 20), name="mine")
    built.thread("other").launch(at + 15, at + 19, runs=(at + 25, at + 75), name="theirs")
    return built.thread("main").sync(at + 20, at + 80)


def test_a_call_is_not_held_by_what_another_thread_had_not_launched() -> None:
    graph = graph_of(loop(other_launches))
    (place,) = graph.ranks
    theirs = next(iter(place.rows(np.flatnonzero(place.graph.rows.name == 1))[2:3].tolist()))
    held = graph.edges.take((graph.edges.kind == EdgeKind.HELD) & (graph.edges.source == theirs))
    assert (launched_elsewhere(graph, held) == graph.launch[theirs]).all()
    returns = int(held.target[0])
    lag = observed(graph)
    late = (graph.edges.target == graph.launch[theirs]) & (graph.edges.kind == EdgeKind.HOST)
    lag[late] += 10_000
    assert replay(graph, scenarios(graph, lag))[returns, 0] < graph.at_ns[returns] - 40_000


def test_a_circle_is_an_error() -> None:
    graph = graph_of(loop())
    back = edges(np.array([7]), np.array([NORM]), EdgeKind.REPLAYED, done=True)
    with pytest.raises(CircleError):
        replay(graph, with_more(graph, back))
    forth = edges(np.array([NORM]), np.array([7]), EdgeKind.REPLAYED)
    assert (replay(graph, with_more(graph, forth))[:, 0] == graph.at_ns).all()
