r"""Server-sent events out of a byte stream: any split of the bytes gives the same events. Pure, no I/O.

The format is that of the WHATWG HTML standard, section "Server-sent events": lines end with ``\n``, ``\r\n`` or
``\r``; ``data:`` lines of one event are joined by ``\n``; a line that begins with ``:`` is a comment; a blank line
ends the event; a byte order mark at the very start is left out. An event without data is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_EVENT_BYTES = 16 << 20
"""An event or line longer than this is no token: the stream is given up rather than held in memory."""

_LINE_END = re.compile(rb"[\r\n]")
_LF = 0x0A
_CR = 0x0D
_BOM = b"\xef\xbb\xbf"


class SseError(Exception):
    """The stream cannot be cut into events."""


@dataclass(frozen=True)
class Event:
    r"""One event, or a comment line.

    ``start`` and ``end`` are byte offsets in the stream: of the first line's first byte, and just behind the byte
    that ended the event (of ``\r\n`` the ``\r``, for the event is told by then). ``utf8``: False where bytes that
    are not UTF-8 were replaced. ``whole``: False for what stood there when the stream ended without a blank line.
    """

    data: str
    start: int
    end: int
    type: str | None = None
    comment: bool = False
    utf8: bool = True
    whole: bool = True


class Parser:
    """Takes the stream block by block. ``at``: bytes taken so far."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.at = 0
        self._max = max_event_bytes
        self._line = bytearray()
        self._line_start = 0
        self._after_cr = False
        self._reset()

    def _reset(self) -> None:
        self._data: list[str] = []
        self._type: str | None = None
        self._start: int | None = None
        self._utf8 = True

    def feed(self, block: bytes) -> list[Event]:
        """The events that these bytes complete. Raises SseError for one that is too long."""
        found: list[Event] = []
        base, position = self.at, 0
        self.at += len(block)
        while position < len(block):
            if self._after_cr:
                self._after_cr = False
                if block[position] == _LF:
                    position += 1
                    self._line_start = base + position
                    continue
            match = _LINE_END.search(block, position)
            stop = match.start() if match else len(block)
            self._line += block[position:stop]
            self._refuse_too_long(base + stop)
            if match is None:
                break
            self._after_cr = block[stop] == _CR
            position = stop + 1
            event = self._take_line(bytes(self._line), base + position)
            if event is not None:
                found.append(event)
            self._line.clear()
            self._line_start = base + position
        return found

    def finish(self) -> Event | None:
        """What the end of the stream cut off, if anything: an event without its blank line."""
        comment = self._take_line(bytes(self._line), self.at) if self._line else None
        self._line.clear()
        if comment is not None or not self._data:
            return None
        return self._event(self.at, whole=False)

    def _refuse_too_long(self, end: int) -> None:
        start = self._line_start if self._start is None else self._start
        if end - start > self._max:
            raise SseError(f"an event is longer than {self._max} bytes")

    def _take_line(self, line: bytes, end: int) -> Event | None:
        if self._line_start == 0:
            line = line.removeprefix(_BOM)
        if not line:
            return self._event(end, whole=True)
        text = line.decode("utf-8", "replace")
        utf8 = "\ufffd" not in text or _is_utf8(line)
        if text.startswith(":"):
            return Event(text[1:].removeprefix(" "), self._line_start, end, comment=True, utf8=utf8)
        if self._start is None:
            self._start = self._line_start
        self._utf8 = self._utf8 and utf8
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value or None
        return None

    def _event(self, end: int, *, whole: bool) -> Event | None:
        event = None
        if self._data:
            assert self._start is not None
            event = Event("\n".join(self._data), self._start, end, self._type, utf8=self._utf8, whole=whole)
        self._reset()
        return event


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
