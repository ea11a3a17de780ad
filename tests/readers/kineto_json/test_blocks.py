import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.readers.kineto_json.builder import blocks_of

NESTED = {
    "ph": "X",
    "name": 'a "quoted", {brace}, [bracket] \\ and },{"ph":1}',
    "cat": "kernel",
    "ts": 1.5,
    "dur": 2,
    "args": {"list": [{"a": 1}, {"b": {"c": [1, {"d": 2}]}}, {"ph": "X"}], "text": "}]},{"},
}
PLAIN = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 3, "dur": 4}
EVENTS = [NESTED, PLAIN, {"ph": "M", "name": "thread_name", "args": {"name": "é\n"}}, NESTED, PLAIN] * 4

COMPACT = {"separators": (",", ":")}
LOOSE = {"indent": 3}
in_files = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def objects(style: dict[str, object], before: bool) -> str:
    metadata = {"schemaVersion": 1, "distributedInfo": {"pg_config": [{"ranks": [0]}, {"ranks": [1]}]}}
    events = {"traceEvents": EVENTS}
    return json.dumps({**metadata, **events} if before else {**events, **metadata}, **style)  # type: ignore[arg-type]


TEXTS = {
    "metadata-first": objects(COMPACT, before=True),
    "metadata-last": objects(LOOSE, before=False),
    "list": json.dumps(EVENTS, indent=1),
    "unescaped-utf8": json.dumps({"traceEvents": EVENTS}, ensure_ascii=False),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("block_bytes", [1, 64, 100, 333, 1000, 4096, 1 << 20])
def test_the_block_size_changes_nothing(tmp_path: Path, text: str, block_bytes: int) -> None:
    blocks, events = blocks_of(tmp_path / "t", text.encode(), block_bytes)
    assert [event.name for event in events] == [event["name"] for event in EVENTS]
    assert [json.loads(bytes(event.args)) for event in events] == [e.get("args", {}) for e in EVENTS]
    assert blocks.truncated is None
    assert blocks.skipped.count == blocks.repaired.count == blocks.characters.count == 0
    loaded = json.loads(text)
    keys = [key for key in loaded if key != "traceEvents"] if isinstance(loaded, dict) else []
    assert [member.key for member in blocks.members] == keys
    assert all(json.loads(member.value) == loaded[member.key] for member in blocks.members)


def event_ends(text: str) -> list[int]:
    """Where each event of the list ends, by the standard library's own decoder."""
    decoder, ends = json.JSONDecoder(), []
    position = 1 if text.startswith("[") else text.index("[", text.index('"traceEvents"')) + 1
    while True:
        while text[position] in " \n,":
            position += 1
        if text[position] == "]":
            return ends
        _, position = decoder.raw_decode(text, position)
        ends.append(position)


@pytest.mark.parametrize("name", ["metadata-first", "metadata-last", "list"])
@in_files
@given(data=st.data())
def test_a_cut_keeps_exactly_the_whole_events_before_it(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    text = TEXTS[name]
    cut = data.draw(st.integers(0, len(text) - 1))
    block_bytes = data.draw(st.sampled_from([64, 500, 4096, 1 << 20]))
    blocks, events = blocks_of(tmp_path / "t", text[:cut].encode(), block_bytes)
    whole = sum(end <= cut for end in event_ends(text))
    assert [event.name for event in events] == [event["name"] for event in EVENTS[:whole]]
    assert blocks.skipped.count == blocks.repaired.count == 0
    if blocks.has_events:
        assert blocks.truncated is not None
        assert f"after {whole} whole events" in blocks.truncated


@in_files
@given(cut=st.integers(2, 10_000))
def test_a_cut_gzip_stream_keeps_whole_events(tmp_path: Path, cut: int) -> None:
    many = [dict(PLAIN, ts=i, name=f"op{i * 7919 % 1000}") for i in range(800)]
    packed = gzip.compress(json.dumps({"traceEvents": many}).encode())
    blocks, events = blocks_of(tmp_path / "t", packed[: min(cut, len(packed) - 9)])
    assert [event.ts for event in events] == list(range(len(events)))
    if blocks.has_events:
        assert blocks.truncated is not None or len(events) == 800


def test_damage_inside_a_gzip_stream_keeps_what_precedes_it(tmp_path: Path) -> None:
    many = [dict(PLAIN, ts=i, name=f"op{i * 7919 % 1000}") for i in range(4000)]
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": many}).encode()))
    packed[len(packed) // 2 :] = b"\x00" * (len(packed) - len(packed) // 2)
    blocks, events = blocks_of(tmp_path / "t", bytes(packed))
    assert blocks.truncated is not None
    assert 1000 < len(events) < 4000


def test_gzip_members_that_follow_one_another_are_one_text(tmp_path: Path) -> None:
    text = TEXTS["list"].encode()
    packed = gzip.compress(text[:100]) + gzip.compress(text[100:]) + b"\0" * 7
    blocks, events = blocks_of(tmp_path / "t", packed)
    assert len(events) == len(EVENTS)
    assert blocks.truncated is None


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', ' {"traceEvents":[ ] , "a": 1} '])
def test_no_events_are_no_damage(tmp_path: Path, text: str) -> None:
    blocks, events = blocks_of(tmp_path / "t", text.encode())
    assert events == []
    assert blocks.truncated is None


def test_trailing_commas_and_a_byte_order_mark_are_tolerated(tmp_path: Path) -> None:
    blocks, events = blocks_of(tmp_path / "t", b'\xef\xbb\xbf[{"name":"a"},{"name":"b"},\n]')
    assert [event.name for event in events] == ["a", "b"]
    assert blocks.truncated is None


def test_elements_that_are_no_events_are_counted(tmp_path: Path) -> None:
    blocks, events = blocks_of(tmp_path / "t", b'[{"name":"a"},null,\n17,{"name":"b"}]')
    assert [event.name for event in events] == ["a", "b"]
    assert blocks.skipped.lines == [1]


def test_the_key_in_a_string_or_deeper_down_is_not_the_list(tmp_path: Path) -> None:
    text = '{"a": "\\"traceEvents\\": [", "b": {"traceEvents": [1]}, "traceEvents": [{"name": "x"}]}'
    blocks, events = blocks_of(tmp_path / "t", text.encode())
    assert [event.name for event in events] == ["x"]
    assert [member.key for member in blocks.members] == ["a", "b"]


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "NaN", "Infinity"])
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_bare_words_for_numbers_are_tolerated(tmp_path: Path, word: str, block_bytes: int) -> None:
    event = '{"name": "k: inf, x", "args": {"blocks per SM": ' + word + ', "stream": 7}}'
    blocks, events = blocks_of(
        tmp_path / "t", f'{{"traceEvents": [{", ".join([event] * 30)}]}}'.encode(), block_bytes
    )
    assert [event.name for event in events] == ["k: inf, x"] * 30
    assert json.loads(bytes(events[0].args)) == {"blocks per SM": None, "stream": 7}
    assert blocks.skipped.count == blocks.repaired.count == blocks.characters.count == 0
    assert blocks.truncated is None


def test_an_object_that_lacks_only_its_closing_brace_is_called_truncated(tmp_path: Path) -> None:
    blocks, events = blocks_of(tmp_path / "t", b'{"traceEvents": [{"name": "a"}]')
    assert len(events) == 1
    assert blocks.truncated is not None
