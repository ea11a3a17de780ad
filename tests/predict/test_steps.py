from __future__ import annotations

import numpy as np

from analyzer.predict.steps import (
    Steps,
    covered_steps,
    global_steps,
    step_lengths,
    step_span,
    window_bounds,
    window_lengths,
)
from tests.predict.builders import EVERY, graph_of, loop, replayed


def test_windows_end_with_the_last_work_of_their_step_and_tile() -> None:
    graph = graph_of(loop())
    (place,) = graph.ranks
    times, body = graph.at_ns[:, None], graph.body_ns[:, None]
    bounds = window_bounds(graph, place, times, body)[:, 0] // 1000
    assert bounds.tolist() == [0, 81, 181, 281, 381, 481, 581]
    assert (window_lengths(graph, place, times, body)[:, 0] == np.diff(bounds) * 1000).all()


def test_at_the_host_boundary_ranges_are_the_windows() -> None:
    graph = graph_of(loop(), boundary="host")
    times, body = graph.at_ns[:, None], graph.body_ns[:, None]
    assert (step_lengths(graph, EVERY, times, body)[:, 0] // 1000).tolist() == [99] * 6
    assert step_span(graph, EVERY, times, body) is None


def test_some_steps_are_read_of_all() -> None:
    found = replayed(graph_of(loop()), "kernel:gemm=0.5")
    some = Steps(0, (1, 4))
    assert len(some) == 2
    lengths = step_lengths(found.base.graph, some, found.times, found.scenarios.body_ns)
    assert (lengths[:, 0] // 1000).tolist() == [80, 80]


def test_over_all_ranks_a_step_lasts_from_completion_to_completion() -> None:
    graph = graph_of(loop())
    together = global_steps([{0: 0}, {0: 1}])
    lengths = step_lengths(graph, together, graph.at_ns[:, None], graph.body_ns[:, None])
    assert (lengths[:, 0] // 1000).tolist() == [81, 100]
    assert len(together) == 2


def test_over_all_ranks_a_step_at_the_host_boundary_lasts_as_long_as_the_ranges() -> None:
    """Not from completion to completion: what is predicted is the step that the report shows."""
    graph = graph_of(loop(), boundary="host")
    together = global_steps([{0: 0}, {0: 1}])
    lengths = step_lengths(graph, together, graph.at_ns[:, None], graph.body_ns[:, None])
    assert (lengths[:, 0] // 1000).tolist() == [99, 99]


def test_the_span_ends_with_the_work_that_ends_last() -> None:
    graph = graph_of(loop())
    span = step_span(graph, EVERY, graph.at_ns[:, None], graph.body_ns[:, None])
    assert span is not None
    assert (span.bounds_ns[0] // 1000).tolist() == [0, 81]
    assert int(graph.done_ns[span.last_event]) == 581_000


def test_a_whole_graph_covers_every_step_and_no_other() -> None:
    graph = graph_of(loop())
    assert covered_steps(graph, EVERY) == EVERY
    assert covered_steps(graph, Steps(0, (4, 5, 6))) == Steps(0, (4, 5))
    assert covered_steps(graph, Steps(1, (0,))) == Steps(1, ())
    assert covered_steps(graph, global_steps([{0: 1}, {0: 1, 1: 1}])) == global_steps([{0: 1}])
