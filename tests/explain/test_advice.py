"""Advice fits the capture: no option that its profiler lacks, no file that is there already, no GPU that is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis
from analyzer.report.markdown import render
from collectors.manifest import RankRecord
from collectors.run_folder import RunFolder
from fixtures.simulator.program import Op
from tests.across.programs import Ops, host, team, work, written
from tests.builders import Schedule, schedule
from tests.explain.test_run import together

ABSENT = {"before": {"absent": "no NVIDIA driver here"}}
BASE = RankRecord(rank=0, collector="torch", status="complete", host="node-a", boot_id="one")


def on_the_cpu(rank: int, _: int) -> tuple[Op, ...]:
    return (host(50_000 * (1 + rank)),)


def on_device(rank: int, _: int) -> tuple[Op, ...]:
    return host(50_000 * (1 + rank)), work(30_000)


def run_of(folder: Path, ops: Ops, ranks: int, **of_record: object) -> Diagnosis:
    """The diagnosis of a complete run."""
    home = RunFolder(folder / "run")
    files = written(team(ranks, ops), home.path / "traces", "kineto")
    for rank, file in enumerate(files):
        found = [home.describe(file, "kineto-json")]
        home.write(replace(BASE, rank=rank, world_size=ranks, files=found, **of_record))  # type: ignore[arg-type]
    return pipeline.analyze(pipeline.read(home.path)).diagnosis


def note_of(diagnosis: Diagnosis, name: str) -> str:
    return next(row.verdict_note for row in diagnosis.hypotheses if row.id == name)


# -- no device -----------------------------------------------------------------------------------


def test_without_a_gpu_the_report_says_so_first_and_advises_no_option(tmp_path: Path) -> None:
    found = run_of(tmp_path, on_the_cpu, 2, device=ABSENT)
    assert found.notes[0].startswith(
        "No rank has device work, and the run's manifest says why: no NVIDIA driver here; capture where the GPU is; "
        "no option helps."
    )
    assert not any("Device activity was not recorded" in note for note in found.notes)
    text = render(found)
    for option in ("trace=cuda", "ProfilerActivity", "gpu-metrics", "event-trace", "enable_cuda_sync_events",
                   "give the captures"):  # fmt: skip
        assert option not in text
    assert (
        "To measure those of which nothing else is said below: no GPU was there: capture where the GPU is"
        in text
    )
    assert note_of(found, "profiler-distortion") == "time the same steps without the profiler"
    device = [row for row in found.unmeasured if row.what.startswith("all of a device:")]
    assert [row.how_to_measure for row in device] == ["capture where the GPU is; no option helps"]
    assert "device kernels" in device[0].what
    assert any(row.what.startswith("OS runtime waits") for row in found.unmeasured)


@pytest.mark.parametrize("device", [None, {"before": {"devices": []}}])
def test_where_nobody_said_that_there_was_none_the_options_stay(
    device: dict[str, object] | None, tmp_path: Path
) -> None:
    found = run_of(tmp_path, on_the_cpu, 1, device=device)
    assert any("Device activity was not recorded for rank 0" in note for note in found.notes)
    assert "trace=cuda" in note_of(found, "kernel-bound")


# -- several ranks -------------------------------------------------------------------------------


def test_files_of_all_ranks_are_not_asked_for_where_they_are_there(tmp_path: Path) -> None:
    found = run_of(tmp_path, on_device, 2)
    for name in ("collective-transfer", "collective-late-rank"):
        assert "give the captures" not in note_of(found, name)
        assert note_of(found, name).endswith("no collective was recorded on a device") or (
            next(row for row in found.hypotheses if row.id == name).verdict == "contradicted"
        )


def test_they_are_asked_for_where_one_rank_of_two_is_there(tmp_path: Path) -> None:
    files = written(team(2, together), tmp_path, "kineto")
    found = pipeline.analyze(pipeline.read(files[:1])).diagnosis
    assert "give the captures of all ranks" in note_of(found, "collective-transfer")


# -- versions ------------------------------------------------------------------------------------


def of_version(kind: str, version: str | None) -> Diagnosis:
    """A capture of a kernel without event records."""
    built: Schedule = schedule().launch(0, 4, runs=(10, 90))
    built.captured = frozenset({"kernel", "call"})
    capture = built.capture()
    (trace,) = capture.traces
    made = replace(trace.source, kind=kind, profiler_version=version)
    return pipeline.analyze(replace(capture, traces=(replace(trace, source=made),))).diagnosis


@pytest.mark.parametrize(
    ("kind", "version", "counters", "events"),
    [
        ("nsys-sqlite", "2022.4.2.1", "nsys `--gpu-metrics-device=all`", "nsys `--trace=cuda`;"),
        ("nsys-sqlite", "2024.5.1", "nsys `--gpu-metrics-devices=all`", "nsys `--trace=cuda`;"),
        ("nsys-sqlite", "2025.3.1", "nsys `--gpu-metrics-devices=all`", "nsys `--cuda-event-trace=true`;"),
        ("nsys-sqlite", None, "nsys `--gpu-metrics-device=all`", "nsys `--trace=cuda`;"),
        ("kineto-json", None, "nsys `--gpu-metrics-devices=all` (before 2024.5 `--gpu-metrics-device=all`)",
         "nsys `--cuda-event-trace=true` (2025.3 and later; before, `--trace=cuda`);"),
    ],
)  # fmt: skip
def test_options_are_spelled_as_the_profiler_that_made_the_file_knows_them(
    kind: str, version: str | None, counters: str, events: str
) -> None:
    found = of_version(kind, version)
    how = {row.what.partition(":")[0]: row.how_to_measure for row in found.unmeasured}
    assert how["hardware counters over time"] == counters
    assert how["CUDA event records (cross-stream order)"].startswith(events)
    assert note_of(found, "compute-bound").endswith(
        f"tensor-pipe counters: {counters}, or Nsight Compute on the named kernels (`--counters`)"
    )
