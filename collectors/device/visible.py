"""Which of the node's devices CUDA shows to a process, by ``CUDA_VISIBLE_DEVICES``.

The rules are those of the CUDA runtime: numbers, UUIDs or their beginnings, slices (``MIG-<uuid>`` and the older
``MIG-GPU-<uuid>/<gpu instance>/<compute instance>``). The first word that names no device ends the list; a device
named twice empties it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collectors.device.readings import Device, Instance

VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_OLD_SLICE = re.compile(r"MIG-(?P<uuid>GPU-[0-9a-f-]+)/(?P<gpu>\d+)/(?P<compute>\d+)")
_LEADING_NUMBER = re.compile(r"\s*\+?(\d+)")


@dataclass(frozen=True)
class Visible:
    """``devices``: indices by NVML in CUDA's order, null where that cannot be told; ``instances``: UUIDs of slices.

    ``variable`` and ``order`` as the environment has them.
    """

    variable: str | None
    order: str | None
    devices: list[int] | None
    instances: list[str]
    notes: list[str]


def visible(devices: Sequence[Device], environment: Mapping[str, str]) -> Visible:
    """What CUDA shows of these devices to a process with this environment."""
    variable, order = (environment.get(name) for name in VARIABLES)
    indices: list[int] | None = [device.index for device in devices]
    instances: list[str] = []
    notes: list[str] = []
    if variable is not None and variable.startswith("MIG-"):
        indices, instances = _slices(variable.split(","), devices, notes)
    elif variable is not None and variable.startswith("GPU-"):
        indices = _by_uuid(variable.split(","), devices, notes)
    elif variable is not None:
        indices = _by_number(variable.split(","), order, devices, notes)
    if not instances:
        for device in devices:
            if device.index in (indices or ()) and device.mig.mode == "on":
                notes.append(f"device {device.index} is sliced; CUDA shows only slices of it")
    return Visible(variable, order, indices, instances, notes)


def _by_number(
    words: Sequence[str], order: str | None, devices: Sequence[Device], notes: list[str]
) -> list[int] | None:
    numbers: list[int] = []
    for word in words:
        match = _LEADING_NUMBER.match(word)
        if match is None or int(match[1]) >= len(devices):
            _note_end(word, words, notes)
            break
        numbers.append(int(match[1]))
    if order != "PCI_BUS_ID" and numbers:
        if len({device.name for device in devices}) > 1:
            notes.append(
                "devices differ and CUDA_DEVICE_ORDER is not PCI_BUS_ID: the numbers may mean others"
            )
            return None
        notes.append("numbers taken in the order of the PCI bus, since the devices are of one kind")
    return _once(numbers, notes)


def _by_uuid(words: Sequence[str], devices: Sequence[Device], notes: list[str]) -> list[int] | None:
    if any(device.uuid is None for device in devices):
        notes.append("a device does not tell its UUID")
        return None
    found: list[int] = []
    for word in words:
        fitting = [device.index for device in devices if (device.uuid or "").startswith(word)]
        if not word.startswith("GPU-") or len(fitting) != 1:
            _note_end(word, words, notes)
            break
        found += fitting
    return _once(found, notes)


def _slices(
    words: Sequence[str], devices: Sequence[Device], notes: list[str]
) -> tuple[list[int] | None, list[str]]:
    if any(device.mig.instances is None for device in devices):
        notes.append("a device does not tell its slices")
        return None, []
    found: list[tuple[int, str]] = []
    for word in words:
        fitting = [
            (device.index, instance.uuid or word)
            for device in devices
            for instance in device.mig.instances or ()
            if _is_slice(word, device, instance)
        ]
        if len(fitting) != 1:
            _note_end(word, words, notes)
            break
        found += fitting
    if len(set(found)) < len(found):
        notes.append("a slice is named twice: CUDA shows none")
        return [], []
    return list(dict.fromkeys(index for index, _ in found)), [uuid for _, uuid in found]


def _is_slice(word: str, device: Device, instance: Instance) -> bool:
    old = _OLD_SLICE.fullmatch(word)
    if old:
        place = (instance.gpu_instance, instance.compute_instance)
        return old["uuid"] == device.uuid and place == (int(old["gpu"]), int(old["compute"]))
    return word.startswith("MIG-") and (instance.uuid or "").startswith(word)


def _note_end(word: str, words: Sequence[str], notes: list[str]) -> None:
    if word not in ("", "-1"):
        notes.append(f"{word!r} names no device here: it and what follows is not seen")
    elif len(words) > 1:
        notes.append("the list is cut off where a word is empty or negative")


def _once(found: list[int], notes: list[str]) -> list[int]:
    if len(set(found)) < len(found):
        notes.append("a device is named twice: CUDA shows none")
        return []
    return found
