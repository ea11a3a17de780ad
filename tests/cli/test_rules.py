"""``--rules`` from the command line to the tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from analyzer.cli import app

EVENTS = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0, "dur": 5,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 6, "dur": 5,
     "args": {"correlation": 2}},
    {"ph": "X", "cat": "kernel", "name": "my_ring", "pid": 0, "tid": 7, "ts": 10, "dur": 20,
     "args": {"correlation": 1, "device": 0, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "probe_table", "pid": 0, "tid": 7, "ts": 30, "dur": 10,
     "args": {"correlation": 2, "device": 0, "stream": 7}},
]  # fmt: skip
RULES = """
[[collective]]
pattern = '^my_ring'
operation = "all_gather"

[[kernel]]
class = "join"
pattern = '^probe'

[thresholds]
supported_share = 0.3
contradicted_share = 0.05
"""


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS, "deviceProperties": [{"id": 0, "name": "X"}]}))
    return str(path)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def diagnosis(*arguments: str) -> dict:
    result = run("diagnose", *arguments, "--format", "json", "-q")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_classes_collectives_and_thresholds(trace: str, rules: str) -> None:
    before, after = diagnosis(trace), diagnosis(trace, "--rules", rules)
    assert [row["class"] for row in before["kernels"]] == ["other", "other"]
    assert {row["name"]: row["class"] for row in after["kernels"]} == {
        "my_ring": "collective",
        "probe_table": "join",
    }
    assert after["ranks"][0]["windows"][0]["path_ns"]["collective.unsplit"] == 20_000
    assert (before["rules"], after["rules"]) == ([], [rules])
    limits = after["constants"]["thresholds"]
    assert (limits["supported_share"], limits["contradicted_share"]) == (0.3, 0.05)


def test_the_command_lines_threshold_wins(trace: str, rules: str) -> None:
    found = diagnosis(trace, "--rules", rules, "--threshold", "supported_share=0.4")
    limits = found["constants"]["thresholds"]
    assert (limits["supported_share"], limits["contradicted_share"]) == (0.4, 0.05)


def test_ranks_in_other_processes_use_the_rules(trace: str, rules: str, tmp_path: Path) -> None:
    second = tmp_path / "rank1.json"
    second.write_text(Path(trace).read_text())
    (tmp_path / "rank0.json").write_text(Path(trace).read_text())
    both = (str(tmp_path / "rank0.json"), str(second), "--rank-regex", r"rank(?P<rank>\d+)")
    assert diagnosis(*both, "--rules", rules, "--jobs", "2") == diagnosis(*both, "--rules", rules)


def test_inspect_uses_the_rules(trace: str, rules: str) -> None:
    result = run("inspect", trace, "--rules", rules, "--format", "json")
    assert [(row["name"], row["operation"]) for row in json.loads(result.stdout)["collectives"]] == [
        ("my_ring", "all_gather")
    ]


@pytest.mark.parametrize("command", ["diagnose", "inspect"])
def test_an_error_in_a_rules_file_is_usage(trace: str, tmp_path: Path, command: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[[kernel]]\nclass = 'x'\npattern = '('\n")
    result = run(command, trace, "--rules", str(path))
    assert result.exit_code == 2
    assert "bad.toml (kernel rule 1)" in result.stderr
    assert "next: escape special characters" in result.stderr
    assert result.stdout == ""


def test_what_the_capture_recorded_beats_every_rule(trace: str, tmp_path: Path) -> None:
    events = [dict(event) for event in EVENTS]
    events[2] = {**events[2], "args": {**events[2]["args"], "Collective name": "allreduce", "Group size": 2}}
    Path(trace).write_text(json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "X"}]}))
    path = tmp_path / "local.toml"
    path.write_text(
        "[[collective]]\npattern = 'my_ring'\nlocal = true\n[[kernel]]\nclass = 'x'\npattern = 'my_ring'\n"
    )
    found = diagnosis(trace, "--rules", str(path))
    assert {row["name"]: row["class"] for row in found["kernels"]}["my_ring"] == "collective"
    shown = json.loads(run("inspect", trace, "--rules", str(path), "--format", "json").stdout)
    assert [row["operation"] for row in shown["collectives"]] == ["all_reduce"]
