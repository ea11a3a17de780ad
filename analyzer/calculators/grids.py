"""Grids and blocks: how many SMs a kernel reaches, and how full it can make each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from analyzer import hardware
from analyzer.calculators.checks import whole
from analyzer.calculators.result import Kind, Result, figure


@dataclass(frozen=True, kw_only=True)
class Coverage(Result):
    """Result of ``coverage``."""

    calculator: ClassVar[str] = "coverage"
    kind: ClassVar[Kind] = "bound"
    coverage: float = figure("share of the SMs that get a block", "share")
    waves: float | None = figure("waves", kind="model")
    last_wave_blocks: int | None = figure("blocks in the last wave", kind="model")
    tail: float | None = figure("share of the last wave's slots that stay empty", "share", kind="model")


def coverage(blocks: int, sm_count: int, *, resident_blocks_per_sm: int | None = None) -> Coverage:
    """min(blocks, SMs) / SMs; with resident blocks per SM (see ``occupancy``) also waves and tail."""
    whole("blocks", blocks, 1)
    whole("sm_count", sm_count, 1)
    found = None
    if resident_blocks_per_sm is not None:
        found = hardware.waves(blocks, sm_count, whole("resident_blocks_per_sm", resident_blocks_per_sm, 1))
    return Coverage(
        coverage=hardware.grid_coverage(blocks, sm_count),
        waves=None if found is None else found.waves,
        last_wave_blocks=None if found is None else found.last_wave_blocks,
        tail=None if found is None else found.tail,
        assumptions=(
            "at most one block per SM while there are idle SMs; how full an SM is, is occupancy",
            *(["waves: all blocks take equally long and the device is otherwise empty"] if found else []),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class TheoreticalOccupancy(Result):
    """Result of ``occupancy``."""

    calculator: ClassVar[str] = "occupancy"
    kind: ClassVar[Kind] = "bound"
    occupancy: float = figure("warps that an SM can hold / warps of a full SM", "share")
    limiter: str = figure("limited by")
    active_blocks: int = figure("blocks per SM")
    active_warps: int = figure("warps per SM")
    max_warps: int = figure("warps of a full SM")
    limit_warps: int = figure("blocks per SM by warp slots")
    limit_registers: int | None = figure("blocks per SM by registers")
    limit_shared: int | None = figure("blocks per SM by shared memory")
    limit_blocks: int = figure("blocks per SM by block slots")
    limit_barriers: int | None = figure("blocks per SM by block barriers")
    registers_per_block: int = figure("registers allocated to a block")
    shared_bytes_per_block: int = figure("shared memory allocated to a block", "bytes")


def occupancy(
    capability: str,
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_static: int = 0,
    shared_bytes_dynamic: int = 0,
    carveout_pct: int = -1,
    block_barriers: int = 1,
) -> TheoreticalOccupancy:
    """Theoretical occupancy by NVIDIA's rule; see ``hardware.theoretical_occupancy``."""
    found = hardware.theoretical_occupancy(
        capability,
        threads_per_block=whole("threads_per_block", threads_per_block, 1),
        registers_per_thread=whole("registers_per_thread", registers_per_thread, 0),
        shared_bytes_static=whole("shared_bytes_static", shared_bytes_static, 0),
        shared_bytes_dynamic=whole("shared_bytes_dynamic", shared_bytes_dynamic, 0),
        carveout_pct=whole("carveout_pct", carveout_pct, -1),
        block_barriers=whole("block_barriers", block_barriers, 0),
    )
    return TheoreticalOccupancy(
        occupancy=found.share,
        limiter=found.limiter_text,
        active_blocks=found.active_blocks,
        active_warps=found.active_warps,
        max_warps=found.max_warps,
        limit_warps=found.limit_warps,
        limit_registers=found.limit_registers,
        limit_shared=found.limit_shared,
        limit_blocks=found.limit_blocks,
        limit_barriers=found.limit_barriers,
        registers_per_block=found.registers_per_block,
        shared_bytes_per_block=found.shared_bytes_per_block,
        assumptions=(
            "an upper bound: a grid with few blocks fills less, and clusters or tensor memory can limit more",
            "the kernel has opted in to as much shared memory as it uses",
            "high occupancy is no aim by itself; how many SMs have work at all is coverage",
        ),
        cautions=("such a block cannot be launched on this device",) if found.active_blocks == 0 else (),
    )
