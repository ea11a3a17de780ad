"""JSON that every reader understands alike: no NaN, valid Unicode, the same bytes for the same value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from analyzer.errors import InvariantError

_STEERING = re.compile("[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def encode(value: msgspec.Struct) -> bytes:
    """``value`` as indented UTF-8 JSON with a newline at the end, keys as declared.

    Characters that hide or steer a terminal are written as escapes: the same values, safe to ``cat``.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        # a file name that is not UTF-8 arrives as lone surrogates, which JSON cannot hold
        data = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(value)))
    text = msgspec.json.format(data, indent=2).decode("utf-8")
    return (_STEERING.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n").encode("utf-8")


def require_finite(rows: Iterable[msgspec.Struct]) -> None:
    """Refuse NaN and infinity: the encoder would write null, and null claims "not captured"."""
    for row in rows:
        for field, value in msgspec.structs.asdict(row).items():
            if not all(math.isfinite(number) for number in _floats(value)):
                raise InvariantError(f"{type(row).__name__}.{field} is {value}, not a finite number")


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from (number for item in value.values() for number in _floats(item))
    elif isinstance(value, tuple):
        yield from (number for item in value for number in _floats(item))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value
