"""The command line against a stubbed pipeline: options, exit codes, streams, hostile text."""

from __future__ import annotations

import json
import os
import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import analyzer
from analyzer.errors import InvariantError, StepsError, TraceError
from tests.cli.captures import capture
from tests.cli.conftest import Options, Stub, run
from tests.report import builder

ROOT = Path(__file__).resolve().parents[2]
NO_SUCH_DEVICE = TraceError("t.sqlite", "", "device 0 is not in it; present: 1, 2, 3", "pass --device 1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_diagnose_writes_the_report_and_names_it_on_stdout(pipeline: Stub, tmp_path: Path) -> None:
    result = run("diagnose", "decode.sqlite", "-o", "out")
    assert result.exit_code == 0
    assert result.stdout == "out/DIAGNOSIS.md\n"
    assert (
        "supported: launch-bound, 53.3 % (48.1 to 61.2 %) of the step, phase decode, rank 0" in result.stderr
    )
    assert "warning: Assumed" in result.stderr
    assert (tmp_path / "out" / "diagnosis" / "segments.csv").exists()
    assert pipeline.read_with["paths"] == ["decode.sqlite"]


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (["inconclusive", "unmeasured"], "the report says which are open"),
        (["unmeasured", "contradicted"], "none is open, some are unmeasured: tracebound doctor says what"),
        (["contradicted"], "none is open"),
    ],
)
def test_what_is_left_where_nothing_is_supported(verdicts: list[str], told: str, pipeline: Stub) -> None:
    rows = [builder.hypothesis(f"h{at}", verdict=verdict) for at, verdict in enumerate(verdicts)]
    pipeline.analysis = builder.analysis(hypotheses=rows)
    said = run("diagnose", "decode.sqlite").stderr
    assert f"no explanation is supported by this capture; {told}" in said


def test_the_default_place_is_the_current_directory(pipeline: Stub, tmp_path: Path) -> None:
    assert run("diagnose", "decode.sqlite").stdout == "DIAGNOSIS.md\n"
    assert (tmp_path / "DIAGNOSIS.md").exists()


def test_json_stands_alone_on_stdout_and_writes_nothing(pipeline: Stub, tmp_path: Path) -> None:
    result = run("diagnose", "decode.sqlite", "--format", "json")
    assert json.loads(result.stdout)["format"] == "tracebound.diagnosis"
    assert result.stdout_bytes == pipeline.analysis.to_json()
    assert list(tmp_path.iterdir()) == []


def test_json_with_output_also_writes_the_files(pipeline: Stub, tmp_path: Path) -> None:
    result = run("diagnose", "decode.sqlite", "--format", "json", "-o", "out")
    assert (tmp_path / "out" / "diagnosis" / "diagnosis.json").read_bytes() == result.stdout_bytes


def test_quiet_leaves_only_data(pipeline: Stub) -> None:
    result = run("diagnose", "decode.sqlite", "-q")
    assert (result.stdout, result.stderr) == ("DIAGNOSIS.md\n", "")


def test_many_warnings_are_counted_unless_asked_for(pipeline: Stub) -> None:
    pipeline.analysis = builder.analysis(notes=[f"note {letter}" for letter in string.ascii_lowercase])
    assert "more; -v shows all" in run("diagnose", "t").stderr
    assert "warning: note z" in run("diagnose", "t", "-v").stderr


def test_options_reach_the_pipeline(pipeline: Stub) -> None:
    result = run(
        "diagnose",
        "a.json",
        "b.json",
        *("--steps", "^decode", "--step-index", "p95", "--boundary", "host", "--dispatch", "fwd"),
        *("--output-ranges", "detok|sample", "--threshold", "supported=0.2", "--threshold", "quiet_ns=3e4"),
        *("--rank-regex", r"r(?P<rank>\d+)", "--ranks", "0,2-3", "--device", "1", "--jobs", "2"),
        *("--manifest", "run/manifest.json", "--token-log", "a.csv", "--token-log", "b.csv"),
        *("--token-clock", "server=trace, client = node1", "--token-clock", "device=trace"),
    )
    assert result.exit_code == 0, result.stderr
    assert pipeline.analyzed_with == Options(
        steps="^decode",
        step_index="p95",
        boundary="host",
        dispatch="fwd",
        output_ranges="detok|sample",
        thresholds={"supported": 0.2, "quiet_ns": 30_000.0},
        jobs=2,
        token_logs=(Path("a.csv"), Path("b.csv")),
        token_clocks={"server": "trace", "client": "node1", "device": "trace"},
    )
    assert pipeline.analyzed_by == "2 workers"
    del pipeline.read_with["progress"]
    assert pipeline.read_with == {
        "paths": ["a.json", "b.json"],
        "rank_regex": r"r(?P<rank>\d+)",
        "ranks": [0, 2, 3],
        "device": 1,
        "manifest": Path("run/manifest.json"),
        "executor": "2 workers",
    }


def test_a_step_can_be_a_number(pipeline: Stub) -> None:
    run("diagnose", "t", "--step-index", "12")
    assert pipeline.analyzed_with.step_index == "12"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--steps", "("], "--steps: '(' is no regular expression"),
        (["--dispatch", "*"], "--dispatch: '*' is no regular expression"),
        (["--output-ranges", "["], "--output-ranges: '[' is no regular expression"),
        (["--rank-regex", r"rank(\d+)"], "has no group named 'rank'"),
        (["--ranks", "3-1"], "--ranks: '3-1' is no list of ranks"),
        (["--ranks", "0,,1"], "is no list of ranks"),
        (["--ranks", "0-999999999"], "is no list of ranks"),
        (["--step-index", "fastest"], "give a number or one of median, slowest, p95"),
        (["--threshold", "supported"], "is not NAME=VALUE"),
        (["--threshold", "supported=nan"], "is not NAME=VALUE"),
        (["--device", "-1"], "--device"),
        (["--jobs", "0"], "--jobs"),
        (["--boundary", "gpu"], "--boundary"),
    ],
)
def test_a_bad_value_is_usage_and_says_what_is_right(
    pipeline: Stub, arguments: list[str], reason: str
) -> None:
    result = run("diagnose", "t", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_our_errors_are_one_message(pipeline: Stub, tmp_path: Path) -> None:
    pipeline.capture = NO_SUCH_DEVICE
    result = run("diagnose", "t.sqlite", "--device", "0")
    assert result.exit_code == 2
    assert result.stderr == (
        "tracebound: t.sqlite: device 0 is not in it; present: 1, 2, 3\n  next: pass --device 1\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_debug_adds_the_traceback(pipeline: Stub) -> None:
    pipeline.capture = NO_SUCH_DEVICE
    result = run("diagnose", "t.sqlite", "--debug")
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr


def test_a_broken_law_of_our_own_is_a_bug_and_writes_nothing(pipeline: Stub, tmp_path: Path) -> None:
    pipeline.analysis = InvariantError("window 3 does not sum")
    result = run("diagnose", "t.sqlite")
    assert result.exit_code == 3
    assert "internal contradiction: window 3 does not sum" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_with_130(pipeline: Stub) -> None:
    pipeline.analysis = KeyboardInterrupt()
    assert run("diagnose", "t.sqlite").exit_code == 130


def test_strict_refuses_partial_inputs(pipeline: Stub, tmp_path: Path) -> None:
    pipeline.capture = capture(partial=True)
    assert run("diagnose", "t").exit_code == 0
    result = run("diagnose", "t", "--strict", "-o", "other")
    assert result.exit_code == 1
    assert "decode.sqlite: the file is cut off or damaged" in result.stderr
    assert not (tmp_path / "other").exists()


def test_a_place_that_cannot_be_written_is_an_error(pipeline: Stub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("diagnose", "t", "-o", "file/below")
    assert result.exit_code == 2
    assert "--output DIR" in result.stderr


@pytest.mark.parametrize("text", ["\x1b[31m[bold red]x[/]", "a\nb", "\u202e", "\udce9"])
def test_hostile_text_steers_no_terminal(pipeline: Stub, text: str) -> None:
    pipeline.analysis = builder.analysis(notes=[text])
    pipeline.capture = capture(path=text)
    for arguments in (["diagnose", "t"], ["inspect", "t"]):
        result = run(*arguments)
        assert result.exit_code == 0
        shown = result.stdout + result.stderr
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "a\nb" not in shown
    pipeline.capture = TraceError(text, text, text, text)
    assert "\x1b" not in run("diagnose", "t").stderr


def test_inspect_shows_what_is_there_and_what_is_not(pipeline: Stub) -> None:
    result = run("inspect", "decode.sqlite")
    assert result.exit_code == 0
    for part in (
        "decode.sqlite\n  nsys-sqlite, profiler 2024.5.1, schema -",
        "captured: kernels, memory copies, CUDA API calls",
        "not captured: memory sets, whole graph replays, kernels inside graphs, synchronization records,",
        "7 (3), 13 (1)",
        "5 steps, found by ranges that match the pattern given (decode|prefill)",
        "collective (all_reduce)",
        "Their start cannot be explained by a launch.",
    ):
        assert part in result.stdout


def test_inspect_as_json(pipeline: Stub) -> None:
    found = json.loads(run("inspect", "t", "--format", "json").stdout)
    assert found["format"] == "tracebound.inspection"
    assert [row["calls"] for row in found["device_work"]] == [1, 1, 1, 1]
    assert found["collectives"][0]["operation"] == "all_reduce"
    assert found["ranks"][0]["streams"][0] == {
        "device": 0,
        "context": 1,
        "stream": 7,
        "events": 3,
        "total_ns": 280,
    }


def test_inspect_works_where_analysis_does_not(pipeline: Stub) -> None:
    pipeline.analysis = StepsError("t.sqlite", "", "step ranges overlap", "name them with --steps")
    result = run("inspect", "t.sqlite")
    assert result.exit_code == 0
    assert "none: step ranges overlap; next: name them with --steps" in result.stdout
    assert "One start is not explained." in result.stdout


def test_no_arguments_show_the_help() -> None:
    assert "diagnose" in run().output
    assert "Usage: " in run("diagnose").output


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert run("--version").stdout == f"tracebound {project['version']}\n"
    assert analyzer.__version__ == project["version"]


def test_the_version_loads_no_heavy_library() -> None:
    code = "import sys, analyzer.cli; print({'pandas', 'scipy', 'pyarrow', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_reader_that_goes_away_ends_the_run_without_a_word(tmp_path: Path) -> None:
    script = tmp_path / "loud.py"
    script.write_text(
        "import typer\n"
        "from analyzer.cli.console import ending, out\n"
        "def loud() -> None:\n"
        "    with ending(debug=False):\n"
        "        out('x' * 10_000_000)\n"
        "typer.run(loud)\n"
    )
    line = f"{sys.executable} {script} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("141\n", "")


def test_the_library_offers_its_names() -> None:
    assert set(analyzer.__all__) <= set(dir(analyzer))
    assert analyzer.Capture.__name__ == "Capture"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        analyzer.nonsense  # noqa: B018
