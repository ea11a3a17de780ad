"""Fixtures of the client's tests; and tests that run nsys take turns."""

from __future__ import annotations

import fcntl
import json
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from collectors.cli import main
from collectors.client import command as client
from tests.collectors.client_runs import Log, Run, WatchedWire

RUN_NSYS = {"test_nsys.py", "test_ranges.py", "test_capture_page.py", "test_h200_script.py"}


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Two nsys 2022 that start at the same moment can trip over each other's semaphore, and one gives up."""
    if item.path.name not in RUN_NSYS:
        yield
        return
    with (Path(tempfile.gettempdir()) / "tracebound-tests-nsys.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's wire is its own, and the test's server can look how far it has read."""
    monkeypatch.setattr(client, "Wire", WatchedWire)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def one(url: str, *options: str, prompt: Sequence[str] = ("--prompt", "Tell a story.")) -> Log:
        folder = tmp_path / "run"
        code = main(["client", "--url", url, "--model", "m", "-o", str(folder), *prompt, *options])
        captured = capsys.readouterr()
        text = (folder / "rank0.tokens.jsonl").read_text(encoding="utf-8")
        assert text.endswith("\n")
        lines = [json.loads(line) for line in text.splitlines()]
        assert (lines[0]["kind"], lines[-1]["kind"]) == ("header", "log_end")
        return Log(code, lines, captured.out, folder)

    return one
