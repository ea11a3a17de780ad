"""How fast a device copies within its own memory, measured.

Bytes are counted twice, since a copy reads and writes them: ``bytes_per_s = 2 * bytes / time``. Only on request: it
takes memory and keeps the device busy.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

SIZES_BYTES = (64 << 20, 256 << 20, 1 << 30, 4 << 30)
"""Small ones may live in the L2 cache, so they may be faster than memory."""
COUNTED = "read and written"
_WARM_UP, _REPEATS, _COPIES = 3, 15, 5


@dataclass(frozen=True)
class Copied:
    """Copies of one size: nanoseconds of one copy, median, least and most of the repeats."""

    bytes: int
    median_ns: int
    least_ns: int
    most_ns: int
    repeats: int
    bytes_per_s: float


@dataclass(frozen=True)
class CopyBandwidth:
    """``bytes_per_s``: at the largest size; null with the reason in ``absent``."""

    bytes_per_s: float | None
    counted: str
    device: str | None
    sizes: list[Copied]
    absent: str | None


def copy_bandwidth(sizes_bytes: Sequence[int] = SIZES_BYTES) -> CopyBandwidth:
    """Copies within the current CUDA device's memory, timed with CUDA events. Sizes that do not fit are left out."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return _without("torch is not installed")
    if not torch.cuda.is_available():
        return _without("torch finds no CUDA device")
    try:
        name = torch.cuda.get_device_name()
        free_bytes, _ = torch.cuda.mem_get_info()
        fitting = [size for size in sorted(sizes_bytes) if 2 * size <= free_bytes * 0.9]
        found = [summed_up(size, _times_ms(torch, size)) for size in fitting]
    except RuntimeError as error:  # how torch tells of CUDA errors, exhausted memory included
        return _without(f"CUDA failed ({str(error).splitlines()[0]})")
    if not found:
        return _without("two buffers do not fit into the device's free memory")
    return CopyBandwidth(found[-1].bytes_per_s, COUNTED, name, found, None)


def _without(why: str) -> CopyBandwidth:
    return CopyBandwidth(None, COUNTED, None, [], why)


def summed_up(size: int, times_ms: Sequence[float]) -> Copied:
    """Copies of ``size`` bytes that took these milliseconds each."""
    middle = median(times_ms)
    rate = 2 * size / (middle / 1e3)
    least, most = round(min(times_ms) * 1e6), round(max(times_ms) * 1e6)
    return Copied(size, round(middle * 1e6), least, most, len(times_ms), rate)


def _times_ms(torch: Any, size: int) -> list[float]:
    """Several copies between two events, so that the events' own cost counts little."""
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    for _ in range(_WARM_UP):
        target.copy_(source)
    torch.cuda.synchronize()
    marks = []
    for _ in range(_REPEATS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        for _ in range(_COPIES):
            target.copy_(source)
        after.record()
        marks.append((before, after))
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / _COPIES for before, after in marks]
