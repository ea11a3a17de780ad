from __future__ import annotations

import numpy as np

from analyzer.model import CopyKind
from analyzer.predict.rank_graph import Measured, RankGraph, rank_graph
from tests.builders import Schedule, account_of, schedule
from tests.predict.builders import Step, loop, two_kernels


def graph_of(step: Step = two_kernels, small: list[bool] | None = None, **options: str) -> RankGraph:
    account = account_of(loop(step), steps="^step$", **options)
    found = rank_graph(account, 0, None if small is None else np.array(small))
    assert found is not None
    return found


def mixed(built: Schedule, at: int) -> Schedule:
    """A copy, a replay of two nodes, a kernel."""
    return (
        built.range(at, at + 99, "step")
        .copy(at, at + 4, runs=(at + 10, at + 20), kind=CopyKind.HTOD)
        .graph(at + 5, at + 13, [(at + 21, at + 30, "node", 7), (at + 32, at + 40, "node", 7)])
        .launch(at + 15, at + 19, runs=(at + 41, at + 50), name="gemm")
        .sync(at + 20, at + 55, stream=7)
    )


def test_rows_say_what_can_be_changed_about_them() -> None:
    rows = graph_of(mixed, small=[False, True, False, True] * 6).rows.take(np.arange(4))
    assert rows.scalable.tolist() == [False, True, True, True]
    assert rows.small.tolist() == [False, True, False, True]
    assert rows.copies.tolist() == [True, False, False, False]
    assert rows.replay.tolist() == [-1, 0, 0, -1]
    assert rows.window.tolist() == [0, 0, 0, 0]
    assert rows.entry[1] == rows.entry[2] != rows.entry[3]


def test_steps_are_found_among_the_events() -> None:
    graph = graph_of()
    assert (graph.windows, graph.first, graph.last) == (6, 0, 5)
    assert graph.step_events is not None
    starts, ends = graph.step_events.T
    assert (graph.host.at_ns[starts] // 1000).tolist() == [0, 100, 200, 300, 400, 500]
    assert (graph.host.at_ns[ends] // 1000).tolist() == [99, 199, 299, 399, 499, 599]
    assert graph.host_windows is None
    at_the_host = graph_of(boundary="host").host_windows
    assert at_the_host is not None and at_the_host.shape == (6, 2)


def test_what_replays_take_is_measured_where_there_are_any() -> None:
    assert graph_of(mixed).measured == Measured(
        graph_launch_ns=(8_000, 8_000),
        graph_latency_ns=None,  # none of them found the stream idle
        graph_turnaround_ns=(2_000, 2_000),
        tau_ns=1_000,
    )
    assert graph_of().measured == Measured(None, None, None, 1_000)


def test_without_device_work_there_is_nothing_to_replay() -> None:
    idle = schedule().range(0, 10, "step").range(20, 30, "step").op(0, 5, "aten::add")
    assert rank_graph(account_of(idle, steps="^step$", boundary="host"), 0) is None
