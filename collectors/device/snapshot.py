"""What NVML says of this node's devices at one moment."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from collectors.device.links import Linked, Pair, pair
from collectors.device.reader import Reader, absence
from collectors.device.readings import Device, device
from collectors.device.visible import Visible, visible

NO_PYNVML = "pynvml is not installed: pip install nvidia-ml-py"
NO_DEVICE = "the NVIDIA driver knows no device"


@dataclass(frozen=True)
class Snapshot:
    """``taken_ns``: wall clock; ``took_ns``: how long NVML took, its start included. ``not_read``: as in a device."""

    taken_ns: int
    took_ns: int
    driver_version: str | None
    cuda_driver_version: str | None
    nvml_version: str | None
    devices: list[Device]
    pairs: list[Pair]
    visible: Visible
    not_read: dict[str, str]


def snapshot(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The snapshot as plain JSON types, or ``{"absent": reason}`` where there is nobody to ask.

    Asks in this very process; ``bounded.ask`` does it with a time limit. ``environment`` tells what
    CUDA shows to the process.
    """
    environment = os.environ if environment is None else environment
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return {"absent": NO_PYNVML}
    return gather(nvml, environment)


def gather(nvml: Any, environment: Mapping[str, str]) -> dict[str, Any]:
    """The snapshot through this pynvml module, or ``{"absent": reason}``."""
    taken, started = time.time_ns(), time.monotonic_ns()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return {"absent": absence(error)}
    try:
        driver = Reader(nvml)
        devices, pairs = _devices(nvml, driver)
        if not devices and not driver.not_read:
            return {"absent": NO_DEVICE}
        cuda = driver.ask(
            "cuda_driver_version",
            ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"),
        )
        found = Snapshot(
            taken_ns=taken,
            took_ns=time.monotonic_ns() - started,
            driver_version=driver.text("driver_version", "nvmlSystemGetDriverVersion"),
            cuda_driver_version=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            nvml_version=driver.text("nvml_version", "nvmlSystemGetNVMLVersion"),
            devices=devices,
            pairs=pairs,
            visible=visible(devices, environment),
            not_read=driver.not_read,
        )
        return asdict(found)
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _devices(nvml: Any, driver: Reader) -> tuple[list[Device], list[Pair]]:
    devices: list[Device] = []
    ends: list[Linked] = []
    for index in range(driver.ask("devices", "nvmlDeviceGetCount") or 0):
        handle = driver.ask(f"devices[{index}]", "nvmlDeviceGetHandleByIndex", index)
        driver.lost = False  # one lost device does not silence the driver
        if handle is None:
            continue
        one = device(Reader(nvml), handle, index)
        devices.append(one)
        ends.append(Linked(index, handle, one.pci_bus_id, one.nvlinks))
    pairs = []
    for a, b in combinations(ends, 2):
        pairs.append(pair(driver, a, b))
        driver.lost = False
    return devices, pairs


def main() -> int:
    """Write the snapshot to standard output: what ``collectors.device.bounded`` starts."""
    sys.stdout.write(json.dumps(snapshot(), allow_nan=False))
    return 0
