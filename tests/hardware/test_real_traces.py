"""Real traces: Kineto's own figure is met, its fault is recognized, and ROCm devices get no limits."""

from __future__ import annotations

import numpy as np
import pytest

import analyzer
from analyzer.hardware import (
    kineto_estimate_pct,
    limits_of_device,
    recorded_zero_is_kineto_fault,
    theoretical_occupancy,
)
from analyzer.model import DeviceKind, Trace
from tests.shared import needs_shared, trace_path

pytestmark = needs_shared


def launches(trace: Trace) -> list[list[int]]:
    """Distinct (blocks, threads, registers, shared bytes, recorded percent) of the kernels."""
    table = trace.device
    rows = np.flatnonzero((table.kind == DeviceKind.KERNEL) & (table.occupancy_pct >= 0))
    columns = (
        table.grid[rows].astype(np.int64).prod(axis=1),
        table.block[rows].astype(np.int64).prod(axis=1),
        table.registers[rows],
        table.shared_static[rows],
        table.occupancy_pct[rows],
    )
    return np.unique(np.column_stack(columns), axis=0).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "kinds", "faults"),
    [
        ("hta-diff/trace_diff_test.json.gz", 30, 0),  # V100
        ("hta-nccl-meta/nccl_data.json.gz", 150, 45),  # A100
        ("tracelens-qwen/h100_qwen1.5_0.5b.json.gz", 20, 2),  # H100
    ],
)
def test_kinetos_figure_and_its_fault(name: str, kinds: int, faults: int) -> None:
    found_faults = 0
    trace = analyzer.read([str(trace_path(name))]).traces[0]
    device = trace.device_info
    assert device is not None
    assert device.sm_count is not None
    limits = limits_of_device(device.name, device.compute_capability, dict(device.limits)).limits
    assert limits is not None
    seen = launches(trace)
    assert len(seen) >= kinds
    for blocks, threads, registers, shared, recorded in seen:
        launch = {"threads_per_block": threads, "registers_per_thread": registers}
        estimate = kineto_estimate_pct(
            limits, blocks=blocks, sm_count=device.sm_count, shared_bytes=shared, **launch
        )
        assert abs(estimate - recorded) <= 1
        assert theoretical_occupancy(limits, shared_bytes_static=shared, **launch).share > 0
        found_faults += recorded_zero_is_kineto_fault(recorded, shared)
    assert found_faults == faults


@pytest.mark.parametrize(
    "name", ["odd/mi250_rocm62.json.gz", "tracelens-sglang/sglang_qwen3_8b_decode.json.gz"]
)
def test_rocm_devices_have_no_limits(name: str) -> None:
    device = analyzer.read([str(trace_path(name))]).traces[0].device_info
    assert device is not None
    found = limits_of_device(device.name, device.compute_capability, dict(device.limits))
    assert found.limits is None
    assert "not an NVIDIA device" in (found.reason or "")
