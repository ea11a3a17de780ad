"""Two ranks that prepare for 100 or 150 us, in turn, and meet in an all-reduce of 30 us: worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.errors import UsageError
from analyzer.predict.event_graph import EventGraph
from analyzer.predict.steps import global_steps
from fixtures.predictions.case import graph_of, graph_of_capture
from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.machine import Machine
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.recording import Recording
from fixtures.simulator.run import Run
from tests.predict.builders import replayed, step_us

MACHINE = Machine(kernel_latency_ns=5_000, turnaround_ns=1_000, sync_return_ns=6_000)
SMALL, LARGE = 4_096, 1_048_576  # elements of two bytes


def rank_of(rank: int, *, in_turn: bool) -> p.Rank:
    ops: list[p.Op] = []
    for step in range(8):
        late = step % 2 == rank if in_turn else rank == 1
        ops += [
            p.Step(f"ProfilerStep#{step}"),
            p.Cpu(150_000 if late else 100_000, "prepare", "range", "framework"),
            p.Collective("tp", "all_reduce", "BFloat16", LARGE if step % 2 else SMALL, 30_000),
            p.StreamSync(),
            p.Pop(),
        ]
    return p.Rank(rank, (p.Thread(tuple(ops), tid=1000 + rank),), device=rank, pid=1000 + rank)


def run(*, in_turn: bool) -> Run:
    ranks = tuple(rank_of(rank, in_turn=in_turn) for rank in (0, 1))
    return simulate(p.Program(ranks, (p.Group("tp", (0, 1)),), MACHINE))


def pair(*, in_turn: bool = True, form: str = "kineto") -> EventGraph:
    return graph_of(run(in_turn=in_turn), form)[0]  # type: ignore[arg-type]


EVERY = global_steps([{0: step, 1: step} for step in range(8)])


def after(spec: str, step: int = 3, **how: bool) -> float:
    return step_us(replayed(pair(**how), spec), step, steps=EVERY)


def test_as_captured_the_late_rank_sets_the_pace() -> None:
    """6 us of the wait's return, 150 of the late rank's host, 5 to the kernel's start, 30 of transfer."""
    assert after("host=1") == 6 + 150 + 5 + 30


def test_without_skew_ranks_that_are_late_in_turn_overtake() -> None:
    found = replayed(pair(), "no-skew")
    two = step_us(found, 4, steps=EVERY) + step_us(found, 5, steps=EVERY)
    assert two == (6 + 100 + 5 + 30) + (6 + 150 + 5 + 30)


def test_without_skew_a_rank_that_is_always_late_stays_late() -> None:
    assert after("no-skew", in_turn=False) == 6 + 150 + 5 + 30


@pytest.mark.parametrize(
    ("spec", "transfer"),
    [
        ("collective=0.5", 15.0),
        ("collective=2", 60.0),
        ("collective:alpha=10us,beta=209.7152GB/s", 10 + 10.0),  # step 3 moves 2 MiB
    ],
)
def test_transfers_change_by_themselves(spec: str, transfer: float) -> None:
    assert after(spec, in_turn=False) == pytest.approx(6 + 150 + 5 + transfer, abs=0.001)


def test_hidden_collectives_hold_nobody() -> None:
    """The kernel is done when the wait begins, which then takes 2 us."""
    assert after("collectives-hidden", in_turn=False) == 150 + 5 + 2


def test_one_of_alpha_and_beta_needs_several_sizes_whose_times_differ() -> None:
    """All calls take 30 us, so alpha is that: 20 us less of it."""
    assert after("collective:alpha=10us", in_turn=False) == pytest.approx(6 + 150 + 5 + 10, abs=0.01)


@pytest.mark.parametrize("price", ["collective:alpha=10us", "collective:beta=10000GB/s", "collective=0.5"])
def test_without_skew_and_another_price_come_in_either_order(price: str) -> None:
    """Arrivals that no longer hold anybody are no transfers that a price could be fitted to."""
    one = after(f"no-skew+{price}", in_turn=False)
    assert one == pytest.approx(after(f"{price}+no-skew", in_turn=False), abs=0.001)
    assert one == pytest.approx(
        after(price, in_turn=False), abs=0.001
    )  # the rank that is late is always the same


@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_sizes_that_are_not_recorded_are_said(form: str, tmp_path: Path) -> None:
    write = write_kineto if form == "kineto" else write_nsys
    files = write(run(in_turn=True), tmp_path, Recording(collective_metadata=False))
    graph, _ = graph_of_capture(pipeline.read(files))
    with pytest.raises(UsageError, match="no collective's size is recorded") as refused:
        replayed(graph, "collective:alpha=10us,beta=1GB/s")
    assert "collective=0.5" in refused.value.hint


def test_sizes_in_the_payload_of_an_nsys_export_count() -> None:
    found = replayed(pair(in_turn=False, form="nsys"), "collective:alpha=10us,beta=209.7152GB/s")
    assert step_us(found, 3, steps=EVERY) == pytest.approx(6 + 150 + 5 + 20, abs=0.001)
