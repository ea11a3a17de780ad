"""True shares of programs small enough to be added up by hand."""

from __future__ import annotations

import pytest

from analyzer.categories import Category
from fixtures.blind import DEVELOPMENT
from fixtures.blind.case import blind_case
from fixtures.blind.shares import EXCLUSIVE, amounts, true_shares, windows_of
from fixtures.simulator.engine import simulate
from fixtures.simulator.program import (
    CopyAsync,
    Cpu,
    Graph,
    GraphLaunch,
    Launch,
    Node,
    Op,
    Overhead,
    Pop,
    Push,
    Step,
    StreamSync,
    single,
)
from fixtures.simulator.recording import Recording
from fixtures.simulator.truth import PathWalk
from fixtures.simulator.windows import rank_windows
from tests.fixtures_simulator.test_engine_rules import ROUND


def shares_ns(*ops: Op, window: int = 0, whole: bool = False) -> dict[str, int]:
    """Ns of each hypothesis in one window (only those that are not 0)."""
    run = simulate(single(*ops, machine=ROUND))
    path = PathWalk(run, "single").path(windows_of(run, Recording())[window])
    begins = sorted(work.start_ns for work in run.works)
    return {name: ns for name, ns in amounts(path, begins, whole_graphs=whole).items() if ns}


def test_a_launch_bound_step_with_preparation() -> None:
    # 100 us prepare | 4 api | 30 dispatch | 5 latency | 3 kernel
    assert shares_ns(
        Step("s"),
        Cpu(100_000, "prepare", "range", "framework"),
        Launch("a", duration_ns=3_000, api_ns=4_000),
        Cpu(30_000, "aten::mm", "op"),
        Launch("b", duration_ns=3_000, api_ns=4_000, grid=(500, 1, 1)),
        Pop(),
    ) == {"host-bound": 100_000, "launch-bound": 39_000, "kernel-bound": 3_000}


def test_after_a_wait_host_and_launch_time_count_as_synchronization_until_the_device_works() -> None:
    # second step: return 6 | output 20 | profiler 7 | prepare 10 | 4 api | 8 dispatch | 5 latency | kernel 90
    # "a" of the second step starts 5 us after its call: synchronization ends there, dispatch goes on.
    found = shares_ns(
        *(Step("one"), Launch("a", duration_ns=50_000, api_ns=4_000), StreamSync(), Pop()),
        Push("detokenization", declared="output"),
        Cpu(20_000),
        Pop(),
        Overhead(7_000),
        Step("two"),
        Cpu(10_000, "prepare", "range", "framework"),
        Launch("a", duration_ns=1_000, api_ns=4_000),
        Cpu(8_000),
        Launch("b", duration_ns=90_000, api_ns=4_000, grid=(132, 1, 1)),
        Pop(),
        window=1,
    )
    assert found == {
        "output-path": 20_000,
        "profiler-distortion": 7_000,
        "host-bound": 10_000,
        "launch-bound": 4_000 + 8_000 + 5_000,
        "kernel-bound": 90_000,
        "synchronization": 6_000 + 20_000 + 10_000 + 5_000,
    }


@pytest.mark.parametrize(("blocks", "small"), [(65, 70_000), (66, 0), (1_000, 0)])
def test_a_small_grid_covers_less_than_half_of_132_sms(blocks: int, small: int) -> None:
    found = shares_ns(Step("s"), Launch("a", duration_ns=70_000, grid=(1, blocks, 1)), Pop())
    assert found.get("small-grids", 0) == small
    assert found["kernel-bound"] == 70_000


def test_copies_and_turnaround() -> None:
    found = shares_ns(
        Step("s"),
        Launch("a", duration_ns=40_000, grid=(200, 1, 1)),
        CopyAsync("HtoD", 1 << 20, 30_000),
        Launch("b", duration_ns=10_000, grid=(200, 1, 1)),
        Pop(),
    )
    assert found == {
        "launch-bound": 5_000,
        "kernel-bound": 50_000,
        "copies": 30_000,
        "device-turnaround": 2 * ROUND.turnaround_ns,
    }


def test_a_whole_graph_row_counts_its_inner_gaps_as_kernel_time() -> None:
    nodes = (Node(Launch("a", duration_ns=9_000)), Node(Launch("b", duration_ns=8_000), (0,)))
    ops = (Step("s"), GraphLaunch(Graph("g", nodes)), Pop())
    gap = ROUND.node_gap_ns
    apart, together = shares_ns(*ops), shares_ns(*ops, whole=True)
    assert (apart["kernel-bound"], apart["device-turnaround"]) == (17_000, gap)
    assert (together["kernel-bound"], together["device-turnaround"]) == (17_000 + gap, gap)


@pytest.mark.parametrize("seed", DEVELOPMENT[::40])
def test_exclusive_quantities_and_returns_are_the_whole_path(seed: int) -> None:
    run = simulate(blind_case(seed).program)
    windows = windows_of(run, Recording())
    assert windows == rank_windows(run, 0)
    walk = PathWalk(run, "single")
    begins = sorted(work.start_ns for work in run.works)
    for window in windows:
        path = walk.path(window)
        found = amounts(path, begins)
        returns = sum(s.end_ns - s.start_ns for s in path if s.category == Category.HOST_SYNC_RETURN)
        assert sum(found[name] for name in EXCLUSIVE) + returns == window.end_ns - window.start_ns
        assert found["small-grids"] <= found["kernel-bound"]
        assert returns <= found["synchronization"] <= window.end_ns - window.start_ns
    shares = true_shares(run, windows, range(len(windows)))
    assert sum(shares[name] for name in EXCLUSIVE) <= 1 + 1e-9


def test_a_lost_step_marker_joins_two_windows() -> None:
    ops: list[Op] = []
    for number in range(40):
        ops += [Step(f"step {number}"), Cpu(50_000), Launch("a", duration_ns=5_000), StreamSync(), Pop()]
    run = simulate(single(*ops, machine=ROUND))
    full, lossy = windows_of(run, Recording()), windows_of(run, Recording(drop_any=0.1, seed=1))
    assert len(full) == 40
    assert 25 < len(lossy) < 40
    assert (lossy[0].start_ns, lossy[-1].end_ns) == (full[0].start_ns, full[-1].end_ns)
    assert {window.end_ns for window in lossy} <= {window.end_ns for window in full}
