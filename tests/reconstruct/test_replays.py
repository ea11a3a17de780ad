"""Graph replays: fork-join on the launch stream, one launch for all nodes (attribution, section 3)."""

from __future__ import annotations

from analyzer.categories import Category
from tests.builders import Schedule, account_of, analysis_of, causes_of, path_of, quality_of, schedule

Node = tuple[int, int, str, int]


def test_parallel_branches_join_behind_the_longer_one() -> None:
    """
    main       |graph launch 0-10
    stream 7                 |root 20-30|left 31-41          |join 52-60
    stream 20                           |right 31-51
    """
    nodes: list[Node] = [(20, 30, "root", 7), (31, 41, "left", 7), (31, 51, "right", 20), (52, 60, "join", 7)]
    built = schedule().graph(0, 10, nodes)
    assert path_of(built) == [
        (0, 20, "launch.latency", "root"),
        (20, 30, "kernel", "root"),
        (30, 31, "gap.dispatch", "right"),
        (31, 51, "kernel", "right"),
        (51, 52, "gap.dispatch", "join"),
        (52, 60, "kernel", "join"),
    ]
    # no graph edges are recorded: where the same stream does not explain a start, the replay's latest end does
    assert causes_of(built)[2:6:2] == [(30, 31, "graph", True), (51, 52, "graph", True)]


def test_inside_a_replay_the_same_stream_binds_up_to_the_turnaround() -> None:
    """b starts 2 us after a on its stream, although x of another branch ended 1 us before b."""
    built = schedule().graph(0, 10, [(20, 30, "a", 7), (20, 31, "x", 20), (32, 40, "b", 7)])
    assert path_of(built)[1:] == [
        (20, 30, "kernel", "a"),
        (30, 32, "gap.dispatch", "b"),
        (32, 40, "kernel", "b"),
    ]
    assert causes_of(built)[2] == (30, 32, "graph", False)


def test_all_nodes_are_on_the_timeline_and_the_launch_is_charged_once() -> None:
    nodes: list[Node] = [(20 + 10 * i, 29 + 10 * i, f"n{i}", 7) for i in range(50)]
    built = schedule().graph(0, 10, nodes)
    window = analysis_of(built).diagnosis.ranks[0].windows[0]
    assert (window.kernels, window.kernels_in_graphs, window.launches, window.graph_replays) == (50, 50, 1, 1)
    assert window.path_ns["kernel"] == 50 * 9_000
    assert window.path_ns["gap.dispatch"] == 49 * 1_000
    assert window.path_ns["launch.latency"] == 20_000


def test_the_next_work_of_the_launch_stream_waits_for_every_node() -> None:
    """The branch on stream 20 ends last; eager work on stream 7 starts 1 us after it."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 20), name="before")
        .graph(2, 12, [(25, 35, "left", 7), (25, 60, "right", 20)])
        .launch(12, 14, runs=(61, 70), name="after")
    )
    assert path_of(built)[-3:] == [
        (25, 60, "kernel", "right"),
        (60, 61, "gap.dispatch", "after"),
        (61, 70, "kernel", "after"),
    ]
    assert causes_of(built)[-2] == (60, 61, "stream", False)


def test_roots_follow_the_launch_streams_earlier_work() -> None:
    """Both roots, that of the side stream too, had to wait for `before` on stream 7."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="before")
        .graph(2, 12, [(41, 45, "left", 7), (41, 60, "right", 20)])
    )
    assert path_of(built) == [
        (0, 10, "launch.latency", "before"),
        (10, 40, "kernel", "before"),
        (40, 41, "gap.dispatch", "right"),
        (41, 60, "kernel", "right"),
    ]
    assert causes_of(built)[2] == (40, 41, "stream", False)


def test_roots_follow_the_previous_replay_of_the_same_executable_in_any_stream() -> None:
    """An executable never runs twice at once: the replay on stream 8 starts behind the one on stream 7."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 14), name="x", stream=8)
        .launch(2, 4, runs=(10, 14), name="y", stream=7)
        .graph(4, 8, [(20, 60, "first", 7)], exec_id=1)
        .graph(8, 12, [(61, 80, "second", 8)], exec_id=1)
    )
    assert path_of(built)[-3:] == [
        (20, 60, "kernel", "first"),
        (60, 61, "gap.dependency", "second"),
        (61, 80, "kernel", "second"),
    ]
    assert causes_of(built)[-2] == (60, 61, "event", False)


def test_a_late_replay_is_bound_by_its_launch() -> None:
    built = (
        schedule()
        .graph(0, 8, [(20, 40, "first", 7)])
        .op(8, 60, "sample")
        .graph(60, 68, [(78, 90, "second", 7)])
    )
    assert path_of(built)[-2:] == [(60, 78, "launch.latency", "second"), (78, 90, "kernel", "second")]


def test_a_whole_graph_row_is_busy_with_an_inside_that_nobody_recorded() -> None:
    """
    main      |launch 0-6 |launch 6-12
    stream 7           |replay 20-500 |replay 501-900
    """
    built = schedule().whole_graph(0, 6, runs=(20, 500)).whole_graph(6, 12, runs=(501, 900))
    assert path_of(built) == [
        (0, 20, "launch.latency", "CUDA graph"),
        (20, 500, "graph.unresolved", "CUDA graph"),
        (500, 501, "gap.dispatch", "CUDA graph"),
        (501, 900, "graph.unresolved", "CUDA graph"),
    ]
    assert set(account_of(built).work.label) == {Category.GRAPH_UNRESOLVED}


def two_replays_with_a_side_branch(side_launch: int) -> Schedule:
    return (
        schedule()
        .graph(0, 8, [(20, 40, "a", 7), (20, 50, "b", 20)])
        .launch(side_launch, side_launch + 2, runs=(51, 70), name="eager side", stream=20)
    )


def test_eager_work_on_a_side_stream_follows_the_node_on_that_stream() -> None:
    assert path_of(two_replays_with_a_side_branch(10))[1:] == [
        (20, 50, "kernel", "b"),
        (50, 51, "gap.dispatch", "eager side"),
        (51, 70, "kernel", "eager side"),
    ]


def test_kernels_inside_a_replay_that_a_collective_is_among_keep_their_category() -> None:
    nodes: list[Node] = [(20, 30, "gemm", 7), (31, 45, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 7)]
    built = schedule().graph(0, 10, nodes)
    assert [(row[0], row[2]) for row in path_of(built)] == [
        (0, "launch.latency"), (20, "kernel"), (30, "gap.dispatch"), (31, "collective.unsplit"),
    ]  # fmt: skip


def test_a_launch_stream_that_no_record_tells_is_counted_as_inferred() -> None:
    """Nodes on stream 101 alone, eager work on 7: the launching thread's usual stream is taken, and said so."""
    eager = schedule().launch(0, 4, runs=(10, 20), stream=7)
    told = schedule().launch(0, 4, runs=(10, 20), stream=7).graph(5, 9, [(30, 40, "node", 7)])
    assert quality_of(eager.graph(5, 9, [(30, 40, "node", 101)]))["graph-launch-stream-inferred"] == 1
    assert "graph-launch-stream-inferred" not in quality_of(told)


def test_a_long_gap_inside_a_replay_of_one_stream_is_no_guess() -> None:
    """The usual turnaround is 2 us; the nodes stand 9 us apart, and nothing else could have been between."""
    built = schedule().graph(0, 8, [(20, 40, "first", 7), (49, 60, "second", 7)])
    assert path_of(built)[-2] == (40, 49, "gap.dispatch", "second")
    assert causes_of(built)[-2] == (40, 49, "graph", False)
