"""The field cases that are databases: what the reader has to hand on for the right figures to come out."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from analyzer.model import CopyKind, DeviceKind, HostKind, Trace
from analyzer.readers.nsys_sqlite import read
from tests.readers.nsys_sqlite.builder import device_names, host_names, reasons
from tests.shared import case_path, needs_shared

pytestmark = needs_shared


def load(case: str, folder: Path) -> list[Trace]:
    path = folder / f"{case}.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(case_path(f"{case}.sql").read_text())
    connection.close()
    return read(path)


def busy_us(trace: Trace) -> float:
    """Sum of durations; the cases used here have no overlap."""
    return float(trace.device.duration_ns.sum()) / 1000


def test_b20_correlations_are_joined_inside_one_process(tmp_path: Path) -> None:
    traces = load("B20", tmp_path)
    latency = {}
    for trace in traces:
        calls = trace.process.host
        assert calls.correlation.tolist() == trace.device.correlation.tolist() == [5]
        latency[trace.process.pid] = int(trace.device.start_ns[0] - calls.start_ns[0])
    assert latency == {"1001": 5000, "1002": 7000}


def test_b21_one_process_with_three_devices_is_three_ranks(tmp_path: Path) -> None:
    traces = load("B21", tmp_path)
    assert {t.device_info.index: busy_us(t) for t in traces if t.device_info} == {0: 100, 1: 80, 2: 80}
    assert [(lane.device, lane.stream) for lane in traces[0].process.lanes] == [(0, 7), (1, 7), (2, 7)]
    assert all(trace.process is traces[0].process for trace in traces)


def test_b23_two_processes_on_one_gpu_have_one_identity(tmp_path: Path) -> None:
    infos = [trace.device_info for trace in load("B23", tmp_path)]
    assert {info.physical for info in infos if info} == {"aaaaaaaa-0000"}
    assert {(info.uuid, info.sm_count) for info in infos if info} == {("GPU-aaaaaaaa-0000", 132)}
    assert len(infos) == 2


def test_b24_absent_tables_are_not_captured(tmp_path: Path) -> None:
    (trace,) = load("B24", tmp_path)
    assert trace.source.captured == {"kernel", "call"}
    assert busy_us(trace) == 35
    assert trace.device.graph_node.tolist() == [-1, -1]


def test_b25_versioned_nvtx_table_and_both_kinds_of_names(tmp_path: Path) -> None:
    (trace,) = load("B25", tmp_path)
    ranges = trace.process.host.kind == HostKind.RANGE
    assert [n for n, is_range in zip(host_names(trace), ranges, strict=True) if is_range] == [
        "prefill",
        "decode",
        "decode",
    ]
    assert "nvtx" in trace.source.captured
    assert "cudaLaunchKernelExC" in host_names(trace)


def test_b27_whole_graph_rows_are_device_work(tmp_path: Path) -> None:
    (trace,) = load("B27", tmp_path)
    graphs = trace.device.kind == DeviceKind.GRAPH
    assert graphs.sum() == 3
    assert (trace.device.kind == DeviceKind.KERNEL).sum() == 1
    assert trace.device.duration_ns[graphs].sum() == 270_000
    assert set(trace.device.graph_exec[graphs].tolist()) == {8}
    assert device_names(trace)[0] == "CUDA graph 7 (exec 8)"


def test_b28_nodes_of_a_replay_share_one_launch(tmp_path: Path) -> None:
    (trace,) = load("B28", tmp_path)
    assert trace.device.correlation.tolist() == [50, 50, 50]
    assert trace.device.graph_exec.tolist() == [7, 7, 7]
    assert np.diff(trace.device.graph_node).tolist() == [1, 1]
    assert "graph-node" in trace.source.captured


def test_b35_a_process_that_only_launched_has_no_device(tmp_path: Path) -> None:
    complete, host_only = load("B35", tmp_path)
    assert (complete.process.pid, len(complete.device), busy_us(complete)) == ("1001", 2, 36)
    assert (host_only.process.pid, len(host_only.device), host_only.device_info) == ("1002", 0, None)
    assert len(host_only.process.host) == 3


def test_b48_names_that_are_missing_long_or_shared(tmp_path: Path) -> None:
    (trace,) = load("B48", tmp_path)
    names = device_names(trace)
    assert len(set(names)) == 4
    assert max(map(len, names)) > 19_000
    assert names[-1] == "k"  # the short name stands in for the full one that is not there
    assert reasons(trace) == {"full-name-missing": 1}
    assert busy_us(trace) == 65


def test_b49_copies_sets_and_migrations(tmp_path: Path) -> None:
    (trace,) = load("B49", tmp_path)
    device = trace.device
    by_kind = {
        int(k): int(device.duration_ns[device.copy_kind == k].sum()) // 1000 for k in set(device.copy_kind)
    }
    assert by_kind == {
        CopyKind.HTOD: 10,
        CopyKind.DTOH: 20,
        CopyKind.DTOD: 5,
        CopyKind.PTOP: 20,
        CopyKind.UM_HTOD: 10,
        -1: 2,
    }
    assert device.correlation[device.copy_kind == CopyKind.UM_HTOD].tolist() == [0]
    assert device.kind.tolist() == [DeviceKind.COPY] * 5 + [DeviceKind.SET]
    assert device.bytes.tolist() == [1048576] * 5 + [4096]
    assert device_names(trace)[1] == "Memcpy DtoH (Device -> Pageable)"


def test_b50_ranges_stay_on_their_threads(tmp_path: Path) -> None:
    (trace,) = load("B50", tmp_path)
    host = trace.process.host
    on = {
        name: trace.process.threads[code].tid
        for name, code in zip(host_names(trace), host.thread, strict=True)
    }
    assert on["backward"] == "1" and on["autograd_node"] == "2"


def test_b53_warnings_of_the_profiler(tmp_path: Path) -> None:
    (trace,) = load("B53", tmp_path)
    warnings = [d.text for d in trace.source.diagnostics if d.severity > 1]
    assert warnings == ["some device activity records were dropped, results can be incomplete"]
    assert len(trace.source.diagnostics) == 2


def test_b56_devices_that_begin_at_one(tmp_path: Path) -> None:
    assert [t.device_info.index for t in load("B56", tmp_path) if t.device_info] == [1, 2, 3]


@pytest.mark.parametrize("part", ["a", "b"])
def test_b41_the_sessions_own_clock(tmp_path: Path, part: str) -> None:
    (trace,) = load(f"B41.{part}", tmp_path)
    expected = {"a": 1_700_000_000_000_000_000, "b": 1_700_000_000_250_000_000}
    assert trace.epoch_zero_ns == expected[part]
