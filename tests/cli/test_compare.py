"""``tracebound compare``: what it writes and prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    assert run("demo", str(folder), "-q").exit_code == 0
    return folder


def test_the_example_is_compared_and_written(example: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("compare", str(example / "eager"), str(example / "graph"), "-o", str(out))
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{out / 'COMPARISON.md'}\n"
    assert "work: identical; A's mean step over B's " in result.stderr
    assert {path.name for path in out.iterdir()} == {"COMPARISON.md", "comparison"}
    found = json.loads((out / "comparison" / "comparison.json").read_bytes())
    assert (found["format"], found["format_version"], found["same_work"]) == (
        "tracebound.comparison",
        1,
        "identical",
    )
    assert sum(found["delta_ns"].values()) == found["step_delta_ns"]["mean"]
    assert found["speedup"] > 2
    report = (out / "COMPARISON.md").read_text()
    for name in ("waterfall", "step_times"):
        assert f"(comparison/figures/{name}.svg)" in report
        assert (out / "comparison" / "figures" / f"{name}.svg").exists()
    assert "7,584 of 7,872 (96.3 %)" in report


def test_a_diagnosis_stands_for_its_capture(example: Path, tmp_path: Path) -> None:
    sides = []
    for name in ("eager", "graph"):
        assert (
            run("diagnose", str(example / name), "-o", str(tmp_path / name), "--no-figures", "-q").exit_code
            == 0
        )
        sides.append(str(tmp_path / name / "diagnosis" / "diagnosis.json"))
    by_json = run("compare", *sides, "--format", "json")
    by_trace = run(
        "compare", str(example / "eager"), str(example / "graph"), "--format", "json", "--jobs", "2"
    )
    assert (by_json.exit_code, by_trace.exit_code) == (0, 0)
    assert by_json.stdout == by_trace.stdout


def test_json_alone_writes_no_file(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        "compare", str(example / "graph"), str(example / "graph"), "--ranks", "0,3", "--format", "json", "-q"
    )
    found = json.loads(result.stdout)
    assert (found["a"]["ranks"], found["step_delta_ns"]["mean"], found["step_delta_ns"]["shown"]) == (
        [0, 3],
        0,
        False,
    )
    assert list(tmp_path.iterdir()) == []


def test_figures_of_an_earlier_run_do_not_stay(example: Path, tmp_path: Path) -> None:
    sides = (str(example / "eager"), str(example / "graph"), "--ranks", "0", "-o", str(tmp_path), "-q")
    assert run("compare", *sides).exit_code == 0
    assert (tmp_path / "comparison" / "figures").exists()
    assert run("compare", *sides, "--no-figures").exit_code == 0
    assert not (tmp_path / "comparison" / "figures").exists()
    assert "figures/" not in (tmp_path / "COMPARISON.md").read_text()


def test_what_cannot_be_read_is_an_error(example: Path, tmp_path: Path) -> None:
    result = run("compare", str(example / "eager"), str(tmp_path / "none.sqlite"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "none.sqlite" in result.stderr
    broken = tmp_path / "diagnosis.json"
    broken.write_text('{"format": "tracebound.diagnosis", "format_version": 99}')
    result = run("compare", str(broken), str(example / "eager"))
    assert result.exit_code == 2
    assert "diagnosis.json" in result.stderr


def test_a_place_that_cannot_be_written_is_an_error(example: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    side = str(example / "graph")
    result = run("compare", side, side, "--ranks", "0", "-o", str(tmp_path / "file"), "-q")
    assert result.exit_code == 2
    assert "choose another place with --output" in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_one_side_alone_is_bad_usage(example: Path) -> None:
    assert run("compare", str(example / "eager")).exit_code == 2
