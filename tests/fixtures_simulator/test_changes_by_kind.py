from __future__ import annotations

from dataclasses import replace

from fixtures.simulator import changes_by_kind as by_kind
from fixtures.simulator import program as p
from fixtures.simulator.changes import capture_graphs
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.program import single

MACHINE = Machine()


def cpu_ns(program: p.Program) -> list[int]:
    """All host times of the first thread."""
    return [op.ns for op in program.ranks[0].threads[0].ops if isinstance(op, p.Cpu)]


def test_host_time_is_scaled_by_what_it_truly_was() -> None:
    """Between two launches of a burst: dispatch. Before and after: other work; in an output range: output."""
    program = single(
        p.Step("step"),
        p.Cpu(100, "schedule", "range", "framework"),
        p.Launch("a"),
        p.Cpu(20, "aten::mm", "op"),
        p.Launch("b"),
        p.Cpu(40, role="untraced"),
        p.Push("detokenize", declared="output"),
        p.Cpu(60, "text", "op", "output"),
        p.Pop(),
        p.Pop(),
    )
    assert cpu_ns(by_kind.scale_host_time(program, by_kind.DISPATCH, 0.5)) == [100, 10, 40, 60]
    assert cpu_ns(by_kind.scale_host_time(program, by_kind.WORK, 0.5)) == [50, 20, 20, 60]
    assert cpu_ns(by_kind.scale_host_time(program, by_kind.OUTPUT, 0.5)) == [100, 20, 40, 30]


def test_device_work_is_scaled_by_kind_also_inside_graphs() -> None:
    graph = p.Graph(
        "g", (p.Node(p.Launch("wide", grid=(264, 1, 1), duration_ns=100)), p.Node(p.Memset(8, 50)))
    )
    program = single(p.GraphLaunch(graph), p.Launch("narrow", duration_ns=100), p.CopyAsync("HtoD", 8, 30))

    def durations(changed: p.Program) -> list[int]:
        return [work.duration_ns for work in simulate(changed).works]

    assert durations(program) == [100, 50, 100, 30]
    assert durations(by_kind.scale_copies(program, 2)) == [100, 100, 100, 60]
    assert durations(by_kind.scale_small_grids(program, 0.5, 0.1)) == [100, 50, 10, 30]
    assert durations(by_kind.cap_kernels(program, "wide", 70)) == [70, 50, 100, 30]


def test_gaps_shrink_and_waits_for_events_keep_theirs() -> None:
    changed = by_kind.scale_turnaround(single(machine=MACHINE), 0.5).machine
    assert changed.turnaround_ns == MACHINE.turnaround_ns / 2
    assert changed.node_gap_ns == MACHINE.node_gap_ns / 2
    assert changed.event_wait_lag_ns == MACHINE.turnaround_ns


def test_waits_between_streams_and_overhead_go_but_calls_take_their_time() -> None:
    program = single(
        p.Launch("a", 7, 900_000), p.EventRecord("e"), p.StreamWait(9, "e"), p.Launch("b", 9),
        p.Overhead(5_000), p.Launch("c", 9), streams=(7, 9),
    )  # fmt: skip
    before, after = simulate(program), simulate(by_kind.no_dependencies(program))
    assert before.kernel("b").start_ns == before.kernel("a").end_ns + MACHINE.event_wait_lag_ns
    assert after.kernel("b").start_ns == after.kernel("b").call.start_ns + MACHINE.kernel_latency_ns
    assert after.kernel("b").call.start_ns == before.kernel("b").call.start_ns
    without = simulate(by_kind.no_overhead(program))
    assert without.kernel("c").call.start_ns == before.kernel("c").call.start_ns - 5_000


def test_collectives_get_other_transfers_or_none() -> None:
    meet = p.Collective("tp", "all_reduce", "BFloat16", 1_000, 30_000)
    inside = p.Graph("g", (p.Node(meet),))
    ranks = tuple(
        replace(single(p.Cpu(50_000 * (1 + rank)), meet, p.GraphLaunch(inside)).ranks[0], rank=rank)
        for rank in (0, 1)
    )
    program = p.Program(ranks, (p.Group("tp", (0, 1)),))

    def transfers(changed: p.Program) -> list[int]:
        return [meeting.works[0].end_ns - meeting.last.start_ns for meeting in simulate(changed).meetings]

    assert transfers(program) == [30_000, 30_000]
    assert transfers(by_kind.scale_collectives(program, 0.5)) == [15_000, 15_000]
    assert transfers(by_kind.set_launched_collectives(program, 5_000, 1e9)) == [7_000, 30_000]
    hidden = simulate(by_kind.hide_collectives(program))
    assert not hidden.meetings and all(work.duration_ns == 0 for work in hidden.works)


def test_a_captured_burst_waits_for_what_a_recorded_stream_waits_for() -> None:
    """Stream 9 waits for stream 7's event, and stream 11 for an event of 9 on which nothing was launched."""
    burst = [op for number in range(8) for op in (p.Cpu(2_000), p.Launch(f"a{number}", 7, 50_000))]
    program = single(
        *burst, p.EventRecord("of 7", 7), p.StreamWait(9, "of 7"), p.EventRecord("of 9", 9),
        p.StreamWait(11, "of 9"), p.Launch("last", 11, 1_000), streams=(7, 9, 11),
    )  # fmt: skip
    run = simulate(capture_graphs(program))
    assert run.kernel("last").start_ns == run.kernel("a7").end_ns + MACHINE.node_gap_ns


def test_a_captured_burst_waits_for_an_event_of_a_stream_that_it_does_not_use() -> None:
    """It marks what stream 9 was given before."""
    burst = [op for number in range(8) for op in (p.Cpu(2_000), p.Launch(f"a{number}", 7, 5_000))]
    program = single(
        p.Launch("before", 9, 900_000), p.Cpu(100_000, role="framework"), p.EventRecord("of 9", 9),
        p.StreamWait(7, "of 9"), *burst, streams=(7, 9),
    )  # fmt: skip
    run = simulate(capture_graphs(program))
    assert run.kernel("a0").start_ns == run.kernel("before").end_ns + MACHINE.event_wait_lag_ns
