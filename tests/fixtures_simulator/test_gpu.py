"""Kineto's occupancy figure of the simulated device, and the lag behind events."""

from __future__ import annotations

import pytest

from fixtures.simulator.engine import simulate
from fixtures.simulator.gpu import Triple, coverage, estimated_occupancy, resident_blocks
from fixtures.simulator.machine import Machine
from fixtures.simulator.program import EventRecord, Launch, StreamWait, single


@pytest.mark.parametrize(
    ("block", "registers", "shared", "blocks"),
    [
        ((128, 1, 1), 96, 32_768, 5),  # registers: 4 x floor(16,384 / 3,072) / 4 warps
        ((128, 1, 1), 32, 15_360, 14),  # shared memory: 233,472 / 16,384
        ((32, 1, 1), 16, 0, 32),  # blocks per SM
        ((384, 1, 1), 168, 213_196, 0),  # asked with the limit of 48 KB
    ],
)
def test_resident_blocks(block: Triple, registers: int, shared: int, blocks: int) -> None:
    assert resident_blocks(block, registers, shared) == blocks


@pytest.mark.parametrize(
    ("grid", "block", "percent"),
    [
        ((10_000, 1, 1), (256, 1, 1), 100),
        ((132, 1, 1), (256, 1, 1), 12),  # one block per SM: 256 of 2,048 threads
        ((33, 2, 1), (256, 1, 1), 6),  # half a block per SM
    ],
)
def test_a_small_grid_lowers_the_figure(grid: Triple, block: Triple, percent: int) -> None:
    assert estimated_occupancy(grid, block, 32, 0) == percent


def test_coverage_is_the_share_of_sms_with_a_block() -> None:
    assert [coverage((blocks, 1, 1)) for blocks in (33, 132, 999)] == [0.25, 1.0, 1.0]


def test_work_behind_an_event_starts_one_event_lag_later() -> None:
    ops = (
        Launch("a", 7, 80_000),
        EventRecord("e", 7),
        StreamWait(20, "e"),
        Launch("b", 20, 5_000),
    )
    run = simulate(single(*ops, machine=Machine(event_lag_ns=9_000), streams=(7, 20)))
    assert run.kernel("b").start_ns - run.kernel("a").end_ns == 9_000
    plain = simulate(single(*ops, machine=Machine(turnaround_ns=1_300), streams=(7, 20)))
    assert plain.kernel("b").start_ns - plain.kernel("a").end_ns == 1_300
