"""Pins that a snapshot tells: the devices, their clocks and limits, how they are linked.

A pin is compared with that of another run, so it holds what is set and not what was read at a moment: an idle
device clocks down. The readings stand in the rank's record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from collectors.device.links import shown
from collectors.manifest import Pin


def pins(snapshot: Mapping[str, Any]) -> dict[str, Pin]:
    """``hardware``, ``clocks``, ``topology`` of the devices that the process sees; none for what is not known."""
    if "absent" in snapshot or snapshot["visible"]["devices"] is None:
        return {}
    seen = snapshot["visible"]["devices"]
    devices = [device for device in snapshot["devices"] if device["index"] in seen]
    pairs = [pair for pair in snapshot["pairs"] if pair["a"] in seen and pair["b"] in seen]
    instances = snapshot["visible"]["instances"]
    texts = {
        "hardware": _slices(devices, instances) if instances else _counted(map(_hardware, devices)),
        "clocks": _counted(map(_clocks, devices), single=True),
        "topology": "one device" if len(devices) == 1 else shown(pairs),
    }
    return {name: Pin(text, "found") for name, text in texts.items() if text}


def _counted(texts: Iterable[str | None], *, single: bool = False) -> str | None:
    """``8 x a; 1 x b``; of ``single`` texts one that holds for all stands without its count. None if one is unknown."""
    counts = Counter(texts)
    if not counts or None in counts:
        return None
    if single and len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{count} x {text}" for text, count in counts.items())


def _hardware(device: Mapping[str, Any]) -> str | None:
    name: str | None = device["name"]
    if name is None or device["memory"] is None:
        return name
    sliced = ", sliced (MIG)" if device["mig"]["mode"] == "on" else ""
    return f"{name}, {_gib(device['memory']['total_bytes'])}{sliced}"


def _gib(number: int) -> str:
    return f"{number / 2**30:.0f} GiB"


def _slices(devices: Iterable[Mapping[str, Any]], uuids: Iterable[str]) -> str | None:
    wanted = set(uuids)
    texts = [
        None
        if instance["name"] is None or instance["memory"] is None
        else f"{instance['name']}, {_gib(instance['memory']['total_bytes'])}"
        for device in devices
        for instance in device["mig"]["instances"] or ()
        if instance["uuid"] in wanted
    ]
    return _counted(texts)


def _clocks(device: Mapping[str, Any]) -> str | None:
    clocks, limit = device["clocks"], device["power"]["limit_w"]
    words = [
        _clock("SM", clocks["sm_max_mhz"], clocks["sm_application_mhz"]),
        _clock("memory", clocks["memory_max_mhz"], clocks["memory_application_mhz"]),
        None if limit is None else f"limit {limit:g} W",
    ]
    return ", ".join(word for word in words if word) or None


def _clock(name: str, highest: int | None, application: int | None) -> str | None:
    if highest is None:
        return None
    if application is None or application == highest:
        return f"{name} up to {highest} MHz"
    return f"{name} set to {application} of {highest} MHz"
