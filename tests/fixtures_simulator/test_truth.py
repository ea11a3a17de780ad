"""The truth: hand-computed paths on one screen, and partitions of random programs."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.categories import Binding, Category, Exposure
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.program import (
    Collective,
    Cpu,
    EventRecord,
    Graph,
    GraphLaunch,
    Group,
    Launch,
    Node,
    Op,
    Overhead,
    Pop,
    Program,
    Push,
    QueryLoop,
    Rank,
    Signal,
    Step,
    StreamSync,
    StreamWait,
    Thread,
    WaitToken,
    single,
)
from fixtures.simulator.random_programs import Level, random_program
from fixtures.simulator.truth import Segment, Truth, merged, truth_of
from tests.fixtures_simulator.test_engine_rules import ROUND

Line = tuple[int, int, Category]


def truth(*ops: Op, machine: Machine = ROUND) -> Truth:
    return truth_of(simulate(single(*ops, machine=machine, streams=(7, 20))))


def lines(segments: tuple[Segment, ...]) -> list[Line]:
    return [(s.start_ns, s.end_ns, s.category) for s in segments]


def test_a_launch_bound_step() -> None:
    found = truth(
        Step("s"),
        Cpu(100_000, "prepare", "range", "framework"),
        Launch("a", duration_ns=3_000, api_ns=4_000),
        Cpu(30_000, "aten::mm", "op"),
        Launch("b", duration_ns=3_000, api_ns=4_000),
        Pop(),
    )
    (window,) = found.ranks[0]
    assert lines(window.path) == [
        (0, 100_000, Category.HOST_FRAMEWORK),
        (100_000, 104_000, Category.LAUNCH_API),
        (104_000, 134_000, Category.LAUNCH_DISPATCH),
        (134_000, 139_000, Category.LAUNCH_LATENCY),
        (139_000, 142_000, Category.KERNEL),
    ]
    assert [(p.start_ns, p.end_ns, p.label) for p in window.exposed] == [
        (0, 100_000, Exposure.IDLE_HOST),
        (100_000, 105_000, Exposure.IDLE_LAUNCH),
        (105_000, 108_000, Exposure.KERNEL),
        (108_000, 134_000, Exposure.IDLE_HOST),
        (134_000, 139_000, Exposure.IDLE_LAUNCH),
        (139_000, 142_000, Exposure.KERNEL),
    ]


def test_a_synchronized_step_continues_on_the_device_and_names_the_return() -> None:
    found = truth(
        *(Step("one"), Launch("a", duration_ns=50_000, api_ns=4_000), StreamSync(), Pop()),
        *(Step("two"), Cpu(10_000), Launch("b", duration_ns=2_000, api_ns=4_000), Pop()),
    )
    one, two = found.ranks[0]
    assert lines(one.path) == [(0, 5_000, Category.LAUNCH_LATENCY), (5_000, 55_000, Category.KERNEL)]
    assert lines(two.path) == [
        (55_000, 61_000, Category.HOST_SYNC_RETURN),
        (61_000, 71_000, Category.HOST_UNTRACED),
        (71_000, 76_000, Category.LAUNCH_LATENCY),
        (76_000, 78_000, Category.KERNEL),
    ]


def test_asynchronous_scheduling_stays_on_the_device() -> None:
    found = truth(
        *(Step("one"), Launch("a", duration_ns=80_000, api_ns=4_000), Pop()),
        *(Step("two"), Launch("b", duration_ns=20_000, api_ns=4_000), Pop()),
    )
    assert lines(found.ranks[0][1].path) == [
        (85_000, 86_000, Category.GAP_DISPATCH),
        (86_000, 106_000, Category.KERNEL),
    ]


def test_an_event_wait_is_a_dependency() -> None:
    found = truth(
        Step("s"),
        Launch("a", 7, 40_000, 4_000),
        EventRecord("e", 7),
        StreamWait(20, "e"),
        Launch("b", 20, 3_000, 4_000),
        Pop(),
    )
    (window,) = found.ranks[0]
    assert lines(window.path)[1:] == [
        (5_000, 45_000, Category.KERNEL),
        (45_000, 46_000, Category.GAP_DEPENDENCY),
        (46_000, 49_000, Category.KERNEL),
    ]
    assert window.path[2].binding is Binding.EVENT


def test_gaps_inside_a_replay_are_dispatch_gaps() -> None:
    graph = Graph("g", (Node(Launch("x", 7, 10_000)), Node(Launch("y", 7, 20_000), (0,))))
    found = truth(Step("s"), GraphLaunch(graph), Pop())
    assert lines(found.ranks[0][0].path) == [
        (0, 8_000, Category.LAUNCH_LATENCY),
        (8_000, 18_000, Category.KERNEL),
        (18_000, 18_500, Category.GAP_DISPATCH),
        (18_500, 38_500, Category.KERNEL),
    ]


def test_the_later_of_two_overlapping_kernels_keeps_what_lies_behind_the_first() -> None:
    found = truth(
        Step("s"),
        Launch("a", duration_ns=50_000, api_ns=4_000),
        Launch("b", duration_ns=9_000, api_ns=4_000, pdl_overlap_ns=3_000),
        Pop(),
    )
    assert [(s.start_ns, s.end_ns, s.name) for s in found.ranks[0][0].path[1:]] == [
        (5_000, 55_000, "a"),
        (55_000, 61_000, "b"),
    ]


def test_an_event_query_loop_is_a_wait_for_the_device() -> None:
    found = truth(
        *(Step("one"), Launch("a", duration_ns=20_000, api_ns=4_000), EventRecord("e")),
        *(QueryLoop("e", 10_000), Pop()),
        *(Step("two"), Launch("b", duration_ns=2_000), Pop()),
    )
    assert lines(found.ranks[0][1].path)[0] == (25_000, 26_000, Category.HOST_SYNC_RETURN)


def test_other_calls_belong_to_the_burst_around_them_and_overhead_to_the_profiler() -> None:
    found = truth(
        Step("s"),
        Launch("a", duration_ns=1_000, api_ns=4_000),
        EventRecord("e"),
        Overhead(50_000),
        Launch("b", duration_ns=1_000, api_ns=4_000),
        Pop(),
    )
    (window,) = found.ranks[0]
    assert lines(window.path)[:3] == [
        (0, 4_000, Category.LAUNCH_API),
        (4_000, 5_000, Category.LAUNCH_DISPATCH),
        (5_000, 55_000, Category.PROFILER),
    ]
    assert (6_000, 55_000, Exposure.IDLE_PROFILER) in [
        (p.start_ns, p.end_ns, p.label) for p in window.exposed
    ]


def test_declared_ranges_decide_what_host_time_is() -> None:
    launches = (Launch("a", duration_ns=1_000, api_ns=4_000), Cpu(20_000))
    found = truth(
        *(Step("s"), Push("forward", declared="dispatch"), Cpu(10_000), *launches, Pop()),
        *(Push("sample", declared="output"), Cpu(30_000), Launch("b", duration_ns=1_000, api_ns=4_000)),
        *(Pop(), Pop()),
    )
    assert [line[2] for line in lines(found.ranks[0][0].path)] == [
        Category.LAUNCH_DISPATCH,
        Category.LAUNCH_API,
        Category.LAUNCH_DISPATCH,
        Category.HOST_OUTPUT,
        Category.LAUNCH_LATENCY,
        Category.KERNEL,
    ]


def test_a_join_goes_through_the_thread_that_did_the_work() -> None:
    main = Thread(
        (
            *(Step("s"), Launch("f", api_ns=4_000, duration_ns=1_000), Push("backward", "frame")),
            *(Signal("go"), WaitToken("done"), Pop(), Launch("opt", api_ns=4_000, duration_ns=1_000), Pop()),
        )
    )
    autograd = Thread(
        (WaitToken("go"), Cpu(20_000, "MulBackward0", "op"), Launch("b", api_ns=4_000), Signal("done"))
    )
    found = truth_of(simulate(Program((Rank(0, (main, autograd)),), machine=ROUND)))
    assert [(s.start_ns, s.end_ns, s.category, s.thread) for s in found.ranks[0][0].path[:6]] == [
        (0, 4_000, Category.LAUNCH_API, 0),
        (4_000, 13_000, Category.HOST_WAIT, 1),
        (13_000, 33_000, Category.HOST_FRAMEWORK, 1),
        (33_000, 37_000, Category.LAUNCH_API, 1),
        (37_000, 46_000, Category.HOST_WAIT, 0),
        (46_000, 51_000, Category.LAUNCH_LATENCY, None),
    ]


def two_ranks() -> Truth:
    meet = Collective("g", "all_reduce", "Half", 1_024, transfer_ns=12_000, api_ns=4_000)
    early: tuple[Op, ...] = (Step("s"), meet, Pop())
    late: tuple[Op, ...] = (Step("s"), Cpu(40_000, "slow", "range", "framework"), meet, Pop())
    ranks = tuple(Rank(i, (Thread(ops),), device=i) for i, ops in enumerate((early, late)))
    return truth_of(simulate(Program(ranks, (Group("g", (0, 1)),), ROUND)))


def test_a_rank_alone_cannot_split_a_collective_and_together_they_can() -> None:
    window = two_ranks().ranks[0][0]
    assert lines(window.path) == [
        (0, 5_000, Category.LAUNCH_LATENCY),
        (5_000, 57_000, Category.COLLECTIVE_UNSPLIT),
    ]
    assert lines(window.split)[1:] == [
        (5_000, 45_000, Category.COLLECTIVE_WAIT),
        (45_000, 57_000, Category.COLLECTIVE_TRANSFER),
    ]


def test_the_global_path_goes_on_at_the_late_rank() -> None:
    found = two_ranks()
    ((window, path),) = found.global_paths
    assert (window.start_ns, window.end_ns) == (0, 57_000)
    assert [(s.start_ns, s.end_ns, s.category) for s in path] == [
        (0, 40_000, Category.HOST_FRAMEWORK),
        (40_000, 45_000, Category.LAUNCH_LATENCY),
        (45_000, 57_000, Category.COLLECTIVE_TRANSFER),
    ]
    (collective,) = found.collectives
    assert (collective.arrival_ns, collective.late_rank) == (45_000, 1)
    assert collective.wait_ns == {0: 40_000, 1: 0}
    assert collective.transfer_ns == {0: 12_000, 1: 12_000}


def test_a_step_without_device_work_has_an_empty_window() -> None:
    found = truth(
        *(Step("one"), Launch("a", duration_ns=9_000), Pop()),
        *(Step("two"), Cpu(50_000), Pop()),
        *(Step("three"), Launch("b", duration_ns=9_000), Pop()),
    )
    one, two, three = found.ranks[0]
    assert two.window.empty and two.path == () and two.exposed == ()
    assert one.window.end_ns == two.window.start_ns == two.window.end_ns == three.window.start_ns


def test_the_last_step_reaches_to_its_start_plus_the_longest_distance() -> None:
    found = truth(
        *(Step("one"), Launch("a", duration_ns=1_000, api_ns=4_000), Cpu(96_000), Pop()),
        *(Step("two"), Launch("b", duration_ns=1_000, api_ns=4_000), Pop()),
        *(Cpu(500_000), Launch("outside", duration_ns=1_000)),
    )
    assert [work.name for work in found.ranks[0][1].window.launched] == ["b"]


def test_launches_before_the_first_step_belong_to_none() -> None:
    found = truth(Launch("early", duration_ns=1_000), Cpu(50_000), Step("s"), Launch("a"), Pop())
    assert [work.name for work in found.ranks[0][0].window.launched] == ["a"]


class Stretch(Protocol):
    """Segment or piece."""

    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


def assert_partition(parts: tuple[Stretch, ...], start: int, end: int) -> None:
    """Sorted, disjoint, gapless, none empty, and all of the window."""
    ends = [start]
    for part in parts:
        assert part.start_ns == ends[-1] and part.end_ns > part.start_ns
        ends.append(part.end_ns)
    assert ends[-1] == end


@pytest.mark.parametrize("level", ["exact", "hard"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32), ranks=st.sampled_from([1, 1, 3]))
def test_paths_and_exposed_time_partition_every_window(level: Level, seed: int, ranks: int) -> None:
    run = simulate(random_program(seed, level, ranks))
    found = truth_of(run)
    for windows in found.ranks.values():
        boundary = windows[0].window.start_ns
        for each in windows:
            window = each.window
            assert window.start_ns == boundary
            boundary = window.end_ns
            for parts in (each.path, each.split, each.exposed):
                assert_partition(parts, window.start_ns, window.end_ns)
    for window, path in found.global_paths:
        assert_partition(path, window.start_ns, window.end_ns)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32), level=st.sampled_from(["exact", "hard"]))
def test_work_never_starts_before_what_it_waits_for(seed: int, level: Level) -> None:
    run = simulate(random_program(seed, level, 2))
    for work in run.works:
        assert work.start_ns >= work.call.start_ns + work.latency_ns or work.inner
        assert work.end_ns > work.start_ns
        for before in work.waits:
            assert before.end_ns < work.start_ns
        if not work.overlap_ns:
            assert all(before.end_ns < work.start_ns for before in work.behind)
    for spans in run.spans.values():
        for left, right in pairwise(spans):
            assert left.end_ns == right.start_ns < right.end_ns


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_the_path_of_a_category_is_no_longer_than_its_work(seed: int) -> None:
    found = truth_of(simulate(random_program(seed, "exact")))
    for each in found.ranks[0]:
        kernels = sum(s.end_ns - s.start_ns for s in each.path if s.category is Category.KERNEL)
        running = sum(p.end_ns - p.start_ns for p in each.exposed if p.label is Exposure.KERNEL)
        assert kernels <= running
        assert merged(each.path)[-1][1] == each.window.end_ns if each.path else each.window.empty
