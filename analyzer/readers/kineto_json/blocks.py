"""From a byte stream to blocks of decoded events, in memory bounded by the block size.

The text is cut at a ``}`` ``,`` ``{`` near the end of a block, and the cut is accepted exactly when the block
decodes: no assumption about layout or nesting is needed. Where a block does not decode it is retried in
smaller pieces, down to one event, so that a bad event costs only itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from analyzer.readers.kineto_json.cuts import EVENT_START, Block, Places, joined, last_boundary
from analyzer.readers.kineto_json.events import EVENTS, ONE_EVENT, Event
from analyzer.readers.kineto_json.repair import BAREWORD_VALUE, has_barewords, is_cut_off, repair_event
from analyzer.readers.kineto_json.source import ByteStream
from analyzer.readers.kineto_json.toplevel import BYTE_ORDER_MARK, Member, scan_members, skip_space

BLOCK_BYTES = 4 << 20
_SMALL_BYTES = 4096  # below this a failing block is taken apart event by event
_WINDOW_BYTES = 1 << 16  # how far ahead the end of a single event is looked for at first
_HEADER_LIMIT_BYTES = 64 << 20
_TAIL_BYTES = 8 << 20  # how much may follow the events where their end has to be proven

_FIRST_KEY = re.compile(rb'\{\s*"[^"]*"')
_EVENT_END = re.compile(rb"\}(?=\s*(?:,|\]|\Z))")
_BETWEEN = re.compile(rb"[\s,]*")
_ELEMENT_END = re.compile(rb"[{\]]")
_BYTE = re.compile(r"\(byte (\d+)\)")


class EventBlocks:
    """Iterates over the events of one trace text; afterwards tells what else it met.

    ``members``: the members of the outermost object other than the events, before and after them.
    ``truncated``: None, or where the text ends too early.
    """

    def __init__(self, stream: ByteStream, block_bytes: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._block_bytes = block_bytes
        self._buffer = b""
        self._position = 0
        self._offset = 0  # of the buffer in the text
        self._line = 1
        self._eof = False
        self._barewords = False
        self._doubtful = False  # the last event was bad, so its end is a guess
        self.members: list[Member] = []
        self.head = b""
        self.base_first = False  # the time base precedes the events, as since 2025-03
        self.is_object = False
        self.has_events = False
        self.closed = False  # the outermost object was seen to its end
        self.count = 0
        self.truncated: str | None = None
        self.skipped = Places()
        self.repaired = Places()
        self.characters = Places()
        self._open()

    def __iter__(self) -> Iterator[Block]:
        """Blocks in order; the small ones around bad events are joined."""
        pending: list[Block] = []
        size = 0
        for block in self._pieces():
            pending.append(block)
            size += len(block.text)
            if size >= self._block_bytes // 2:
                yield joined(pending)
                pending, size = [], 0
        if pending:
            yield joined(pending)

    def _pieces(self) -> Iterator[Block]:
        limit = self._block_bytes
        smallest = min(_SMALL_BYTES, self._block_bytes)
        while self.has_events and self._at_event():
            block = self._bulk(limit)
            if block is None and limit > smallest:
                limit = max(smallest, limit // 8)
                continue
            clean = True
            if block is None:
                block, clean = self._single()
            if block is not None:
                yield block
            limit = min(self._block_bytes, limit * 2) if clean else smallest

    def _open(self) -> None:
        """Find the list of events; what precedes it in an object becomes ``members``."""
        self._fill(_WINDOW_BYTES)
        self.head = self._buffer[:64]
        start = skip_space(self._buffer, len(BYTE_ORDER_MARK) * self._buffer.startswith(BYTE_ORDER_MARK))
        first = self._buffer[start : start + 1]
        if first == b"[":
            self.has_events = True
            self._advance(start + 1)
        elif first == b"{":
            self.is_object = True
            self._open_object(start + 1)

    def _open_object(self, start: int) -> None:
        size = _WINDOW_BYTES
        while True:
            scan = scan_members(self._buffer, start, stop_key="traceEvents")
            last = scan.members[-1] if scan.members else None
            if last is not None and last.key == "traceEvents" and self._is_list_start(last):
                self.members = list(scan.members[:-1])
                self.base_first = any(member.key == "baseTimeNanoseconds" for member in self.members)
                self.has_events = True
                self._advance(last.value_start + 1)
                return
            if scan.closed or self._eof or size > _HEADER_LIMIT_BYTES:
                self.members = list(scan.members)
                self.closed = scan.closed
                return
            size *= 4
            self._fill(size)

    def _is_list_start(self, member: Member) -> bool:
        return not member.value and self._buffer[member.value_start : member.value_start + 1] == b"["

    def _fill(self, size: int) -> None:
        """Have ``size`` bytes from the position on, unless the text ends before."""
        have = len(self._buffer) - self._position
        if have < size and not self._eof:
            more = self._stream.read(max(size - have, min(self._block_bytes, _WINDOW_BYTES)))
            self._offset += self._position
            self._buffer = self._buffer[self._position :] + more
            self._position = 0
            self._eof = have + len(more) < size

    def _advance(self, position: int) -> None:
        self._line += self._buffer.count(b"\n", self._position, position)
        self._position = position

    def _at_event(self) -> bool:
        """Move to the next event; False at the end of the list or of the text."""
        while True:
            self._fill(2)
            match = _BETWEEN.match(self._buffer, self._position)
            self._advance(match.end() if match else self._position)
            head = self._buffer[self._position : self._position + 1]
            if head == b"{":
                return True
            if head == b"]" and self._is_end():
                self._finish()
                return False
            if not head and self._eof:
                if self.truncated is None:
                    self._cut_off("the list of events is not closed")
                return False
            if head:
                if not self._doubtful:
                    self.skipped.add(self._line)
                after = _ELEMENT_END.search(self._buffer, self._position + 1)
                self._advance(after.start() if after else len(self._buffer))

    def _is_end(self) -> bool:
        """Whether a ``]`` ends the list: after a bad event it may be a part of that event."""
        if not self._doubtful:
            return True
        self._fill(_TAIL_BYTES)
        return self._closes(self._position)

    def _finish(self) -> None:
        """Read what follows the list of events."""
        self._advance(self._position + 1)
        if not self.is_object:
            return
        size = _WINDOW_BYTES
        self._fill(size)
        while not (scan := scan_members(self._buffer, self._position)).closed:
            if self._eof or size > _HEADER_LIMIT_BYTES:
                self._cut_off("the members after the list of events are not closed")
                break
            size *= 4
            self._fill(size)
        self.members.extend(scan.members)

    def _cut_off(self, what: str) -> None:
        byte = self._offset + self._position
        self.truncated = f"{what}: the text ends after {self.count} whole events (byte {byte})"

    def _bulk(self, limit: int) -> Block | None:
        """Decode up to ``limit`` bytes at once; None if no cut of them decodes."""
        self._fill(limit)
        start = self._position
        cut = last_boundary(self._buffer, start, min(start + limit, len(self._buffer)))
        if cut is None:
            return None
        text = b"[" + self._buffer[start:cut] + b"]"
        if self._barewords:
            text = BAREWORD_VALUE.sub(rb"\1null", text)
        try:
            return self._block(EVENTS.decode(text), text, cut)
        except msgspec.DecodeError as error:
            if not self._barewords and has_barewords(text):
                self._barewords = True
                return self._bulk(limit)
            return None if self._barewords else self._before_error(text, str(error))

    def _before_error(self, text: bytes, message: str) -> Block | None:
        """The whole events before the byte that a decoder complained about."""
        match = _BYTE.search(message)
        if match is None:
            return None
        start, error_byte = self._position, int(match.group(1))
        if text[error_byte - 1 : error_byte] == b"]":  # the list ends here, the rest is not its
            cut, text = start + error_byte - 2, text[:error_byte]
        else:
            boundary = last_boundary(self._buffer, start, start + error_byte - 1)
            if boundary is None:
                return None
            cut, text = boundary, b"[" + self._buffer[start:boundary] + b"]"
        try:
            return self._block(EVENTS.decode(text), text, cut)
        except msgspec.DecodeError:
            return None

    def _block(self, events: list[Event], text: bytes, end: int) -> Block:
        self._doubtful = False
        block = Block(events, text, self.count)
        self.count += len(events)
        self._advance(end)
        return block

    def _single(self) -> tuple[Block | None, bool]:
        """Read one event, bad or good. The flag tells whether it was good."""
        size = _WINDOW_BYTES
        while True:
            self._fill(size)
            block = self._good_event()
            if block is not None:
                return block, True
            cut_off = self._eof and is_cut_off(self._buffer[self._position :])
            end = None if cut_off else self._bad_end()
            if end is not None:
                return self._bad_event(end), False
            if self._eof or size > _HEADER_LIMIT_BYTES:
                self._cut_off("the last event is incomplete")
                self._position = len(self._buffer)
                return None, False
            size *= 4

    def _good_event(self) -> Block | None:
        start = self._position
        for match in _EVENT_END.finditer(self._buffer, start):
            text = self._buffer[start : match.end()]
            if self._barewords:
                text = BAREWORD_VALUE.sub(rb"\1null", text)
            try:
                event = ONE_EVENT.decode(text)
            except msgspec.DecodeError as error:
                if "truncated" in str(error):
                    continue  # the brace closed an inner object
                return None
            return self._block([event], b"[" + text + b"]", match.end())
        return None

    def _bad_end(self) -> int | None:
        """Where the bad event at the position ends: before what begins like it, else like any event.

        At the end of the text, before a ``]`` after which the outermost level is complete.
        """
        start = self._position
        first_key = _FIRST_KEY.match(self._buffer, start)
        like_this = b"".join(first_key.group().split()) if first_key else b""
        other: int | None = None
        for match in _EVENT_END.finditer(self._buffer, start):
            following = _BETWEEN.match(self._buffer, match.end())
            after = following.end() if following else match.end()
            key = _FIRST_KEY.match(self._buffer, after)
            if key is not None and b"".join(key.group().split()) == like_this:
                return match.end()
            if other is None and EVENT_START.match(self._buffer, after):
                other = match.end()
        if other is not None or not self._eof:
            return other
        for match in _EVENT_END.finditer(self._buffer, start):
            bracket = _BETWEEN.match(self._buffer, match.end())
            if bracket and self._closes(bracket.end()):
                return match.end()
        return None

    def _closes(self, bracket: int) -> bool:
        """Whether a ``]`` stands at ``bracket`` after which the outermost level is complete."""
        if self._buffer[bracket : bracket + 1] != b"]":
            return False
        end = scan_members(self._buffer, bracket + 1).end if self.is_object else bracket + 1
        return end >= 0 and skip_space(self._buffer, end) == len(self._buffer)

    def _bad_event(self, end: int) -> Block | None:
        """Repair the event that ends at ``end``, or step over it; both are counted."""
        line = self._line
        fixed = repair_event(self._buffer[self._position : end])
        if fixed is None:
            self.skipped.add(line)
            self._advance(end)
            self._doubtful = True
            return None
        if fixed.change == "characters":
            self.characters.add(line)
        elif fixed.change == "structure":
            self.repaired.add(line)
        return self._block([fixed.event], b"[" + fixed.text + b"]", end)
