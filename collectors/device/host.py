"""What of the host belongs to a device: the link to it, the CPUs and memory near it, the processes that use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.device.reader import Reader
from collectors.secrets import redact

_CPU_WORDS, _NODE_WORDS = 32, 16  # room for 2,048 CPUs and 1,024 NUMA nodes; more than there is does no harm
_NODE_SCOPE = 0  # nvmlAffinityScope_t


@dataclass(frozen=True)
class Pcie:
    """The link to the host. The present generation may be low while the device idles."""

    generation: int | None
    generation_max: int | None
    width: int | None
    width_max: int | None


@dataclass(frozen=True)
class Process:
    """A process that uses the device; ``name``: its program, without path and arguments."""

    pid: int
    name: str | None
    used_bytes: int | None


def cpus(reader: Reader, handle: Any) -> str | None:
    """The CPUs near the device, ``0-47,96-143``."""
    return members(reader.ask("cpus", "nvmlDeviceGetCpuAffinity", handle, _CPU_WORDS))


def numa_nodes(reader: Reader, handle: Any) -> str | None:
    """The host's memory near the device, by NUMA nodes."""
    return members(reader.ask("numa_nodes", "nvmlDeviceGetMemoryAffinity", handle, _NODE_WORDS, _NODE_SCOPE))


def members(words: Iterable[int] | None) -> str | None:
    """A bit set as ranges, ``0-47,96-143``; null where no bit is set, which tells nothing."""
    if words is None:
        return None
    numbers = [64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1]
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts) or None


def program(told: str) -> str | None:
    """A process's program from what NVML tells, which may be a whole command line."""
    words = told.replace("\0", " ").split()
    return redact(Path(words[0]).name) if words else None


def pcie(reader: Reader, handle: Any) -> Pcie:
    """The link to the host."""
    return Pcie(
        generation=reader.ask("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", handle),
        generation_max=reader.ask("pcie.generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        width=reader.ask("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", handle),
        width_max=reader.ask("pcie.width_max", "nvmlDeviceGetMaxPcieLinkWidth", handle),
    )


def processes(reader: Reader, handle: Any) -> list[Process] | None:
    """Who computes on the device; None where that is not told."""
    running = reader.ask("processes", "nvmlDeviceGetComputeRunningProcesses", handle)
    if running is None:
        return None
    found = []
    for one in running:
        used = one.usedGpuMemory
        told = reader.text(f"processes[{one.pid}].name", "nvmlSystemGetProcessName", one.pid)
        if used is None:
            reader.not_read.setdefault(f"processes[{one.pid}].used_bytes", "not available")
        found.append(Process(int(one.pid), None if told is None else program(told), used))
    return found
