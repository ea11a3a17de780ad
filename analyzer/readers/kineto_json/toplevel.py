"""The outermost level of the JSON text: where the events are, and the members around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Strings are skipped whole, so that brackets and keys inside them do not count. A lone backslash is
# tolerated: older exporters wrote Windows paths as they are.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]', re.DOTALL)
_SPACE = re.compile(rb"\s*")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Member:
    """One ``"key": value`` of the outermost object. ``value`` is its text; b"" if it is cut off."""

    key: str
    value: bytes
    value_start: int


@dataclass(frozen=True)
class Scan:
    """The members found in a piece of the outermost object; ``end``: after its ``}``, -1 if not seen."""

    members: tuple[Member, ...]
    end: int = -1

    @property
    def closed(self) -> bool:
        """Whether the object was seen to its end."""
        return self.end >= 0


def skip_space(text: bytes, start: int) -> int:
    """Position of the first byte from ``start`` that is no white space."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def scan_members(text: bytes, start: int, stop_key: str | None = None) -> Scan:
    """Read the members of the outermost object from ``start``, a position inside it.

    Stops at the ``}`` that closes it, or at ``stop_key`` whose value is an array: that member is then
    the last one and its ``value_start`` is the position of ``[``.
    """
    members: list[Member] = []
    depth = 1
    key: str | None = None
    value_start = -1
    last_string = b""
    for position, token in _tokens(text, start):
        first = token[:1]
        if first == b'"':
            last_string = token
        elif first == b":":
            if depth == 1 and key is None:
                key = last_string[1:-1].decode("utf-8", "replace")
                value_start = skip_space(text, position + 1)
                if key == stop_key and text[value_start : value_start + 1] == b"[":
                    return Scan((*members, Member(key, b"", value_start)))
        elif first in b"{[":
            depth += 1
        elif depth == 1 and (first == b"," or first == b"}"):
            if key is not None:
                members.append(Member(key, text[value_start:position].strip(), value_start))
                key = None
            if first == b"}":
                return Scan(tuple(members), position + 1)
        elif first != b",":
            depth -= 1
    if key is not None:
        members.append(Member(key, b"", value_start))
    return Scan(tuple(members))


def _tokens(text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    for match in _TOKEN.finditer(text, start):
        yield match.start(), match.group()
