"""The client's pure parts: what an event says, what is asked and when, the summary's figures."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.client.answer import Told
from collectors.client.events import (
    DEFAULT_EMITTED,
    Chunk,
    Emitted,
    MalformedError,
    emitted_field,
    read_chunk,
)
from collectors.client.plan import Prompt, body, endpoint, read_prompts, schedule
from collectors.client.summary import first_output_ns, gaps, percentile, summary
from collectors.errors import CollectError

FIELDS = [emitted_field(word) for word in DEFAULT_EMITTED]


def chunk(choice: dict[str, Any] | None = None, **more: Any) -> Chunk:
    return read_chunk(json.dumps({"choices": [choice or {}], **more}), FIELDS)


# -- events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"text": "a"}, "a"),
        ({"delta": {"content": "a"}}, "a"),
        ({"delta": {"role": "assistant", "content": None}}, ""),
        ({"delta": {"reasoning_content": "b"}}, "b"),
        ({"delta": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}, "x", {}]}}, "f{}"),
        ({"delta": "no object", "text": 7}, ""),
    ],
)
def test_all_that_the_model_wrote_counts(choice: dict[str, Any], text: str) -> None:
    assert chunk(choice).text == text


@pytest.mark.parametrize(
    ("choice", "tokens"),
    [
        ({"text": "abc"}, (None, None)),
        ({"text": "abc", "logprobs": None}, (None, None)),
        ({"text": "abc", "logprobs": {"tokens": ["a", "bc"]}}, (2, "logprobs")),
        ({"delta": {}, "logprobs": {"content": [{}, {}, {}]}}, (3, "logprobs")),
        ({"text": "abc", "token_ids": [1], "logprobs": {"tokens": ["a", "bc"]}}, (1, "token_ids")),
        ({"text": "", "token_ids": []}, (0, "token_ids")),
    ],
)
def test_tokens_are_counted_only_where_the_event_tells_them(
    choice: dict[str, Any], tokens: tuple[int | None, str | None]
) -> None:
    found = chunk(choice)
    assert (found.tokens, found.tokens_from) == tokens


def test_tokens_of_several_choices_are_known_only_if_all_tell() -> None:
    both = read_chunk('{"choices": [{"token_ids": [1, 2]}, {"token_ids": [3]}]}', ())
    one = read_chunk('{"choices": [{"token_ids": [1, 2]}, {"text": "x"}]}', ())
    assert (both.tokens, both.choices, one.tokens) == (3, 2, None)


@pytest.mark.parametrize(
    ("written", "emitted"),
    [
        ('"emitted_ns": 1700000000123456789', Emitted(1_700_000_000_123_456_789, 1, "emitted_ns")),
        ('"emitted_us": 1700000000123456', Emitted(1_700_000_000_123_456_000, 1_000, "emitted_us")),
        ('"emitted_ms": 1700000000123.25', Emitted(1_700_000_000_123_250_000, 10_000, "emitted_ms")),
        ('"emitted_s": 1700000000.1234567', Emitted(1_700_000_000_123_456_700, 100, "emitted_s")),
        ('"emitted_s": 1700000000', Emitted(1_700_000_000_000_000_000, 1_000_000_000, "emitted_s")),
        ('"emitted_ns": null, "emitted_s": 5', Emitted(5_000_000_000, 1_000_000_000, "emitted_s")),
        ('"emitted_s": 0.12345678901234567890123', Emitted(123_456_789, 1, "emitted_s")),
        ('"emitted_ns": true', None),
        ('"emitted_ns": "1700000000"', None),
        ('"emitted_ns": -1', None),
        ('"emitted_s": 1e999999999', None),
        ('"emitted_s": NaN', None),
        ('"created": 1700000000', None),
    ],
)
def test_the_servers_own_times_with_the_digits_it_wrote(written: str, emitted: Emitted | None) -> None:
    assert read_chunk(f'{{"choices": [], {written}}}', FIELDS).emitted == emitted


def test_a_field_is_found_by_its_path() -> None:
    field = emitted_field("nvext.timing.sent:ms")
    data = {"choices": [], "nvext": {"timing": {"sent": 12}}}
    assert read_chunk(json.dumps(data), [field]).emitted == Emitted(
        12_000_000, 1_000_000, "nvext.timing.sent"
    )
    assert read_chunk('{"choices": [], "nvext": 3}', [field]).emitted is None


@pytest.mark.parametrize("word", ["created", "a:h", ":ms", "a..b:ms", ""])
def test_a_field_without_a_unit_is_refused(word: str) -> None:
    with pytest.raises(CollectError, match="tells no unit"):
        emitted_field(word)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("1" * 5000, "no JSON"),
        ("[]", "no JSON object"),
        ("{}", "no choices"),
        ('{"choices": {}}', "no choices"),
    ],
)
def test_what_is_no_chunk_is_malformed(text: str, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        read_chunk(text, FIELDS)


def test_errors_usage_and_strange_values() -> None:
    assert chunk(error="out of memory").error == {"message": "out of memory"}
    assert chunk(error={"code": 5}).error == {"code": 5}
    assert read_chunk('{"choices": true, "error": false}', ()).error == {"message": "False"}
    found = chunk({"finish_reason": 3}, usage={"completion_tokens": 4, "x": "y", "z": True}, created=1.5)
    assert (found.usage, found.completion_tokens) == ({"completion_tokens": 4}, 4)
    assert (found.finish_reason, found.created_s) == (None, None)


NAMES = st.sampled_from(
    ["choices", "text", "delta", "content", "usage", "completion_tokens", "logprobs", "tokens", "token_ids", "error",
     "tool_calls", "function", "emitted_ns", "created"]
)  # fmt: skip
LEAVES = st.sampled_from([None, True, False, 0, -1, 2**70, 1.5, float("nan"), "", "x"])
STRANGE = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(NAMES, STRANGE, max_size=5) | STRANGE)
def test_no_json_is_too_strange(data: Any) -> None:
    try:
        found = read_chunk(json.dumps(data), FIELDS)
    except MalformedError:
        return
    assert found.choices >= 0


# -- what is asked ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kind", "found"),
    [
        ("http://h:8000", None, ("http://h:8000/v1/completions", "completions")),
        ("http://h:8000/", "chat", ("http://h:8000/v1/chat/completions", "chat")),
        ("https://h/v1", "chat", ("https://h/v1/chat/completions", "chat")),
        ("https://h/v1/chat/completions", None, ("https://h/v1/chat/completions", "chat")),
        ("https://h/openai/completions/?api-version=1", None,
         ("https://h/openai/completions?api-version=1", "completions")),
        ("http://[::1]:80/run/@cf/m/v1", None, ("http://[::1]:80/run/@cf/m/v1/completions", "completions")),
    ],
)  # fmt: skip
def test_the_endpoint_of_a_url(url: str, kind: str | None, found: tuple[str, str]) -> None:
    assert endpoint(url, kind) == found


def test_prompts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prompts"
    path.write_text(
        'one\n\n{"prompt": "two", "max_tokens": 3}\n{"messages": [{"role": "user", "content": "ż"}]}\n'
    )
    prompts = read_prompts(str(path))
    assert [prompt.content for prompt in prompts] == ["one", "two", '[{"role":"user","content":"ż"}]']
    bodies = [json.loads(body(prompt, "chat", "m", 9, False, {})) for prompt in prompts]
    assert [data["max_tokens"] for data in bodies] == [9, 3, 9]
    assert bodies[2]["messages"] == [{"role": "user", "content": "ż"}]
    with pytest.raises(CollectError, match="pass --endpoint chat"):
        body(prompts[2], "completions", "m", None, True, {})
    assert json.loads(body(prompts[0], "completions", "m", None, True, {"stream_options": 1})) == {
        "model": "m", "prompt": "one", "stream": True, "stream_options": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no prompt"),
        (b"\xff\n", "is no UTF-8 text"),
        (b"a\n{nothing", "line 2: begins like JSON"),
        (b'{"prompt": 3}', "is no prompt"),
        (b'{"prompt": "a", "messages": []}', "is no prompt"),
        (b'{"prompt": "a", "max_tokens": true}', "is no prompt"),
        (b'{"prompt": "a", "temperature": 1}', "not known .temperature."),
    ],
)
def test_prompts_that_cannot_be_used_are_named(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "prompts"
    path.write_bytes(content)
    with pytest.raises(CollectError, match=words):
        read_prompts(str(path))
    with pytest.raises(CollectError, match="No such file"):
        read_prompts(str(tmp_path / "none"))


@settings(deadline=None)
@given(st.integers(1, 300), st.floats(0.01, 1e5), st.sampled_from(["fixed", "poisson"]), st.integers())
def test_a_schedule_begins_at_once_and_goes_on(requests: int, rate: float, spacing: str, seed: int) -> None:
    due = schedule(requests, rate, spacing, seed)
    assert due == schedule(requests, rate, spacing, seed)
    assert (len(due), due[0]) == (requests, 0)
    assert all(before <= after for before, after in pairwise(due))


def test_spacings_have_the_rate_that_was_asked_for() -> None:
    assert schedule(5, 4, "fixed", 0) == [0, 250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
    due = schedule(20_001, 50, "poisson", 3)
    assert due[-1] / 20_000 == pytest.approx(20_000_000, rel=5 / math.sqrt(20_000))
    assert schedule(9, 50, "poisson", 4) != due[:9]


# -- the summary ------------------------------------------------------------------------------------


def told(number: int, **fields: Any) -> Told:
    given_ones: dict[str, Any] = {
        "warmup": False, "outcome": "complete", "lines": [], "planned_ns": None, "sent_ns": 100,
        "output_ns": [1_100, 1_100, 4_100], "event_reads": [1, 1, 2, 3], "split_events": 0, "early_events": 0,
        "late_ns": [10, 20], "completion_tokens": None, "message": None,
    }  # fmt: skip
    return Told(number=number, **(given_ones | fields))


def test_percentiles_are_nearest_rank() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.95, 1.0)] == [50, 95, 100]
    assert [percentile([7], share) for share in (0.0, 0.5, 0.95)] == [7, 7, 7]
    assert (first_output_ns(told(0)), gaps(told(0))) == (1_000, [0, 3_000])
    assert (first_output_ns(told(0, output_ns=[])), gaps(told(0, output_ns=[]))) == (None, [])


def test_the_summary_leaves_out_of_the_times_what_it_counts() -> None:
    text = summary(
        [
            told(0, warmup=True, output_ns=[9_000_000]),
            told(1),
            told(2, output_ns=[2_100, 7_100], event_reads=[1, 2]),
            told(3, outcome="disconnected", output_ns=[8_000_000], message="gone\x1b[31m\naway"),
        ],
        5,
        "clock: c",
    )
    assert text.splitlines() == [
        "requests: 4 of 5 sent, 1 not sent, 3 complete, failed: disconnected 1; 1 for warm-up",
        "  server or connection said: gone [31m away",
        "time to first output event: median 1.000 us, p95 2.000 us (2 requests)",
        "time between output events, each request's median: median 0 ns, p95 5.000 us (2 requests)",
        "time between output events, each request's p95: median 3.000 us, p95 5.000 us (2 requests)",
        "tokens per answer: the server did not tell for every request; an event may hold several tokens",
        "events: 14 in 11 reads, 1.27 per read; 6 (42.9%) shared a read, at most 2 in one; 0 spread over several reads",
        "read after the kernel had the bytes, this client's own lateness: median 10 ns, p95 20 ns",
        "clock: c",
        "measured at the client's socket: the times hold the server, the network and this client;"
        " they are not the engine's step times",
    ]


def test_a_summary_without_answers_measures_nothing() -> None:
    text = summary(
        [told(0, outcome="not_connected", sent_ns=None, output_ns=[], event_reads=[])], 1, "clock: c"
    )
    assert "time to first output event: not measured" in text
    assert "no event was received" in text


def test_a_prompt_is_known_by_its_checksum() -> None:
    assert (
        Prompt("Tell a story.").sha256 == "b877060dfe4f2718e6742f2988726c551ef5107b8d7e299ee48a50687954bed1"
    )
