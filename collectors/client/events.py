"""What one event of a streamed completion says: text, tokens where it tells them, the server's own times. Pure.

Understands the chunks of ``/v1/completions`` and ``/v1/chat/completions``. What an event does not tell is None.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from collectors.errors import CollectError

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Units of a server's times, in ns."""
DEFAULT_EMITTED = ("emitted_ns", "emitted_us", "emitted_ms", "emitted_s")
"""Fields looked in for the time of emission. ``created`` is not among them: most servers give the whole response's."""
_INT64 = 1 << 63


class MalformedError(Exception):
    """An event that is no chunk of a completion; ``str()`` says why, without its content."""


@dataclass(frozen=True)
class EmittedField:
    """A field, by its dotted path, that holds when the server emitted the event, and its unit in ns."""

    path: tuple[str, ...]
    unit_ns: int

    @property
    def name(self) -> str:
        """The path as it is written on the command line."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Emitted:
    """When the server says it emitted an event. ``resolution_ns``: the last digit that it wrote, at least 1."""

    at_ns: int
    resolution_ns: int
    field: str


@dataclass(frozen=True)
class Chunk:
    """One event of the stream, read. ``tokens``: only where the event itself tells; ``tokens_from``: by what.

    ``completion_tokens``: tokens up to here by the server's ``usage``. ``error``: the server's error object.
    """

    text: str
    choices: int
    finish_reason: str | None
    tokens: int | None
    tokens_from: str | None
    usage: dict[str, int] | None
    emitted: Emitted | None
    created_s: int | None
    error: dict[str, Any] | None

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of the answer so far, by ``usage``."""
        return None if self.usage is None else self.usage.get("completion_tokens")


def emitted_field(word: str) -> EmittedField:
    """A field from the command line: ``timings.sent_us`` or ``created:s``. Raises CollectError without a unit."""
    name, colon, unit = word.rpartition(":")
    if not colon:
        name, unit = word, word.rpartition("_")[2]
    path = tuple(name.split("."))
    if unit not in UNITS or not all(path):
        raise CollectError(
            f"--emitted-field {word}",
            "tells no unit",
            f"name the field and its unit, like emitted_us or sent.at:ms; units: {', '.join(UNITS)}",
        )
    return EmittedField(path, UNITS[unit])


def read_chunk(text: str, fields: Sequence[EmittedField]) -> Chunk:
    """The event's data, read. Raises MalformedError for what is no JSON object or no chunk of a completion."""
    try:
        data = json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise MalformedError("is no JSON") from error
    if not isinstance(data, dict):
        raise MalformedError("is no JSON object")
    error_object = data.get("error")
    choices = data.get("choices")
    if error_object is None and not isinstance(choices, list):
        raise MalformedError("has no choices")
    held = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    tokens, told_by = _tokens(held)
    return Chunk(
        text="".join(piece for choice in held for piece in _texts(choice)),
        choices=len(held),
        finish_reason=next((r for c in held if isinstance(r := c.get("finish_reason"), str)), None),
        tokens=tokens,
        tokens_from=told_by,
        usage=_usage(data.get("usage")),
        emitted=_emitted(data, fields),
        created_s=_whole(data.get("created")),
        error=None if error_object is None else _error(error_object),
    )


def _texts(choice: dict[str, Any]) -> Iterator[str]:
    """All that the model wrote: the text, its reasoning, the arguments of its calls."""
    for holder in (choice, choice.get("delta")):
        if not isinstance(holder, dict):
            continue
        for name in ("text", "content", "reasoning_content", "reasoning"):
            if isinstance(value := holder.get(name), str):
                yield value
        calls = holder.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, dict) else None
            for name in ("name", "arguments"):
                if isinstance(function, dict) and isinstance(value := function.get(name), str):
                    yield value


def _tokens(choices: Sequence[dict[str, Any]]) -> tuple[int | None, str | None]:
    """Tokens of the event, where every choice of it tells them in the same way."""
    for told_by, count in (("token_ids", _token_ids), ("logprobs", _logprobs)):
        counts = [count(choice) for choice in choices]
        known = [number for number in counts if number is not None]
        if known and len(known) == len(counts):
            return sum(known), told_by
    return None, None


def _token_ids(choice: dict[str, Any]) -> int | None:
    ids = choice.get("token_ids")
    return len(ids) if isinstance(ids, list) else None


def _logprobs(choice: dict[str, Any]) -> int | None:
    """One entry per token: ``content`` in chats, ``tokens`` in completions."""
    held = choice.get("logprobs")
    if not isinstance(held, dict):
        return None
    lists = [held[name] for name in ("content", "tokens") if isinstance(held.get(name), list)]
    return len(lists[0]) if lists else None


def _usage(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    return {str(name): number for name, given in value.items() if (number := _whole(given)) is not None}


def _emitted(data: dict[str, Any], fields: Sequence[EmittedField]) -> Emitted | None:
    for field in fields:
        value: Any = data
        for name in field.path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        exact = Decimal(value)
        if not 0 <= exact < _INT64 // field.unit_ns:
            continue
        exponent = exact.as_tuple().exponent
        digits = -exponent if isinstance(exponent, int) and exponent < 0 else 0
        resolution = field.unit_ns // 10 ** min(digits, 18)
        return Emitted(int(exact * field.unit_ns), max(1, resolution), field.name)
    return None


def _error(value: object) -> dict[str, Any]:
    """The server's error: an object, or a bare text."""
    return value if isinstance(value, dict) else {"message": str(value)}


def _whole(value: object) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT64
    return value if usable and isinstance(value, int) else None
