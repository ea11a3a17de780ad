"""What a torch capture is told: by arguments in the program, and by variables of the environment, which win.

The variables are how ``python -m collectors torch`` reaches every rank that its command starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from collectors import manifest
from collectors.errors import CollectError
from collectors.manifest import Pin

RUN = "TRACEBOUND_RUN"
"""The run's folder."""
PINS = "TRACEBOUND_PINS"
"""Declared pins, a JSON object."""
_COUNTS = {"wait": "TRACEBOUND_WAIT", "warmup": "TRACEBOUND_WARMUP", "active": "TRACEBOUND_ACTIVE"}
_SWITCHES = {"shapes": "TRACEBOUND_SHAPES", "stacks": "TRACEBOUND_STACKS", "memory": "TRACEBOUND_MEMORY"}


@dataclass(frozen=True)
class Settings:
    """Folder of the run (None: capture nothing), the cycle in steps, what else to record, declared pins."""

    folder: str | None = None
    wait: int = 7
    warmup: int = 2
    active: int = 20
    shapes: bool = False
    stacks: bool = False
    memory: bool = False
    pins: Mapping[str, Pin] = field(default_factory=dict)


def settled(given: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings that hold: what the environment says wins. Raises CollectError for what cannot be meant."""
    told: dict[str, Any] = {}
    if environment.get(RUN):
        told["folder"] = environment[RUN]
    for name, variable in _COUNTS.items():
        if variable in environment:
            told[name] = _count(variable, environment[variable])
    for name, variable in _SWITCHES.items():
        if variable in environment:
            told[name] = _switch(variable, environment[variable])
    if environment.get(PINS):
        told["pins"] = {**given.pins, **_pins(environment[PINS])}
    settings = replace(given, **told)
    if settings.active < 1 or settings.wait < 0 or settings.warmup < 0:
        raise CollectError(
            f"wait={settings.wait}, warmup={settings.warmup}, active={settings.active}",
            "is no cycle of steps",
            "use an active of 1 or more, wait and warmup of 0 or more",
        )
    return settings


def environment_of(
    folder: str, told: Mapping[str, int | bool | None], pins: Mapping[str, Pin]
) -> dict[str, str]:
    """Variables that say this to ``settled``; what is None is left to the program."""
    variables = {RUN: folder}
    for name, variable in {**_COUNTS, **_SWITCHES}.items():
        value = told.get(name)
        if value is not None:
            variables[variable] = str(int(value))
    if pins:
        variables[PINS] = json.dumps({name: pin.value for name, pin in pins.items()})
    return variables


def declared(pins: Mapping[str, str]) -> dict[str, Pin]:
    """Pins from names and values. Raises CollectError for unknown names and values that look like secrets."""
    try:
        return manifest.declared([f"{name}={value}" for name, value in pins.items()])
    except ValueError as error:
        raise CollectError("pins", str(error), "change or leave out the pin") from error


def _count(variable: str, text: str) -> int:
    if not text.isdecimal():
        raise CollectError(variable, f"is {text!r}, not a number of steps", "set a whole number, or unset it")
    return int(text)


def _switch(variable: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise CollectError(variable, f"is {text!r}", "set 1 or 0, or unset it")
    return text == "1"


def _pins(text: str) -> dict[str, Pin]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CollectError(PINS, f"is no JSON ({error})", 'write {"NAME": "VALUE"}') from error
    if not isinstance(data, dict):
        raise CollectError(PINS, "is no JSON object", 'write {"NAME": "VALUE"}')
    return declared(data)
