from __future__ import annotations

from dataclasses import replace

import numpy as np

from analyzer.across.joint import join_ranks
from analyzer.predict.edges import EdgeKind
from analyzer.predict.event_graph import event_graph, time_order
from analyzer.predict.prediction import Predictor, assumptions_of
from tests.predict.builders import graph_of, loop
from tests.predict.test_collective_changes import pair
from tests.predict.test_likely_pairs import unmatched_pair


def test_the_hosts_events_come_first_then_one_for_each_piece_of_work() -> None:
    graph = graph_of(loop())
    (place,) = graph.ranks
    assert (place.host, place.row, len(graph)) == (0, 36, 48)
    assert (graph.at_ns[36:38] // 1000).tolist() == [20, 61]
    assert (graph.done_ns[36:38] // 1000).tolist() == [60, 81]
    assert graph.launch[36:38].tolist() == [1, 2]
    assert (place.rows(np.array([1])).tolist(), graph.placed(0), graph.placed(1)) == ([37], place, None)
    assert set(graph.rank_of.tolist()) == {0}


def test_a_collective_ends_after_all_have_come() -> None:
    graph = pair()
    met = graph.meetings
    assert len(met.event) == 16 and met.operation == ("all_reduce",) * 16
    assert np.bincount(met.call).tolist() == [2] * 8
    assert (graph.end_event[met.start] == met.event).all()
    assert (graph.at_ns[met.event] == graph.done_ns[met.start]).all()
    into = graph.edges.take(graph.edges.kind == EdgeKind.MEETING)
    assert len(into) == 32 and not into.inferred.any()
    arrived = graph.at_ns[into.source]
    latest = np.array([arrived[into.target == event].max() for event in into.target])
    assert (into.least_ns == 30_000).all() and (graph.at_ns[into.target] - latest == 30_000).all()
    assert np.bincount(graph.rank_of + 1).tolist() == [8, (len(graph) - 8) // 2, (len(graph) - 8) // 2]


def test_all_have_come_when_the_last_one_has() -> None:
    graph = pair()
    gathered = graph.meetings.gathered
    into = graph.edges.take(graph.edges.kind == EdgeKind.ARRIVAL)
    assert np.array_equal(np.bincount(into.target, minlength=len(graph))[gathered], [2] * 8)
    last = [graph.at_ns[into.source[into.target == event]].max() for event in gathered]
    assert graph.at_ns[gathered].tolist() == last
    assert (graph.rank_of[gathered] == -1).all()


def test_events_at_one_instant_ends_of_collectives_first_then_the_hosts() -> None:
    graph = pair()
    order = time_order(graph)
    assert (np.diff(graph.at_ns[order]) >= 0).all()
    kind = np.full(len(graph), 2)
    for place in graph.ranks:
        kind[place.host : place.row] = 1
    kind[graph.meetings.event] = 0
    same = np.diff(graph.at_ns[order]) == 0
    assert same.any() and (np.diff(kind[order])[same] >= 0).all()


def test_an_edge_that_leads_back_in_time_is_dropped_counted_and_replaced_by_the_latest_that_is_left() -> None:
    (place,) = graph_of(loop()).ranks
    norm, later = place.row + 3, place.row + 5
    table = place.graph.edges
    wrong = (table.target == norm) & (table.kind == EdgeKind.STREAM)
    assert wrong.sum() == 1
    broken = replace(place.graph, edges=replace(table, source=np.where(wrong, later, table.source)))
    graph = event_graph([broken], join_ranks([], ()))
    assert graph.dropped == 1
    left = graph.edges.take(graph.edges.target == norm)
    assert (left.kind.tolist(), left.binds.tolist(), left.inferred.tolist()) == (
        [EdgeKind.SUBMISSION],
        [True],
        [True],
    )
    before = Predictor(graph, assumptions_of(graph, {})).replay(()).base.times[:, 0]
    assert np.array_equal(before, graph.at_ns)


def test_groups_that_cannot_be_matched_are_joined_by_their_common_ends_as_an_inference() -> None:
    graph = unmatched_pair()
    met = graph.edges.take(graph.edges.kind == EdgeKind.MEETING)
    assert len(met) and met.inferred.all()
    assert len(graph.meetings.event) == 16
