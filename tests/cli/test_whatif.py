"""``tracebound whatif``: what reaches the pipeline, and what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from tests.cli.conftest import Stub, run
from tests.report.builder import analysis
from tests.report.whatif_builder import withheld


def test_changes_and_assumptions_reach_the_pipeline(pipeline: Stub) -> None:
    result = run(
        "whatif", "decode.sqlite", "--change", "graph-capture", "--change", "host=0.8",
        "--assume", "graph_launch_ns=2500", "--steps", "^decode", "--jobs", "2",
    )  # fmt: skip
    assert result.exit_code == 0
    options = pipeline.analyzed_with
    assert (options.changes, options.assume) == (("graph-capture", "host=0.8"), ("graph_launch_ns=2500",))
    assert (options.steps, options.own_changes, pipeline.analyzed_by) == ("^decode", False, "2 workers")


def test_without_a_change_each_explanations_own_is_asked_for(pipeline: Stub) -> None:
    assert run("whatif", "decode.sqlite").exit_code == 0
    assert (pipeline.analyzed_with.changes, pipeline.analyzed_with.own_changes) == ((), True)


def test_text_and_json_go_to_stdout_alone(pipeline: Stub) -> None:
    shown = run("whatif", "decode.sqlite", "-q")
    assert shown.stdout.startswith("Phase decode, rank 0: 3 steps")
    assert shown.stderr == ""
    found = json.loads(run("whatif", "decode.sqlite", "-q", "--format", "json").stdout)
    assert found["whatif"]["changes"][0]["change"] == "graph-capture"


def test_what_is_withheld_is_an_answer(pipeline: Stub) -> None:
    pipeline.analysis = analysis(whatif=withheld())
    result = run("whatif", "decode.sqlite", "-q")
    assert (result.exit_code, result.stdout) == (0, "No prediction: lags learned on odd steps miss.\n")


def test_the_list_needs_no_trace_and_names_every_change_and_assumption() -> None:
    result = run("whatif", "--list-changes")
    assert result.exit_code == 0
    for name in ("graph-capture", "kernel:REGEX=0.5", "even-ranks", "graph_turnaround_ns", "call_ns"):
        assert name in result.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--change", "faster"], "--change (faster): is no change\n  next: known are graph-capture, "),
        (["--change", "kernel:(=0.5"], "is no regular expression"),
        (["--change", "collective:gamma=1us"], "'gamma' is neither alpha nor beta"),
        (["--change", "host=fast"], "'fast' is not understood\n  next: give a factor such as 0.5"),
        (["--change", "kernel:nothing_like_it=0.5"], "fits no device work of the capture"),
        (["--assume", "graph_launch_ns"], "is no assumption\n  next: write NAME=NS"),
        (["--assume", "speed=3"], "is no assumption\n  next: known are graph_launch_ns"),
        (["--assume", "call_ns=9..3"], "ends before it begins"),
    ],
)
def test_what_is_not_understood_says_what_is(demo: Path, arguments: list[str], reason: str) -> None:
    result = run("whatif", str(demo), "-q", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


@pytest.fixture(scope="module")
def demo() -> Path:
    import analyzer.example

    return Path(analyzer.example.__file__).parent / "nsys-decode_1gpu.sqlite"


def test_the_shipped_capture_is_predicted(demo: Path) -> None:
    found = json.loads(run("whatif", str(demo), "-q", "--format", "json", "--change", "host=1").stdout)
    (row,) = found["whatif"]["changes"]
    low, high = row["predicted_step_ns"]
    assert low < row["step_ns"] < high  # nothing changes: only the replay's own width is left
    assert (high - low) / row["step_ns"] < 0.011
    assert row["gain_upper_bound_ns"] < 5_000  # the return of the wait, which could find the work done


def test_the_library_predicts_as_the_command_does(demo: Path) -> None:
    import analyzer

    result: Analysis = analyzer.analyze(
        analyzer.read([str(demo)]), changes=("kernel:.=0.5",), own_changes=False
    )
    assert result.diagnosis.whatif is not None
    (row,) = result.diagnosis.whatif.changes
    found = json.loads(run("whatif", str(demo), "-q", "--format", "json", "--change", "kernel:.=0.5").stdout)
    assert found["whatif"]["changes"][0]["predicted_step_ns"] == list(row.predicted_step_ns or ())
