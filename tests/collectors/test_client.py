"""The client against a real local server: every receipt lies between what the server did and saw."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from collectors.client import command as client
from collectors.client.plan import schedule
from collectors.client.wire import Exchange
from tests.collectors.client_runs import Run, WatchedWire, bursts, check_receipts, kernel_takes_times, taken
from tests.collectors.streaming_server import WAIT_S, Proxy, Server, Talk, chunk, event, token

pytest.importorskip("httpx")
DELAY_S = 0.03
DELAY_NS = 30_000_000


# -- what is measured -------------------------------------------------------------------------------


def test_device_delay_every_token_waits(run: Run, watched: None) -> None:
    def script(talk: Talk) -> None:
        talk.head()
        for number in range(6):
            time.sleep(DELAY_S)  # the planted delay
            talk.events(token(f"t{number}"))
        talk.finish()

    with Server(script) as server:
        server.taken = taken
        log = run(server.url)
    check_receipts(log, server.talks[0].writes)
    receipts = [line["receipt_ns"] for line in log.of("event")]
    assert all(after - before >= DELAY_NS for before, after in pairwise(receipts))
    assert bursts(log) == [1] * 7
    (sent,) = log.of("request")
    assert sent["sent_ns"] <= server.talks[0].arrived_ns
    assert receipts[0] - sent["sent_ns"] >= DELAY_NS
    found = re.search(r"each request's median: median ([\d.]+) ms", log.out)
    assert found and float(found[1]) >= DELAY_S * 1e3
    assert "measured at the client's socket" in log.out
    assert log.code == 0


def test_output_delay_tokens_held_back_come_in_bursts(run: Run, watched: None) -> None:
    """Made one by one, sent four at a time: the stream's own times tell when, the receipts tell the bursts."""
    made: list[int] = []

    def script(talk: Talk) -> None:
        talk.head()
        for _ in range(3):
            held = []
            for _ in range(4):
                time.sleep(DELAY_S / 4)
                made.append(time.time_ns())
                held.append(token("x", emitted_ns=made[-1]))
            time.sleep(DELAY_S)
            talk.events(*held)
        talk.finish()

    with Server(script) as server:
        server.taken = taken
        log = run(server.url)
    check_receipts(log, server.talks[0].writes)
    assert bursts(log) == [4, 4, 4, 1]
    events = log.of("event")
    assert [line["emitted_ns"] for line in events] == made
    assert all(line["receipt_ns"] - line["emitted_ns"] >= DELAY_NS for line in events)
    (end,) = log.of("end")
    assert (end["emitted_field"], end["emitted_resolution_ns"]) == ("emitted_ns", 1)
    assert "12 (92.3%) shared a read, at most 4 in one" in log.out


def test_transport_delay_a_proxy_holds_the_bytes(run: Run, watched: None) -> None:
    """The proxy passes on each piece late, in halves: events are spread over reads and complete with the second."""
    passed: list[int] = []
    sent = 0

    def back(data: bytes, send: Callable[[bytes], None]) -> None:
        nonlocal sent
        time.sleep(DELAY_S)
        half = len(data) // 2
        for piece in (data[:half], data[half:]):
            passed.append(time.time_ns())
            send(piece)
            sent += len(piece)
            taken(0, sent)

    def script(talk: Talk) -> None:
        talk.head()
        for number in range(4):
            talk.events(token(f"t{number}"))
        talk.finish()

    with Server(script) as server, Proxy(server.port, back) as proxy:
        server.taken = taken
        log = run(proxy.url)
    check_receipts(log, server.talks[0].writes)
    writes = server.talks[0].writes
    events = log.of("event")
    assert [line["read"] for line in events] == [3, 5, 7, 9]
    assert [line["first_read"] for line in events] == [2, 4, 6, 8]
    for line, write in zip(events, writes[1:5], strict=True):
        assert line["receipt_ns"] - write.before_ns >= DELAY_NS
        assert line["receipt_ns"] >= passed[line["read"]]
    assert "5 spread over several reads" in log.out


def test_buffering_several_events_in_one_write(run: Run, watched: None) -> None:
    sizes = [1, 5, 1, 3]

    def script(talk: Talk) -> None:
        talk.head()
        for size in sizes:
            talk.events(*[token("x")] * size)
        talk.finish()

    with Server(script) as server:
        server.taken = taken
        log = run(server.url)
    check_receipts(log, server.talks[0].writes)
    assert bursts(log) == [*sizes, 1]
    reads = log.of("read")
    assert sum(read["bytes"] for read in reads) == server.talks[0].sent_bytes
    assert [read["body_bytes"] for read in reads] == [0, *[len(event(token("x"))) * n for n in sizes], 14]
    assert len({line["receipt_ns"] for line in log.of("event")}) == len(sizes)


def test_the_kernels_time_shows_how_late_the_client_was(run: Run, watched: None) -> None:
    """Bytes that came while the client had other work to do: the read is late, the kernel's time is not."""
    if not kernel_takes_times():
        pytest.skip("the kernel gives no time of receipt here")
    released = threading.Event()
    first_read = threading.Event()

    class BusyWire(WatchedWire):
        def begin(self, deadline_ns: int) -> Exchange:
            exchange = super().begin(deadline_ns)

            class Reads(list[Any]):
                def append(self, read: Any) -> None:
                    super().append(read)
                    first_read.set()
                    assert released.wait(WAIT_S)

            exchange.reads = Reads()
            return exchange

    def script(talk: Talk) -> None:
        talk.head(wait=False)
        assert first_read.wait(WAIT_S)
        talk.events(token("x"), wait=False)
        time.sleep(DELAY_S)
        released.set()
        talk.finish(wait=False)

    with pytest.MonkeyPatch.context() as patch, Server(script) as server:
        patch.setattr(client, "Wire", BusyWire)
        log = run(server.url)
    read = log.of("read")[log.of("event")[0]["read"]]
    write = server.talks[0].writes[1]
    assert read["kernel_ns"] is not None
    assert read["receipt_ns"] - write.after_ns >= DELAY_NS
    if bursts(log) == [1, 1]:  # else the end was in the same read, and the time is of its last packet
        assert read["receipt_ns"] - read["kernel_ns"] >= DELAY_NS - (write.after_ns - write.before_ns)


# -- what a stream may hold -------------------------------------------------------------------------


def test_crlf_comments_many_lines_and_letters_split_over_reads(run: Run, watched: None) -> None:
    payload = json.dumps(token("żółć 🙂"), ensure_ascii=False, indent=1).encode()
    stream = (
        b": ping\r\n\r\n"
        + b"".join(b"data: " + line + b"\r\n" for line in payload.split(b"\n"))
        + b"\r\ndata: [DONE]\r\n\r\n"
    )

    def script(talk: Talk) -> None:
        talk.head()
        for at in range(0, len(stream), 7):
            talk.raw(chunk(stream[at : at + 7]))
        talk.raw(b"0\r\n\r\n", wait=False)

    with Server(script) as server:
        server.taken = taken
        log = run(server.url, "--keep-text")
    (line,) = log.of("event")
    assert (line["text"], line["text_chars"], line["utf8"], line["whole"]) == ("żółć 🙂", 6, True, True)
    assert (len(log.of("comment")), len(log.of("done"))) == (1, 1)
    # head is read 0; the byte at offset n of the stream came with read 1 + n // 7
    assert log.of("comment")[0]["read"] == 1 + len(b": ping") // 7
    ends = stream.index(b"\r\n\r\ndata: [DONE]") + 2
    assert line["read"] == 1 + ends // 7
    assert line["first_read"] == 1 + stream.index(b"data") // 7
    assert log.code == 0


def test_chat_with_reasoning_and_running_usage(run: Run) -> None:
    def piece(delta: dict[str, Any], total: int | None, **more: Any) -> dict[str, Any]:
        usage = (
            None
            if total is None
            else {"prompt_tokens": 5, "completion_tokens": total, "total_tokens": 5 + total}
        )
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": None} | more], "usage": usage}

    def script(talk: Talk) -> None:
        talk.head(wait=False)
        talk.events(
            piece({"role": "assistant", "content": ""}, 0),
            piece({"reasoning_content": "Hm"}, 1),
            piece({"content": "Yes, no"}, 4),
            piece({}, 4, finish_reason="stop"),
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}},
        )
        talk.finish(wait=False)

    with Server(script) as server:
        log = run(
            server.url, "--endpoint", "chat", "--max-tokens", "7", "--field", "top_k=1", "--field", "user=x"
        )
    events = log.of("event")
    assert [line["tokens"] for line in events] == [0, 1, 3, 0, None]
    assert [line["output"] for line in events] == [False, True, True, False, False]
    assert [line["text_chars"] for line in events] == [0, 2, 7, 0, 0]
    assert events[3]["finish_reason"] == "stop"
    assert log.of("end")[0]["completion_tokens"] == 4
    talk = server.talks[0]
    assert talk.headers[":path"] == "/v1/chat/completions"
    assert talk.body == {
        "model": "m", "messages": [{"role": "user", "content": "Tell a story."}], "max_tokens": 7, "stream": True,
        "stream_options": {"include_usage": True}, "top_k": 1, "user": "x",
    }  # fmt: skip
    assert "tokens per answer by the server's usage: median 4, total 4" in log.out


def test_what_the_stream_does_not_tell_is_null(run: Run) -> None:
    with Server(lambda talk: talk.tokens(2)) as server:
        log = run(server.url, "--no-usage")
    line = log.of("event")[0]
    assert (line["tokens"], line["tokens_from"], line["usage"], line["emitted_ns"]) == (None,) * 4
    assert line["created_s"] == 1_700_000_000
    (end,) = log.of("end")
    assert (end["completion_tokens"], end["emitted_field"], end["emitted_resolution_ns"]) == (None,) * 3
    assert (end["finish_reason"], end["done"], end["body_ended"]) == ("length", True, True)
    assert "stream_options" not in server.talks[0].body
    assert "tokens per answer: the server did not tell" in log.out


def test_a_servers_clock_ahead_of_the_clients_is_told(run: Run) -> None:
    def script(talk: Talk) -> None:
        talk.head(wait=False)
        talk.events(token("x", t={"sent": "no number"}, sent=time.time() + 3600), wait=False)
        talk.finish(wait=False)

    with Server(script) as server:
        log = run(server.url, "--emitted-field", "t.sent:ms", "--emitted-field", "sent:s")
    (line,) = log.of("event")
    assert line["emitted_ns"] - line["receipt_ns"] > 3_500_000_000_000
    assert log.of("end")[0]["emitted_field"] == "sent"
    assert 1 <= log.of("end")[0]["emitted_resolution_ns"] < 1_000_000_000
    assert "emitted after their receipt: 1; the two clocks differ" in log.out


# -- load -------------------------------------------------------------------------------------------


def test_so_many_requests_are_open_at_once_and_never_more(run: Run) -> None:
    """All of a round wait for each other: they would wait forever with fewer, and the count would tell of more."""
    barrier = threading.Barrier(4)
    lock, open_now, most = threading.Lock(), 0, 0

    def script(talk: Talk) -> None:
        nonlocal open_now, most
        with lock:
            open_now += 1
            most = max(most, open_now)
        barrier.wait(WAIT_S)
        with lock:
            open_now -= 1
        talk.tokens(2)

    with Server(script) as server:
        log = run(server.url, "--requests", "12", "--concurrency", "4", "--warmup", "3")
    assert most == 4
    assert log.outcomes() == dict.fromkeys(range(12), "complete")
    assert [line["warmup"] for n in range(12) for line in log.of("request", n)] == [True] * 3 + [False] * 9
    assert "(9 requests)" in log.out
    # kept connections are told from new ones
    by_connection: dict[int, int] = {}
    for line in sorted(log.of("request"), key=lambda line: line["sent_ns"]):
        new = line["connection"] not in by_connection
        assert (line["connect_ns"] is not None) == new
        by_connection[line["connection"]] = by_connection.get(line["connection"], 0) + 1
    assert sum(by_connection.values()) == 12
    # lines of a request stand together, by number
    assert [key for key, _ in groupby(line["request"] for line in log.lines[1:-1])] == list(range(12))


def test_a_connection_whose_answer_was_read_is_used_again(run: Run) -> None:
    with Server(lambda talk: talk.tokens(1)) as server:
        log = run(server.url, "--requests", "3")
    assert [line["connection"] for line in log.of("request")] == [0, 0, 0]
    assert [line["connect_ns"] is None for line in log.of("request")] == [False, True, True]


@pytest.mark.parametrize("spacing", ["fixed", "poisson"])
def test_an_open_loop_sends_by_the_clock_whatever_is_open(run: Run, spacing: str) -> None:
    """No request is answered before all have come: a closed loop would hang."""
    arrived = threading.Barrier(10)

    def script(talk: Talk) -> None:
        arrived.wait(WAIT_S)
        talk.tokens(1)

    with Server(script) as server:
        log = run(server.url, "--requests", "10", "--rate", "100", "--spacing", spacing, "--seed", "7")
    requests = sorted(log.of("request"), key=lambda line: line["request"])
    planned = [line["planned_monotonic_ns"] for line in requests]
    assert [at - planned[0] for at in planned] == schedule(10, 100, spacing, 7)
    for line in requests:
        assert line["planned_monotonic_ns"] <= line["started_monotonic_ns"] <= line["sent_monotonic_ns"]
    assert log.lines[0]["load"] == {
        "requests": 10, "warmup": 0, "concurrency": None, "rate_per_s": 100.0, "spacing": spacing, "seed": 7,
        "limit_s": None, "request_limit_s": 600.0,
    }  # fmt: skip
    assert "sent after the planned time: median" in log.out


# -- encrypted --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    yield folder


def test_over_tls_records_are_timed(
    run: Run, watched: None, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    def script(talk: Talk) -> None:
        talk.head()
        talk.events(token("a"))
        talk.events(token("b"), token("c"))
        talk.finish()

    with Server(script, tls=context) as server:
        server.taken = taken
        log = run(server.url)
    check_receipts(log, server.talks[0].writes)
    assert bursts(log) == [1, 2, 1]
    assert {line["kernel_ns"] for line in log.of("read")} == {None}
    assert log.lines[0]["tls"] is True
    assert (log.of("request")[0]["connect_ns"] > 0, log.code) == (True, 0)


def test_a_certificate_that_is_not_trusted_is_a_record(run: Run, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    class Refused(Server):
        def _accept(self) -> None:
            try:
                super()._accept()
            except ssl.SSLError:
                return

    with Refused(lambda talk: None, tls=context) as server:
        log = run(server.url)
    assert log.outcomes() == {0: "not_connected"}
    assert "certificate" in log.of("end")[0]["detail"].lower()


def test_environment_variables_of_proxies_are_not_followed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HTTP_PROXY", "http://127.0.0.1:9")
    with Server(lambda talk: talk.tokens(1)) as server:
        assert run(server.url).code == 0
