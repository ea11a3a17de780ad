"""Kernels by launch shape: grid coverage and waves, theoretical occupancy, the trace's own estimate.

Three figures in three columns: coverage sets the grid against the device, occupancy sets what is resident
against a full SM, and Kineto's "est. achieved occupancy" mixes both. None stands in for another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer import hardware
from analyzer.arrays import group
from analyzer.diagnosis import KernelShape
from analyzer.explain.device.classes import RowClasses
from analyzer.explain.device.grids import blocks_of, sm_count
from analyzer.model import DeviceKind, DeviceTable, IntArray, Trace
from analyzer.reconstruct.rank import RankAccount
from analyzer.stats import quantile

_MIG = "a slice of a GPU (MIG): figures by SM are upper bounds"
_TENSOR_MEMORY = "upper bound: tensor memory of this architecture also limits residency and is not recorded"
_CLUSTERS = "blocks of a cluster start together, which is not recorded: resident blocks are an upper bound"
_MAY_CLUSTER = re.compile(r"nvjet|sm(?:9\d|1\d\d)|cluster|cutlass::device_kernel", re.IGNORECASE)
_KINETO_ZERO = "the trace's own estimate is a wrong 0 %: its profiler reckons with 48 KiB of shared memory"


@dataclass(frozen=True)
class _Device:
    """What figures of one rank's kernels are set against, and why there is none."""

    sms: int | None
    limits: hardware.SmLimits | None
    reason: str | None
    remark: str


def kernel_shapes(
    account: RankAccount, rank: int, classes: RowClasses, path_ns: IntArray
) -> list[KernelShape]:
    """Every launch shape of one rank's kernels, longest total time first.

    ``path_ns``: (n,) path time of each row (``body_path_time``).
    """
    work, table = account.work, account.work.table
    rows = np.flatnonzero(table.kind == DeviceKind.KERNEL)
    if not len(rows):
        return []
    duration = (work.end_ns - work.start_ns)[rows]
    device = _device(account.trace)
    groups, inverse = group([table.name[rows], *_shape_columns(table, rows)])
    order = np.argsort(inverse, kind="stable")
    members = np.split(rows[order], np.cumsum(np.bincount(inverse, minlength=len(groups)))[:-1])
    total, path = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    np.add.at(total, inverse, duration)
    np.add.at(path, inverse, path_ns[rows])
    shapes = []
    for at, mine in enumerate(members):
        name = account.trace.process.name_of(int(table.name[mine[0]]))
        known = _figures(table.take(mine), device, name)
        shapes.append(
            KernelShape(
                rank=rank,
                name=name,
                class_=classes.of_row(int(mine[0])),
                calls_total=len(mine),
                total_ns=int(total[at]),
                path_ns=int(path[at]),
                **known,
            )
        )
    return sorted(shapes, key=_longest_first)


def _longest_first(shape: KernelShape) -> tuple[object, ...]:
    return (-shape.total_ns, shape.name, shape.grid or (), shape.block or (), shape.shared_memory_bytes or -1,
            shape.registers_per_thread or -1)  # fmt: skip


def _shape_columns(table: DeviceTable, rows: IntArray) -> list[IntArray]:
    grid, block = table.grid[rows].astype(np.int64), table.block[rows].astype(np.int64)
    return [grid[:, 0], grid[:, 1], grid[:, 2], block[:, 0], block[:, 1], block[:, 2],
            table.registers[rows].astype(np.int64), table.shared_static[rows], table.shared_dynamic[rows]]  # fmt: skip


def _device(trace: Trace) -> _Device:
    info = trace.device_info
    if trace.source.vendor != "cuda":
        return _Device(None, None, "not an NVIDIA device: no figure rather than a wrong one", "")
    if info is None:
        return _Device(None, None, "the device is not recorded", "")
    known = hardware.limits_of_device(info.name, info.compute_capability, dict(info.limits))
    remark = _MIG if info.name and "MIG" in info.name else ""
    return _Device(sm_count(trace), known.limits, known.reason, remark)


def _triple(values: np.ndarray[tuple[int], np.dtype[np.int32]]) -> tuple[int, int, int] | None:
    x, y, z = (int(value) for value in values)
    return (x, y, z) if min(x, y, z) > 0 else None


def _figures(calls: DeviceTable, device: _Device, name: str) -> dict[str, Any]:
    """The fields of KernelShape that one launch shape tells; ``calls``: its kernels."""
    grid, block = _triple(calls.grid[0]), _triple(calls.block[0])
    registers = int(calls.registers[0])
    static, dynamic = int(calls.shared_static[0]), int(calls.shared_dynamic[0])
    shared = None if static < 0 else static + max(dynamic, 0)
    blocks = int(blocks_of(calls)[0])
    occupancy, why = _occupancy(device, block, registers, shared)
    notes = [why, *_remarks(device, occupancy, blocks, name)]
    estimates = calls.occupancy_pct[calls.occupancy_pct >= 0]
    estimate = quantile(estimates.astype(np.int64), 0.5) if len(estimates) else None
    if hardware.recorded_zero_is_kineto_fault(estimate, shared):
        estimate = None
        notes.append(_KINETO_ZERO)
    waves = None
    if occupancy is not None and blocks > 0 and device.sms:
        waves = hardware.waves(blocks, device.sms, occupancy.active_blocks)
    return {
        "grid": grid,
        "block": block,
        "registers_per_thread": registers if registers > 0 else None,
        "shared_memory_bytes": shared,
        "coverage": hardware.grid_coverage(blocks, device.sms) if blocks > 0 and device.sms else None,
        "waves": waves.waves if waves else None,
        "tail_idle": waves.tail if waves else None,
        "occupancy": occupancy.share if occupancy else None,
        "resident_blocks_per_sm": occupancy.active_blocks if occupancy else None,
        "limiter": occupancy.limiter if occupancy else None,
        "trace_occupancy_pct": estimate,
        "note": "; ".join(dict.fromkeys(note for note in notes if note)),
    }


def _remarks(device: _Device, occupancy: hardware.Occupancy | None, blocks: int, name: str) -> Iterator[str]:
    """Why a figure is missing or only a bound."""
    if occupancy is not None or device.sms:
        yield device.remark
    if occupancy is not None and device.limits is not None:
        major, _ = device.limits.capability
        if major == 10:
            yield _TENSOR_MEMORY
        if major >= 9 and _MAY_CLUSTER.search(name):
            yield _CLUSTERS
    if blocks < 0:
        yield "the grid is not recorded"
    elif device.sms is None and device.reason is None:
        yield "the number of SMs is not recorded"


def _occupancy(
    device: _Device, block: tuple[int, int, int] | None, registers: int, shared: int | None
) -> tuple[hardware.Occupancy | None, str]:
    """Theoretical occupancy, or None and why."""
    if device.limits is None:
        return None, device.reason or "the device's limits are not known"
    if block is None or registers <= 0 or shared is None:
        return None, "block size, registers or shared memory not recorded"
    found = hardware.theoretical_occupancy(
        device.limits,
        threads_per_block=block[0] * block[1] * block[2],
        registers_per_thread=registers,
        shared_bytes_static=shared,
    )
    if not found.active_blocks:
        return None, "by the limits of this device the kernel could not have run: a recorded figure is wrong"
    return found, ""
