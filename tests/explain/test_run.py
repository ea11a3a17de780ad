"""What a manifest adds to a diagnosis: pins, hosts and clocks, ranks that did not end, what profiling cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis, PinnedFact
from analyzer.explain.check_up.examine import examine
from analyzer.report import doctor_text, outputs
from collectors import manifest
from collectors.manifest import ClockBound, Inflation, Pin, RankRecord
from collectors.run_folder import RunFolder
from fixtures.simulator.program import Op
from fixtures.simulator.recording import Recording
from tests.across.programs import Ops, host, meet, team, work, written

BASE = RankRecord(rank=0, collector="torch", status="complete", world_size=2, host="node-a", boot_id="one")


def on_device(rank: int, _: int) -> tuple[Op, ...]:
    return host(50_000 * (1 + rank)), work(30_000)


def together(rank: int, _: int) -> tuple[Op, ...]:
    return host(50_000 * (1 + rank)), work(30_000), meet()


def diagnosed(folder: Path, records: list[RankRecord], ops: Ops = together, off_ns: int = 0) -> Diagnosis:
    """The diagnosis of a run folder with these records, one trace each."""
    recording = Recording(clock_offset_ns={1: off_ns} if off_ns else {})
    home = RunFolder(folder / "run")
    files = written(team(len(records), ops), home.path / "traces", "kineto", recording)
    for record, file in zip(records, files, strict=True):
        home.write(replace(record, files=[home.describe(file, "kineto-json")]))
    return pipeline.analyze(pipeline.read(home.path)).diagnosis


def test_pins_of_the_run_are_shown_and_the_others_listed(tmp_path: Path) -> None:
    pins = {"model": Pin("m 7B", "declared"), "runtime": Pin("vllm 0.11", "found")}
    found = diagnosed(tmp_path, [replace(BASE, pins=pins), replace(BASE, rank=1)])
    assert found.run is not None
    assert found.run.complete
    assert found.run.pins == {
        "model": PinnedFact(value="m 7B", source="declared"),
        "runtime": PinnedFact(value="vllm 0.11", source="found"),
    }
    assert "model" not in found.undeclared
    assert "weights" in found.undeclared
    written_down = manifest.read(tmp_path / "run" / "manifest.json")
    assert "timing_boundary" not in {*found.undeclared, *written_down.undeclared}
    assert set(written_down.undeclared) - set(found.undeclared) == {"hardware"}  # which the traces tell
    assert [rank.host for rank in found.ranks] == ["node-a", "node-a"]


def test_the_report_names_the_run(tmp_path: Path) -> None:
    home = RunFolder(tmp_path / "run")
    (file,) = written(team(1, on_device), home.path, "kineto")
    record = replace(BASE, world_size=None, pins={"batch": Pin("8", "declared")})
    home.write(replace(record, files=[home.describe(file, "kineto-json")]))
    report = outputs.write(pipeline.analyze(pipeline.read(home.path)), tmp_path, figures=False).read_text()
    assert "**Run**: 1 rank in" in report
    assert "complete; pinned: batch `8` (declared)" in report


@pytest.mark.parametrize(
    ("status", "words"),
    [("running", "did not end"), ("failed", "its capture failed"), ("killed", "its capture was cut off")],
)
def test_a_rank_that_did_not_end_makes_the_run_partial(status: str, words: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1, status=status, exit_code=9)])
    assert found.run is not None
    assert not found.run.complete
    assert any(note.startswith("Rank 1:") and words in note for note in found.notes)
    assert any("exit code 9" in note for note in found.notes)


@pytest.mark.parametrize(
    ("code", "words"), [(137, "code 137 (as after SIGKILL)."), (3, "code 3."), (255, "code 255.")]
)
def test_an_exit_code_that_stands_for_a_signal_names_it(code: int, words: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1, exit_code=code)])
    assert f"Rank 1: the command ended with exit {words}" in found.notes


def test_a_failed_rank_says_what_ended_its_loop(tmp_path: Path) -> None:
    """torchrun ends with 1 whatever its ranks ended with, so the exit code does not tell."""
    said = [f"{manifest.LEFT_BY} SystemExit(7)", "the loop ended after 16 steps"]
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1, status="failed", notes=said)])
    assert (
        "Rank 1: its capture failed (the program's loop was left by SystemExit(7)); the run is partial."
        in found.notes
    )


def test_without_device_work_nothing_is_replayed_and_the_reason_is_that(tmp_path: Path) -> None:
    """Not the size of the steps: no other option or number of steps would help."""
    gone = replace(BASE, world_size=None, device={"before": {"absent": "no driver"}})
    found = diagnosed(tmp_path, [gone], lambda rank, step: (host(50_000),))
    assert found.whatif is not None
    assert found.whatif.withheld.startswith("no device work was recorded")
    (row,) = (row for row in found.unmeasured if row.what == "predicted step times")
    assert row.how_to_measure.endswith("; capture where the GPU is; no option helps")


@pytest.mark.parametrize(("profiled", "told"), [(150, True), (105, False)])
def test_what_profiling_cost_is_told_first(profiled: int, told: bool, tmp_path: Path) -> None:
    cost = Inflation(profiled * 10_000, 1_000_000, 20, 20)
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1, inflation=cost)])
    assert (
        any("1.500 ms (median of 20, no interval) with the profiler" in note for note in found.notes) == told
    )
    assert found.run is not None
    assert found.run.ranks[1].profiled_step_ns == profiled * 10_000
    assert found.run.ranks[0].plain_step_ns is None


@pytest.mark.parametrize(("absent", "told"), [(True, True), (False, False)])
def test_the_check_up_says_that_there_was_no_device(absent: bool, told: bool, tmp_path: Path) -> None:
    device = {"before": {"absent": "no driver"}} if absent else {"before": {"devices": []}}
    home = RunFolder(tmp_path / "run")
    run = team(1, lambda rank, step: (host(50_000),))
    (file,) = written(run, home.path, "kineto")
    home.write(replace(BASE, world_size=None, device=device, files=[home.describe(file, "kineto-json")]))
    capture = pipeline.read(home.path)
    found = examine(capture, pipeline.analyze(capture).diagnosis, version="0")
    assert any(note.code == "no-device" and "no driver" in note.text for note in found.notes) == told
    # No option of the profiler brings a device: one gap, and no command; else options might.
    assert (found.captures == []) == told
    assert ([row.what for row in found.failures] == ["no-device"]) == told
    kernels = next(row for row in found.hypotheses if row.id == "kernel-bound")
    assert kernels.answer == "cannot"
    assert (kernels.limits[0].close_gap == "capture where the GPU is") == told


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (
            "complete",
            7,
            {"failed-command": "Rank 0: the command ended with exit code 7; see why, and capture again"},
        ),
        (
            "killed",
            None,
            {"partial-run": "Rank 0: its capture was cut off; the run is partial; capture again"},
        ),
        ("running", None, {"partial-run": "Rank 0: its collector did not end: killed, or still at work"}),
        ("complete", 0, {}),
        ("complete", None, {}),
    ],
)
def test_the_check_up_says_how_the_ranks_ended_and_strict_fails_on_it(
    status: str, code: int | None, told: dict[str, str], tmp_path: Path
) -> None:
    home = RunFolder(tmp_path / "run")
    (file,) = written(team(1, on_device), home.path, "kineto")
    record = replace(BASE, world_size=None, status=status, exit_code=code)
    home.write(replace(record, files=[home.describe(file, "kineto-json")]))
    capture = pipeline.read(home.path)
    found = examine(capture, pipeline.analyze(capture).diagnosis, version="0")
    codes = ("partial-run", "failed-command")
    assert [note.code for note in found.notes if note.code in codes] == list(told)
    assert [row.what for row in found.failures if row.what in codes] == list(told)
    shown = " ".join(doctor_text.text(found).split())
    assert all(words in shown for words in told.values())


# -- clocks -----------------------------------------------------------------------------------------


def test_ranks_of_one_kernel_without_collectives_share_its_clock(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1)], on_device)
    assert [rank.clock.offset_ns for rank in found.ranks] == [0, 0]
    assert found.ranks[1].clock.interval_ns == (0, 0)
    assert found.global_ is None  # nothing leads from one rank to the other


def test_messages_bound_the_clocks_of_hosts_without_collectives(tmp_path: Path) -> None:
    """The messages were exchanged a second before the capture: 100 ppm more at both ends."""
    zero_ns = int(diagnosed(tmp_path / "zero", [BASE, replace(BASE, rank=1)], on_device).time_zero_ns or 0)
    bound = ClockBound(0, -2_100_000, -1_800_000, 64)
    other = replace(BASE, rank=1, host="node-b", boot_id="two", clock_bound=bound)
    found = diagnosed(
        tmp_path, [BASE, replace(other, started_ns=zero_ns - 10**9)], on_device, off_ns=2_000_000
    )
    clock = found.ranks[1].clock
    assert (clock.offset_ns, clock.uncertainty_ns) == (-1_950_000, 250_001)
    assert clock.interval_ns == (-2_200_001, -1_699_999)
    assert (clock.shared_calls, clock.compared_with) == (0, 0)


def test_collectives_tell_more_than_messages(tmp_path: Path) -> None:
    bound = ClockBound(0, -2_100_000, -1_800_000, 64)
    other = replace(BASE, rank=1, host="node-b", boot_id="two", clock_bound=bound)
    found = diagnosed(tmp_path, [BASE, other], off_ns=2_000_000)
    assert found.ranks[1].clock.offset_ns == -2_000_000
    assert found.global_ is not None


def test_without_a_bound_nothing_is_guessed(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, [BASE, replace(BASE, rank=1, boot_id="two")], on_device)
    assert [rank.clock.offset_ns for rank in found.ranks] == [None, None]
