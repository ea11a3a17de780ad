"""Limits by capability, and when a device of a trace has none."""

from __future__ import annotations

import pytest

from analyzer.errors import UsageError
from analyzer.hardware import LIMITS, limits_of, limits_of_device, require_limits

# warps, blocks, shared bytes of the SM, of a block
KNOWN = {
    (7, 0): (64, 32, 98_304, 98_304),
    (7, 5): (32, 16, 65_536, 65_536),
    (8, 0): (64, 32, 167_936, 166_912),
    (8, 6): (48, 16, 102_400, 101_376),
    (8, 7): (48, 16, 167_936, 166_912),
    (8, 9): (48, 24, 102_400, 101_376),
    (9, 0): (64, 32, 233_472, 232_448),
    (10, 0): (64, 32, 233_472, 232_448),
    (10, 3): (64, 32, 233_472, 232_448),
    (12, 0): (48, 24, 102_400, 101_376),
}


def test_the_table() -> None:
    found = {
        key: (row.max_warps, row.max_blocks, row.shared_bytes, row.shared_bytes_per_block)
        for key, row in LIMITS.items()
    }
    assert found == KNOWN
    assert all(row.source for row in LIMITS.values())


@pytest.mark.parametrize("unknown", ["8.8", "11.0", "12.1", "9", "9.0a", "", (6, 1), (10, 1), (9, 4)])
def test_an_unknown_capability_is_unknown_and_no_neighbours(unknown: str | tuple[int, int]) -> None:
    assert limits_of(unknown) is None
    with pytest.raises(UsageError, match="unknown here") as caught:
        require_limits(unknown)
    assert "9.0, 10.0" in caught.value.hint


def test_names_and_numbers_are_alike() -> None:
    assert limits_of("9.0") is limits_of((9, 0)) is LIMITS[9, 0]
    assert LIMITS[10, 3].name == "10.3"
    assert LIMITS[7, 5].max_threads == 1024


HOPPER = {"warpSize": 32, "sharedMemPerBlockOptin": 232_448, "maxThreadsPerMultiprocessor": 2048}


def test_a_device_whose_records_agree_has_limits() -> None:
    assert limits_of_device("NVIDIA H100 80GB HBM3", (9, 0), HOPPER).limits is LIMITS[9, 0]
    assert limits_of_device(None, (9, 0), {}).limits is LIMITS[9, 0]


@pytest.mark.parametrize(
    ("name", "capability", "recorded", "reason"),
    [
        # ROCm calls gfx90a "9.0": Hopper's limits would be wrong
        ("AMD Radeon Graphics", (9, 0), {}, "not an NVIDIA device"),
        ("", (9, 0), {"warpSize": 64}, "not an NVIDIA device"),
        ("", (9, 0), {"sharedMemPerBlock": 65_536}, "sharedMemPerBlock = 65536"),
        ("NVIDIA H100", (9, 0), {"maxBlocksPerSm": 16}, "maxBlocksPerSm = 16"),
        ("NVIDIA H100", None, {}, "not recorded"),
        ("NVIDIA Thor", (11, 0), {}, "11.0 are unknown"),
    ],
)
def test_a_device_without_limits_says_why(
    name: str, capability: tuple[int, int] | None, recorded: dict[str, int], reason: str
) -> None:
    found = limits_of_device(name, capability, recorded)
    assert found.limits is None
    assert found.reason is not None
    assert reason in found.reason
