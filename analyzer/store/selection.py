"""Which workloads of a store are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.errors import UsageError
from analyzer.history import KEY_SHOWN

Pins = Mapping[str, str | None]


def chosen(pins: Mapping[str, Pins], wanted: Sequence[str], store: str) -> list[str]:
    """Keys of the workloads that match every one of ``wanted``: the beginning of a key, or NAME=VALUE of a pin.

    Raises UsageError where none does.
    """
    found = [key for key, values in pins.items() if all(_matches(key, values, one) for one in wanted)]
    if found or not wanted:
        return found
    known = "; ".join(_described(key, values) for key, values in pins.items()) or "none"
    raise UsageError(
        "--workload",
        store,
        f"no workload matches {' and '.join(map(repr, wanted))}",
        f"give the beginning of a key or NAME=VALUE of these: {known}",
    )


def _matches(key: str, pins: Pins, wanted: str) -> bool:
    name, equals, value = wanted.partition("=")
    if equals:
        return pins.get(name) == value
    return bool(wanted) and key.startswith(wanted)


def _described(key: str, pins: Pins) -> str:
    told = ", ".join(f"{name}={value}" for name, value in pins.items() if value is not None)
    return f"{key[:KEY_SHOWN]} ({told or 'nothing pinned'})"
