"""9 ms of 4.5 + 2 + 1.5 + 1: launching falls from 1.5 to 0.5 ms, and the replay of a capture says 8 ms, 1.125 x.

Two ranks that do the same. On the path of each step: 1 ms of the host (994 us and 6 until the wait returns); 51
launches with 25 us of dispatch between them, 1.25 ms of it, 0.25 ms of launch calls, latency and turnaround; a kernel
of 4.5 ms and an all-reduce of 2 ms behind it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from fixtures.simulator import program as p
from fixtures.simulator.changes_by_kind import DISPATCH, scale_host_time
from fixtures.simulator.engine import simulate
from fixtures.simulator.machine import Machine
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.windows import global_windows

MACHINE = Machine(kernel_latency_ns=5_000, turnaround_ns=1_100, sync_return_ns=6_000)
LAUNCHES, STEPS = 51, 8
API_NS = 4_878  # 50 calls: 243.9 us, with 5 of latency and 1.1 of turnaround 250
DISPATCH_NS = 25_000
KERNEL_MS, TRANSFER_MS, LAUNCH_MS, HOST_MS = 4.5, 2.0, 1.5, 1.0


def rank_of(rank: int) -> p.Rank:
    ops: list[p.Op] = []
    for step in range(STEPS):
        ops += [p.Step(f"ProfilerStep#{step}"), p.Cpu(994_000, "schedule", "range", "framework")]
        for _ in range(LAUNCHES - 1):
            ops += [
                p.Launch("small", duration_ns=3_000, api_ns=API_NS),
                p.Cpu(DISPATCH_NS, "aten::add", "op"),
            ]
        ops += [
            p.Launch("gemm", duration_ns=4_500_000, api_ns=API_NS),
            p.Collective("tp", "all_reduce", "BFloat16", 4_096, 2_000_000),
            p.StreamSync(),
            p.Pop(),
        ]
    return p.Rank(rank, (p.Thread(tuple(ops), tid=1000 + rank),), device=rank, pid=1000 + rank)


PROGRAM = p.Program((rank_of(0), rank_of(1)), (p.Group("tp", (0, 1)),), MACHINE)
"""Its first step begins with the host, without the return of a wait before it."""


def test_a_millisecond_of_launching_less_makes_eight_of_nine(tmp_path: Path) -> None:
    run = simulate(PROGRAM)
    diagnosis = pipeline.analyze(pipeline.read(write_nsys(run, tmp_path)), changes=["dispatch=0.2"]).diagnosis
    assert diagnosis.global_ is not None
    path = diagnosis.global_.windows[3].path_ns
    launching = ("launch.api", "launch.dispatch", "launch.latency", "gap.dispatch")
    assert path["kernel"] == KERNEL_MS * 1e6
    assert path["collective.transfer"] == TRANSFER_MS * 1e6
    assert sum(path[category] for category in launching) == LAUNCH_MS * 1e6
    assert path["host.framework"] + path["host.sync_return"] == HOST_MS * 1e6
    assert sum(path.values()) == 9_000_000

    assert diagnosis.whatif is not None
    (found,) = [row for row in diagnosis.whatif.changes if row.change == "dispatch=0.2"]
    assert found.predicted_step_ns is not None and found.step_ns is not None
    missing = 6_000 / STEPS  # of the first step
    assert found.step_ns == pytest.approx(9_000_000 - missing, abs=1)
    middle = sum(found.predicted_step_ns) / 2
    assert middle == pytest.approx(8_000_000 - missing, abs=1)
    assert found.step_ns / middle == pytest.approx(1.125, abs=0.0001)
    assert found.gain_upper_bound_ns == pytest.approx(1_000_000, abs=10_000)


def test_the_changed_program_takes_eight() -> None:
    windows = global_windows(simulate(scale_host_time(PROGRAM, DISPATCH, 0.2)))
    assert windows[3].end_ns - windows[3].start_ns == 8_000_000
