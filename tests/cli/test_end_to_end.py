"""The command line with everything behind it: the example captures and the field cases."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.shared import case_path, needs_shared


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    result = run("demo", str(folder))
    assert result.exit_code == 0
    assert all(Path(line).is_file() for line in result.stdout.splitlines())
    return folder


def test_eager_is_launch_bound_and_its_budget_adds_up(example: Path, tmp_path: Path) -> None:
    result = run("diagnose", str(example / "eager"), "-o", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    found = json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_bytes())
    for row in found["budget"]:
        assert sum(row["path_ns_total"].values()) == row["step_ns_total"]
        if row["scope"] == "rank":
            assert sum(row["exposed_ns_total"].values()) == row["step_ns_total"]
    assert "`launch-bound`" in (tmp_path / "DIAGNOSIS.md").read_text().split("## Step budget")[0]
    with (tmp_path / "diagnosis" / "segments.csv").open(newline="") as file:
        segments = list(csv.DictReader(file))
    with (tmp_path / "diagnosis" / "windows.csv").open(newline="") as file:
        total = sum(int(row["duration_ns"]) for row in csv.DictReader(file))
    assert sum(int(row["end_ns"]) - int(row["start_ns"]) for row in segments) == total


def test_replayed_graphs_are_not_launch_bound(example: Path) -> None:
    found = json.loads(run("diagnose", str(example / "graph"), "--format", "json").stdout)
    verdicts = {row["id"]: row["verdict"] for row in found["hypotheses"]}
    assert verdicts["launch-bound"] != "supported"
    assert sum(w["kernels_in_graphs"] for rank in found["ranks"] for w in rank["windows"]) > 0


def test_the_same_bytes_again_and_with_two_jobs_and_the_inputs_untouched(example: Path) -> None:
    files = sorted((example / "graph").iterdir())
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    arguments = ("diagnose", str(example / "graph"), "--format", "json")
    first = run(*arguments)
    assert first.exit_code == 0, first.stderr
    assert run(*arguments).stdout_bytes == first.stdout_bytes
    assert run(*arguments, "--jobs", "2").stdout_bytes == first.stdout_bytes
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in files] == before


def test_inspect_names_ranks_steps_and_collectives(example: Path) -> None:
    result = run("inspect", str(example / "eager"))
    assert result.exit_code == 0, result.stderr
    assert "collective (all_reduce)" in result.stdout
    assert "12 steps, found by" in result.stdout


def test_a_pattern_that_fits_nothing_says_what_to_do(example: Path) -> None:
    for arguments in (["--steps", "^nothing$"], ["--rank-regex", "node(?P<rank>[0-9]+)"], ["--ranks", "99"]):
        result = run("diagnose", str(example / "eager"), *arguments)
        assert result.exit_code == 2, arguments
        assert "next: " in result.stderr
        assert result.stdout == ""


@needs_shared
def test_an_absent_device_is_an_error_that_lists_those_present(tmp_path: Path) -> None:
    path = tmp_path / "B56.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(case_path("B56.sql").read_text())
    connection.close()
    result = run("diagnose", str(path), "--device", "0")
    assert result.exit_code == 2
    assert "1, 2, 3" in result.stderr


@needs_shared
def test_a_truncated_file_is_used_and_said_so_unless_strict(tmp_path: Path) -> None:
    result = run("diagnose", str(case_path("B01.json")), "-o", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert "incomplete" in result.stderr
    assert "incomplete" in (tmp_path / "DIAGNOSIS.md").read_text().split("## What was read")[0]
    assert run("diagnose", str(case_path("B01.json")), "--strict").exit_code == 1
