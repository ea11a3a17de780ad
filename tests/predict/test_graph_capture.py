from __future__ import annotations

import pytest

from analyzer.predict.draft import unchanged
from analyzer.predict.graph_capture import find_bursts
from analyzer.predict.prediction import assumptions_of
from tests.builders import Schedule
from tests.predict.builders import graph_of, loop, replayed, step_us

EXACTLY = (
    "graph_launch_ns=10000",
    "graph_launch_node_ns=0",
    "graph_latency_ns=12000",
    "graph_turnaround_ns=1000",
)


def eight_launches(built: Schedule, at: int) -> Schedule:
    """300 us: a launch every 20 us, kernels of 10, the wait is back 5 us after the last, then 135 us of the host."""
    built.range(at, at + 299, "step")
    for number in range(8):
        begin = at + 20 + 20 * number
        built.launch(begin, begin + 4, runs=(begin + 10, begin + 20), name="small")
    return built.sync(at + 170, at + 185, stream=7)


def with_a_pause(built: Schedule, at: int) -> Schedule:
    """The same, but 200 us of scheduling in the middle."""
    built.range(at, at + 499, "step")
    for number in range(8):
        begin = at + 20 + 20 * number + 200 * (number >= 4)
        built.launch(begin, begin + 4, runs=(begin + 10, begin + 20), name="small")
    return built.range(at + 90, at + 280, "schedule").sync(at + 370, at + 385, stream=7)


def test_a_burst_becomes_one_launch() -> None:
    """12 us to the first node, 8 nodes of 10, 7 gaps of 1, 5 for the return, 135 of the host."""
    found = replayed(graph_of(loop(eight_launches, length=300)), "graph-capture", EXACTLY)
    assert [step_us(found, variant=variant) for variant in range(4)] == [12 + 80 + 7 + 5 + 135] * 4
    assert found.notes == ("48 launches in 6 bursts become 6 graph launches",)
    used = {assumption.name: assumption.source for assumption in found.assumptions}
    assert used.pop("graph_least_launches") == "assumed"
    assert set(used.values()) == {"given"} and len(used) == 4


def test_what_is_left_of_the_host_can_be_shortened_as_well() -> None:
    found = replayed(graph_of(loop(eight_launches, length=300)), "graph-capture+host=0.5", EXACTLY)
    assert step_us(found) == 12 + 80 + 7 + 5 + 135 / 2


def test_both_ends_of_an_assumption_are_replayed() -> None:
    wide = (*EXACTLY[:2], "graph_latency_ns=8000..20000", "graph_turnaround_ns=500..2000")
    found = replayed(graph_of(loop(eight_launches, length=300)), "graph-capture", wide)
    assert step_us(found, variant=0) == 8 + 80 + 3.5 + 5 + 135
    assert step_us(found, variant=1) == 20 + 80 + 14 + 5 + 135


def test_a_long_launch_call_holds_the_host() -> None:
    """The call takes 200 us and 10 for each node: the device is done long before, and the wait takes 2."""
    slow = ("graph_launch_ns=200000", "graph_launch_node_ns=10000", *EXACTLY[2:])
    found = replayed(graph_of(loop(eight_launches, length=300)), "graph-capture", slow)
    assert step_us(found) == pytest.approx(200 + 80 + 6 + 2 + 135)


def test_scheduling_between_launches_ends_a_burst() -> None:
    graph = graph_of(loop(with_a_pause, length=500))
    draft = unchanged(graph, assumptions_of(graph, {}))
    assert len(find_bursts(draft, 8, None)) == 0
    four = find_bursts(draft, 4, None)
    assert (len(four), four.nodes.tolist()) == (12, [4] * 12)
    assert replayed(graph, "graph-capture").notes == (
        "no burst of at least 8 launches that a graph could replay",
    )


def test_bursts_shorter_than_the_assumption_stay_eager() -> None:
    graph = graph_of(loop(eight_launches, length=300))
    found = replayed(graph, "graph-capture", ["graph_least_launches=9"])
    assert (found.times == found.base.times).all()
