"""The benchmarks run, at a tiny size: their files are captures, their tables are filled. No timing is asserted."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from analyzer import pipeline
from benchmarks import kineto, nsys, run, schedule, tasks


def test_both_files_of_one_schedule_are_the_same_run(tmp_path: Path) -> None:
    steps, ops = 5, 64
    kineto.write(tmp_path / "trace.json", round(steps * ops * kineto.EVENTS_PER_OP), ops)
    nsys.write(tmp_path / "trace.sqlite", steps * ops, ops)
    kineto_trace = pipeline.read(tmp_path / "trace.json").traces[0]
    nsys_trace = pipeline.read(tmp_path / "trace.sqlite").traces[0]
    assert len(kineto_trace.device) == len(nsys_trace.device) == steps * ops
    assert np.array_equal(kineto_trace.device.duration_ns, nsys_trace.device.duration_ns)
    for path in ("trace.json", "trace.sqlite"):
        diagnosis = pipeline.analyze(pipeline.read(tmp_path / path)).diagnosis
        assert diagnosis.steps.count == steps
        assert diagnosis.ranks[0].linked_events == steps * ops


def test_the_event_count_is_as_announced(tmp_path: Path) -> None:
    written = kineto.write(tmp_path / "trace.json", 20_000, 96)
    assert abs(written - 20_000) < 96 * kineto.EVENTS_PER_OP
    assert (tmp_path / "trace.json").read_text().count('"ph"') == written


def test_one_window_without_steps(tmp_path: Path) -> None:
    kernels = 40
    kineto.write_kernels(tmp_path / "trace.json", kernels)
    (rank,) = pipeline.analyze(pipeline.read(tmp_path / "trace.json")).diagnosis.ranks
    assert rank.device_span is not None
    assert rank.device_span.busy_ns == 5_000 * kernels


def test_steps_do_not_overlap() -> None:
    every = list(schedule.steps(3, 32))
    assert all(before.end_ns <= after.start_ns for before, after in itertools.pairwise(every))


@pytest.mark.parametrize("task", ["json.load", "msgspec typed parse", "read", "diagnose"])
def test_tasks_on_a_trace(task: str, tmp_path: Path) -> None:
    kineto.write(tmp_path / "trace.json", 2_000, 32)
    cost = run.measure(task, tmp_path / "trace.json", 1)
    assert cost.peak_bytes > 0


def test_the_aggregate_reads_columns_that_exist(tmp_path: Path) -> None:
    nsys.write(tmp_path / "trace.sqlite", 128, 32)
    assert run.measure("SQL aggregate", tmp_path / "trace.sqlite", 1).peak_bytes > 0
    assert set(tasks.NSYS_COLUMNS) == {
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "NVTX_EVENTS",
    }


def test_the_report_fills_both_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measure", lambda task, path, runs: run.Cost(2.0, 1.0, run.MIB))
    text = run.report(0.0001, 1, tmp_path)
    assert text.count("| diagnose |") == 3
    assert "small steps" in text
    assert not list(tmp_path.iterdir())
