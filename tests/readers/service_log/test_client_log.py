"""The client's own log: events that carry output are tokens, the warm-up is left out, damage is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import TraceError
from analyzer.intake import find_token_logs, token_logs
from analyzer.readers.service_log import read_token_log
from analyzer.tokens import ABSENT

T = 1_795_000_000_000_000_000


def event(
    request: int, read: int, emitted: int | None, tokens: int | None = 1, output: bool = True
) -> dict[str, Any]:
    return {
        "kind": "event", "request": request, "read": read, "receipt_ns": T + 100 * read + 9, "output": output,
        "tokens": tokens, "emitted_ns": None if emitted is None else T + emitted,
    }  # fmt: skip


def read_line(request: int, read: int, kernel: bool = True) -> dict[str, Any]:
    return {
        "kind": "read", "request": request, "read": read, "receipt_ns": T + 100 * read + 9, "bytes": 10,
        "kernel_ns": T + 100 * read + 5 if kernel else None,
    }  # fmt: skip


def lines(**header: Any) -> list[dict[str, Any]]:
    head = {"kind": "header", "format": "tracebound.tokens", "format_version": 1, "host": "load-gen",
            "url": "http://10.0.0.7:8000/v1/completions", **header}  # fmt: skip
    return [
        head,
        {"kind": "request", "request": 0, "warmup": True, "sent_ns": T},
        read_line(0, 1), event(0, 1, 90),
        {"kind": "end", "request": 0, "outcome": "complete", "emitted_resolution_ns": 1},
        {"kind": "request", "request": 1, "warmup": False, "sent_ns": T + 50},
        read_line(1, 1), event(1, 1, None, output=False),
        read_line(1, 2), event(1, 2, 150), event(1, 2, 180, tokens=2),
        read_line(1, 3, kernel=False), event(1, 3, 290, tokens=None),
        {"kind": "done", "request": 1, "read": 3},
        {"kind": "end", "request": 1, "outcome": "cut_off", "emitted_resolution_ns": 10},
        {"kind": "log_end", "requests": 2},
    ]  # fmt: skip


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")
    return path


def test_events_become_tokens(tmp_path: Path) -> None:
    log = read_token_log(written(tmp_path / "rank0.tokens.jsonl", lines()))
    assert (log.kind, log.requests, log.token.tolist()) == ("client", ("1",), [0, 1, 2, 3])
    assert log.emission_ns.tolist() == [T + 150, T + 180, T + 180, T + 290]  # an event of two tokens is two
    assert log.receipt_ns.tolist() == [T + 209, T + 209, T + 209, T + 309]
    assert log.arrival_ns.tolist() == [T + 205, T + 205, T + 205, ABSENT]
    assert log.completion_ns.tolist() == [ABSENT] * 4
    assert (log.sent_ns.tolist(), log.resolution_ns) == ([T + 50], 10)
    assert (log.clocks.client, log.clocks.server, log.same_host) == ("load-gen", None, False)
    assert {entry.reason: entry.count for entry in log.quality} == {
        "request-incomplete": 1, "event-without-token-count": 1,
    }  # fmt: skip


def test_a_loopback_url_tells_that_server_and_client_share_a_host(tmp_path: Path) -> None:
    log = read_token_log(written(tmp_path / "a.tokens.jsonl", lines(url="http://127.0.0.1:8000")))
    assert log.same_host


def test_a_cut_off_log_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tokens.jsonl", lines()[:-1])
    path.write_text(path.read_text()[:-20], encoding="ascii")
    log = read_token_log(path)
    assert log.partial and len(log) == 4
    assert {"token-line-skipped", "token-log-cut-off"} <= {entry.reason for entry in log.quality}


def test_another_version_and_a_log_without_output_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="format version 2"):
        read_token_log(written(tmp_path / "a.tokens.jsonl", lines(format_version=2)))
    with pytest.raises(TraceError, match="no request behind the warm-up received any output"):
        read_token_log(written(tmp_path / "a.tokens.jsonl", lines()[:5]))


def test_logs_in_folders_are_found_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "diagnosis").mkdir()
    written(tmp_path / "diagnosis" / "rank0.tokens.jsonl", lines())
    mine = written(tmp_path / "rank0.tokens.jsonl", lines())
    (tmp_path / "other.tokens.jsonl").write_text('{"kind": "of another tool"}\n')
    assert find_token_logs([tmp_path, tmp_path, mine]) == [mine]
    assert [log.path for log in token_logs([tmp_path])] == [str(mine)]
    assert [log.path for log in token_logs([mine, tmp_path, mine])] == [str(mine)]  # each counts once
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="holds no token log"):
        token_logs([tmp_path / "empty"])
