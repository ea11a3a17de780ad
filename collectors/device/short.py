"""A snapshot in short, as it stands in a rank's record: what moves while a run is on.

The manifest holds the records of all ranks and is written anew by each of them, so what is long stands beside it. A
whole snapshot of eight linked devices is 30 kB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def in_short(snapshot: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A snapshot's moment, driver and, of the devices that the rank sees, the readings. An absence stays as it is."""
    if snapshot is None or "absent" in snapshot:
        return None if snapshot is None else dict(snapshot)
    seen = snapshot["visible"]["devices"]  # where that is not known, all are told
    return {
        **{name: snapshot[name] for name in ("taken_ns", "took_ns", "driver_version", "cuda_driver_version")},
        "devices": [
            _device(device) for device in snapshot["devices"] if seen is None or device["index"] in seen
        ],
    }


def _device(device: Mapping[str, Any]) -> dict[str, Any]:
    clocks, power, memory = device["clocks"], device["power"], device["memory"] or {}
    return {
        "index": device["index"],
        "uuid": device["uuid"],
        "name": device["name"],
        "sm_now_mhz": clocks["sm_now_mhz"],
        "memory_now_mhz": clocks["memory_now_mhz"],
        "clock_event_reasons": clocks["event_reasons"],
        "power_draw_w": power["draw_w"],
        "temperature_c": power["temperature_c"],
        "performance_state": device["performance_state"],
        "memory_used_bytes": memory.get("used_bytes"),
        "ecc_uncorrected": device["ecc"]["uncorrected"],
        "lost": device["lost"],
    }
