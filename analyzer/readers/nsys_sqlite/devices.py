"""What the export tells of devices, contexts and streams.

``deviceId`` in activity rows is the CUDA ordinal inside its process. It is neither ``TARGET_INFO_GPU.id``
nor an identity across processes: only TARGET_INFO_CUDA_DEVICE (nsys 2025 on) maps it, by pid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.model import DeviceInfo, StreamFlag
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.identifiers import hardware_of, pid_of, vm_of

# TARGET_INFO_CUDA_GPU of 2020/21 → the names used since.
_OLD_LIMITS = {
    "maxWarpsPerMultiprocessor": "maxWarpsPerSm",
    "maxBlocksPerMultiprocessor": "maxBlocksPerSm",
    "maxRegistersPerMultiprocessor": "maxRegistersPerSm",
    "maxSharedMemoryPerMultiprocessor": "maxShmemPerSm",
    "maxSharedMemoryPerBlock": "maxShmemPerBlock",
    "maxRegistersPerBlock": "maxRegistersPerBlock",
    "maxThreadsPerBlock": "maxThreadsPerBlock",
    "numThreadsPerWarp": "threadsPerWarp",
}
_LIMITS = (
    "maxWarpsPerSm",
    "maxBlocksPerSm",
    "maxThreadsPerBlock",
    "maxRegistersPerSm",
    "maxRegistersPerBlock",
    "maxShmemPerSm",
    "maxShmemPerBlock",
    "maxShmemPerBlockOptin",
    "threadsPerWarp",
)


@dataclass(frozen=True)
class Devices:
    """Lookup of device facts by process and CUDA ordinal."""

    gpus: dict[int, dict[str, Any]]  # TARGET_INFO_GPU by id
    mapped: dict[tuple[int, int], dict[str, Any]]  # TARGET_INFO_CUDA_DEVICE by (pid, cudaId)
    old: dict[tuple[int, int], dict[str, Any]]  # TARGET_INFO_CUDA_GPU by (pid, deviceId)

    def gpu_id(self, process: int, ordinal: int) -> int | None:
        """TARGET_INFO_GPU.id of the device: as mapped, or the only GPU of the machine."""
        mapped: int | None = self.mapped.get((pid_of(process), ordinal), {}).get("gpuId")
        return next(iter(self.gpus)) if mapped is None and len(self.gpus) == 1 else mapped

    def info(self, process: int, ordinal: int) -> DeviceInfo:
        """What is known of the device; its ``physical`` identity only where the file maps it."""
        pid = pid_of(process)
        if (pid, ordinal) in self.old:
            return _old_info(ordinal, self.old[pid, ordinal])
        link = self.mapped.get((pid, ordinal), {})
        gpu_id = self.gpu_id(process, ordinal)
        gpu = self.gpus.get(gpu_id, {}) if gpu_id is not None else {}
        # Without a mapping the figures are still certain where all GPUs of the machine are alike.
        facts = gpu or self._common()
        uuid = _known(link.get("uuid")) or _known(gpu.get("uuid"))
        physical = _same_form(uuid) if uuid else (f"gpu:{gpu_id}" if gpu_id is not None else None)
        return DeviceInfo(
            index=ordinal,
            uuid=uuid,
            name=facts.get("name"),
            sm_count=link.get("numMultiprocessors") or facts.get("smCount"),
            memory_bytes_per_s=facts.get("memoryBandwidth") or None,
            total_memory_bytes=facts.get("totalMemory") or None,
            compute_capability=_capability(facts.get("computeMajor"), facts.get("computeMinor")),
            limits=tuple((name, facts[name]) for name in _LIMITS if facts.get(name)),
            physical=physical,
        )

    def _common(self) -> dict[str, Any]:
        """The facts in which all GPUs of the machine agree."""
        everything = list(self.gpus.values())
        if not everything:
            return {}
        first, *others = everything
        return {key: value for key, value in first.items() if all(other[key] == value for other in others)}


def read_devices(database: Database) -> Devices:
    """From TARGET_INFO_GPU, TARGET_INFO_CUDA_DEVICE and the old TARGET_INFO_CUDA_GPU."""
    gpu_columns = (
        "id", "name", "uuid", "smCount", "memoryBandwidth", "totalMemory", "computeMajor", "computeMinor",
        *_LIMITS,
    )  # fmt: skip
    old_columns = (
        "pid", "deviceId", "name", "numMultiprocessors", "globalMemoryBandwidth", "globalMemorySize",
        "computeCapabilityMajor", "computeCapabilityMinor", *_OLD_LIMITS,
    )  # fmt: skip
    gpus = _dicts(database, "TARGET_INFO_GPU", gpu_columns)
    links = _dicts(
        database, "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid", "uuid", "numMultiprocessors")
    )
    old = _dicts(database, "TARGET_INFO_CUDA_GPU", old_columns)
    return Devices(
        gpus={row["id"]: row for row in gpus if row["id"] is not None},
        mapped={(row["pid"], row["cudaId"]): row for row in links},
        old={(row["pid"], row["deviceId"]): row for row in old},
    )


def _dicts(database: Database, table: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in database.rows(table, columns)]


def _old_info(ordinal: int, row: dict[str, Any]) -> DeviceInfo:
    return DeviceInfo(
        index=ordinal,
        name=row["name"],
        sm_count=row["numMultiprocessors"],
        memory_bytes_per_s=row["globalMemoryBandwidth"] or None,
        total_memory_bytes=row["globalMemorySize"] or None,
        compute_capability=_capability(row["computeCapabilityMajor"], row["computeCapabilityMinor"]),
        limits=tuple((new, row[old]) for old, new in _OLD_LIMITS.items() if row[old]),
    )


def _capability(major: int | None, minor: int | None) -> tuple[int, int] | None:
    return (major, minor) if major is not None and minor is not None else None


def _known(uuid: str | None) -> str | None:
    """Old exports hold a uuid of zeros where they know none."""
    return uuid if uuid and uuid.strip("0-") else None


def _same_form(uuid: str) -> str:
    """One form of a uuid: exports write it with and without NVML's ``GPU-``; ``MIG-`` stays."""
    return uuid.lower().removeprefix("gpu-")


@dataclass(frozen=True)
class Streams:
    """Contexts and streams as the export describes them, by full process id where it tells it."""

    devices: dict[tuple[int | None, int | None, int, int], int] = field(default_factory=dict)
    flags: dict[tuple[int | None, int | None, int, int, int], StreamFlag] = field(default_factory=dict)

    def device_of(self, process: int, context: int) -> int | None:
        """CUDA ordinal that the context belongs to, None where not described."""
        hardware, vm, pid = _fields(process)
        return self.devices.get((hardware, vm, pid, context), self.devices.get((None, None, pid, context)))

    def flag_of(self, process: int, context: int, stream: int) -> StreamFlag:
        """How the stream orders itself against the null stream; UNKNOWN where not described."""
        hardware, vm, pid = _fields(process)
        by_pid = self.flags.get((None, None, pid, context, stream), StreamFlag.UNKNOWN)
        return self.flags.get((hardware, vm, pid, context, stream), by_pid)


def _fields(process: int) -> tuple[int, int, int]:
    return hardware_of(process), vm_of(process), pid_of(process)


def read_streams(database: Database) -> Streams:
    """From TARGET_INFO_CUDA_STREAM, _CONTEXT_INFO (2024 on) and _NULL_STREAM (before)."""
    streams = Streams()
    known_flags = {int(flag) for flag in StreamFlag}
    columns = ("hwId", "vmId", "processId", "contextId", "streamId", "flag")
    for hardware, vm, pid, context, stream, flag in database.rows("TARGET_INFO_CUDA_STREAM", columns):
        if flag in known_flags:
            streams.flags[hardware, vm, pid, context, stream] = StreamFlag(flag)
    for table, null_stream in (
        ("TARGET_INFO_CUDA_NULL_STREAM", "streamId"),
        ("TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId"),
    ):
        columns = ("hwId", "vmId", "processId", "contextId", null_stream, "deviceId")
        for hardware, vm, pid, context, stream, device in database.rows(table, columns):
            if device is not None:
                streams.devices[hardware, vm, pid, context] = device
            if stream is not None:
                streams.flags[hardware, vm, pid, context, stream] = StreamFlag.NULL
    return streams
