"""Databases: several processes and devices, absent tables, graphs, lost records, names, copies, threads."""

from __future__ import annotations

from pathlib import Path

from tests.captures.results import run
from tests.cases.load import (
    case_file,
    device_us,
    diagnose,
    exposed_us,
    ledger,
    not_captured,
    only_rank,
    only_window,
    path_us,
    us_by_class,
    verdict,
)
from tests.shared import needs_shared

pytestmark = needs_shared


def test_b20_correlations_of_two_processes_are_not_mixed(tmp_path: Path) -> None:
    ranks = diagnose("B20.sql", tmp_path).diagnosis.ranks
    assert {rank.pid: path_us(rank.windows[0])["launch.latency"] for rank in ranks} == {"1001": 5, "1002": 7}
    assert [(rank.linked_events, rank.windows[0].launches) for rank in ranks] == [(1, 1), (1, 1)]


def test_b21_streams_of_different_devices_are_apart(tmp_path: Path) -> None:
    ranks = diagnose("B21.sql", tmp_path).diagnosis.ranks
    spans = {rank.device.index: rank.device_span for rank in ranks if rank.device}
    assert {index: span.busy_ns for index, span in spans.items() if span} == {
        0: 100_000,
        1: 80_000,
        2: 80_000,
    }
    assert all(span.busy_ns <= span.end_ns - span.start_ns for span in spans.values() if span)


def test_b23_two_processes_on_one_gpu_are_named(tmp_path: Path) -> None:
    analysis = diagnose("B23.sql", tmp_path)
    ranks = analysis.diagnosis.ranks
    assert {rank.pid: rank.device_span.busy_ns for rank in ranks if rank.device_span} == {
        "1001": 60_000,
        "1002": 60_000,
    }
    assert [rank.shared_gpu_with for rank in ranks] == [[1], [0]]
    (device,) = analysis.diagnosis.shared_devices
    assert (device.ranks, device.busy_ns, device.span_ns) == ([0, 1], 100_000, 100_000)
    assert sum("shares its GPU" in note for note in analysis.diagnosis.notes) == 2


def test_b24_absent_tables_are_not_captured_rather_than_zero(tmp_path: Path) -> None:
    analysis = diagnose("B24.sql", tmp_path)
    assert device_us(analysis) == (35, 5, 40)
    absent = " ".join(not_captured(analysis))
    for what in ("memory copies", "synchronization records", "host ranges"):
        assert what in absent
    assert verdict(analysis, "copies").verdict == "unmeasured"


def test_b25_ranges_of_a_versioned_table_are_found(tmp_path: Path) -> None:
    rows = diagnose("B25.sql", tmp_path).diagnosis.ranges
    assert {row.name: (row.launches, row.total_ns) for row in rows} == {
        "prefill": (1, 70_000),
        "decode": (2, 40_000),
    }


def test_b25_ranges_can_be_steps_of_phases_of_their_names(tmp_path: Path) -> None:
    analysis = diagnose("B25.sql", tmp_path, steps="^(prefill|decode)$")
    time: dict[str, list[float]] = {}
    for window in only_rank(analysis).windows:
        assert window.phase == window.step
        time.setdefault(window.phase, []).append(exposed_us(window)["kernel"])
    assert time == {"prefill": [70], "decode": [20, 20]}


def test_b27_replays_recorded_as_one_row_are_busy_time(tmp_path: Path) -> None:
    analysis = diagnose("B27.sql", tmp_path)
    assert device_us(analysis) == (274, 16, 290)
    windows = only_rank(analysis).windows
    assert sum(window.graph_replays for window in windows) == 3
    assert sum(exposed_us(window)["graph.unresolved"] for window in windows) == 270
    assert sum(window.kernels for window in windows) == 1
    assert {row.verdict for row in analysis.diagnosis.hypotheses if row.id == "kernel-bound"} == {"supported"}
    assert "supported" not in {r.verdict for r in analysis.diagnosis.hypotheses if r.id == "launch-bound"}
    (how,) = [row.how_to_measure for row in analysis.diagnosis.unmeasured if "CUDA graphs" in row.what]
    assert "--cuda-graph-trace=node" in how
    assert "cost" in how


def test_b28_a_replay_is_charged_once(tmp_path: Path) -> None:
    window = only_window(diagnose("B28.sql", tmp_path))
    # 15 in the call and 5 from its return to the first kernel; 1 between nodes, twice
    assert path_us(window) == {"kernel": 30, "launch.latency": 20, "gap.dispatch": 2}
    assert (window.launches, window.graph_replays) == (1, 1)
    assert (window.kernels, window.kernels_in_graphs) == (3, 3)


def test_b35_a_process_without_device_rows_has_no_device_figures(tmp_path: Path) -> None:
    analysis = diagnose("B35.sql", tmp_path)
    complete, silent = analysis.diagnosis.ranks
    assert (complete.pid, complete.windows[0].kernels) == ("1001", 2)
    assert complete.device_span is not None
    assert complete.device_span.busy_ns == 36_000
    assert (silent.pid, silent.device_events, silent.device_span) == ("1002", 0, None)
    assert silent.windows == []  # one report uses one boundary, and this rank has no device end
    assert "Device activity was not recorded for rank 1" in " ".join(analysis.diagnosis.notes)
    assert {row.rank for row in analysis.diagnosis.hypotheses} == {0, None}
    assert not any(row.rank == 1 for row in analysis.diagnosis.kernels)


def test_b48_kernels_are_grouped_by_their_full_names(tmp_path: Path) -> None:
    analysis = diagnose("B48.sql", tmp_path)
    assert device_us(analysis) == (65, 30, 95)
    names = sorted(row.name for row in analysis.diagnosis.kernels)
    assert len(names) == len(set(names)) == only_window(analysis).kernels == 4
    assert max(map(len, names)) > 20_000
    result = run("diagnose", case_file("B48.sql", tmp_path), "-o", tmp_path)
    report = (tmp_path / "DIAGNOSIS.md").read_text()
    assert max(map(len, (report + result.output).splitlines())) < 1000


def test_b49_copies_have_classes_of_their_own(tmp_path: Path) -> None:
    analysis = diagnose("B49.sql", tmp_path)
    assert device_us(analysis) == (67, 5, 72)
    assert {row.name: row.total_ns / 1000 for row in analysis.diagnosis.kernels} == {
        "Memcpy HtoD": 10,
        "Memcpy DtoH (Device -> Pageable)": 20,
        "Memcpy DtoD": 5,
        "Memcpy PtoP": 20,
        "Memcpy unified memory HtoD": 10,
        "Memset": 2,
    }
    assert us_by_class(analysis) == {"copy": 65, "set": 2}
    window = only_window(analysis)
    assert (window.kernels, window.copies) == (0, 6)
    assert exposed_us(window) == {"copy": 67, "idle.unlinked": 5}
    assert ledger(analysis)["driver-migration"] == 1
    assert verdict(analysis, "copies").verdict == "supported"


def test_b50_work_belongs_to_the_range_of_the_thread_that_launched_it(tmp_path: Path) -> None:
    analysis = diagnose("B50.sql", tmp_path)
    names = {row.total_ns: row.name for row in analysis.diagnosis.kernels}
    found = {names[row.total_ns]: (row.name, row.thread) for row in analysis.diagnosis.ranges}
    assert found == {
        "k_main": ("backward", "thread 1"),
        "k_worker_in": ("autograd_node", "thread 2"),
        "k_worker_out": (None, "thread 2"),
    }
    assert [row.total_ns for row in analysis.diagnosis.ranges if row.name is None] == [30_000]


def test_b50_time_of_a_worker_is_not_charged_to_a_range_of_another_thread(tmp_path: Path) -> None:
    rows = diagnose("B50.sql", tmp_path).diagnosis.host_culprits
    assert {row.thread for row in rows} == {"thread 2"}
    assert not any("backward" in (row.name, *row.stack) for row in rows)
    inside = sum(row.path_ns for row in rows if "autograd_node" in row.stack)
    outside = sum(row.path_ns for row in rows if not row.stack)
    # of the 390 before the last launch: the range covers [90, 300), nothing covers [10, 90) and [300, 400)
    assert (inside, outside) == (210_000, 180_000)


def test_b53_what_the_profiler_says_of_itself_leads_the_report(tmp_path: Path) -> None:
    analysis = diagnose("B53.sql", tmp_path)
    assert device_us(analysis) == (60, 40, 100)
    (said,) = [note for note in analysis.diagnosis.notes if "The profiler says" in note]
    assert "some device activity records were dropped" in said
    assert analysis.diagnosis.inputs[0].diagnostics == [said.split(": ", 1)[1]]
    assert exposed_us(only_window(analysis))["idle.unlinked"] == 40
    supported = [row for row in analysis.diagnosis.hypotheses if row.verdict == "supported"]
    assert supported
    assert all("under distortion: the profiler reports lost records" in row.verdict_note for row in supported)
    result = run("diagnose", case_file("B53.sql", tmp_path), "-o", tmp_path)
    head = (tmp_path / "DIAGNOSIS.md").read_text().split("## What was read")[0]
    for text in (result.stderr, head):
        assert "some device activity records were dropped" in text


def test_b56_all_devices_are_read_and_an_absent_one_is_an_error(tmp_path: Path) -> None:
    ranks = diagnose("B56.sql", tmp_path).diagnosis.ranks
    assert [rank.device.index for rank in ranks if rank.device] == [1, 2, 3]
    file = case_file("B56.sql", tmp_path)
    for command in ("diagnose", "inspect"):
        result = run(command, file, "--device", "0")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "1, 2, 3" in result.stderr
    assert run("diagnose", file, "--device", "2", "-o", tmp_path).exit_code == 0
