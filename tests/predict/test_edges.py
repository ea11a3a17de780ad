from __future__ import annotations

import numpy as np

from analyzer.predict.edges import EdgeKind, edges, join_edges


def test_scalars_hold_for_all_edges_of_a_table() -> None:
    table = edges(np.array([3, 4]), np.array([1, 2]), EdgeKind.STREAM, done=True, least_ns=5)
    assert table.kind.tolist() == [EdgeKind.STREAM, EdgeKind.STREAM]
    assert (table.done.tolist(), table.binds.tolist()) == ([True, True], [False, False])
    assert (table.least_ns.tolist(), table.usual_ns.tolist()) == ([5, 5], [5, 5])
    assert (table.sample.tolist(), table.beyond.tolist()) == ([-1, -1], [False, False])


def test_tables_are_joined_in_their_order_and_none_is_an_empty_table() -> None:
    first = edges(np.array([3]), np.array([1]), EdgeKind.HOST, binds=True)
    second = edges(np.array([4]), np.array([2]), EdgeKind.HELD, usual_ns=7, inferred=True)
    both = join_edges([first, second])
    assert (both.target.tolist(), both.source.tolist()) == ([3, 4], [1, 2])
    assert (both.binds.tolist(), both.inferred.tolist()) == ([True, False], [False, True])
    assert both.usual_ns.tolist() == [0, 7]
    assert len(join_edges([])) == 0
