"""``tracebound doctor``: what it prints, and how it ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import StepsError, TraceError
from tests.cli.captures import capture
from tests.cli.conftest import Stub, run


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    assert run("demo", str(folder), "-q").exit_code == 0
    return folder


def checkup(*arguments: str) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    result = run("doctor", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=refuse)
    return found


def test_the_example_is_examined_rank_by_rank(example: Path) -> None:
    found = checkup(str(example / "eager"))
    assert (found["format"], found["format_version"]) == ("tracebound.doctor", 1)
    assert found["ranks"] == list(range(8))
    assert found["steps"]["confidence"] == "high"
    assert len({row["id"] for row in found["hypotheses"]}) == len(found["hypotheses"]) == 15
    assert found["gaps"] == len(found["failures"])


def test_strict_fails_on_gaps_and_prints_the_same(example: Path) -> None:
    one = str(sorted((example / "eager").iterdir())[0])
    plain, strict = run("doctor", one), run("doctor", one, "--strict")
    assert (plain.exit_code, strict.exit_code) == (0, 1)
    assert plain.stdout == strict.stdout
    assert "missing-ranks" in strict.stderr
    assert "  next: capture again" in strict.stderr


def test_strict_passes_where_nothing_is_missing(example: Path) -> None:
    folder = str(example / "eager")
    assert checkup(folder)["failures"] == []
    result = run("doctor", folder, "--strict")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "No gap: another capture of this kind would not answer more." in result.stdout


def test_a_file_that_is_cut_off_is_a_gap(example: Path, tmp_path: Path) -> None:
    text = gzip.decompress(sorted((example / "eager").iterdir())[0].read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(text[: len(text) * 3 // 4])
    result = run("doctor", str(path), "--strict", "--format", "json")
    assert result.exit_code == 1
    assert "damaged-file" in {row["what"] for row in json.loads(result.stdout)["failures"]}
    assert "damaged-file" in result.stderr


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text("[]")
    result = run("doctor", str(path), "--strict")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "notes.json" in result.stderr


def test_steps_that_match_nothing_are_a_gap_not_an_error(example: Path) -> None:
    folder = str(example / "eager")
    found = checkup(folder, "--steps", "no such range")
    assert found["steps"] is None
    assert [row["what"] for row in found["failures"]] == ["no-steps"]
    assert found["notes"][0]["text"].startswith("no step was found: no range, op or frame")
    assert run("doctor", folder, "--steps", "no such range", "--strict").exit_code == 1


def test_it_works_where_analysis_does_not(pipeline: Stub) -> None:
    pipeline.analysis = StepsError("t.sqlite", "", "step ranges overlap", "name them with --steps")
    result = run("doctor", "t.sqlite")
    assert result.exit_code == 0
    assert "no step was found: step ranges overlap; next: name them with --steps" in result.stdout


def test_an_unreadable_input_ends_with_two(pipeline: Stub) -> None:
    pipeline.capture = TraceError("t.sqlite", "", "is no trace", "give one")
    assert run("doctor", "t.sqlite", "--strict").exit_code == 2


def test_options_reach_the_pipeline(pipeline: Stub) -> None:
    arguments = [
        "--steps",
        "^decode",
        "--output-ranges",
        "detok",
        "--ranks",
        "0,2-3",
        "--device",
        "0",
        "--jobs",
        "2",
    ]
    assert run("doctor", "a", "b", *arguments, "--rank-regex", r"r(?P<rank>\d+)").exit_code == 0
    assert pipeline.read_with["paths"] == ["a", "b"]
    assert (pipeline.read_with["ranks"], pipeline.read_with["device"]) == ([0, 2, 3], 0)
    assert pipeline.read_with["jobs"] == pipeline.analyzed_with.jobs == 2
    assert (pipeline.analyzed_with.steps, pipeline.analyzed_with.output_ranges) == ("^decode", "detok")


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "\u202ereversed", "`code`|<b>"])
def test_hostile_text_steers_no_terminal(pipeline: Stub, text: str) -> None:
    pipeline.capture = capture(path=text)
    shown = run("doctor", "t", "--strict")
    assert not {"\x1b", "\u202e"} & set(shown.stdout + shown.stderr)
    assert "a\nb" not in shown.stdout + shown.stderr


def test_the_text_fits_a_terminal(example: Path) -> None:
    for name in ("eager", "graph"):
        lines = run("doctor", str(example / name)).stdout.splitlines()
        assert len(lines) <= 60
        assert [line for line in lines if len(line) > 110 and str(example) not in line] == []
