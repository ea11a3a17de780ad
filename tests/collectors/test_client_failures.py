"""What goes wrong with a server, a signal or a disk is a record, and the run says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors import manifest
from collectors.client.answer import Job, Target
from collectors.client.http import open_client
from collectors.client.load import Load
from collectors.client.plan import Prompt
from collectors.client.request import perform
from collectors.client.wire import Wire
from collectors.errors import CollectError
from tests.collectors.client_runs import ROOT, Run
from tests.collectors.streaming_server import WAIT_S, Server, Talk, event, token

pytest.importorskip("httpx")


# -- what goes wrong --------------------------------------------------------------------------------


def abrupt(talk: Talk) -> None:
    talk.head(wait=False)
    talk.events(token("x"), wait=False)
    talk.connection.close()


def unframed(talk: Talk) -> None:
    talk.raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event(token("x")) + b"data: {",
        wait=False,
    )
    talk.connection.close()


def malformed(talk: Talk) -> None:
    talk.head(wait=False)
    talk.events(token("x"), "{no JSON", "[1]", '{"a": 1}', token("y"), wait=False)
    talk.finish(wait=False)


def error_inside(talk: Talk) -> None:
    talk.head(wait=False)
    talk.events(
        token("x"), {"error": {"message": "out of memory", "type": "engine", "code": 500}}, wait=False
    )
    talk.finish(wait=False)


def not_found(talk: Talk) -> None:
    talk.whole("404 Not Found", b'{"error": {"message": "no model m", "type": "NotFoundError", "code": 404}}')


@pytest.mark.parametrize(
    ("script", "outcome", "events", "fields"),
    [
        (not_found, "http_status", 0, {"status": 404, "error_type": "NotFoundError", "error_code": "404"}),
        (lambda talk: talk.whole("500 Oops", b"<h1>\xff</h1>", "text/html"), "http_status", 0, {"status": 500}),
        (lambda talk: talk.whole("307 Away", b"", more="Location: http://x/\r\n"), "http_status", 0, {"status": 307}),
        (lambda talk: talk.whole("200 OK", b'{"choices": []}'), "not_a_stream", 0, {"done": False}),
        (lambda talk: talk.raw(b"SSH-2.0-x\r\n\r\n", wait=False), "malformed_http", 0, {"status": None}),
        (lambda talk: talk.connection.close(), "disconnected", 0, {"status": None, "body_ended": False}),
        (abrupt, "disconnected", 1, {"status": 200, "done": False, "body_ended": False}),
        (unframed, "cut_off", 2, {"done": False, "body_ended": True, "malformed_events": 0}),
        (malformed, "malformed_event", 6, {"malformed_events": 3, "output_events": 2, "done": True}),
        (error_inside, "server_error", 3, {"error_type": "engine", "error_code": "500"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_errors_are_records(
    script: Callable[[Talk], None], outcome: str, events: int, fields: dict[str, Any], run: Run
) -> None:
    def answer(talk: Talk) -> None:
        if talk.number == 0:
            script(talk)
        else:
            talk.tokens(1)

    with Server(answer) as server:
        log = run(server.url, "--requests", "2")
    assert log.outcomes() == {0: outcome, 1: "complete"}
    end = log.of("end", 0)[0]
    assert end["events"] == events
    assert {name: end[name] for name in fields} == fields
    assert log.code == log.record.exit_code == 1
    assert log.record.status == "failed"
    assert f"requests that did not complete: {outcome} 1" in log.record.notes
    assert f"failed: {outcome} 1" in log.out
    assert not manifest.read(log.folder / "manifest.json").complete


def test_an_error_message_is_shown_but_not_stored(run: Run) -> None:
    with Server(not_found) as server:
        log = run(server.url)
    assert "server or connection said: no model m\n  next: check --url with its path, --model and" in log.out
    assert "no model m" not in (log.folder / "rank0.tokens.jsonl").read_text()


def test_nobody_there(run: Run) -> None:
    with Server(lambda talk: None) as server:
        url = server.url
    log = run(url)
    assert (log.outcomes(), log.code) == ({0: "not_connected"}, 1)
    assert (log.of("request")[0]["sent_ns"], log.of("request")[0]["connection"]) == (None, None)
    assert log.of("read") == []
    assert "Connection refused\n  next: check --url, and that the server runs and listens there\n" in log.out


def test_a_stream_that_ends_without_a_reason_is_cut_off(run: Run) -> None:
    def script(talk: Talk) -> None:
        talk.head(wait=False)
        talk.events(token("x"), wait=False)
        talk.raw(b"0\r\n\r\n", wait=False)

    with Server(script) as server:
        log = run(server.url)
    assert log.outcomes() == {0: "cut_off"}


def test_a_connection_left_open_after_done_does_not_hold_the_client(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.client.request.DRAIN_S", 0.05)

    def script(talk: Talk) -> None:
        talk.head(wait=False)
        talk.events(token("x"), "[DONE]", wait=False)

    with Server(script) as server:
        log = run(server.url)
    (end,) = log.of("end")
    assert (end["outcome"], end["done"], end["body_ended"], log.code) == ("complete", True, False, 0)


def test_a_server_that_never_answers_is_given_up(run: Run) -> None:
    with Server(lambda talk: None) as server:
        log = run(server.url, "--request-limit", "0.2", "--requests", "2")
        assert (log.outcomes(), log.code, log.record.status) == ({0: "limit", 1: "limit"}, 1, "failed")
        started = [line["started_monotonic_ns"] for line in log.of("request")]
        ended = [line["ended_monotonic_ns"] for line in log.of("end")]
        assert all(b - a >= 200_000_000 for a, b in zip(started, ended, strict=True))


@pytest.mark.parametrize("load", [(), ("--rate", "1000")])
def test_past_the_limit_the_run_ends_with_what_it_has(run: Run, load: tuple[str, ...]) -> None:
    def script(talk: Talk) -> None:
        if talk.number == 0:
            talk.tokens(1)

    with Server(script) as server:
        log = run(server.url, "--limit", "1", "--requests", "3", *load)
    outcomes = log.outcomes()
    assert "stopped" in outcomes.values() and set(outcomes.values()) <= {"complete", "stopped"}
    assert (log.code, log.record.status, log.record.exit_code) == (124, "killed", 124)
    assert "ended by --limit after 1 s" in log.record.notes
    assert log.lines[-1] == {
        "kind": "log_end", "requests": len(outcomes), "planned": 3, "stopped_by": "limit",
    }  # fmt: skip
    unsent = f"requests that were not sent: {3 - len(outcomes)} of 3"
    assert (unsent in log.record.notes) == (len(outcomes) < 3)
    assert load or len(outcomes) < 3


def test_nothing_is_begun_past_the_end_of_the_run() -> None:
    performed: list[Job] = []

    def perform_never(job: Job) -> bool:
        performed.append(job)
        raise AssertionError("past the end")

    jobs = [Job(number, False, Prompt("p"), 0, b"{}") for number in range(3)]
    for due in (None, [0, 0, 0]):
        load = Load(perform_never, lambda: None)
        outcome = load.run(jobs, concurrency=2, due_ns=due, until_ns=time.monotonic_ns())
        assert (outcome.sent, outcome.stopped_by) == (0, "limit")
    assert performed == []


def test_a_wire_that_was_stopped_connects_to_nobody() -> None:
    given = Target("", {}, [], False, str, str, 60.0)
    with Server(lambda talk: talk.tokens(1)) as server, Wire() as wire, open_client(wire) as one:
        target = replace(given, url=server.url)
        before = perform(one, wire, target, Job(0, False, Prompt("p"), 0, b"{}"), until_ns=None)
        wire.stop()
        after = perform(one, wire, target, Job(1, False, Prompt("p"), 0, b"{}"), until_ns=None)
        again = perform(one, wire, target, Job(2, False, Prompt("p"), 0, b"{}"), until_ns=None)
    assert (before.answer.failure, before.stopped, len(server.talks)) == (None, False, 1)
    assert [(one.stopped, one.exchange.connect_ns, one.exchange.sent_ns) for one in (after, again)] == [
        (True, None, None)
    ] * 2


def test_an_error_of_ours_inside_a_request_is_raised_and_ends_the_run() -> None:
    """The disk is full at the second request: the others are cut, and the error comes through."""
    cut = threading.Event()

    def full(job: Job) -> bool:
        if job.number == 1:
            raise CollectError("disk", "is full", "make room")
        assert cut.wait(WAIT_S)
        return True

    jobs = [Job(number, False, Prompt("p"), 0, b"{}") for number in range(2)]
    with pytest.raises(CollectError, match="is full"):
        Load(full, cut.set).run(jobs, concurrency=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_order(number: int, tmp_path: Path) -> None:
    arrived = threading.Event()

    def script(talk: Talk) -> None:
        if talk.number == 0:
            talk.tokens(2)
        else:
            talk.head(wait=False)
            arrived.set()

    with Server(script) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "collectors", "client", "--url", server.url, "--model", "m", "--prompt", "p",
             "--requests", "9", "-o", str(tmp_path / "run")],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert arrived.wait(WAIT_S)
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, err) == (128 + number, "")
    lines = [json.loads(line) for line in (tmp_path / "run" / "rank0.tokens.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines if line["kind"] == "end"] == ["complete", "stopped"]
    assert lines[-1]["stopped_by"] == number
    record = manifest.read(tmp_path / "run" / "manifest.json").ranks[0]
    assert (record.status, record.exit_code) == ("killed", 128 + number)
    assert "requests: 2 of 9 sent, 7 not sent" in out


def test_a_full_disk_is_told_and_leaves_no_half_file(tmp_path: Path) -> None:
    """The limit on file size stands in for the disk: the log's buffer can not be written."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000));"
        "from collectors.cli import main; raise SystemExit(main(sys.argv[1:]))"
    )
    with Server(lambda talk: talk.tokens(100)) as server:
        done = subprocess.run(
            [sys.executable, "-c", code, "client", "--url", server.url, "--model", "m", "--prompt", "p",
             "--requests", "20", "-o", str(tmp_path / "run")],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot be written (File too large); next: make room" in done.stderr
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["manifest.json", "ranks"]
    assert manifest.read(tmp_path / "run" / "manifest.json").ranks[0].status == "running"
