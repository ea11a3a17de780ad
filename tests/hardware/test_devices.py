"""The device table: what is found, and what is rather not."""

from __future__ import annotations

import pytest

from analyzer.hardware import DEVICES, LIMITS, floor_bandwidth, look_up

GIB = 1024**3


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        # name, capability, SMs and memory as drivers report them
        (("NVIDIA H200", (9, 0), 132, 150_121_545_728), "H200 SXM"),
        (("NVIDIA H100 80GB HBM3", (9, 0), 132, 84_942_979_072), "H100 SXM"),
        (("NVIDIA B200", (10, 0), 148, 191_503_138_816), "B200"),
        (("NVIDIA A100-SXM4-80GB", (8, 0), 108, 85_174_583_296), "A100 SXM 80 GB"),
        (("NVIDIA A100-SXM4-40GB", (8, 0), 108, 42_297_524_224), "A100 SXM 40 GB"),
        (("NVIDIA A100 80GB PCIe", (8, 0), 108, 85_094_825_984), "A100 PCIe 80 GB"),
        (("Tesla V100-SXM2-16GB", (7, 0), 80, 16_945_709_056), "V100 SXM2 16 GB"),
        (("Tesla V100-DGXS-32GB", (7, 0), 80, 34_084_028_416), "V100 SXM2 32 GB"),
        (("NVIDIA GeForce RTX 3090", (8, 6), 82, 25_438_126_080), "GeForce RTX 3090"),
        (("AMD Instinct MI300X", (9, 4), 304, 206_141_652_992), "Instinct MI300X"),
        (("", (9, 4), 304, 206_141_652_992), "Instinct MI300X"),
        (("NVIDIA L4", (8, 9), 58, 24_152_899_584), "L4"),  # in-line ECC keeps 6 %
        (("NVIDIA H200", None, None, None), "H200 SXM"),
        # unknown or ambiguous: no row
        (("NVIDIA H100", (9, 0), 132, 80 * GIB), None),
        (("NVIDIA H100 80GB HBM3", (9, 0), 114, 84_942_979_072), None),
        (("NVIDIA H100 80GB HBM3", (9, 0), 132, 64 * GIB), None),
        (("NVIDIA H100 80GB HBM3 MIG 1g.10gb", (9, 0), 16, 10 * GIB), None),
        (("NVIDIA H200 NVL", (9, 0), 132, 150_121_545_728), None),
        (("NVIDIA GH200 480GB", (9, 0), 132, 96 * GIB), None),
        (("NVIDIA RTX 6000 Ada Generation", (8, 9), 142, 48 * GIB), None),
        (("AMD Radeon Graphics", (9, 0), 104, 68_702_699_520), None),
        (("", (9, 0), 132, 84_942_979_072), None),
        ((None, (9, 4), 304, None), None),
        ((None, None, None, None), None),
    ],
)
def test_look_up(recorded: tuple, expected: str | None) -> None:  # type: ignore[type-arg]
    row = look_up(*recorded)
    assert (row and row.name) == expected


def test_rows_are_whole_and_no_two_answer_to_one_device() -> None:
    for row in DEVICES:
        assert row.sources
        assert 1e11 < row.datasheet_bytes_per_s < 1e13
        assert row.capability in LIMITS or "Instinct" in row.name
        assert all(peak > 1e12 for peak in row.peak_flop_per_s.values())
        same_key = [other for other in DEVICES if (other.capability, other.sm_count, other.memory_gb)
                    == (row.capability, row.sm_count, row.memory_gb)]  # fmt: skip
        assert len({other.name_pattern for other in same_key}) == len(same_key)


def test_the_larger_bandwidth_counts_for_a_floor() -> None:
    h200 = look_up("NVIDIA H200", (9, 0), 132, 150_121_545_728)
    for recorded in (4_916_736_000_000, None):
        basis = floor_bandwidth(h200, recorded)
        assert basis is not None
        assert (basis.bytes_per_s, basis.basis) == (4_916_736_000_000, "driver")
    b200 = look_up("NVIDIA B200", (10, 0), 148, 191_503_138_816)
    basis = floor_bandwidth(b200, 7_672_320_000_000)
    assert basis is not None
    assert (basis.bytes_per_s, basis.basis) == (7_700e9, "datasheet")


def test_without_any_figure_there_is_no_floor() -> None:
    assert floor_bandwidth(None, None) is None
    only = floor_bandwidth(None, 1e12)
    assert only is not None
    assert only.source == "recorded in the trace"
