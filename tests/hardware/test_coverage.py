"""Coverage, waves and tail; Kineto's estimate with its fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.hardware import (
    LIMITS,
    Waves,
    grid_coverage,
    kineto_estimate_pct,
    recorded_zero_is_kineto_fault,
    theoretical_occupancy,
    waves,
)

BLOCKS = st.integers(1, 10**7)
SMS = st.integers(1, 400)


def test_twelve_blocks_on_132_sms() -> None:
    assert grid_coverage(12, 132) == 12 / 132
    assert grid_coverage(132, 132) == grid_coverage(10_000, 132) == 1


def test_the_tail_is_what_the_last_wave_leaves_empty() -> None:
    assert waves(300, 132, 2) == Waves(slots=264, waves=300 / 264, last_wave_blocks=36, tail=228 / 264)
    assert waves(528, 132, 2).tail == 0
    assert waves(12, 132, 1) == Waves(slots=132, waves=12 / 132, last_wave_blocks=12, tail=120 / 132)


@pytest.mark.parametrize("arguments", [(0, 132, 1), (1, 0, 1), (1, 132, 0), (-1, 132, 1)])
def test_no_grid_is_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="less than 1"):
        waves(*arguments)


@given(BLOCKS, SMS, st.integers(1, 32))
def test_coverage_and_tail_are_shares_and_waves_add_up(blocks: int, sms: int, resident: int) -> None:
    assert 0 < grid_coverage(blocks, sms) <= 1
    found = waves(blocks, sms, resident)
    assert 0 <= found.tail < 1
    full = (blocks - found.last_wave_blocks) // found.slots
    assert full * found.slots + found.last_wave_blocks == blocks
    assert found.last_wave_blocks + found.tail * found.slots == pytest.approx(found.slots)


@pytest.mark.parametrize(
    ("capability", "blocks", "sms", "threads", "registers", "shared", "expected"),
    [
        ("7.0", 160, 80, 256, 32, 0, 25),  # two blocks per SM by the grid, of eight
        ("8.0", 10_000, 108, 128, 40, 0, 75),
        ("9.0", 10_000, 132, 33, 32, 0, 52),  # counts threads: 32 blocks of 33, of 2048
        ("9.0", 132, 132, 384, 168, 213_196, 0),  # the fault: the kernel ran
        ("9.0", 1, 132, 32, 32, 0, 0),  # no fault: one warp on the whole device
    ],
)
def test_kinetos_figure(
    capability: str, blocks: int, sms: int, threads: int, registers: int, shared: int, expected: int
) -> None:
    found = kineto_estimate_pct(
        capability,
        blocks=blocks,
        sm_count=sms,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes=shared,
    )
    assert found == expected


@pytest.mark.parametrize(
    ("recorded", "shared", "fault"),
    [
        (0, 49_153, True),
        (0, 213_196, True),
        (0, 49_152, False),
        (0, 0, False),
        (0, None, False),
        (None, 213_196, False),
        (18, 213_196, False),
    ],
)
def test_kinetos_zero_above_48_kib_is_its_fault(
    recorded: int | None, shared: int | None, fault: bool
) -> None:
    assert recorded_zero_is_kineto_fault(recorded, shared) is fault


@given(
    st.sampled_from([key for key, row in LIMITS.items() if row.shared_bytes_per_block > 60_000]),
    st.integers(49_153, 60_000),
    st.integers(1, 1024),
)
def test_the_fault_hides_a_kernel_that_fits(capability: tuple[int, int], shared: int, threads: int) -> None:
    launch = {"threads_per_block": threads, "registers_per_thread": 32}
    estimate = kineto_estimate_pct(capability, blocks=10_000, sm_count=132, shared_bytes=shared, **launch)
    assert recorded_zero_is_kineto_fault(estimate, shared)
    assert theoretical_occupancy(capability, shared_bytes_static=shared, **launch).share > 0
