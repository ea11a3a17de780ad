"""What NVML tells of one device: memory, clocks, power, errors, slices.

A field that device or driver does not answer is null and stands in ``not_read`` with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collectors.device.host import Pcie, Process, cpus, numa_nodes, pcie, processes
from collectors.device.links import Link, bus_id, links
from collectors.device.reader import Reader

_GRAPHICS, _SM, _MEMORY = 0, 1, 2  # nvmlClockType_t
_CORRECTED, _UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
_VOLATILE, _AGGREGATE = 0, 1  # nvmlEccCounterType_t: since the driver was loaded, over the device's life
_GPU_SENSOR = 0
_SWITCHED = {0: "off", 1: "on"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_P_STATES = {number: f"P{number}" for number in range(16)}
_CLOCK_EVENTS = (
    "idle",
    "application clocks set",
    "software power cap",
    "hardware slowdown",
    "sync boost",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware power brake",
    "display clocks set",
)
"""Bit by bit why clocks are what they are (``nvmlClocksEventReasons``)."""
_EVENT_CALLS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_TEMPERATURE_CALLS = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")


@dataclass(frozen=True)
class Memory:
    """Bytes. ``used`` holds what the driver keeps for itself where ``reserved`` is null."""

    total_bytes: int | None
    used_bytes: int | None
    reserved_bytes: int | None


@dataclass(frozen=True)
class Clocks:
    """MHz: ``now`` at this moment, ``max`` the highest, ``application`` what is set where a device has such clocks."""

    sm_now_mhz: int | None
    sm_max_mhz: int | None
    sm_application_mhz: int | None
    memory_now_mhz: int | None
    memory_max_mhz: int | None
    memory_application_mhz: int | None
    event_reasons: list[str] | None


@dataclass(frozen=True)
class Power:
    """Watts and degrees Celsius; ``limit`` is the one in force."""

    draw_w: float | None
    limit_w: float | None
    default_limit_w: float | None
    temperature_c: int | None


@dataclass(frozen=True)
class Ecc:
    """Memory errors since the driver was loaded, and over the device's life."""

    mode: str | None
    mode_after_reset: str | None
    corrected: int | None
    uncorrected: int | None
    corrected_lifetime: int | None
    uncorrected_lifetime: int | None


@dataclass(frozen=True)
class Instance:
    """A slice of a device (MIG)."""

    uuid: str | None
    name: str | None
    gpu_instance: int | None
    compute_instance: int | None
    memory: Memory | None


@dataclass(frozen=True)
class Mig:
    """Whether the device is sliced, and its slices; null: it does not tell."""

    mode: str | None
    mode_after_reset: str | None
    instances: list[Instance] | None


@dataclass(frozen=True)
class Device:
    """One device by NVML's ``index``, which counts by PCI bus id."""

    index: int
    uuid: str | None
    name: str | None
    pci_bus_id: str | None
    compute_capability: str | None
    memory: Memory | None
    clocks: Clocks
    power: Power
    performance_state: str | None
    persistence_mode: str | None
    compute_mode: str | None
    ecc: Ecc
    mig: Mig
    pcie: Pcie
    nvlinks: list[Link] | None
    cpus: str | None
    numa_nodes: str | None
    processes: list[Process] | None
    lost: bool
    not_read: dict[str, str]


def device(reader: Reader, handle: Any, index: int) -> Device:
    """All that one device tells."""
    capability = reader.ask("compute_capability", "nvmlDeviceGetCudaComputeCapability", handle)
    fields: dict[str, Any] = {
        "uuid": reader.text("uuid", "nvmlDeviceGetUUID", handle),
        "name": reader.text("name", "nvmlDeviceGetName", handle),
        "pci_bus_id": bus_id(reader.ask("pci_bus_id", "nvmlDeviceGetPciInfo", handle)),
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
        "memory": _memory(reader, "memory", handle),
        "clocks": _clocks(reader, handle),
        "power": _power(reader, handle),
        "performance_state": reader.word(
            "performance_state", _P_STATES, "nvmlDeviceGetPerformanceState", handle
        ),
        "persistence_mode": reader.word(
            "persistence_mode", _SWITCHED, "nvmlDeviceGetPersistenceMode", handle
        ),
        "compute_mode": reader.word("compute_mode", _COMPUTE_MODES, "nvmlDeviceGetComputeMode", handle),
        "ecc": _ecc(reader, handle),
        "mig": _mig(reader, handle),
        "pcie": pcie(reader, handle),
        "nvlinks": links(reader, handle),
        "cpus": cpus(reader, handle),
        "numa_nodes": numa_nodes(reader, handle),
        "processes": processes(reader, handle),
    }
    return Device(index=index, lost=reader.lost, not_read=dict(sorted(reader.not_read.items())), **fields)


def _memory(reader: Reader, field: str, handle: Any) -> Memory | None:
    version = getattr(reader.nvml, "nvmlMemory_v2", None)  # the second version tells the driver's own part
    if version is not None:
        info, _ = reader.attempt("nvmlDeviceGetMemoryInfo", handle, version)
        if info is not None:
            return Memory(int(info.total), int(info.used), int(info.reserved))
    info = reader.ask(field, "nvmlDeviceGetMemoryInfo", handle)
    return None if info is None else Memory(int(info.total), int(info.used), None)


def _clocks(reader: Reader, handle: Any) -> Clocks:
    told: dict[str, Any] = {}
    for name, kind, application in (("sm", _SM, _GRAPHICS), ("memory", _MEMORY, _MEMORY)):
        for when, call, number in (
            ("now", "nvmlDeviceGetClockInfo", kind),
            ("max", "nvmlDeviceGetMaxClockInfo", kind),
            ("application", "nvmlDeviceGetApplicationsClock", application),
        ):
            told[f"{name}_{when}_mhz"] = reader.ask(f"clocks.{name}_{when}_mhz", call, handle, number)
    mask = reader.ask("clocks.event_reasons", _EVENT_CALLS, handle)
    return Clocks(event_reasons=None if mask is None else _events(mask), **told)


def _events(mask: int) -> list[str]:
    bits = [bit for bit in range(64) if mask >> bit & 1]
    return [_CLOCK_EVENTS[bit] if bit < len(_CLOCK_EVENTS) else f"unknown bit {bit}" for bit in bits]


def _power(reader: Reader, handle: Any) -> Power:
    def watts(field: str, call: str) -> float | None:
        milliwatts = reader.ask(f"power.{field}", call, handle)
        return None if milliwatts is None else milliwatts / 1000

    return Power(
        draw_w=watts("draw_w", "nvmlDeviceGetPowerUsage"),
        limit_w=watts("limit_w", "nvmlDeviceGetEnforcedPowerLimit"),
        default_limit_w=watts("default_limit_w", "nvmlDeviceGetPowerManagementDefaultLimit"),
        temperature_c=reader.ask("power.temperature_c", _TEMPERATURE_CALLS, handle, _GPU_SENSOR),
    )


def _ecc(reader: Reader, handle: Any) -> Ecc:
    now, after = _switch(reader, "ecc.mode", "nvmlDeviceGetEccMode", handle)

    def count(field: str, kind: int, counter: int) -> Any:
        return reader.ask(f"ecc.{field}", "nvmlDeviceGetTotalEccErrors", handle, kind, counter)

    return Ecc(
        mode=now,
        mode_after_reset=after,
        corrected=count("corrected", _CORRECTED, _VOLATILE),
        uncorrected=count("uncorrected", _UNCORRECTED, _VOLATILE),
        corrected_lifetime=count("corrected_lifetime", _CORRECTED, _AGGREGATE),
        uncorrected_lifetime=count("uncorrected_lifetime", _UNCORRECTED, _AGGREGATE),
    )


def _switch(reader: Reader, field: str, call: str, handle: Any) -> tuple[str | None, str | None]:
    """Something that is on or off, now and after the next reset."""
    pair = reader.ask(field, call, handle)
    return (None, None) if pair is None else (_SWITCHED.get(pair[0]), _SWITCHED.get(pair[1]))


def _mig(reader: Reader, handle: Any) -> Mig:
    now, after = _switch(reader, "mig.mode", "nvmlDeviceGetMigMode", handle)
    if now != "on":
        return Mig(now, after, [] if now == "off" else None)
    count = reader.ask("mig.instances", "nvmlDeviceGetMaxMigDeviceCount", handle)
    if count is None:
        return Mig(now, after, None)
    instances = []
    for at in range(count):
        slice_, why = reader.attempt("nvmlDeviceGetMigDeviceHandleByIndex", handle, at)
        if slice_ is not None:
            instances.append(_instance(reader, f"mig.instances[{at}]", slice_))
        elif why != "not found":  # a place that no slice takes
            reader.not_read[f"mig.instances[{at}]"] = str(why)
    return Mig(now, after, instances)


def _instance(reader: Reader, field: str, handle: Any) -> Instance:
    return Instance(
        uuid=reader.text(f"{field}.uuid", "nvmlDeviceGetUUID", handle),
        name=reader.text(f"{field}.name", "nvmlDeviceGetName", handle),
        gpu_instance=reader.ask(f"{field}.gpu_instance", "nvmlDeviceGetGpuInstanceId", handle),
        compute_instance=reader.ask(f"{field}.compute_instance", "nvmlDeviceGetComputeInstanceId", handle),
        memory=_memory(reader, f"{field}.memory", handle),
    )
