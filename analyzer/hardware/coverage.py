"""How much of a device a grid reaches: coverage of one wave, waves, and the tail of the last wave."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.errors import UsageError


@dataclass(frozen=True)
class Waves:
    """A grid in units of what the device holds at the same time."""

    slots: int  # blocks that the whole device holds at once
    waves: float  # blocks / slots
    last_wave_blocks: int
    tail: float  # share of the last wave's block slots that stay empty, 0..1


def grid_coverage(blocks: int, sm_count: int) -> float:
    """min(blocks, SMs) / SMs: the share of SMs that get a block in one wave, 0..1.

    Says nothing about how full each SM is: that is occupancy.
    """
    check_positive(blocks=blocks, sm_count=sm_count)
    return min(blocks, sm_count) / sm_count


def waves(blocks: int, sm_count: int, resident_blocks_per_sm: int) -> Waves:
    """Waves of a grid whose blocks all take equally long (a model: real blocks do not).

    ``resident_blocks_per_sm`` is ``Occupancy.active_blocks``.
    """
    check_positive(blocks=blocks, sm_count=sm_count, resident_blocks_per_sm=resident_blocks_per_sm)
    slots = sm_count * resident_blocks_per_sm
    last = blocks % slots or slots
    return Waves(slots=slots, waves=blocks / slots, last_wave_blocks=last, tail=(slots - last) / slots)


def check_positive(**values: int) -> None:
    """Refuse a value below 1, by its name."""
    for name, value in values.items():
        if value < 1:
            raise UsageError(name, "", f"{value} is less than 1", "give a whole number from 1 on")
