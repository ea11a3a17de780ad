"""Each rule of the engine against a schedule computed by hand, one screen each."""

from __future__ import annotations

import pytest

from analyzer.categories import Binding
from fixtures.simulator.engine import DeadlockError, simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.program import (
    Collective,
    CopyAsync,
    CopySync,
    Cpu,
    DeviceSync,
    EventRecord,
    EventSync,
    Graph,
    GraphLaunch,
    Group,
    Launch,
    Malloc,
    Memset,
    Node,
    Op,
    Pop,
    Program,
    Push,
    QueryLoop,
    Rank,
    Signal,
    Step,
    Stream,
    StreamSync,
    StreamWait,
    Thread,
    WaitToken,
    single,
)
from fixtures.simulator.run import Run

ROUND = Machine(
    kernel_latency_ns=5_000,
    copy_latency_ns=5_000,
    memset_latency_ns=5_000,
    graph_latency_ns=8_000,
    turnaround_ns=1_000,
    node_gap_ns=500,
    sync_return_ns=6_000,
    copy_return_ns=4_000,
    queue_return_ns=5_000,
    handover_ns=9_000,
    event_record_ns=1_000,
    stream_wait_ns=1_000,
    query_ns=1_000,
)


def run(*ops: Op, machine: Machine = ROUND, streams: tuple[int, ...] = (7, 20)) -> Run:
    return simulate(single(*ops, machine=machine, streams=streams))


def times(result: Run, name: str, occurrence: int = 0) -> tuple[int, int]:
    work = result.kernel(name, occurrence)
    return work.start_ns, work.end_ns


def test_a_launch_onto_an_idle_device_starts_lambda_after_the_call_began() -> None:
    result = run(Cpu(10_000), Launch("a", duration_ns=3_000, api_ns=4_000))
    assert result.call_spans() == [(10_000, 14_000)]
    assert times(result, "a") == (15_000, 18_000)
    assert result.kernel("a").binding is Binding.SUBMISSION


def test_queued_work_starts_tau_after_its_predecessor() -> None:
    result = run(Launch("a", duration_ns=50_000), Launch("b", duration_ns=2_000))
    assert times(result, "a") == (5_000, 55_000)
    assert times(result, "b") == (56_000, 58_000)
    assert (result.kernel("b").binding, result.kernel("b").cause) == (Binding.STREAM, result.kernel("a"))


def test_stream_order_wins_a_tie() -> None:
    # a: 5,000..12,000, ready for b at 13,000; b is launched at 8,000, ready at 13,000
    result = run(Launch("a", duration_ns=7_000, api_ns=4_000), Cpu(4_000), Launch("b"))
    assert result.kernel("b").start_ns == 13_000
    assert result.kernel("b").binding is Binding.STREAM


def test_an_event_wait_orders_two_streams_without_holding_the_host() -> None:
    result = run(
        Launch("a", 7, 40_000, 4_000),
        EventRecord("done", 7),
        StreamWait(20, "done"),
        Launch("b", 20, 3_000, 4_000),
    )
    assert result.call_spans() == [(0, 4_000), (4_000, 5_000), (5_000, 6_000), (6_000, 10_000)]
    assert times(result, "a") == (5_000, 45_000)
    assert times(result, "b") == (46_000, 49_000)
    assert (result.kernel("b").binding, result.kernel("b").cause) == (Binding.EVENT, result.kernel("a"))


def test_a_wait_covers_the_record_before_it_and_not_a_later_one() -> None:
    result = run(
        Launch("a", 7, 10_000, 4_000),
        EventRecord("e", 7),
        StreamWait(20, "e"),
        Launch("late", 7, 90_000, 4_000),
        EventRecord("e", 7),
        Launch("b", 20, 3_000, 4_000),
    )
    assert times(result, "a") == (5_000, 15_000)
    assert times(result, "b") == (16_000, 19_000)


def test_a_stream_synchronization_held_by_the_device() -> None:
    result = run(Launch("a", duration_ns=30_000, api_ns=4_000), StreamSync(7, api_ns=2_000))
    assert result.call_spans()[1] == (4_000, 35_000 + 6_000)


def test_a_stream_synchronization_after_the_work_costs_its_api_time() -> None:
    result = run(Launch("a", duration_ns=3_000, api_ns=4_000), Cpu(20_000), StreamSync(7, api_ns=2_000))
    assert result.call_spans()[1] == (24_000, 26_000)


def test_a_device_synchronization_waits_for_all_streams_a_stream_one_does_not() -> None:
    launches = (Launch("a", 7, 10_000, 4_000), Launch("b", 20, 90_000, 4_000))
    assert run(*launches, StreamSync(7)).call_spans()[2] == (8_000, 15_000 + 6_000)
    assert run(*launches, DeviceSync()).call_spans()[2] == (8_000, 99_000 + 6_000)


def test_an_event_synchronization_waits_for_the_recorded_work_only() -> None:
    result = run(
        Launch("a", duration_ns=30_000, api_ns=4_000),
        EventRecord("e"),
        Launch("b", duration_ns=80_000, api_ns=4_000),
        EventSync("e"),
    )
    assert result.call_spans()[3] == (9_000, 35_000 + 6_000)


def test_a_never_recorded_event_returns_at_once() -> None:
    assert run(Launch("a"), EventSync("none", api_ns=2_000)).call_spans()[1] == (4_000, 6_000)


def test_a_query_loop_ends_with_the_first_query_that_begins_after_the_work() -> None:
    result = run(Launch("a", duration_ns=20_000, api_ns=4_000), EventRecord("e"), QueryLoop("e", 10_000))
    assert times(result, "a") == (5_000, 25_000)
    assert result.call_spans()[2:] == [(5_000, 6_000), (15_000, 16_000), (25_000, 26_000)]


def test_a_pageable_copy_out_holds_its_call_until_after_the_copy() -> None:
    result = run(CopyAsync("DtoH", 64, 3_000, host_memory="pageable"))
    assert result.call_spans() == [(0, 8_000 + 4_000)]


def test_a_pinned_copy_holds_nothing_unless_the_call_is_synchronous() -> None:
    assert run(CopyAsync("DtoH", 64, 90_000, api_ns=5_000)).call_spans() == [(0, 5_000)]
    assert run(CopySync("DtoH", 64, 90_000, host_memory="pinned")).call_spans() == [(0, 95_000 + 4_000)]


def test_a_staged_copy_in_returns_before_its_dma_ends_and_a_small_one_waits_for_nothing() -> None:
    staged = CopyAsync("HtoD", 1 << 20, 200_000, host_memory="pageable", api_ns=5_000)
    assert run(staged).call_spans() == [(0, 205_000 - 40_000)]
    small = CopyAsync("HtoD", 65_536, 200_000, host_memory="pageable", api_ns=5_000)
    assert run(small).call_spans() == [(0, 5_000)]


def test_an_allocation_may_wait_for_the_device_or_not() -> None:
    launch = Launch("a", duration_ns=40_000, api_ns=4_000)
    assert run(launch, Malloc(syncs=True)).call_spans()[1] == (4_000, 45_000 + 6_000)
    assert run(launch, Malloc(syncs=False, api_ns=3_000)).call_spans()[1] == (4_000, 7_000)


def test_a_full_queue_holds_the_launch_until_its_oldest_work_has_ended() -> None:
    machine = Machine(kernel_latency_ns=5_000, turnaround_ns=1_000, queue_depth=2, queue_return_ns=5_000)
    launches = [Launch(name, duration_ns=20_000, api_ns=4_000) for name in "abc"]
    result = run(*launches, machine=machine)
    assert times(result, "a") == (5_000, 25_000)
    assert result.call_spans() == [(0, 4_000), (4_000, 8_000), (8_000, 25_000 + 5_000)]
    assert times(result, "c") == (47_000, 67_000)


def test_a_dependent_launch_starts_before_its_predecessor_ends() -> None:
    result = run(
        Launch("a", duration_ns=50_000, api_ns=4_000),
        Launch("b", duration_ns=9_000, api_ns=4_000, pdl_overlap_ns=3_000),
    )
    assert times(result, "a") == (5_000, 55_000)
    assert times(result, "b") == (52_000, 61_000)


def test_a_replay_runs_its_nodes_by_their_edges() -> None:
    graph = Graph(
        "g",
        (
            Node(Launch("root", 7, 10_000)),
            Node(Launch("left", 7, 20_000), (0,)),
            Node(Launch("right", 20, 5_000), (0,)),
            Node(Launch("join", 7, 4_000), (1, 2)),
        ),
    )
    result = run(GraphLaunch(graph, 7, api_ns=12_000), Launch("next", 7, 1_000))
    assert times(result, "root") == (8_000, 18_000)
    assert times(result, "left") == (18_500, 38_500)
    assert times(result, "right") == (18_500, 23_500)
    assert times(result, "join") == (39_000, 43_000)
    assert result.kernel("join").cause is result.kernel("left")
    assert times(result, "next") == (44_000, 45_000)


def test_a_replay_waits_for_the_previous_one_of_its_executable_in_any_stream() -> None:
    graph = Graph("g", (Node(Launch("n", 7, 50_000)),))
    result = run(GraphLaunch(graph, 7, api_ns=10_000), GraphLaunch(graph, 20, api_ns=10_000))
    assert times(result, "n", 0) == (8_000, 58_000)
    assert times(result, "n", 1) == (59_000, 109_000)


def test_work_after_a_replay_waits_for_all_of_its_nodes() -> None:
    graph = Graph("g", (Node(Launch("long", 20, 70_000)), Node(Launch("short", 7, 5_000))))
    result = run(GraphLaunch(graph, 7), Launch("next", 7, 1_000))
    assert times(result, "next") == (79_000, 80_000)
    assert result.kernel("next").cause is result.kernel("long")


def test_the_legacy_default_stream_orders_blocking_streams_where_asked() -> None:
    streams = (Stream(7, "null"), Stream(13, "blocking"), Stream(20, "non_blocking"))
    ops: tuple[Op, ...] = (
        Launch("blocking", 13, 50_000, 4_000),
        Launch("null", 7, 10_000, 4_000),
        Launch("free", 20, 1_000, 4_000),
        Launch("after", 13, 1_000, 4_000),
    )
    rank = Rank(0, (Thread(ops),), streams)
    machine = Machine(kernel_latency_ns=5_000, turnaround_ns=1_000, legacy_default_stream=True)
    result = simulate(Program((rank,), machine=machine))
    assert times(result, "null") == (56_000, 66_000)
    assert times(result, "free") == (13_000, 14_000)
    assert times(result, "after") == (67_000, 68_000)
    assert result.kernel("after").binding is Binding.EVENT


def test_a_waiting_thread_runs_again_after_the_hand_over() -> None:
    first = Thread((Cpu(30_000), Signal("go"), Cpu(1_000)))
    second = Thread((WaitToken("go", "os"), Launch("a", api_ns=4_000)))
    result = simulate(Program((Rank(0, (first, second)),), machine=ROUND))
    assert result.call_spans(thread=1) == [(39_000, 43_000)]
    assert [(r.name, r.start_ns, r.end_ns) for r in result.records] == [("pthread_cond_wait", 0, 39_000)]


def test_a_token_given_earlier_costs_nothing() -> None:
    first = Thread((Signal("go"),))
    second = Thread((Cpu(5_000), WaitToken("go"), Launch("a", api_ns=4_000)))
    result = simulate(Program((Rank(0, (first, second)),), machine=ROUND))
    assert result.call_spans(thread=1) == [(5_000, 9_000)]


def pair(first: tuple[Op, ...], second: tuple[Op, ...]) -> Program:
    ranks = tuple(Rank(i, (Thread(ops),), device=i) for i, ops in enumerate((first, second)))
    return Program(ranks, (Group("g", (0, 1)),), ROUND)


def test_a_collective_ends_after_its_last_member_arrived() -> None:
    meet = Collective("g", "all_reduce", "Half", 1_024, transfer_ns=12_000, api_ns=4_000)
    result = simulate(pair((meet,), (Cpu(40_000), meet)))
    spans = {work.rank: (work.start_ns, work.end_ns) for work in result.works}
    assert spans == {0: (5_000, 57_000), 1: (45_000, 57_000)}
    assert result.meetings[0].last.rank == 1


def test_a_synchronization_can_wait_for_another_rank() -> None:
    meet = Collective("g", "all_reduce", "Half", 1_024, transfer_ns=12_000, api_ns=4_000)
    result = simulate(pair((meet, StreamSync(7)), (Cpu(40_000), meet)))
    assert result.call_spans(rank=0)[1] == (4_000, 57_000 + 6_000)


def test_a_collective_without_partners_is_an_error_not_a_hang() -> None:
    meet = Collective("g", "all_reduce", "Half", 1_024, transfer_ns=12_000)
    with pytest.raises(DeadlockError):
        simulate(pair((meet, StreamSync(7)), ()))


def test_an_open_range_is_an_error() -> None:
    with pytest.raises(ValueError, match="not closed"):
        run(Push("open"), Launch("a"))


def test_asynchronous_scheduling_launches_a_step_while_the_device_runs_the_previous_one() -> None:
    result = run(
        Step("one"), Launch("a", duration_ns=80_000), Pop(), Step("two"), Launch("b"), Memset(8, 1_000), Pop()
    )
    assert [(work.name, work.step) for work in result.works] == [("a", 0), ("b", 1), ("Memset (Device)", 1)]
    assert [(step.name, step.start_ns, step.end_ns) for step in result.steps[0]] == [
        ("one", 0, 4_000),
        ("two", 4_000, 12_000),
    ]


def test_jitter_is_drawn_from_the_seed_and_only_delays() -> None:
    machine = Machine(kernel_latency_ns=5_000, launch_jitter_ns=3_000, seed=3)
    ops = [op for _ in range(20) for op in (Launch("a", duration_ns=1_000), Cpu(50_000))]
    first, again = (run(*ops, machine=machine) for _ in range(2))
    delays = [work.start_ns - work.call.start_ns for work in first.works]
    assert delays == [work.start_ns - work.call.start_ns for work in again.works]
    assert len(set(delays)) > 5 and min(delays) >= 5_000 and max(delays) <= 8_000
