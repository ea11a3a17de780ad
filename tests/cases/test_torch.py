"""torch.profiler traces: graphs, launches, collectives by name, other vendors, nested host records, ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.errors import TraceError
from tests.captures.results import run
from tests.cases.load import (
    case_file,
    device_us,
    diagnose,
    exposed_us,
    kernel,
    ledger,
    only_rank,
    only_window,
    path_us,
    us_by_class,
)
from tests.shared import case_path, needs_shared

pytestmark = needs_shared


def test_b30_streams_of_a_replay_are_no_concurrency(tmp_path: Path) -> None:
    analysis = diagnose("B30.json", tmp_path)
    window = only_window(analysis)
    assert device_us(analysis) == (40, 0, 40)
    assert path_us(window) == {"kernel": 40, "launch.latency": 10}
    assert (window.kernels_in_graphs, window.graph_replays) == (4, 1)
    assert (window.overlap_ns or {})["kernel_under_kernel"] == 0


def test_b31_replays_without_device_rows_get_no_verdict(tmp_path: Path) -> None:
    analysis = diagnose("B31.json", tmp_path)
    window = only_window(analysis)
    assert (window.launches, window.graph_replays, window.kernels) == (3, 3, None)
    assert only_rank(analysis).device_events == 0
    assert (analysis.diagnosis.boundary, only_rank(analysis).device_span) == ("host", None)
    assert path_us(window)["host.api"] == 2700  # the three waits
    assert {row.verdict for row in analysis.diagnosis.hypotheses} == {"unmeasured"}
    assert "Device activity was not recorded" in " ".join(analysis.diagnosis.notes)
    (how,) = [row.how_to_measure for row in analysis.diagnosis.unmeasured if "device figures" in row.what]
    assert "ProfilerActivity.CUDA" in how


def test_b32_every_launch_call_is_linked(tmp_path: Path) -> None:
    analysis = diagnose("B32.json", tmp_path)
    rank = only_rank(analysis)
    assert (rank.device_events, rank.linked_events, rank.unlinked_events) == (11, 11, 0)
    assert only_window(analysis).launches == 9


def test_b34_kernels_without_a_launch_stay_and_are_counted(tmp_path: Path) -> None:
    analysis = diagnose("B34.json", tmp_path)
    rank = only_rank(analysis)
    assert (rank.device_events, rank.linked_events, rank.unlinked_events) == (4, 1, 3)
    assert device_us(analysis) == (40, 30, 70)
    assert exposed_us(only_window(analysis))["kernel"] == 40
    (row,) = [row for row in analysis.diagnosis.quality if row.reason == "unlinked-device-work"]
    assert row.count == 3
    assert "30000 ns" in row.effect


def test_b36_collectives_by_their_names(tmp_path: Path) -> None:
    analysis = diagnose("B36.json", tmp_path)
    window = only_window(analysis)
    assert us_by_class(analysis) == {"collective": 90, "kernel": 10}
    assert (exposed_us(window)["collective"], exposed_us(window)["kernel"]) == (90, 10)
    assert window.collectives == 9


def test_b36_operations_from_the_metadata_first(tmp_path: Path) -> None:
    found = json.loads(run("inspect", case_file("B36.json", tmp_path), "--format", "json").stdout)
    calls: dict[str | None, int] = {}
    for row in found["collectives"]:
        calls[row["operation"]] = calls.get(row["operation"], 0) + row["calls"]
    assert calls == {
        "all_reduce": 4,  # one of them named SendRecv, by its metadata
        "all_gather": 1,
        "reduce_scatter": 1,
        "send_recv": 1,
        "all_to_all": 1,  # by its metadata
        None: 1,
    }


def test_b37_collectives_of_engines_and_what_only_looks_like_them(tmp_path: Path) -> None:
    analysis = diagnose("B37.json", tmp_path)
    assert us_by_class(analysis) == {"collective": 100, "kernel": 50}
    window = only_window(analysis)
    assert (window.collectives, window.kernels) == (10, 15)
    assert (exposed_us(window)["collective"], exposed_us(window)["kernel"]) == (100, 50)


def test_b57_amd_names_and_streams(tmp_path: Path) -> None:
    analysis = diagnose("B57.json", tmp_path)
    assert us_by_class(analysis) == {"kernel": 60, "collective": 60, "copy": 10, "set": 4}
    assert exposed_us(only_window(analysis))["copy"] == 14
    rank = only_rank(analysis)
    assert (rank.linked_events, rank.unlinked_events) == (6, 0)
    assert only_window(analysis).graph_replays == 1
    found = json.loads(run("inspect", case_file("B57.json", tmp_path), "--format", "json").stdout)
    assert [row["stream"] for row in found["ranks"][0]["streams"]] == [3, 94438473428992, 94438473500000]


def test_b58_host_time_is_self_time(tmp_path: Path) -> None:
    analysis = diagnose("B58.json", tmp_path, boundary="host")
    rows = {row.name: (row.path_ns / 1000, row.frame) for row in analysis.diagnosis.host_culprits}
    assert rows == {
        "engine.py(10): step": (20, "engine.py(10): step"),
        "runner.py(5): execute": (40, "runner.py(5): execute"),
        "aten::mm": (35, "runner.py(5): execute"),
        "cudaLaunchKernel": (5, "runner.py(5): execute"),
    }
    window = only_window(analysis)
    assert path_us(window) == {"launch.api": 5, "host.framework": 95}
    assert window.end_ns - window.start_ns == 100_000


def test_b58_the_device_waits_for_one_launch(tmp_path: Path) -> None:
    analysis = diagnose("B58.json", tmp_path)
    assert kernel(analysis, "gemm_a").path_ns == 10_000
    path = path_us(only_window(analysis))
    # 30 from the call to the kernel, of which no more than the assumed 20 can be latency
    assert path == {"kernel": 10, "launch.latency": 20, "gap.dependency": 10}


def test_b58_python_frames_are_said_to_inflate(tmp_path: Path) -> None:
    analysis = diagnose("B58.json", tmp_path)
    assert ledger(analysis)["python-frames-recorded"] == 2
    assert any("Python frames" in note and "inflated" in note for note in analysis.diagnosis.notes)


def test_b17_two_files_of_one_rank_are_both_named() -> None:
    files = [case_path("B17.hostA.json"), case_path("B17.hostB.json")]
    with pytest.raises(TraceError) as caught:
        pipeline.read(files)
    for file in files:
        assert file.name in str(caught.value)
    result = run("diagnose", *files)
    assert (result.exit_code, result.stdout) == (2, "")


def test_b17_one_file_alone_is_fine() -> None:
    assert pipeline.read([case_path("B17.hostA.json")]).ranks == (0,)


def test_b18_a_rank_without_a_file_is_named() -> None:
    capture = pipeline.read([case_path(f"B18.rank{rank}.json") for rank in (3, 0, 1)])
    assert (capture.ranks, capture.missing_ranks) == ((0, 1, 3), (2,))
    diagnosis = pipeline.analyze(capture).diagnosis
    assert diagnosis.missing_ranks == [2]
    assert any("No file of rank 2" in note for note in diagnosis.notes)
    assert {row.verdict for row in diagnosis.hypotheses if row.id.startswith("collective-")} == {"unmeasured"}


def test_every_case_counts_what_it_cannot_link(tmp_path: Path) -> None:
    for name, count in (("B34.json", 3), ("B13.json", 5), ("B43.json", 3)):
        assert ledger(diagnose(name, tmp_path))["unlinked-device-work"] == count
