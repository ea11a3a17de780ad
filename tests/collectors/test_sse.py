"""Server-sent events: the same ones, however the bytes were split."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.client.sse import Event, Parser, SseError


def parsed(*blocks: bytes) -> list[Event]:
    parser = Parser()
    found = [event for block in blocks for event in parser.feed(block)]
    left = parser.finish()
    return found + ([left] if left else [])


def told(stream: bytes) -> list[tuple[str, str | None]]:
    return [(event.data, event.type) for event in parsed(stream) if not event.comment]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [("a", None), ("b", None)]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("a", None), ("b", None)]),
        (b"data: a\r\rdata: b\r\r", [("a", None), ("b", None)]),
        (b"data: a\ndata: b\n\n", [("a\nb", None)]),
        (b"data:a\ndata\ndata:  c\n\n", [("a\n\n c", None)]),
        (b"\xef\xbb\xbfdata: a\n\n", [("a", None)]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("a", None)]),
        (b": ping\n\ndata: a\n: in between\ndata: b\n\n", [("a\nb", None)]),
        (b"event: error\nid: 7\nretry: 5\ndata: x\n\ndata: y\n\n", [("x", "error"), ("y", None)]),
        (b"event: nothing\n\ndata: y\n\n", [("y", None)]),
        (b"\n\n\ndata: [DONE]\n\n\n", [("[DONE]", None)]),
        ("data: żółć 🙂\n\n".encode(), [("żółć 🙂", None)]),
        (b"", []),
    ],
)
def test_events_by_the_standard(stream: bytes, events: list[tuple[str, str | None]]) -> None:
    assert told(stream) == events


def test_comments_are_told_with_their_place() -> None:
    assert parsed(b": ping\n\ndata: a\n\n") == [
        Event("ping", 0, 7, comment=True),
        Event("a", 8, 17),
    ]


def test_what_the_end_cut_off_is_told_as_such() -> None:
    assert parsed(b"data: a\n\ndata: [DONE]\n") == [Event("a", 0, 9), Event("[DONE]", 9, 22, whole=False)]
    assert parsed(b"data: a\n\ndata: b") == [Event("a", 0, 9), Event("b", 9, 16, whole=False)]
    assert parsed(b"data: a\n\n: ping") == [Event("a", 0, 9)]
    assert parsed(b"data: a\n\nevent: x") == [Event("a", 0, 9)]


def test_bytes_that_are_no_utf8_are_replaced_and_told() -> None:
    (event,) = parsed(b"data: a\xff\n\n")
    assert (event.data, event.utf8) == ("a\ufffd", False)
    (event,) = parsed("data: a\ufffd\n\n".encode())
    assert (event.data, event.utf8) == ("a\ufffd", True)


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 100, b"data: 1\n" * 20, b"x" * 101])
def test_an_endless_event_is_given_up(stream: bytes) -> None:
    parser = Parser(max_event_bytes=100)
    with pytest.raises(SseError, match="longer than 100 bytes"):
        parser.feed(stream)


PIECES = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: e", b": c", b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r",
     b"[DONE]", b"{}", "żó🙂".encode(), b"\xff", b"\xef\xbb\xbf", b" ", b":", b"x"]
)  # fmt: skip
STREAMS = st.lists(PIECES, max_size=40).map(b"".join)


@settings(deadline=None)
@given(STREAMS, st.data())
def test_any_split_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    ends = [0, *cuts, len(stream)]
    blocks = [stream[a:b] for a, b in itertools.pairwise(ends)]
    assert parsed(*blocks) == parsed(stream)


@settings(deadline=None)
@given(STREAMS)
def test_byte_by_byte_each_event_is_told_with_its_last_byte(stream: bytes) -> None:
    parser, found = Parser(), []
    for at in range(len(stream)):
        for event in parser.feed(stream[at : at + 1]):
            assert event.end == at + 1
            found.append(event)
    left = parser.finish()
    assert found + ([left] if left else []) == parsed(stream)


TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)


@settings(deadline=None)
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_was_written_is_read_back(events: list[list[str]], end: str) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    found = parsed(stream)
    assert [event.data for event in found] == ["\n".join(lines) for lines in events]
    assert all(event.utf8 and event.whole for event in found)
    assert [event.start for event in found][:1] == ([0] if events else [])
