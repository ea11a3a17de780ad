"""All edges into one step of literal loops: (kind, source, target, binds, least in us); calls go by their time."""

from __future__ import annotations

from analyzer.predict.edges import EdgeKind
from analyzer.predict.event_graph import EventGraph
from tests.builders import Schedule
from tests.predict.builders import Step, graph_of, loop

Row = tuple[str, str | int, str | int, bool, float]


def label(graph: EventGraph, event: int) -> str | int:
    """Work: its name; a host event: its time in us."""
    (place,) = graph.ranks
    if event < place.row:
        return int(graph.at_ns[event] // 1000)
    return place.graph.names[place.graph.rows.name[event - place.row]]


def rows_of(step: Step, *kinds: EdgeKind, length: int = 100) -> list[Row]:
    """The edges of these kinds into events of the third step."""
    graph = graph_of(loop(step, length=length))
    table = graph.edges
    return [
        (
            EdgeKind(table.kind[at]).name,
            label(graph, int(table.source[at])),
            label(graph, int(table.target[at])),
            bool(table.binds[at]),
            float(table.least_ns[at] / 1000),
        )
        for at in range(len(table))
        if table.kind[at] in kinds and 2 * length <= graph.at_ns[table.target[at]] / 1000 < 3 * length
    ]


def two_streams(built: Schedule, at: int) -> Schedule:
    """The second stream waits for the first's event, the host for the second stream."""
    return (
        built.range(at, at + 99, "step")
        .launch(at, at + 4, runs=(at + 10, at + 50), name="gemm")
        .event_record(at + 5, at + 6, "done")
        .event_wait(at + 7, at + 8, "done", stream=9)
        .launch(at + 9, at + 13, runs=(at + 51, at + 71), name="other", stream=9)
        .sync(at + 15, at + 76, stream=9)
    )


def test_a_thread_is_busy_from_event_to_event_but_for_the_call_that_was_held() -> None:
    assert rows_of(two_streams, EdgeKind.HOST)[2:] == [
        ("HOST", 200, 209, True, 9.0),
        ("HOST", 209, 215, True, 6.0),
        ("HOST", 215, 276, False, 2.0),  # what a call takes that waits for nothing (assumed)
        ("HOST", 276, 299, True, 23.0),
    ]


def test_work_waits_for_its_launch_its_stream_and_the_event() -> None:
    device = (EdgeKind.SUBMISSION, EdgeKind.STREAM, EdgeKind.EVENT)
    assert sorted(rows_of(two_streams, *device), key=str) == [
        ("EVENT", "gemm", "other", True, 0.0),
        ("STREAM", "gemm", "gemm", False, 1.0),
        ("STREAM", "other", "other", False, 1.0),
        ("SUBMISSION", 200, "gemm", True, 10.0),
        ("SUBMISSION", 209, "other", False, 10.0),
    ]


def test_a_wait_is_held_by_all_that_its_stream_waited_for_too() -> None:
    graph = graph_of(loop(two_streams))
    held = graph.edges.take(
        (graph.edges.kind == EdgeKind.HELD) & (graph.at_ns[graph.edges.target] == 276_000)
    )
    found = {label(graph, source): (bool(b), bool(beyond)) for source, b, beyond in zip(
        held.source.tolist(), held.binds, held.beyond, strict=True)}  # fmt: skip
    assert found == {"other": (True, False), "gemm": (False, True)}


def replays(built: Schedule, at: int) -> Schedule:
    """A replay of three nodes on two streams, and a kernel behind it."""
    nodes = [(at + 12, at + 20, "root", 7), (at + 21, at + 30, "long", 7), (at + 21, at + 28, "side", 9)]
    return (
        built.range(at, at + 99, "step")
        .graph(at, at + 8, nodes)
        .launch(at + 9, at + 13, runs=(at + 31, at + 40), name="tail")
        .sync(at + 20, at + 45, stream=7)
    )


def test_what_follows_a_replay_waits_for_the_last_node_on_each_stream() -> None:
    assert sorted(rows_of(replays, EdgeKind.STREAM, EdgeKind.GRAPH)) == [
        ("GRAPH", "root", "long", True, 0.0),
        ("GRAPH", "root", "side", True, 0.0),
        ("STREAM", "long", "tail", True, 0.0),
        ("STREAM", "side", "tail", False, 1.0),
        ("STREAM", "tail", "root", False, 1.0),
    ]


def allocates(built: Schedule, at: int) -> Schedule:
    """300 us: an allocation waits for the kernel that ends last; another stream's work ends before."""
    return (
        built.range(at, at + 299, "step")
        .launch(at, at + 4, runs=(at + 10, at + 260), name="long")
        .launch(at + 5, at + 9, runs=(at + 15, at + 30), name="short", stream=9)
        .call(at + 12, at + 265, "cudaMalloc")
    )


def test_an_allocation_that_was_held_waits_for_the_whole_device() -> None:
    assert sorted(rows_of(allocates, EdgeKind.HELD, length=300), key=str) == [
        ("HELD", "long", 865, True, 0.0),
        ("HELD", "short", 865, False, 5.0),
    ]


def hands_over(built: Schedule, at: int) -> Schedule:
    """The main thread hands over to another one, which launches and hands back."""
    return (
        built.thread("main")
        .range(at, at + 99, "step")
        .op(at, at + 20, "forward")
        .thread("other")
        .op(at + 30, at + 50, "backward")
        .launch(at + 50, at + 54, runs=(at + 60, at + 70), name="grad")
        .flow("main", at + 20, "other", at + 30)
        .thread("main")
        .sync(at + 60, at + 75)
    )


def test_a_recorded_hand_over_is_an_edge_between_threads() -> None:
    assert ("HANDOVER", 220, 230, True, 0.0) in rows_of(hands_over, EdgeKind.HANDOVER)
