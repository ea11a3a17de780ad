"""What a trace says of itself: an allow-list of the outermost members, everything else is left alone.

User code can add members of its own (``add_metadata``), with anything in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from analyzer.model import DeviceInfo, Diagnostic
from analyzer.readers.kineto_json.events import as_int, as_text
from analyzer.readers.kineto_json.toplevel import Member
from collectors.secrets import redact

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
_VERSIONS = (
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "roctracer_version",
    "rocprofiler_version",
    "hip_runtime_version",
    "hip_driver_version",
)
_ALLOWED = frozenset(
    (
        *_FLAGS,
        *_VERSIONS,
        "schemaVersion",
        "deviceProperties",
        "computeProperties",
        "distributedInfo",
        "baseTimeNanoseconds",
        "host_name",
        "trace_id",
        "WARNING",
        "ERROR",
    )
)
_LIMITS = (
    "maxThreadsPerBlock",
    "maxThreadsPerMultiprocessor",
    "regsPerBlock",
    "regsPerMultiprocessor",
    "warpSize",
    "sharedMemPerBlock",
    "sharedMemPerBlockOptin",
    "sharedMemPerMultiprocessor",
    "maxSharedMemoryPerMultiProcessor",
)
_MAX_DIAGNOSTICS = 100
_NUMBER = re.compile(r"[\d.]{1,20}|true|false", re.IGNORECASE)
_PLAIN_VALUE = re.compile(r"[\w.:,+-]{1,60}")
_ABSENT = -1


@dataclass(frozen=True)
class Metadata:
    """The allowed members of one trace file."""

    values: dict[str, object]

    @property
    def base_ns(self) -> int | None:
        """Epoch time that event times are relative to; None where the file has none."""
        base = as_int(self.values.get("baseTimeNanoseconds"), 0)
        return base if base > 0 else None

    @property
    def is_rocm(self) -> bool:
        """Whether version keys of AMD's tools are there."""
        return any(key.startswith(("roctracer", "rocprofiler", "hip_")) for key in self.values)

    @property
    def rank(self) -> int | None:
        """distributedInfo.rank."""
        return self._distributed_number("rank")

    @property
    def world_size(self) -> int | None:
        """distributedInfo.world_size."""
        return self._distributed_number("world_size")

    @property
    def hostname(self) -> str | None:
        """host_name, in files since 2026-03."""
        return as_text(self.values.get("host_name")) or None

    @property
    def schema(self) -> str | None:
        """schemaVersion; 1 in every file so far."""
        return as_text(self.values.get("schemaVersion"))

    @property
    def profiler_version(self) -> str:
        """No torch version is recorded anywhere; the device tracer's is."""
        version = "torch.profiler"
        for key, tool in (("cupti_version", "CUPTI"), ("roctracer_version", "roctracer")):
            number = as_text(self.values.get(key))
            if number and _NUMBER.fullmatch(number):
                version += f", {tool} {number}"
        return version

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Profiler options, versions and the distributed backend, as text; each only as what it can be."""
        pairs = [(key, self.values.get(key), _NUMBER) for key in (*_FLAGS, *_VERSIONS)]
        pairs += [(key, self._distributed().get(key), _PLAIN_VALUE) for key in ("backend", "nccl_version")]
        texts = [(key, as_text(value), shape) for key, value, shape in pairs]
        return tuple((key, text) for key, text, shape in texts if text and shape.fullmatch(text))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Log lines of the profiler above the information level, the first of each kind, credentials removed."""
        found: list[Diagnostic] = []
        for key, severity in (("ERROR", 3), ("WARNING", 2)):
            lines = self.values.get(key)
            if isinstance(lines, list):
                found += [Diagnostic(severity, redact(str(line))) for line in lines[:_MAX_DIAGNOSTICS]]
        return tuple(found)

    def _distributed(self) -> dict[str, object]:
        info = self.values.get("distributedInfo")
        return info if isinstance(info, dict) else {}

    def _distributed_number(self, key: str) -> int | None:
        number = as_int(self._distributed().get(key), _ABSENT)
        return number if number >= 0 else None

    def devices(self, used: list[int]) -> dict[int, DeviceInfo]:
        """A description for each device number in ``used`` (sorted).

        ROCm numbers devices after the CPU agents, so that the first GPU can be 2: there, and wherever a
        number is not among the ids, the n-th device used is the n-th description. Where descriptions
        differ and the numbers do not match, no description is better than a wrong one.
        """
        listed = self.values.get("deviceProperties", self.values.get("computeProperties"))
        properties = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
        by_id = {as_int(p.get("id"), _ABSENT): p for p in properties}
        if not self.is_rocm and all(device in by_id for device in used):
            return {device: _device_info(device, by_id[device]) for device in used}
        alike = len({tuple((k, str(v)) for k, v in sorted(p.items()) if k != "id") for p in properties}) == 1
        if properties and (alike or len(properties) == len(used)):
            ordered = [by_id[key] for key in sorted(by_id)]
            return {d: _device_info(d, ordered[min(i, len(ordered) - 1)]) for i, d in enumerate(used)}
        return {device: DeviceInfo(index=device) for device in used}


def _device_info(index: int, properties: dict[str, object]) -> DeviceInfo:
    def number(key: str) -> int | None:
        value = as_int(properties.get(key), _ABSENT)
        return value if value >= 0 else None

    major, minor = number("computeMajor"), number("computeMinor")
    return DeviceInfo(
        index=index,
        name=as_text(properties.get("name")) or None,
        sm_count=number("numSms"),
        total_memory_bytes=number("totalGlobalMem"),
        compute_capability=None if major is None or minor is None else (major, minor),
        limits=tuple((key, value) for key in _LIMITS if (value := number(key)) is not None),
    )


def read_members(members: list[Member]) -> Metadata:
    """Decode the allowed members; one that is no valid JSON is left out."""
    values: dict[str, object] = {}
    for member in members:
        if member.key in _ALLOWED and member.value:
            try:
                values[member.key] = msgspec.json.decode(member.value)
            except msgspec.DecodeError:
                continue
    return Metadata(values)
