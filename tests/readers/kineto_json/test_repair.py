import json
from pathlib import Path

import pytest

from analyzer.readers.kineto_json.repair import repair_event
from tests.readers.kineto_json.builder import blocks_of, one, reasons

GOOD = '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":4,"args":{"stream":7}}'


@pytest.mark.parametrize(
    ("raw", "name", "change"),
    [
        (rb'{"name":"torch\cuda\__init__.py"}', r"torch\cuda\__init__.py", "structure"),
        (rb'{"name":"C:\new\"}', "C:\\new\\", "structure"),
        (b'{"name":"say "hi", you","ph":"X"}', 'say "hi", you', "structure"),
        (b'{"name":"a\nb","ph":"X"}', "a\nb", "characters"),
        (b'{"name":"a\x01b","ph":"X"}', "a\ufffdb", "characters"),
        (b'{"name":"caf\xe9","ph":"X"}', "caf\ufffd", "characters"),
        (rb'{"name":"half \ud83d pair","ph":"X"}', "half \ufffd pair", "characters"),
        (rb'{"name":"whole \ud83d\ude00","n":inf}', "whole \U0001f600", "none"),
        (b'{"name":17,"ph":"X"}', "17", "none"),
        (b'{"name":"x","args":{"a":NaN,"b":"NaN, inf"}}', "x", "none"),
    ],
)
def test_one_event_is_made_readable(raw: bytes, name: str, change: str) -> None:
    fixed = repair_event(raw)
    assert fixed is not None
    assert (fixed.event.name, fixed.change) == (name, change)
    assert json.loads(fixed.text)


@pytest.mark.parametrize("raw", [b"{", b'{"name":}', b'{"a":1]', b"{}}"])
def test_what_has_no_clear_reading_is_given_up(raw: bytes) -> None:
    assert repair_event(raw) is None


BAD = [
    '{"ph":"X","cat":"cpu_op","name":"a "q" b","pid":1,"tid":1,"ts":1,"dur":2,"args":{"x":[{"y":1},{"z":2}]}}',
    '{"ph":"X","cat":"cpu_op","name":"C:\\d","pid":1,"tid":1,"ts":1,"dur":2,"args":{}}',
    '{"ph":"X","cat":"cpu_op","name":"ok","pid":1 1,"tid":1,"ts":1,"args":{"x":[{"y":1}],"z":[{}]}}',
    '{"ph":"X","cat":"cpu_op","name":"","pid":}',
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [0, 1, 30, 59])
@pytest.mark.parametrize("block_bytes", [64, 1000, 1 << 20])
@pytest.mark.parametrize("tail", ["]}", '],\n"pg": [{"ranks": [0]}, {"a": "]"}]}'])
def test_a_bad_event_costs_only_itself(
    tmp_path: Path, bad: str, place: int, block_bytes: int, tail: str
) -> None:
    events = [GOOD % ts for ts in range(60)]
    events.insert(place, bad)
    text = '{"traceEvents":[\n' + ",\n".join(events) + "\n" + tail
    blocks, found = blocks_of(tmp_path / "t", text.encode(), block_bytes)
    assert [event.ts for event in found if event.cat == "kernel"] == list(range(60))
    assert blocks.skipped.lines + blocks.repaired.lines == [place + 2]
    assert blocks.truncated is None
    assert [member.key for member in blocks.members] == (["pg"] if "pg" in tail else [])


def test_many_bad_events_in_a_row(tmp_path: Path) -> None:
    events = [GOOD % 0, *(BAD[0] for _ in range(500)), GOOD % 1, *(BAD[3] for _ in range(500)), GOOD % 2]
    blocks, found = blocks_of(tmp_path / "t", ("[" + ",\n".join(events) + "]").encode())
    assert [event.ts for event in found if event.cat == "kernel"] == [0, 1, 2]
    assert (blocks.repaired.count, blocks.skipped.count) == (500, 500)
    assert str(blocks.skipped).startswith("line 503, 504, 505")
    assert str(blocks.skipped).endswith(", ...")


def test_the_ledger_tells_repaired_names_from_repaired_events(tmp_path: Path) -> None:
    text = '[{"name":"\\d",%s},{"name":"\x02",%s},{"name":,%s},%s]' % (  # noqa: UP031
        *(('"ph":"X","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":2',) * 3),
        GOOD % 1,
    )
    trace = one(tmp_path, text)
    assert reasons(trace) == {"bad-event-skipped": 1, "bad-event-repaired": 1, "names-repaired": 1}
