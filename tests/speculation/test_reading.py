"""Files of accepted drafts: every form reads alike, and every defect is named at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.speculation.counts import Cycles, Totals
from analyzer.speculation.reading import read_counts

SAME = {
    "cycles.csv": "accepted,drafted\n0,2\n2,2\n2,2\n1,2\n",
    "histogram.csv": "accepted,cycles,drafted\n0,1,2\n1,1,2\n2,2,2\n",
    "list.json": "[0, 2, 2, 1]",
    "objects.json": '[{"accepted": 0}, {"accepted": 2}, {"accepted": 2, "drafted": 2}, {"accepted": 1}]',
    "lines.jsonl": '{"accepted": 0}\n{"accepted": 2}\n\n{"accepted": 2}\n{"accepted": 1}\n',
    "numbers.txt": "0\n2\n2\n1\n",
    "histogram.jsonl": '{"accepted": 0, "cycles": 1}\n{"accepted": 1, "cycles": 1}\n{"accepted": 2, "cycles": 2}\n',
    "histogram rows.json": '[{"accepted": 0}, {"accepted": 1, "cycles": 1}, {"accepted": 2, "cycles": 2}]',
    "plain.json": '{"0": 1, "1": 1, "2": 2}',
    "histogram.json": '{"histogram": {"0": 1, "1": 1, "2": 2}, "draft_tokens": 2}',
    "positions.json": '{"cycles": 4, "accepted_per_position": [3, 2]}',
    "vllm.json": '{"num_drafts": 4, "num_draft_tokens": 8, "num_accepted_tokens": 5,'
    ' "num_accepted_tokens_per_pos": [3, 2]}',
    "bom.csv": "\ufeffaccepted, drafted\n0,2\n2,2\n2,2\n1,2\n",
}


def read(tmp_path: Path, text: str, draft_tokens: int | None = 2) -> Cycles | Totals:
    path = tmp_path / "accepted"
    path.write_text(text, encoding="utf-8")
    return read_counts(path, draft_tokens)


@pytest.mark.parametrize("name", SAME)
def test_every_form_tells_the_same(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, SAME[name])
    assert isinstance(found, Cycles)
    assert (found.cycles, found.accepted_total, found.drafted_total, found.draft_tokens) == (4, 5, 8, 2)
    assert found.requests is None


def test_requests_and_drafts_of_each_row(tmp_path: Path) -> None:
    found = read(tmp_path, "request,accepted,drafted\na,1,3\nb,0,1\na,2,3\n", None)
    assert isinstance(found, Cycles)
    assert found.request is not None and found.request.tolist() == [0, 1, 0]
    assert found.drafted is not None and found.drafted.tolist() == [3, 1, 3]
    assert found.requests == 2


def test_totals(tmp_path: Path) -> None:
    assert read(tmp_path, '{"accepted": 19, "drafted": 30}') == Totals(19, None, 30)
    assert read(tmp_path, '{"num_accepted_tokens": 19, "num_drafts": 10}') == Totals(19, 10, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("request,drafted\na,1\n", "(line 1): has no column accepted"),
        ("accepted,accepted\n1,2\n", "(line 1): has two columns accepted"),
        (
            '{"histogram": {"0": 120, "1": 80}, "draft_tokens": 7, "cycles": 999}',
            "(cycles): cycles is 999, but the histogram sums to 200",
        ),
        ("accepted,drafted\n1,2\n3,2\n", "(line 3): 3 tokens are accepted of 2"),
        ("accepted,drafted\n1,2\nx,2\n", "(line 3): accepted is 'x', no count"),
        ("accepted,drafted\n1,2\n1\n", "(line 3): has not as many fields as the header"),
        ("accepted,drafted\n1,2\n-1,2\n", "accepted is '-1', no count"),
        ("request,accepted\na,1\n,1\n", "(line 3): names no request, while others do"),
        ("accepted,cycles\n1,0\n", "holds no cycle"),
        ('{"accepted": 1}\n{"accepted": 1.5}\n', "(line 2): accepted is 1.5, no count"),
        ('{"accepted": 1}\n{"accepted": \n', "(line 2): is no JSON"),
        ("[1, true]", "(item 2): accepted is True, no count"),
        ("[1, {}]", "(item 2): accepted is missing, no count"),
        ("{}", "holds no counts of accepted tokens"),
        ('{"histogram": {"x": 1}}', "(histogram): accepted is 'x', no count"),
        (
            '{"cycles": 4, "accepted_per_position": [2, 3]}',
            "position 2 was accepted 3 times, what comes before it 2",
        ),
        ('{"cycles": 4, "accepted_per_position": [2, 1], "accepted": 4}', "but the positions sum to 3"),
        (
            '{"cycles": 4, "accepted_per_position": [2, 1], "drafted": 9}',
            "9 drafted tokens do not fit 4 cycles",
        ),
        ('{"accepted": 4, "drafted": 3}', "4 tokens are accepted of 3 drafted"),
        ('{"accepted": 4, "cycles": 0}', "(cycles): is 0"),
        ("accepted,drafted\n1900,3000\n", "3,000 tokens drafted in one cycle are no cycle's"),
    ],
)
def test_defects_are_named_at_their_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text)
    assert told in str(caught.value)
    assert "next: " in str(caught.value)


def test_unknown_drafts_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--draft-tokens"):
        read(tmp_path, "accepted\n1\n", None)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_counts(tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="is no UTF-8 text"):
        read_counts(binary)


def test_totals_in_a_row_are_not_taken_for_a_kind_of_cycle(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 2.*or totals\?"):
        read(tmp_path, "cycles,accepted,drafted\n100,190,300\n", None)
    found = read(tmp_path, "cycles,accepted,drafted\n100,3,7\n", None)
    assert isinstance(found, Cycles) and (found.cycles, found.accepted_total) == (100, 300)
