"""Blocks of events, and where a text of events can be cut."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from analyzer.readers.kineto_json.events import Event

EVENT_START = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|bp|s)"\s*:')
_SPACES = b" \t\r\n"
_PLACES = 20  # line numbers kept per kind of repair


@dataclass(frozen=True)
class Block:
    """Consecutive events. ``text`` is a JSON list of exactly these; ``first`` is the index of the first."""

    events: list[Event]
    text: bytes
    first: int


@dataclass
class Places:
    """A count and the line numbers of its first occurrences."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """Count one more, seen at ``line``."""
        self.count += 1
        if len(self.lines) < _PLACES:
            self.lines.append(line)

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.lines) else ""
        return "line " + ", ".join(map(str, self.lines)) + more


def joined(blocks: list[Block]) -> Block:
    """Consecutive blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    events = [event for block in blocks for event in block.events]
    text = b"[" + b",".join(block.text[1:-1] for block in blocks) + b"]"
    return Block(events, text, blocks[0].first)


def last_boundary(text: bytes, start: int, end: int) -> int | None:
    """Where the last event that is followed by another one ends, within ``[start, end)``.

    An object that begins with a key of events is preferred; any other is taken if there is none.
    """
    fallback: int | None = None
    brace = text.rfind(b"{", start, end)
    while brace > start:
        comma = _back_over_space(text, brace - 1)
        if text[comma : comma + 1] == b",":
            closing = _back_over_space(text, comma - 1)
            if closing > start and text[closing : closing + 1] == b"}":
                if EVENT_START.match(text, brace):
                    return closing + 1
                fallback = closing + 1 if fallback is None else fallback
        brace = text.rfind(b"{", start, brace)
    return fallback


def _back_over_space(text: bytes, position: int) -> int:
    while position >= 0 and text[position] in _SPACES:
        position -= 1
    return position
