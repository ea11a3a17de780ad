"""What a run of the client writes down, and what it must not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from collectors import manifest
from collectors.cli import main
from collectors.run_folder import RunFolder
from tests.collectors.client_runs import ROOT, Run, everything
from tests.collectors.streaming_server import Server, Talk, chunk, event, token

pytest.importorskip("httpx")


# -- what is recorded, and what is not --------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--keep-text",)])
def test_secrets_are_in_no_file(run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    """Even where the server sends them back: in headers, text, errors, types, reasons."""
    key, value = "plainKey77", "team-secret-9"
    monkeypatch.setenv("MY_SERVICE_KEY", key)

    def script(talk: Talk) -> None:
        assert talk.headers["authorization"] == f"Bearer {key}"
        assert talk.headers["x-team"] == value
        if talk.number == 0:
            more = f"Server: {key}\r\nX-Echo: {value}\r\nSet-Cookie: sid=theirs42\r\nVia: Bearer {key}\r\n"
            error = {"error": {"message": f"bad key {key}", "type": key, "code": value}}
            talk.whole("401 No", json.dumps(error).encode(), more=more)
            return
        talk.head(wait=False)
        talk.events(
            token(f"your key is {key}", finish_reason=value),
            f"not JSON {key}",
            {"error": {"message": f"{key} {value}", "type": f"{value}"}},
            wait=False,
        )
        talk.raw(chunk(f"event: {key}\n".encode() + event(token("x"))), wait=False)
        talk.finish(wait=False)

    with Server(script) as server:
        log = run(
            server.url, "--api-key-env", "MY_SERVICE_KEY", "--header", f"X-Team: {value}", "--requests", "2",
            "--field", f"user={key}", *options, prompt=("--prompt", f"say {key}"),
        )  # fmt: skip
    written = everything(log.folder)
    for secret in (key, value, "theirs42"):
        assert secret not in written
        assert secret not in log.out
    assert log.outcomes() == {0: "http_status", 1: "server_error"}
    assert log.lines[0]["headers"] == ["accept", "accept-encoding", "authorization", "content-type", "x-team"]
    assert log.of("response", 0)[0]["other_headers"] == ["set-cookie", "x-echo"]
    if options:
        assert "your key is [redacted]" in written


def test_prompts_and_answers_are_stored_only_when_asked_for(run: Run) -> None:
    def script(talk: Talk) -> None:
        talk.head(wait=False)
        talk.events(token("the answer"), "the damage", wait=False)
        talk.finish(wait=False)

    with Server(script) as server:
        log = run(server.url)
        written = everything(log.folder)
        assert not [text for text in ("Tell a story", "the answer", "the damage") if text in written]
        line = log.of("request")[0]
        assert (line["prompt_chars"], line["prompt_bytes"]) == (13, 13)
        assert line["prompt_sha256"] == "b877060dfe4f2718e6742f2988726c551ef5107b8d7e299ee48a50687954bed1"
        kept = run(server.url, "--keep-text")
    assert kept.of("request")[0]["prompt"] == "Tell a story."
    assert [line["text"] for line in kept.of("event")] == ["the answer"]
    assert kept.of("malformed")[0]["data"] == "the damage"


def test_the_record_says_what_was_done(run: Run) -> None:
    with Server(lambda talk: talk.tokens(1)) as server:
        url = server.url
        log = run(url, "--pin", "hardware=H200", "--pin", "model=Llama", "--max-tokens", "5")
    record = log.record
    assert (record.collector, record.status, record.exit_code, record.profiler) == (
        "client",
        "complete",
        0,
        "httpx",
    )
    assert [(file.path, file.kind) for file in record.files] == [("rank0.tokens.jsonl", "tokens")]
    assert record.files[0].bytes == (log.folder / "rank0.tokens.jsonl").stat().st_size
    assert record.pins["model"] == manifest.Pin("Llama", "declared")
    assert record.pins["timing_boundary"] == manifest.Pin("client", "found")
    assert "max_tokens=5 requests=1 concurrency=1" in record.pins["input"].value
    assert (
        "runtime" not in record.pins and "flags" not in record.pins
    )  # the client's own are not the engine's
    assert record.versions == {}
    assert record.command[:6] == [
        "python",
        "-m",
        "collectors",
        "client",
        "--url",
        f"{url}/v1/completions",
    ]
    assert len(record.anchors) == 2
    header = log.lines[0]
    assert (header["format"], header["format_version"]) == ("tracebound.tokens", 1)
    assert header["clock"]["wall_resolution_ns"] >= 1
    assert [path.name for path in log.folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--url", "http://me:pa55@host/v1"], "holds a login or a key"),
        (["--url", "http://me@host/v1"], "holds a login or a key"),
        (["--url", "http:\\\\me:pa55@host/v1"], "holds a login or a key"),
        (["--url", "http://host/v1?api-key=pa55"], "holds a login or a key"),
        (["--url", "ftp://host"], "is no http or https URL"),
        (["--url", "http://host:x"], "is no http or https URL"),
        (["--url", "host:8000"], "is no http or https URL"),
        (["--url", "http://a..b/v1"], "is no http or https URL"),
        (["--url", "http://host/\x01"], "cannot be used"),
        (["--url", "http://h/v1/chat/completions", "--endpoint", "completions"], "does not fit"),
        (["--api-key-env", "NOT_SET_ANYWHERE"], "export NOT_SET_ANYWHERE"),
        (["--api-key-env", "sk-pa55"], "pass the name, not the key itself"),
        (["--header", "no value"], "write it like"),
        (["--header", "X-A: żó"], "write it like"),
        (["--header", "Accept-Encoding: gzip"], "is the client's own"),
        (["--field", "stream=false"], "is the client's own field"),
        (["--field", "n=2"], "several answers in one stream"),
        (["--emitted-field", "created"], "tells no unit"),
        (["--warmup", "1"], "leaves none of 1 requests"),
        (["--pin", "modle=x"], "one of these names"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_written(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    given = ["--url", "http://127.0.0.1:1", "--model", "m", "--prompt", "p", "-o", str(folder)]
    assert main(["client", *given, *options]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "pa55" not in told
    assert not folder.exists()


def test_a_folder_of_another_collector_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write(manifest.RankRecord(rank=0, collector="nsys", status="complete"))
    before = everything(folder.path)
    options = ["--url", "http://127.0.0.1:1", "--model", "m", "--prompt", "p", "-o", str(folder.path)]
    assert main(["client", *options]) == 2
    assert "holds a capture of the collector nsys" in capsys.readouterr().err
    assert everything(folder.path) == before


def test_without_httpx_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['httpx'] = None;"
        "from collectors.cli import main; raise SystemExit(main(sys.argv[1:]))"
    )
    options = ["client", "--url", "http://h", "--model", "m", "--prompt", "p", "-o", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", code, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        done.stderr
        == "error: httpx: is not installed here; next: in tracebound's folder: pip install '.[client]'\n"
    )
    assert not (tmp_path / "run").exists()
