"""``tracebound scaling``: options, files, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from fixtures.planted.scaling import Plan, program
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from tests.cli.conftest import run
from tests.study.runs import alternating, diagnosis


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Earlier diagnoses of one rank each, of 2 and 1.25 ms."""
    paths = []
    for name, length in (("one", 2_000), ("two", 1_250)):
        path = tmp_path / f"{name}.json"
        path.write_bytes(Analysis(diagnosis(alternating(length)), None).to_json())
        paths.append(str(path))
    return paths


def declared(runs: list[str]) -> list[str]:
    return ["--ranks-of", f"{runs[0]}=1", "--ranks-of", f"{runs[1]}=2"]


def test_writes_the_report(runs: list[str], tmp_path: Path) -> None:
    result = run("scaling", *runs, *declared(runs), "-o", str(tmp_path / "out"))
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'out' / 'SCALING.md'}\n"
    assert "Fit of S + P / N: S 0." in result.stderr
    assert (tmp_path / "out" / "scaling" / "figures" / "step_time.svg").exists()


def test_json_alone_on_stdout(runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("scaling", *runs, *declared(runs), "--format", "json")
    found = json.loads(result.stdout)
    assert (found["format"], found["format_version"]) == ("tracebound.scaling", 1)
    assert [one["ranks"] for one in found["runs"]] == [1, 2]
    assert not (tmp_path / "SCALING.md").exists()


def test_against_an_earlier_study(runs: list[str], tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    run("scaling", *runs, *declared(runs), "-o", old, "--no-figures", "-q")
    result = run(
        "scaling", *runs, *declared(runs), "--format", "json", "--against", f"{old}/scaling/scaling.json"
    )
    found = json.loads(result.stdout)["against"]
    assert [(one["ranks"], one["ratio"]) for one in found["common"]] == [(1, 1.0), (2, 1.0)]
    assert found["speedup_change"] == "not told"


def test_captures_of_all_ranks_tell_their_number(tmp_path: Path) -> None:
    plan = Plan(1e6, 2e6, 1e5, (1, 2), 6)
    for ranks in plan.counts:
        folder = tmp_path / f"ranks{ranks}"
        folder.mkdir()
        write_kineto(simulate(program(plan, ranks, [1.0] * plan.steps)), folder)
    result = run(
        "scaling", *(str(tmp_path / f"ranks{n}") for n in plan.counts), "--format", "json", "--phase", "dec"
    )
    found = json.loads(result.stdout)
    assert [(one["ranks"], one["ranks_from"], one["phase"]) for one in found["runs"]] == [
        (1, "capture", "decode"),
        (2, "capture", "decode"),
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--ranks-of", "one=8"], "'one' is none of the runs"),
        (["--ranks-of", "x"], "'x' is not RUN=N"),
        (["--ranks-of", "x=0"], "'x=0' is not RUN=N"),
        (["--phase", "("], "is no regular expression"),
        (["--against", "missing.json"], "cannot be read: No such file"),
        ([], "2 runs of 1 ranks: no scaling"),
    ],
)
def test_errors_say_what_to_do(runs: list[str], arguments: list[str], told: str) -> None:
    result = run("scaling", *runs, *arguments)
    assert result.exit_code == 2
    assert told in result.stderr and "next: " in result.stderr


def test_another_file_is_no_study(runs: list[str]) -> None:
    result = run("scaling", *runs, *declared(runs), "--against", runs[0])
    assert result.exit_code == 2
    assert "is no scaling study" in result.stderr
