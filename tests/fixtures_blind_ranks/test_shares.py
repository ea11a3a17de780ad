"""True shares of two or three ranks, small enough to be added up by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from analyzer.categories import Category
from fixtures.blind.shares import EXCLUSIVE
from fixtures.blind_ranks.case import blind_ranks_case
from fixtures.blind_ranks.shares import (
    LATE_RANK,
    TRANSFER,
    amounts,
    begins_of,
    crossings,
    late_calls,
    measure,
    overlap,
    true_shares,
    union,
    wait_shares,
    waited,
    waited_for_share,
    waits_for,
)
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.program import Collective, Cpu, Group, Launch, Op, Pop, Program, Rank, Step, Thread
from fixtures.simulator.run import Run
from fixtures.simulator.truth import PathWalk, truth_of
from fixtures.simulator.windows import global_windows
from tests.fixtures_simulator.test_engine_rules import ROUND

MEET = Collective("g", "all_reduce", "Half", 1_024, transfer_ns=12_000, api_ns=4_000)


def run_of(*threads: tuple[Op, ...], machine: Machine = ROUND) -> Run:
    ranks = tuple(Rank(at, (Thread((Step("s"), *ops, Pop())),), device=at) for at, ops in enumerate(threads))
    return simulate(Program(ranks, (Group("g", tuple(range(len(ranks)))),), machine))


def found(run: Run) -> dict[str, int]:
    """Ns of each hypothesis in the first global window (only those that are not 0)."""
    path = PathWalk(run, "global").path(global_windows(run)[0])
    return {name: ns for name, ns in amounts(path, begins_of(run)).items() if ns}


def slow(ns: int) -> Cpu:
    return Cpu(ns, "slow", "range", "framework")


def kernel(ns: int) -> Launch:
    return Launch("a", duration_ns=ns, api_ns=4_000, grid=(132, 1, 1))


def test_a_hop_crosses_the_wait_of_the_rank_that_it_leaves() -> None:
    # rank 0 ends last (kernel after the call): 40 host | 5 latency (both rank 1) | 12 transfer | 1 gap | 20 kernel
    run = run_of((MEET, kernel(20_000)), (slow(40_000), MEET))
    assert found(run) == {
        "host-bound": 40_000,
        "launch-bound": 5_000,
        TRANSFER: 12_000,
        "device-turnaround": 1_000,
        "kernel-bound": 20_000,
    }
    path = PathWalk(run, "global").path(global_windows(run)[0])
    assert crossings(path) == [(1, (5_000, 45_000))]
    assert waited(path, run.meetings) == [(1, (5_000, 45_000))] * 2  # over the hop, and on the late rank
    assert measure(waited(path, run.meetings)) == 40_000
    assert late_calls(run.meetings) == Counter({1: 1})


def test_a_path_that_stays_on_the_late_rank_crosses_no_wait_but_others_wait_for_it() -> None:
    run = run_of((MEET,), (slow(40_000), MEET, kernel(20_000)))
    windows = global_windows(run)
    assert true_shares(run, windows, [0])[LATE_RANK] == 40_000 / 78_000
    assert waited_for_share(run, windows, [0]) == 40_000 / 78_000
    assert waits_for(run.meetings) == {1: [(5_000, 45_000)]}


def test_crossed_waits_that_overlap_count_once() -> None:
    # Rank 0 waits in g from 5 for rank 1 (78), which waits in h from 5 for rank 2 (65): h ends at 77.
    other = replace(MEET, group="h")
    threads: tuple[tuple[Op, ...], ...] = ((MEET, kernel(9_000)), (other, MEET), (slow(60_000), other))
    ranks = tuple(Rank(at, (Thread((Step("s"), *ops, Pop())),), device=at) for at, ops in enumerate(threads))
    run = simulate(Program(ranks, (Group("g", (0, 1)), Group("h", (1, 2))), ROUND))
    path = PathWalk(run, "global").path(global_windows(run)[0])
    assert crossings(path) == [(2, (5_000, 65_000)), (1, (5_000, 78_000))]
    assert measure(waited(path, run.meetings)) == 73_000
    assert found(run)[TRANSFER] == 24_000
    # The path is on rank 2 until 65 and on rank 1 until 78: others wait for both from 5 on.
    assert waited_for_share(run, global_windows(run), [0]) == 73_000 / 100_000


def test_spans_are_joined_and_cut() -> None:
    assert union([(0, 5), (3, 9), (9, 12), (20, 20), (30, 31)]) == [(0, 12), (30, 31)]
    assert overlap(4, 31, [(0, 12), (30, 40)]) == 9


def test_ranks_that_arrive_together_make_nobody_late() -> None:
    run = run_of((MEET,), (MEET,))
    assert found(run) == {"launch-bound": 5_000, TRANSFER: 12_000}
    assert not late_calls(run.meetings)


def test_waits_of_each_rank_leave_out_its_first_window() -> None:
    step = (Step("s"), MEET, Pop(), Step("t"))
    run = run_of((*step, MEET, Pop()), (*step, slow(40_000), MEET, Pop()))
    shares = wait_shares(run)
    assert shares[1] == 0
    assert shares[0] > 0.5


@pytest.mark.parametrize("seed", [8, 23, 44, 93])
def test_exclusive_quantities_are_the_whole_global_path(seed: int) -> None:
    run = simulate(blind_ranks_case(seed).program)
    walk, begins = PathWalk(run, "global"), begins_of(run)
    windows = global_windows(run)
    for window in windows:
        path = walk.path(window)
        ns = amounts(path, begins)
        length = window.end_ns - window.start_ns
        others = sum(
            segment.end_ns - segment.start_ns
            for segment in path
            if segment.category in (Category.HOST_SYNC_RETURN, Category.COLLECTIVE_WAIT)
        )
        assert sum(ns[name] for name in (*EXCLUSIVE, TRANSFER)) + others == length
        assert 0 <= measure(waited(path, run.meetings)) <= length
        assert ns["small-grids"] <= ns["kernel-bound"]
        assert all(window.start_ns <= start < end <= window.end_ns for _, (start, end) in crossings(path))
    shares = true_shares(run, windows, range(len(windows)))
    assert sum(shares[name] for name in (*EXCLUSIVE, TRANSFER)) <= 1 + 1e-9


# -- members that end apart ---------------------------------------------------------------------------


def test_without_jitter_all_members_end_together() -> None:
    run = run_of((MEET,), (slow(40_000), MEET))
    assert Machine().collective_end_jitter_ns == 0
    assert {work.end_ns for work in run.works} == {57_000}


def test_members_end_apart_within_the_jitter_and_truth_says_so() -> None:
    machine = replace(ROUND, collective_end_jitter_ns=9_000, seed=4)
    threads = tuple((slow(1_000 * at), MEET, kernel(10_000), MEET) for at in range(4))
    run, again = run_of(*threads, machine=machine), run_of(*threads, machine=machine)
    assert [work.end_ns for work in run.works] == [work.end_ns for work in again.works]
    ends = set()
    for meeting, call in zip(run.meetings, truth_of(run).collectives, strict=True):
        for rank, work in meeting.works.items():
            late_ns = work.end_ns - meeting.last.start_ns - 12_000
            assert 0 <= late_ns <= 9_000
            ends.add(late_ns)
            assert call.transfer_ns[rank] == work.end_ns - call.arrival_ns
            assert call.wait_ns[rank] == call.arrival_ns - work.start_ns
    assert len(ends) > 4
    for window, path in truth_of(run).global_paths:
        assert sum(s.end_ns - s.start_ns for s in path) == window.end_ns - window.start_ns
