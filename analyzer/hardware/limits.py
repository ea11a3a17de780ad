"""Limits of one SM per compute capability, 7.0 to 12.0.

Sources: the tables "Compute Capabilities" of NVIDIA's CUDA Programming Guide (7.5 to 12.0: warps,
threads, blocks, shared memory, carve-outs) and the CUDA 13.0 header ``cuda_occupancy.h`` (all: carve-outs,
blocks, allocation units, barriers). Where a profiler wrote the driver's own figures into a trace they
agree with the table; ``SmLimits.source`` says for which capabilities that was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analyzer.errors import UsageError

Capability = tuple[int, int]

WARP_THREADS = 32
MAX_THREADS_PER_BLOCK = 1024
REGISTERS_PER_SM = 65_536  # 32-bit registers; a block may use all of them
SUB_PARTITIONS = 4
WARP_REGISTER_UNIT = 256  # registers are handed out per warp in this unit
DEFAULT_SHARED_BYTES_PER_BLOCK = 49_152  # without the opt-in

_KIB = 1024
_GUIDE = "CUDA Programming Guide and cuda_occupancy.h (CUDA 13.0)"
_SEEN = f"{_GUIDE}; the driver's figures in traces agree"


@dataclass(frozen=True)
class SmLimits:
    """What one SM holds at most. Shared memory is in bytes."""

    capability: Capability
    max_warps: int
    max_blocks: int
    shared_bytes: int
    shared_bytes_per_block: int  # with the opt-in
    shared_unit_bytes: int  # a block's shared memory is rounded up to this
    shared_reserved_bytes: int  # taken by the system for each block
    carveouts_bytes: tuple[int, ...]  # sizes that the driver can select, ascending
    barriers: int | None  # hardware barriers; None: not limited separately
    source: str

    @property
    def max_threads(self) -> int:
        """Resident threads of a full SM."""
        return self.max_warps * WARP_THREADS

    @property
    def name(self) -> str:
        """The capability as NVIDIA writes it: ``9.0``."""
        return f"{self.capability[0]}.{self.capability[1]}"


def _carveouts(*kib: int) -> tuple[int, ...]:
    return tuple(size * _KIB for size in kib)


_AMPERE_CARVEOUTS = _carveouts(0, 8, 16, 32, 64, 100, 132, 164)
_SMALL_CARVEOUTS = _carveouts(0, 8, 16, 32, 64, 100)
_HOPPER_CARVEOUTS = _carveouts(0, 8, 16, 32, 64, 100, 132, 164, 196, 228)


def _row(
    major: int,
    minor: int,
    *,
    warps: int,
    blocks: int,
    carveouts: tuple[int, ...],
    barriers_per_block_slot: int | None = None,
    source: str = _SEEN,
) -> SmLimits:
    """The largest carve-out is the SM's shared memory; from 8.0 each block loses 1 KiB of it."""
    reserved, unit = (_KIB, 128) if major >= 8 else (0, 256)
    return SmLimits(
        capability=(major, minor),
        max_warps=warps,
        max_blocks=blocks,
        shared_bytes=carveouts[-1],
        shared_bytes_per_block=carveouts[-1] - reserved,
        shared_unit_bytes=unit,
        shared_reserved_bytes=reserved,
        carveouts_bytes=carveouts,
        barriers=None if barriers_per_block_slot is None else barriers_per_block_slot * blocks,
        source=source,
    )


_ROWS = (
    _row(7, 0, warps=64, blocks=32, carveouts=_carveouts(0, 8, 16, 32, 64, 96),
         source="cuda_occupancy.h (CUDA 13.0); the driver's figures in traces agree"),
    _row(7, 5, warps=32, blocks=16, carveouts=_carveouts(32, 64)),
    _row(8, 0, warps=64, blocks=32, carveouts=_AMPERE_CARVEOUTS),
    _row(8, 6, warps=48, blocks=16, carveouts=_SMALL_CARVEOUTS),
    _row(8, 7, warps=48, blocks=16, carveouts=_AMPERE_CARVEOUTS, source=_GUIDE),
    _row(8, 9, warps=48, blocks=24, carveouts=_SMALL_CARVEOUTS, source=_GUIDE),
    _row(9, 0, warps=64, blocks=32, carveouts=_HOPPER_CARVEOUTS, barriers_per_block_slot=2),
    _row(10, 0, warps=64, blocks=32, carveouts=_HOPPER_CARVEOUTS, barriers_per_block_slot=2),
    _row(10, 3, warps=64, blocks=32, carveouts=_HOPPER_CARVEOUTS, barriers_per_block_slot=2, source=_GUIDE),
    _row(12, 0, warps=48, blocks=24, carveouts=_SMALL_CARVEOUTS, barriers_per_block_slot=1, source=_GUIDE),
)  # fmt: skip
LIMITS: Mapping[Capability, SmLimits] = {row.capability: row for row in _ROWS}
"""Every capability whose limits are known here."""


def limits_of(capability: Capability | str) -> SmLimits | None:
    """The limits of ``(9, 0)`` or ``"9.0"``; None where they are not known here (never a neighbour's).

    This is about NVIDIA devices: ROCm reports numbers of the same form (``9.0`` for gfx90a), so for a
    device of a trace use ``limits_of_device``.
    """
    if isinstance(capability, str):
        match = re.fullmatch(r"\s*(\d{1,3})\.(\d{1,3})\s*", capability, re.ASCII)
        return LIMITS.get((int(match[1]), int(match[2]))) if match else None
    return LIMITS.get((capability[0], capability[1]))


def require_limits(capability: Capability | str) -> SmLimits:
    """Like ``limits_of``; a capability that is not known is a UsageError that lists the known ones."""
    found = limits_of(capability)
    if found is None:
        shown = capability if isinstance(capability, str) else ".".join(str(part) for part in capability)
        raise UsageError(
            "capability",
            "",
            f"the limits of compute capability {shown!r} are unknown here, and no neighbour's are taken",
            f"known are {', '.join(row.name for row in _ROWS)}",
        )
    return found


@dataclass(frozen=True)
class DeviceLimits:
    """The limits of a device of a trace, or the reason why there are none."""

    limits: SmLimits | None
    reason: str | None


# What profilers call each figure: nsys (TARGET_INFO_GPU) and Kineto (deviceProperties).
_RECORDED: Mapping[str, Callable[[SmLimits], int]] = {
    "maxWarpsPerSm": lambda row: row.max_warps,
    "maxThreadsPerMultiprocessor": lambda row: row.max_threads,
    "maxBlocksPerSm": lambda row: row.max_blocks,
    "maxThreadsPerBlock": lambda _: MAX_THREADS_PER_BLOCK,
    "maxRegistersPerSm": lambda _: REGISTERS_PER_SM,
    "regsPerMultiprocessor": lambda _: REGISTERS_PER_SM,
    "regsPerBlock": lambda _: REGISTERS_PER_SM,
    "maxRegistersPerBlock": lambda _: REGISTERS_PER_SM,
    "maxShmemPerSm": lambda row: row.shared_bytes,
    "sharedMemPerMultiprocessor": lambda row: row.shared_bytes,
    "maxShmemPerBlockOptin": lambda row: row.shared_bytes_per_block,
    "sharedMemPerBlockOptin": lambda row: row.shared_bytes_per_block,
    "maxShmemPerBlock": lambda _: DEFAULT_SHARED_BYTES_PER_BLOCK,
    "sharedMemPerBlock": lambda _: DEFAULT_SHARED_BYTES_PER_BLOCK,
}
_WARP_SIZES = ("warpSize", "threadsPerWarp")
_NOT_NVIDIA = re.compile(r"\b(AMD|ATI|Radeon|Instinct|gfx\d\w*|Ascend|Intel)\b", re.IGNORECASE)


def limits_of_device(
    name: str | None, capability: Capability | None, recorded: Mapping[str, int]
) -> DeviceLimits:
    """The limits of a device of a trace.

    ``recorded`` holds the limits that the trace itself has, by the profiler's names
    (``dict(DeviceInfo.limits)``). There are none where the device is no NVIDIA one (ROCm reports
    capabilities of the same form), where the capability is unknown, or where the trace contradicts the
    table: no figure is better than a wrong one.
    """
    if _NOT_NVIDIA.search(name or "") or any(recorded.get(key, WARP_THREADS) != WARP_THREADS
                                             for key in _WARP_SIZES):  # fmt: skip
        return DeviceLimits(None, "not an NVIDIA device: its occupancy follows other rules")
    if capability is None:
        return DeviceLimits(None, "the compute capability is not recorded")
    found = limits_of(capability)
    if found is None:
        return DeviceLimits(
            None, f"the limits of compute capability {capability[0]}.{capability[1]} are unknown"
        )
    for key, expected in _RECORDED.items():
        value = recorded.get(key)
        if value is not None and value != expected(found):
            return DeviceLimits(
                None,
                f"the trace records {key} = {value}, but compute capability {found.name} has {expected(found)}",
            )
    return DeviceLimits(found, None)
