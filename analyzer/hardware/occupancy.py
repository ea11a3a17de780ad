"""Theoretical occupancy: how many warps of a kernel an SM can hold, and what forbids more.

The rule is the one of NVIDIA's occupancy calculator (``cuda_occupancy.h``, CUDA 13.0), in whole numbers.
It says nothing of how many SMs a grid reaches: that is coverage.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.errors import UsageError
from analyzer.hardware.limits import (
    DEFAULT_SHARED_BYTES_PER_BLOCK,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    SUB_PARTITIONS,
    WARP_REGISTER_UNIT,
    WARP_THREADS,
    Capability,
    SmLimits,
    require_limits,
)

LIMITER_WORDS = {
    "warps": "warp slots",
    "registers": "registers",
    "smem": "shared memory",
    "blocks": "block slots",
    "barriers": "block barriers",
}
"""Short name of a limiter -> words."""

_MAX_REGISTERS_CHECKED = 256  # NVIDIA's calculator refuses only more than this


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that one SM holds at the same time.

    ``limit_*`` are blocks per SM by each resource alone; None means that it sets no limit. Zero
    ``active_blocks``: the block cannot be launched, and ``limiter`` names what forbids it.
    """

    active_blocks: int
    active_warps: int
    max_warps: int
    limiter: str  # as NVIDIA's calculator names it: all ties, joined by "+" (see _limiter_names)
    limiters: tuple[str, ...]  # the limits equal to the smallest
    limit_warps: int
    limit_registers: int | None
    limit_shared: int | None
    limit_blocks: int
    limit_barriers: int | None
    warps_per_block: int
    registers_per_block: int  # as allocated
    shared_bytes_per_block: int  # as allocated, with what the system reserves
    carveout_bytes: int  # shared memory of the SM that was reckoned with

    @property
    def share(self) -> float:
        """Active warps / warps of a full SM, 0..1."""
        return self.active_warps / self.max_warps

    @property
    def limiter_text(self) -> str:
        """The limiters in words: ``registers and shared memory``."""
        words = [LIMITER_WORDS[name] for name in self.limiters]
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def theoretical_occupancy(
    limits: SmLimits | Capability | str,
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_static: int = 0,
    shared_bytes_dynamic: int = 0,
    carveout_pct: int = -1,
    carveout_bytes: int = 0,
    block_barriers: int = 1,
    shared_opt_in: bool = True,
) -> Occupancy:
    """Occupancy of a kernel's blocks on one SM.

    Args:
        limits: an ``SmLimits`` or a compute capability, ``(9, 0)`` or ``"9.0"``.
        threads_per_block: product of the block's dimensions.
        registers_per_thread: 32-bit registers, as the compiler or the trace says.
        shared_bytes_static: shared memory per block in bytes; a trace that knows only the sum of static
            and dynamic passes it here.
        shared_bytes_dynamic: the same, given at launch.
        carveout_pct: preferred share of shared memory, 0..100; -1 is the driver's default (all of it).
        carveout_bytes: the carve-out that the driver really set (nsys ``sharedMemoryExecuted``), in bytes.
            0, or less than one block needs, counts as not recorded; else ``carveout_pct`` is not used.
        block_barriers: hardware barriers that a block uses (limits from 9.0 on).
        shared_opt_in: whether the kernel opted in to more than 48 KiB. A kernel of a trace ran, so it had.

    Raises:
        UsageError: a capability that is unknown, or a value that no launch can have.

    """
    sm = limits if isinstance(limits, SmLimits) else require_limits(limits)
    _check(
        threads_per_block=(threads_per_block, 1),
        registers_per_thread=(registers_per_thread, 0),
        shared_bytes_static=(shared_bytes_static, 0),
        shared_bytes_dynamic=(shared_bytes_dynamic, 0),
        carveout_bytes=(carveout_bytes, 0),
        block_barriers=(block_barriers, 0),
    )
    if not -1 <= carveout_pct <= 100:
        raise UsageError("carveout_pct", "", f"{carveout_pct} is no share of 0 to 100", "-1 is the default")
    warps = -(-threads_per_block // WARP_THREADS)
    shared = _ceil(
        shared_bytes_static + shared_bytes_dynamic + sm.shared_reserved_bytes, sm.shared_unit_bytes
    )
    carveout = carveout_bytes if carveout_bytes >= max(shared, 1) else _carveout(sm, carveout_pct, shared)
    allowed = sm.shared_bytes_per_block if shared_opt_in else DEFAULT_SHARED_BYTES_PER_BLOCK
    limit_shared = _shared_limit(shared, allowed + sm.shared_reserved_bytes, carveout)
    limits_by_name = {
        "warps": 0 if threads_per_block > MAX_THREADS_PER_BLOCK else sm.max_warps // warps,
        "registers": _register_limit(registers_per_thread, warps),
        "smem": limit_shared,
        "blocks": sm.max_blocks,
        "barriers": sm.barriers // block_barriers if sm.barriers is not None and block_barriers else None,
    }
    binding = {name: limit for name, limit in limits_by_name.items() if limit is not None}
    active = min(binding.values())
    return Occupancy(
        active_blocks=active,
        active_warps=active * warps,
        max_warps=sm.max_warps,
        limiter="+".join(_limiter_names(binding)),
        limiters=tuple(name for name, limit in binding.items() if limit == active),
        limit_warps=binding["warps"],
        limit_registers=binding.get("registers"),
        limit_shared=limit_shared,
        limit_blocks=sm.max_blocks,
        limit_barriers=binding.get("barriers"),
        warps_per_block=warps,
        registers_per_block=_registers_per_warp(registers_per_thread) * warps,
        shared_bytes_per_block=shared,
        carveout_bytes=carveout,
    )


def _limiter_names(binding: dict[str, int]) -> list[str]:
    """The limiters as NVIDIA's calculator lists them.

    It looks at barriers last and takes no name back: where barriers alone bind, it also names what would
    bind without them. With one barrier per block, all that a trace can tell, that never differs from the
    plain ties.
    """
    others = min(limit for name, limit in binding.items() if name != "barriers")
    names = [name for name, limit in binding.items() if name != "barriers" and limit == others]
    return [*names, "barriers"] if binding.get("barriers", others + 1) <= others else names


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _registers_per_warp(registers_per_thread: int) -> int:
    return _ceil(registers_per_thread * WARP_THREADS, WARP_REGISTER_UNIT)


def _register_limit(registers_per_thread: int, warps: int) -> int | None:
    """Blocks by registers: warps fill each of the four sub-partitions by itself."""
    per_warp = _registers_per_warp(registers_per_thread)
    if per_warp == 0:
        return None
    if (
        registers_per_thread > _MAX_REGISTERS_CHECKED
        or per_warp * _ceil(warps, SUB_PARTITIONS) > REGISTERS_PER_SM
    ):
        return 0
    return SUB_PARTITIONS * (REGISTERS_PER_SM // SUB_PARTITIONS // per_warp) // warps


def _carveout(sm: SmLimits, preferred_pct: int, shared: int) -> int:
    """The smallest size that meets the preference and holds one block; all of it by default."""
    if preferred_pct < 0:
        return sm.shared_bytes
    wanted = max(preferred_pct * sm.shared_bytes // 100, shared)
    return min((size for size in sm.carveouts_bytes if size >= wanted), default=sm.shared_bytes)


def _shared_limit(shared: int, allowed: int, carveout: int) -> int | None:
    if shared > allowed:
        return 0
    return carveout // shared if shared else None


def _check(**values: tuple[int, int]) -> None:
    for name, (value, least) in values.items():
        if value < least:
            raise UsageError(
                name, "", f"{value} is less than {least}", f"give a whole number from {least} on"
            )
