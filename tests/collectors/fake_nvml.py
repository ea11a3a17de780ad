"""A literal stand-in for the module pynvml, for machines without a GPU.

It has the functions that the collector calls, with pynvml's signatures, and NVML's error numbers. A device is a table
of function name and answer: a value, a function of the arguments after the handle, or an error. What the table lacks
is NOT_SUPPORTED, as NVML has it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST = 3, 4, 6, 13, 15
INVALID_ARGUMENT = 2
MIB = 1 << 20
DEVICE_CALLS = (
    "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo", "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetApplicationsClock", "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetPerformanceState", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetEccMode", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion",
    "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetCpuAffinity",
    "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetComputeRunningProcesses",
)  # fmt: skip
SYSTEM = {
    "nvmlSystemGetDriverVersion": "580.65.06",
    "nvmlSystemGetCudaDriverVersion_v2": 13000,
    "nvmlSystemGetNVMLVersion": "13.580.65.06",
    "nvmlSystemGetProcessName": "/opt/venv/bin/python3 serve.py --api-key sk-0123456789abcdef",
}


class NVMLError(Exception):
    """As in pynvml: ``value`` is NVML's number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


def error(number: int) -> NVMLError:
    return NVMLError(number)


def _answered(answer: Any, arguments: tuple[Any, ...]) -> Any:
    found = answer(*arguments) if callable(answer) else answer
    if isinstance(found, NVMLError):
        raise NVMLError(found.value)
    return found


def node(
    *gpus: dict[str, Any],
    lacks: tuple[str, ...] = (),
    start: Any = None,
    ancestors: int = 40,
    peer: int = 5,
    memory_v2: bool = True,
    **system: Any,
) -> SimpleNamespace:
    """The module pynvml on a node with these devices; ``lacks``: functions that an old pynvml does not have."""
    calls: dict[str, Any] = {
        name: lambda handle, *rest, _n=name: _answered(handle.get(_n, error(NOT_SUPPORTED)), rest)
        for name in DEVICE_CALLS
    }
    for name, answer in {**SYSTEM, **system}.items():
        calls[name] = lambda *rest, _a=answer: _answered(_a, rest)
    module = SimpleNamespace(**calls)
    module.NVMLError = NVMLError
    module.shutdowns = 0
    module.nvmlInit = lambda: _answered(start, ())
    module.nvmlDeviceGetCount = lambda: len(gpus)
    module.nvmlDeviceGetHandleByIndex = lambda index: _answered(
        gpus[index].get("handle", lambda: gpus[index]), ()
    )
    module.nvmlDeviceGetTopologyCommonAncestor = lambda a, b: ancestors
    module.nvmlDeviceGetP2PStatus = lambda a, b, index: _answered(peer, ())
    if memory_v2:
        module.nvmlMemory_v2 = 0x02000028

    def shutdown() -> None:
        module.shutdowns += 1

    module.nvmlShutdown = shutdown
    for name in lacks:
        delattr(module, name)
    return module


def _memory(*version: int) -> SimpleNamespace:
    found = SimpleNamespace(total=143771 * MIB, used=521 * MIB)
    if version:
        found.reserved = 500 * MIB
    return found


def h200(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A device as a node with NVSwitch has it, 18 links up."""

    def link(value: Any) -> Any:
        return lambda at: value if at < 18 else error(INVALID_ARGUMENT)

    return {
        "nvmlDeviceGetUUID": f"GPU-{number}8f7a0e2-1111-2222-3333-444455556666",
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=f"00000000:{number + 1}B:00.0"),
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMemoryInfo": _memory,
        "nvmlDeviceGetClockInfo": lambda kind: {1: 345, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetApplicationsClock": lambda kind: {0: 1980, 2: 3201}[kind],
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetPowerUsage": 76543,
        "nvmlDeviceGetEnforcedPowerLimit": 700000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700000,
        "nvmlDeviceGetTemperature": lambda sensor: 31,
        "nvmlDeviceGetPerformanceState": 0,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetTotalEccErrors": lambda kind, counter: kind * 2 + counter,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetNvLinkState": link(1),
        "nvmlDeviceGetNvLinkVersion": link(7),
        "nvmlDeviceGetNvLinkRemoteDeviceType": link(2),
        "nvmlDeviceGetNvLinkRemotePciInfo": link(SimpleNamespace(busId="00000000:C1:00.0")),
        "nvmlDeviceGetCpuAffinity": lambda size: [0x0000FFFFFFFFFFFF, 0x0000FFFFFFFF0000] + [0] * (size - 2),
        "nvmlDeviceGetMemoryAffinity": lambda size, scope: [1] + [0] * (size - 1),
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=4242, usedGpuMemory=1024 * MIB)],
        **changes,
    }


def linked_with(other: int, count: int) -> dict[str, Any]:
    """Links that lead straight to another device of ``h200``."""
    return {
        "nvmlDeviceGetNvLinkState": lambda at: 1 if at < count else error(INVALID_ARGUMENT),
        "nvmlDeviceGetNvLinkRemoteDeviceType": lambda at: 0,
        "nvmlDeviceGetNvLinkRemotePciInfo": lambda at: SimpleNamespace(busId=f"00000000:{other + 1}B:00.0"),
    }


def sliced(number: int = 0) -> dict[str, Any]:
    """A device with MIG on: two slices, at places 0 and 2 of seven."""

    def place(at: int) -> Any:
        if at not in (0, 2):
            return error(NOT_FOUND)
        return {
            "nvmlDeviceGetUUID": f"MIG-{number}{at}aaaaaa-1111-2222-3333-444455556666",
            "nvmlDeviceGetName": "NVIDIA H200 MIG 3g.71gb",
            "nvmlDeviceGetGpuInstanceId": at + 1,
            "nvmlDeviceGetComputeInstanceId": 0,
            "nvmlDeviceGetMemoryInfo": lambda *version: SimpleNamespace(total=71 << 30, used=0, reserved=0),
        }

    return h200(
        number,
        nvmlDeviceGetMigMode=[1, 1],
        nvmlDeviceGetMaxMigDeviceCount=7,
        nvmlDeviceGetMigDeviceHandleByIndex=place,
        nvmlDeviceGetComputeRunningProcesses=error(NO_PERMISSION),
    )
