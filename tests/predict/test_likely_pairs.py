"""Two ranks whose collectives nobody could match: joined by their common ends, and what comes of that."""

from __future__ import annotations

from analyzer.across.joint import join_ranks
from analyzer.predict.event_graph import EventGraph, event_graph
from analyzer.predict.steps import Steps, global_steps
from fixtures.predictions.case import graph_of
from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from tests.predict.builders import replayed, step_us

MACHINE = Machine(kernel_latency_ns=5_000, turnaround_ns=1_000, sync_return_ns=6_000)
NAME = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def rank_of(rank: int) -> p.Rank:
    ops: list[p.Op] = []
    for step in range(8):
        ops += [
            p.Step(f"ProfilerStep#{step}"),
            p.Cpu((100_000, 180_000)[rank], "prepare", "range", "framework"),
            p.Collective("pp", ("recv", "send")[rank], "BFloat16", 4_096, 30_000, kernel=NAME),
            p.StreamSync(),
            p.Pop(),
        ]
    return p.Rank(rank, (p.Thread(tuple(ops), tid=1000 + rank),), device=rank, pid=1000 + rank)


def unmatched_pair() -> EventGraph:
    """Both ranks without what the joint analysis knows of them."""
    program = p.Program((rank_of(0), rank_of(1)), (p.Group("pp", (0, 1)),), MACHINE)
    matched, _ = graph_of(simulate(program), "nsys")
    return event_graph([place.graph for place in matched.ranks], join_ranks([], ()))


EVERY = global_steps([{0: step, 1: step} for step in range(8)])


def test_kept_they_wait_for_each_other_dropped_each_takes_the_time_that_it_took() -> None:
    """Half of the host's time: 6 + 90 + 5 + 30 us with the other rank; alone the receiver's kernel takes 110."""
    found = replayed(unmatched_pair(), "host=0.5")
    assert step_us(found, 3, 0, EVERY) == 6 + 90 + 5 + 30
    assert step_us(found, 3, 2, EVERY) == 6 + 50 + 5 + 110


def test_without_skew_the_receiver_no_longer_waits_where_they_are_one() -> None:
    found = replayed(unmatched_pair(), "no-skew")
    assert found.notes == ("16 collectives are only taken to belong together because they end together",)
    own = Steps(0, tuple(range(8)))
    assert step_us(found, 3, 0, own) == 6 + 100 + 5 + 30
    assert step_us(found, 3, 2, own) == 6 + 100 + 5 + 110
