"""``tracebound speculation``: counts, times given or measured, files, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from tests.cli.conftest import run
from tests.study.runs import alternating, diagnosis


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "accepted.csv"
    path.write_text("accepted,cycles,drafted\n0,20,2\n1,16,2\n2,64,2\n", encoding="utf-8")
    return str(path)


def stored(path: Path, length_us: int) -> str:
    path.write_bytes(Analysis(diagnosis(alternating(length_us)), None).to_json())
    return str(path)


def test_prints_the_report(counts: str) -> None:
    result = run("speculation", "--accepted", counts, "--baseline-step", "9ms", "--cycle", "16ms")
    assert result.exit_code == 0
    assert "**Speedup 1.373x**" in result.stdout


def test_measures_both_runs(counts: str, tmp_path: Path) -> None:
    baseline, drafted = stored(tmp_path / "a.json", 980), stored(tmp_path / "b.json", 1_580)
    result = run(
        *("speculation", "--accepted", counts, "--baseline", baseline, "--speculative", drafted),
        *("--format", "json", "--phase", "step"),
    )
    found = json.loads(result.stdout)
    assert (found["format"], found["format_version"]) == ("tracebound.speculation", 1)
    assert found["speedup_kind"] == "measurement"
    assert found["breakeven_tokens"] == pytest.approx(1.6, rel=0.01)


def test_writes_files(counts: str, tmp_path: Path) -> None:
    result = run("speculation", "--accepted", counts, "-o", str(tmp_path / "out"))
    assert result.stdout == f"{tmp_path / 'out' / 'SPECULATION.md'}\n"
    assert result.stderr.startswith("2.440 tokens per cycle")
    assert (tmp_path / "out" / "speculation" / "speculation.json").exists()


def test_draft_tokens_where_the_file_does_not_say(tmp_path: Path) -> None:
    path = tmp_path / "lengths.json"
    path.write_text("[0, 1, 2, 2, 1]", encoding="utf-8")
    assert "--draft-tokens K" in run("speculation", "--accepted", str(path)).stderr
    found = run("speculation", "--accepted", str(path), "--draft-tokens", "4", "--format", "json").stdout
    assert json.loads(found)["acceptance"]["draft_tokens"] == 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--baseline", "x", "--baseline-step", "9ms"], "stands beside --baseline-step"),
        (["--speculative", "x", "--cycle", "9ms"], "stands beside --cycle"),
        (["--cycle", "9 parsecs"], "--cycle"),
        (["--phase", "("], "is no regular expression"),
    ],
)
def test_errors_say_what_to_do(counts: str, arguments: list[str], told: str) -> None:
    result = run("speculation", "--accepted", counts, *arguments)
    assert result.exit_code == 2
    assert told in result.stderr and "next: " in result.stderr
