"""Fixtures of the client's tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from collectors.cli import main
from collectors.client import command as client
from tests.collectors.client_runs import Log, Run, WatchedWire


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
