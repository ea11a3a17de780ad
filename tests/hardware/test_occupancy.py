"""Theoretical occupancy against literal rows, against NVIDIA's calculator, and its laws."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.hardware import LIMITS, Occupancy, limits_of, theoretical_occupancy
from tests.shared import SHARED

ORACLE = SHARED / "facts" / "occupancy_oracle.csv"

CAPABILITIES = st.sampled_from(sorted(LIMITS))
LAUNCHES = st.fixed_dictionaries(
    {
        "threads_per_block": st.integers(1, 1024),
        "registers_per_thread": st.integers(0, 255),
        "shared_bytes_static": st.integers(0, 49_152),
        "shared_bytes_dynamic": st.integers(0, 190_000),
        "block_barriers": st.integers(0, 16),
    }
)


# capability, threads, registers, static, dynamic -> limits by warps, registers, shared, blocks;
# registers and shared bytes of a block; blocks; limiter. Worked out by hand from the rule.
LITERAL = [
    ("7.0", 512, 32, 0, 0, (4, 4, None, 32), (16384, 0), 4, "warps+registers"),
    ("7.0", 256, 48, 12000, 0, (8, 5, 8, 32), (12288, 12032), 5, "registers"),
    ("7.0", 64, 16, 0, 24576, (32, 64, 4, 32), (1024, 24576), 4, "smem"),
    ("7.5", 128, 32, 0, 0, (8, 16, None, 16), (4096, 0), 8, "warps"),
    ("7.5", 32, 32, 0, 0, (32, 64, None, 16), (1024, 0), 16, "blocks"),
    ("7.5", 1024, 64, 0, 32768, (1, 1, 2, 16), (65536, 32768), 1, "warps+registers"),
    ("8.0", 128, 72, 0, 0, (16, 7, 164, 32), (9216, 1024), 7, "registers"),
    ("8.0", 256, 32, 0, 40960, (8, 8, 4, 32), (8192, 41984), 4, "smem"),
    ("8.0", 1000, 40, 0, 0, (2, 1, 164, 32), (40960, 1024), 1, "registers"),
    ("8.6", 192, 32, 0, 0, (8, 10, 100, 16), (6144, 1024), 8, "warps"),
    ("8.6", 96, 128, 512, 0, (16, 5, 66, 16), (12288, 1536), 5, "registers"),
    ("8.7", 256, 24, 0, 20480, (6, 10, 7, 16), (6144, 21504), 6, "warps"),
    ("8.9", 128, 168, 0, 0, (12, 3, 100, 24), (21504, 1024), 3, "registers"),
    ("8.9", 32, 255, 100, 0, (48, 8, 88, 24), (8192, 1152), 8, "registers"),
    ("9.0", 128, 168, 0, 0, (16, 3, 228, 32), (21504, 1024), 3, "registers"),
    ("9.0", 256, 64, 0, 57344, (8, 4, 4, 32), (16384, 58368), 4, "registers+smem"),
    ("9.0", 1024, 32, 0, 0, (2, 2, 228, 32), (32768, 1024), 2, "warps+registers"),
    ("9.0", 64, 32, 1, 0, (32, 32, 202, 32), (2048, 1152), 32, "warps+registers+blocks"),
    ("10.0", 384, 128, 0, 100000, (5, 1, 2, 32), (49152, 101120), 1, "registers"),
    ("10.3", 256, 40, 0, 0, (8, 6, 228, 32), (10240, 1024), 6, "registers"),
    ("12.0", 1024, 40, 0, 0, (1, 1, 100, 24), (40960, 1024), 1, "warps+registers"),
    ("12.0", 128, 0, 0, 0, (12, None, 100, 24), (0, 1024), 12, "warps"),
]


@pytest.mark.parametrize("row", LITERAL)
def test_literal_rows(row: tuple) -> None:  # type: ignore[type-arg]
    capability, threads, registers, static, dynamic, limits, allocated, blocks, limiter = row
    found = theoretical_occupancy(
        capability,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes_static=static,
        shared_bytes_dynamic=dynamic,
    )
    by_resource = (found.limit_warps, found.limit_registers, found.limit_shared, found.limit_blocks)
    assert by_resource == limits
    assert (found.registers_per_block, found.shared_bytes_per_block) == allocated
    assert (found.active_blocks, found.limiter) == (blocks, limiter)
    assert found.share == blocks * -(-threads // 32) / found.max_warps


def _shown(found: Occupancy) -> dict[str, str]:
    def number(value: int | None) -> str:
        return "" if value is None else str(value)

    return {
        "active_blocks": str(found.active_blocks),
        "active_warps": str(found.active_warps),
        "max_warps": str(found.max_warps),
        "occupancy_pct": str(round(100 * found.share, 4)),
        "limiter": found.limiter,
        "limit_warps": str(found.limit_warps),
        "limit_regs": number(found.limit_registers),
        "limit_smem": number(found.limit_shared),
        "limit_blocks": str(found.limit_blocks),
        "limit_barriers": number(found.limit_barriers),
        "regs_alloc_per_block": str(found.registers_per_block),
        "smem_alloc_per_block": str(found.shared_bytes_per_block),
    }


@pytest.mark.skipif(not ORACLE.exists(), reason="the calculator's table (../shared) is not here")
def test_every_column_of_nvidias_calculator() -> None:
    with ORACLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 280
    assert {row["cc"] for row in rows} == {limits.name for limits in LIMITS.values()}
    for row in rows:
        found = theoretical_occupancy(
            row["cc"],
            threads_per_block=int(row["block"]),
            registers_per_thread=int(row["regs"]),
            shared_bytes_static=int(row["smem_static"]),
            shared_bytes_dynamic=int(row["smem_dynamic"]),
            carveout_pct=int(row["carveout_pct"]),
            block_barriers=int(row["block_barriers"]),
        )
        shown = _shown(found)
        assert shown == {name: row[name] for name in shown}, row


def test_limiters_in_words() -> None:
    found = theoretical_occupancy(
        "9.0", threads_per_block=384, registers_per_thread=168, shared_bytes_dynamic=213_196
    )
    assert (found.limiters, found.limiter_text) == (("registers", "smem"), "registers and shared memory")
    three = theoretical_occupancy("9.0", threads_per_block=64, registers_per_thread=32, shared_bytes_static=1)
    assert three.limiter_text == "warp slots, registers and block slots"


def test_where_barriers_alone_bind_the_calculator_also_names_the_next_limit() -> None:
    found = theoretical_occupancy("9.0", threads_per_block=32, registers_per_thread=16, block_barriers=4)
    assert (found.active_blocks, found.limiter, found.limiters) == (16, "blocks+barriers", ("barriers",))


@given(CAPABILITIES, LAUNCHES)
def test_with_one_barrier_both_lists_of_limiters_agree(
    capability: tuple[int, int], launch: dict[str, int]
) -> None:
    found = theoretical_occupancy(capability, **{**launch, "block_barriers": 1})
    assert found.limiter == "+".join(found.limiters)


def test_a_block_that_cannot_be_launched_names_what_forbids_it() -> None:
    too_many = theoretical_occupancy("8.0", threads_per_block=1025, registers_per_thread=16)
    assert (too_many.active_blocks, too_many.limiter) == (0, "warps")
    no_opt_in = theoretical_occupancy(
        "8.0",
        threads_per_block=128,
        registers_per_thread=32,
        shared_bytes_dynamic=49_153,
        shared_opt_in=False,
    )
    assert (no_opt_in.active_blocks, no_opt_in.limiter) == (0, "smem")


@pytest.mark.parametrize(
    ("carveout_bytes", "reckoned_with", "blocks"),
    [(0, 233_472, 7), (102_400, 102_400, 3), (8_192, 233_472, 7), (167_936, 167_936, 5)],
)
def test_the_recorded_carveout_counts_unless_it_cannot_hold_a_block(
    carveout_bytes: int, reckoned_with: int, blocks: int
) -> None:
    found = theoretical_occupancy(
        "9.0",
        threads_per_block=128,
        registers_per_thread=32,
        shared_bytes_dynamic=31_744,  # 32 KiB with what is reserved
        carveout_bytes=carveout_bytes,
    )
    assert (found.carveout_bytes, found.active_blocks) == (reckoned_with, blocks)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"limits": "9.9"}, "capability"),
        ({"limits": (11, 0)}, "capability"),
        ({"threads_per_block": 0}, "threads_per_block"),
        ({"registers_per_thread": -1}, "registers_per_thread"),
        ({"shared_bytes_static": -1}, "shared_bytes_static"),
        ({"shared_bytes_dynamic": -1}, "shared_bytes_dynamic"),
        ({"carveout_pct": 101}, "carveout_pct"),
        ({"carveout_pct": -2}, "carveout_pct"),
        ({"block_barriers": -1}, "block_barriers"),
    ],
)
def test_what_no_launch_can_have_is_refused_by_name(change: dict, named: str) -> None:  # type: ignore[type-arg]
    arguments = {"limits": "9.0", "threads_per_block": 128, "registers_per_thread": 32} | change
    with pytest.raises(UsageError) as caught:
        theoretical_occupancy(arguments.pop("limits"), **arguments)
    assert caught.value.path == named


@given(CAPABILITIES, LAUNCHES)
def test_the_share_stays_a_share_and_the_limiter_is_the_smallest_limit(
    capability: tuple[int, int], launch: dict[str, int]
) -> None:
    found = theoretical_occupancy(capability, **launch)
    assert 0 <= found.share <= 1
    limits = {
        "warps": found.limit_warps,
        "registers": found.limit_registers,
        "smem": found.limit_shared,
        "blocks": found.limit_blocks,
        "barriers": found.limit_barriers,
    }
    assert {limits[name] for name in found.limiters} == {found.active_blocks}
    assert all(limit is None or limit >= found.active_blocks for limit in limits.values())


@given(
    CAPABILITIES,
    LAUNCHES,
    st.sampled_from(
        ["registers_per_thread", "shared_bytes_static", "shared_bytes_dynamic", "block_barriers"]
    ),
    st.integers(1, 5_000),
)
def test_more_of_a_resource_never_fits_more_blocks(
    capability: tuple[int, int], launch: dict[str, int], resource: str, more: int
) -> None:
    before = theoretical_occupancy(capability, **launch)
    after = theoretical_occupancy(capability, **{**launch, resource: launch[resource] + more})
    assert after.active_blocks <= before.active_blocks


@given(CAPABILITIES, LAUNCHES)
def test_what_an_sm_holds_fits_into_it(capability: tuple[int, int], launch: dict[str, int]) -> None:
    found = theoretical_occupancy(capability, **launch)
    limits = limits_of(capability)
    assert limits is not None
    assert found.active_warps <= limits.max_warps
    assert found.active_blocks * found.registers_per_block <= 65_536
    assert found.active_blocks * found.shared_bytes_per_block <= limits.shared_bytes
