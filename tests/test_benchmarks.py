"""The benchmarks run, at a tiny size: their files are captures, their tables are filled. No timing is asserted."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from analyzer import pipeline
from benchmarks import kineto, memory, nsys, ranks, run, schedule, tasks


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


def test_the_files_of_many_ranks_are_one_run(tmp_path: Path) -> None:
    count, steps = 4, 3
    written = ranks.write(tmp_path, count, steps * ranks.EVENTS_PER_STEP)
    assert written == count * steps * ranks.EVENTS_PER_STEP
    capture = pipeline.read(tmp_path)
    assert list(capture.ranks) == list(range(count))
    starts, ends = [], []
    for trace in capture.traces:
        rows = np.flatnonzero(trace.device.collective >= 0)
        infos = [trace.collectives[code] for code in trace.device.collective[rows].tolist()]
        assert [info.sequence for info in infos] == list(range(1, steps * 40 + 1))
        assert {(info.op, info.group, info.group_ranks) for info in infos} == {
            ("allreduce", "2", (0, 1, 2, 3))
        }
        starts.append(trace.device.start_ns[rows])
        ends.append(starts[-1] + trace.device.duration_ns[rows])
    assert np.ptp(ends, axis=0).max() < 5_000 < np.ptp(starts, axis=0).mean()
    assert (np.argmax(starts, axis=0) == ranks.late_rank(count)).mean() > 0.9
    diagnosis = pipeline.analyze(capture).diagnosis
    assert (diagnosis.steps.count, diagnosis.budget[0].phase) == (steps, "decode")


def test_memory_counts_descendants() -> None:
    child = "import time; held = b'x' * (64 << 20); time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        peak = memory.watch(process, timeout_s=60)
    assert peak > 64 << 20


def test_a_task_that_takes_too_long_is_ended() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process,
        pytest.raises(subprocess.TimeoutExpired),
    ):
        memory.watch(process, timeout_s=0.1)


@pytest.mark.parametrize("task", ["diagnose ranks", "diagnose ranks, 2 jobs"])
def test_tasks_on_ranks(task: str, tmp_path: Path) -> None:
    ranks.write(tmp_path, 2, 1)
    assert run.measure(task, tmp_path, 1).peak_bytes > 0


@pytest.mark.parametrize(
    "task", ["json.load", "msgspec typed parse", "read", "diagnose", "step work", "compare"]
)
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


def test_the_report_fills_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measure", lambda task, path, runs: run.Cost(2.0, 1.0, run.MIB))
    monkeypatch.setattr(run, "RANKS", (2, 4))
    text = run.report(0.0001, 1, tmp_path)
    assert text.count("| diagnose |") == 3
    assert "small steps" in text
    assert text.count("| 1.0 | 1.00 | 1.000 | 1.00 | 1.000 |") == 2  # what comparisons cost, of both captures
    assert [line[:20] for line in text.splitlines() if " ranks" in line[2:9]] == [
        "| 2 ranks | 5,928 | ", "| 4 ranks | 11,856 |", "| 4 ranks, 2 jobs | ",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_the_collectors_costs_fill_their_table() -> None:
    pytest.importorskip("torch")
    from benchmarks.collectors import table

    rows = table(20).splitlines()
    assert len(rows) == 2 + 5 + 4
    assert all(row.count("|") == 4 and "%" in row for row in rows[2:])
