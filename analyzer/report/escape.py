"""Names from a capture are data: how they are shown so that they can break nothing.

Two steps. ``visible`` turns every character that a reader cannot see or that steers a terminal or a
browser into ``⟨U+XXXX⟩`` (and ``⟨`` itself too, so that two different texts never look the same).
``code`` and ``prose`` then make the result safe inside Markdown. Shortened texts end in a digest of the
whole, so that two long names with a common beginning stay distinguishable. JSON keeps the full text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NAME_LIMIT = 90
PROSE_LIMIT = 600

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_BRACKET = "⟨"
_PLAIN = re.compile(r"[ -~]*\Z")
_MARKDOWN = {
    "\\": "\\\\",
    "`": "\\`",
    "*": "\\*",
    "[": "\\[",
    "]": "\\]",
    "~": "\\~",
    "$": "\\$",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "@": "&#64;",
}
_LINE_START = re.compile(r"[-+#=]|\d{1,9}[.)](?= |\Z)")


def _piece(char: str, also: str = "") -> str:
    if char == " ":
        return char
    if char == _BRACKET or char in also or unicodedata.category(char) in _INVISIBLE:
        return f"{_BRACKET}U+{ord(char):04X}⟩"
    return char


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def visible(text: str, limit: int | None = None, also: str = "") -> str:
    """``text`` on one line, without a character that hides or steers; longer than ``limit``: shortened.

    Characters in ``also`` are spelled out too. A shortened text keeps its beginning and its end and
    carries ``…#digest`` of the whole in between.
    """
    if limit is None or len(text) <= limit:
        if _PLAIN.match(text) and not any(char in text for char in also):
            return text
        shown = "".join(_piece(char, also) for char in text)
        if limit is None or len(shown) <= limit:
            return shown
    mark = f"…#{_digest(text)}…"
    room = max(limit - len(mark), 8)
    # only the ends can be shown, so a 20 kB name is never walked as a whole
    head = _fill((_piece(char, also) for char in text[:room]), room - room // 3)
    tail = _fill((_piece(char, also) for char in reversed(text[-room:])), room // 3)
    return "".join(head) + mark + "".join(reversed(tail))


def _fill(pieces: Iterable[str], room: int) -> list[str]:
    taken: list[str] = []
    used = 0
    for piece in pieces:
        used += len(piece)
        if used > room:
            break
        taken.append(piece)
    return taken


def code(text: str, limit: int = NAME_LIMIT, also: str = "`") -> str:
    """``text`` as a Markdown code span that no renderer can leave, for use outside tables.

    Backticks are spelled out: what escapes them in a code span differs between renderers.
    """
    shown = visible(text, limit, also)
    if not shown:
        return "(empty name)"
    shown = re.sub(r"^ | $", "⟨U+0020⟩", shown)  # Markdown would strip a space at the ends
    return f"`{shown}`"


def cell(text: str, limit: int = NAME_LIMIT) -> str:
    """``text`` as a code span inside a table cell: pipes are spelled out as well."""
    return code(text, limit, also="`|")


def prose(text: str, limit: int = PROSE_LIMIT) -> str:
    """A sentence (which may quote names) as Markdown text without links or raw HTML.

    The only markup kept are pairs of backticks, around commands that our own sentences name.
    """
    pieces = visible(text, limit).split("`")
    if len(pieces) % 2 == 0 or "" in pieces[1::2]:
        return _plain_prose("`".join(pieces))
    return "".join(cell(piece, limit) if i % 2 else _plain_prose(piece) for i, piece in enumerate(pieces))


def _plain_prose(shown: str) -> str:
    escaped = "".join(_MARKDOWN.get(char, char) for char in shown)
    escaped = re.sub(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\_", escaped)
    escaped = escaped.replace("://", ":&#47;&#47;")
    escaped = re.sub(r"(?i)\bwww\.", lambda match: match.group()[:-1] + "&#46;", escaped)
    start = _LINE_START.match(escaped)
    if start:
        escaped = f"{start.group()[:-1]}\\{escaped[start.end() - 1 :]}"
    return escaped


def terminal(text: str, limit: int = 400) -> str:
    """A sentence for a terminal: one line, nothing that steers it."""
    return visible(text, limit)


def quoted(text: str, limit: int = NAME_LIMIT) -> str:
    """A name for a terminal."""
    return f"'{visible(text, limit)}'"


@dataclass(frozen=True)
class Style:
    """How a text that mixes our words with names of the capture is written."""

    name: Callable[[str], str]
    prose: Callable[[str], str]


MARKDOWN = Style(name=code, prose=prose)
TERMINAL = Style(name=quoted, prose=terminal)
