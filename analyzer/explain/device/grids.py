"""Grid coverage of kernels: how much of the device one grid can reach."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyzer.model import DeviceKind, DeviceTable, IntArray, Trace


def blocks_of(table: DeviceTable) -> IntArray:
    """(n,) int64 blocks per grid; -1 where the grid was not recorded and for rows that are no kernels."""
    known = (table.kind == DeviceKind.KERNEL) & np.all(table.grid > 0, axis=1)
    return np.where(known, np.prod(table.grid.astype(np.int64), axis=1), -1)


def sm_count(trace: Trace) -> int | None:
    """Multiprocessors of the rank's device, None where the capture does not say or does not mean it.

    ROCm captures are left out: their grids may be counted in work items, and a compute unit is no SM.
    """
    info = trace.device_info
    if info is None or trace.source.vendor != "cuda" or not info.sm_count or info.sm_count <= 0:
        return None
    return info.sm_count


def coverage(trace: Trace, table: DeviceTable) -> npt.NDArray[np.float64]:
    """(n,) float64: min(blocks, SMs) / SMs of each kernel; NaN where it is unknown."""
    sms, blocks = sm_count(trace), blocks_of(table)
    if sms is None:
        return np.full(len(blocks), np.nan)
    return np.where(blocks > 0, np.minimum(blocks, sms) / sms, np.nan)
