"""Kineto's own "est. achieved occupancy %", recomputed with its quirks, so that its fault is recognized.

Kineto (libkineto, ``CudaDeviceProperties.cpp``) asks NVIDIA's calculator with the default limit of 48 KiB
of shared memory per block. A kernel that opted in to more is then "impossible": the figure is 0, though
the kernel ran. It also counts threads, not warps, and caps blocks per SM by the grid.
"""

from __future__ import annotations

import math

from analyzer.hardware.coverage import check_positive
from analyzer.hardware.limits import DEFAULT_SHARED_BYTES_PER_BLOCK, Capability, SmLimits, require_limits
from analyzer.hardware.occupancy import theoretical_occupancy


def kineto_estimate_pct(
    limits: SmLimits | Capability | str,
    *,
    blocks: int,
    sm_count: int,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes: int,
) -> int:
    """The figure that Kineto writes, in whole percent (rounded here; its versions differ by one point).

    ``shared_bytes`` is static and dynamic together. Neither coverage nor theoretical occupancy, but a mix
    of both; shown only as what the trace says.
    """
    check_positive(blocks=blocks, sm_count=sm_count)
    sm = limits if isinstance(limits, SmLimits) else require_limits(limits)
    found = theoretical_occupancy(
        sm,
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_static=shared_bytes,
        shared_opt_in=False,
    )
    resident = min(found.active_blocks, blocks / sm_count)
    return math.floor(100 * resident * threads_per_block / sm.max_threads + 0.5)


def recorded_zero_is_kineto_fault(recorded_pct: int | None, shared_bytes: int | None) -> bool:
    """Whether a recorded 0 % is Kineto's fault: the block has more than 48 KiB of shared memory.

    ``None`` is "not recorded". A 0 % at less shared memory is what rounding left of a tiny grid.
    """
    return recorded_pct == 0 and shared_bytes is not None and shared_bytes > DEFAULT_SHARED_BYTES_PER_BLOCK
