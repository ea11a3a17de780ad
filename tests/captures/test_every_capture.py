"""The invariants of the attribution contract on every real capture."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES, Category
from analyzer.cuda_api import SUBMISSIONS, call_kind
from analyzer.diagnosis import GlobalWindow, Rank, Window
from analyzer.errors import TraceError
from analyzer.model import DeviceKind, HostKind, Trace
from analyzer.report import outputs
from tests.captures.results import HOST_ONLY, REFUSED, analysis_of, capture_names, capture_of, covered, run
from tests.shared import needs_shared, trace_path

pytestmark = needs_shared

every_capture = pytest.mark.parametrize("name", capture_names())

BUSY = ("kernel", "graph.unresolved", "prior_work", "collective", "copy")
ON_THE_DEVICE = ("kernel", "graph.unresolved", "copy", "prior_work", "collective.unsplit")


def length(window: Window | GlobalWindow) -> int:
    return window.end_ns - window.start_ns


def intervals(table: Any, mask: Any, shift: int = 0) -> list[tuple[int, int]]:
    starts, ends = (table.start_ns[mask] + shift).tolist(), (table.end_ns[mask] + shift).tolist()
    return list(zip(starts, ends, strict=True))


def rows_named(table: Any, names: Sequence[str], fits: Callable[[str], bool]) -> Any:
    codes = [code for code in np.unique(table.name).tolist() if code >= 0 and fits(names[code])]
    return np.isin(table.name, codes)


def submits(name: str) -> bool:
    return call_kind(name) in SUBMISSIONS


def copies_on_amd(name: str) -> bool:
    return name.startswith("__amd_rocclr_")


def host_shift(rank: Rank) -> int:
    """What the result adds to the times of the rank's host events: its offset to the reference rank's clock."""
    return rank.clock.offset_ns or 0


def device_shift(rank: Rank) -> int:
    """What the result adds to the times of the rank's device events."""
    return host_shift(rank) + rank.clock.device_shift_ns


def ranks_and_traces(name: str) -> list[tuple[Rank, Trace]]:
    """Each rank beside the events it was made from, with one zero for all (clocks still each rank's own)."""
    capture, _ = pipeline.on_one_zero(capture_of(name))
    return list(zip(analysis_of(name).diagnosis.ranks, capture.traces, strict=True))


@every_capture
def test_path_and_exposure_sum_to_the_window(name: str) -> None:
    windows = [window for rank in analysis_of(name).diagnosis.ranks for window in rank.windows]
    assert windows
    for window in windows:
        assert sum(window.path_ns.values()) == length(window) >= 0
        if window.exposed_ns is not None:
            assert sum(window.exposed_ns.values()) == length(window)


@every_capture
def test_every_category_and_label_is_there_as_an_integer(name: str) -> None:
    found = json.loads(analysis_of(name).to_json())
    rows = [window for rank in found["ranks"] for window in rank["windows"]]
    tables = [(row["path_ns"], row["exposed_ns"]) for row in rows]
    tables += [(row["path_ns_total"], row["exposed_ns_total"]) for row in found["budget"]]
    for path, exposed in tables:
        assert list(path) == list(CATEGORY_NAMES.values())
        assert exposed is None or list(exposed) == list(EXPOSURE_NAMES.values())
        for value in [*path.values(), *(exposed or {}).values()]:
            assert type(value) is int
            assert value >= 0


@pytest.mark.parametrize("name", [name for name in capture_names() if name not in HOST_ONLY])
def test_device_windows_tile_the_span(name: str) -> None:
    for rank in analysis_of(name).diagnosis.ranks:
        first, last = rank.windows[0], rank.windows[-1]
        assert first.host_start_ns in (None, first.start_ns)
        assert sum(map(length, rank.windows)) == last.end_ns - first.start_ns
        for window, after in zip(rank.windows, rank.windows[1:], strict=False):
            assert window.end_ns == after.start_ns
        for window in rank.windows:
            assert window.empty == (length(window) == 0)


@every_capture
def test_segments_partition_their_window(name: str) -> None:
    analysis = analysis_of(name)
    table = analysis.segment_table
    assert table is not None
    seen = 0
    for rank in analysis.diagnosis.ranks:
        for window in rank.windows:
            rows = np.flatnonzero((table.rank == rank.rank) & (table.window == window.index))
            seen += len(rows)
            bounds = np.append(table.start_ns[rows], window.end_ns)
            assert bounds[0] == window.start_ns
            assert (table.end_ns[rows] == bounds[1:]).all()
            assert (np.diff(bounds) > 0).all()
            spent = np.diff(bounds)
            for category in Category:
                of_it = spent[table.category[rows] == category].sum()
                assert of_it == window.path_ns[CATEGORY_NAMES[category]]
            assert spent[table.inferred[rows]].sum() == window.inferred_ns
    assert seen == len(table)


@every_capture
def test_device_work_is_never_inferred(name: str) -> None:
    table = analysis_of(name).segment_table
    assert table is not None
    device = [category for category, text in CATEGORY_NAMES.items() if text in ON_THE_DEVICE]
    assert not table.inferred[np.isin(table.category, device)].any()


@every_capture
def test_budgets_are_sums_of_their_windows(name: str) -> None:
    diagnosis = analysis_of(name).diagnosis
    windows: dict[int | None, Sequence[Window | GlobalWindow]] = {r.rank: r.windows for r in diagnosis.ranks}
    if diagnosis.global_ is not None:
        windows[None] = diagnosis.global_.windows
    expected = {(rank, w.phase) for rank, each in windows.items() for w in each if not w.empty}
    assert {(row.rank, row.phase) for row in diagnosis.budget} == expected
    for row in diagnosis.budget:
        mine = [w for w in windows[row.rank] if w.phase == row.phase and not w.empty]
        used = [w for w in mine if not w.left_out] or mine
        assert (row.windows, row.windows_excluded) == (len(used), len(mine) - len(used))
        assert row.step_ns_total == sum(map(length, used))
        assert row.inferred_ns_total == sum(window.inferred_ns for window in used)
        for category, total in row.path_ns_total.items():
            assert total == sum(window.path_ns[category] for window in used)
        for label, total in (row.exposed_ns_total or {}).items():
            exposed = [window.exposed_ns or {} for window in used if isinstance(window, Window)]
            assert total == sum(each[label] for each in exposed)


@every_capture
def test_the_json_is_strict_and_reads_back_as_it_was(name: str) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    analysis = analysis_of(name)
    data = analysis.to_json()
    json.loads(data, parse_constant=refuse)
    again = Analysis.from_json(data)
    assert again.diagnosis == analysis.diagnosis
    assert again.to_json() == data


@every_capture
def test_the_device_is_busy_for_the_union_of_its_events(name: str) -> None:
    for rank, trace in ranks_and_traces(name):
        if not len(trace.device):
            continue
        assert rank.device_span is not None
        assert not any(row.clipped_ns for row in analysis_of(name).diagnosis.kernels)
        events = intervals(trace.device, slice(None), device_shift(rank))
        first, last = min(start for start, _ in events), max(end for _, end in events)
        assert (rank.device_span.start_ns, rank.device_span.end_ns) == (first, last)
        assert rank.device_span.busy_ns == covered(events)
        assert rank.device_span.idle_ns == last - first - covered(events)
        for window in rank.windows:
            exposed = window.exposed_ns or {}
            busy = covered(events, window.start_ns, window.end_ns)
            assert sum(exposed[label] for label in BUSY) == busy


@every_capture
def test_a_category_has_at_most_the_union_of_its_intervals(name: str) -> None:
    for rank, trace in ranks_and_traces(name):
        device, host, names = trace.device, trace.process.host, trace.process.names
        kind = device.kind
        copies = np.isin(kind, (DeviceKind.COPY, DeviceKind.SET))
        copies |= rows_named(device, names, copies_on_amd)
        shift = device_shift(rank)
        launches = host.kind == HostKind.CALL
        launches &= rows_named(host, names, submits)
        at_most = (
            (("graph.unresolved",), intervals(device, kind == DeviceKind.GRAPH, shift)),
            (("copy",), intervals(device, copies, shift)),
            (("kernel", "collective.unsplit"), intervals(device, kind == DeviceKind.KERNEL, shift)),
            (ON_THE_DEVICE, intervals(device, slice(None), shift)),
            (("launch.api",), intervals(host, launches, host_shift(rank))),
            (("profiler",), intervals(host, host.kind == HostKind.OVERHEAD, host_shift(rank))),
        )
        for window in rank.windows:
            for categories, rows in at_most:
                spent = sum(window.path_ns[category] for category in categories)
                assert spent <= covered(rows, window.start_ns, window.end_ns), categories


@every_capture
def test_counts_and_kernel_sums_miss_no_event(name: str) -> None:
    kernels = analysis_of(name).diagnosis.kernels
    for rank, trace in ranks_and_traces(name):
        mine = [row for row in kernels if row.rank == rank.rank]
        assert rank.device_events == len(trace.device) == sum(row.calls_total for row in mine)
        assert sum(row.total_ns + row.clipped_ns for row in mine) == int(trace.device.duration_ns.sum())
        assert rank.linked_events <= rank.device_events - rank.unlinked_events
        assert rank.prior_events <= rank.unlinked_events


@every_capture
def test_work_by_range_is_the_linked_work(name: str) -> None:
    ranges = analysis_of(name).diagnosis.ranges
    for rank, trace in ranks_and_traces(name):
        mine = [row for row in ranges if row.rank == rank.rank]
        assert bool(mine) == bool((trace.process.host.kind == HostKind.RANGE).any() and rank.linked_events)
        if 0 < len(mine) < 100:  # the longest hundred are kept
            assert sum(row.device_events for row in mine) == rank.linked_events
        assert sum(row.total_ns for row in mine) <= int(trace.device.duration_ns.sum())


@every_capture
def test_the_report_and_its_tables_are_written(name: str, tmp_path: Path) -> None:
    analysis = analysis_of(name)
    report = outputs.write(analysis, tmp_path, figures=False).read_text(encoding="utf-8")
    windows = [window for rank in analysis.diagnosis.ranks for window in rank.windows]
    for phase in analysis.diagnosis.steps.phases:
        assert phase in report
    with (tmp_path / "diagnosis" / "segments.csv").open(newline="") as file:
        spent = sum(int(row["end_ns"]) - int(row["start_ns"]) for row in csv.DictReader(file))
    with (tmp_path / "diagnosis" / "windows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(windows)
    assert spent == sum(int(row["duration_ns"]) for row in rows) == sum(map(length, windows))
    assert (tmp_path / "diagnosis" / "diagnosis.json").read_bytes() == analysis.to_json()


@pytest.mark.parametrize("name", HOST_ONLY)
def test_without_device_work_the_host_is_all_there_is(name: str) -> None:
    diagnosis = analysis_of(name).diagnosis
    assert diagnosis.boundary == "host"
    assert {row.verdict for row in diagnosis.hypotheses} == {"unmeasured"}
    for rank in diagnosis.ranks:
        assert rank.device_span is None
        assert rank.windows
        assert all(w.exposed_ns is None and w.overlap_ns is None for w in rank.windows)
    assert not any(row.exposed_ns_total for row in diagnosis.budget)
    assert any("device activity" in row.what for row in diagnosis.unmeasured)


@every_capture
def test_only_captures_without_device_work_use_the_host_boundary(name: str) -> None:
    found = analysis_of(name).diagnosis
    assert (found.boundary == "host") == (name in HOST_ONLY)
    assert all((rank.device_span is None) == (name in HOST_ONLY) for rank in found.ranks)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_a_reason(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TraceError):
        pipeline.read([trace_path(name)])
    result = run("diagnose", str(trace_path(name)), "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert (result.stdout, (tmp_path / "out").exists()) == ("", False)
    assert Path(name).name in result.stderr
    assert "next: " in result.stderr
    assert "Traceback" not in result.stderr


def test_the_reasons_say_what_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = {
        "ascend/ascend_level0_rank0_trace_view.json.gz": "Ascend",
        "jacc/julia_nocuda.sqlite": "no device work",
        "alpa/jax_mem.nsys-rep": "nsys export",
        "alpa/nccl_init_nokernel.nsys-rep": "nsys export",
    }
    assert tuple(words) == REFUSED
    for name, word in words.items():
        with pytest.raises(TraceError, match=word):
            pipeline.read([trace_path(name)])
