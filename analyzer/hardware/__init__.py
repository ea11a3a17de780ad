"""What GPUs can do at most: limits per SM, theoretical occupancy, coverage of a grid, a device table.

>>> from analyzer import hardware
>>> hardware.theoretical_occupancy(
...     "9.0", threads_per_block=384, registers_per_thread=168, shared_bytes_dynamic=213_196
... ).limiter
'registers+smem'
"""

from __future__ import annotations

from analyzer.hardware.coverage import Waves, grid_coverage, waves
from analyzer.hardware.devices import (
    DEVICES,
    BandwidthBasis,
    DeviceRow,
    floor_bandwidth,
    look_up,
)
from analyzer.hardware.kineto_estimate import kineto_estimate_pct, recorded_zero_is_kineto_fault
from analyzer.hardware.limits import (
    LIMITS,
    DeviceLimits,
    SmLimits,
    limits_of,
    limits_of_device,
    require_limits,
)
from analyzer.hardware.occupancy import LIMITER_WORDS, Occupancy, theoretical_occupancy

__all__ = [
    "DEVICES",
    "LIMITER_WORDS",
    "LIMITS",
    "BandwidthBasis",
    "DeviceLimits",
    "DeviceRow",
    "Occupancy",
    "SmLimits",
    "Waves",
    "floor_bandwidth",
    "grid_coverage",
    "kineto_estimate_pct",
    "limits_of",
    "limits_of_device",
    "look_up",
    "recorded_zero_is_kineto_fault",
    "require_limits",
    "theoretical_occupancy",
    "waves",
]
