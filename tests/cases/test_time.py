"""Units, precision, clocks that disagree, overlaps, and steps that nobody marked."""

from __future__ import annotations

import statistics
from pathlib import Path

from tests.cases.load import (
    device_us,
    diagnose,
    exposed_us,
    kernel,
    ledger,
    only_rank,
    only_window,
    path_us,
)
from tests.shared import needs_shared

pytestmark = needs_shared


def test_b08_epoch_microseconds_keep_their_nanoseconds(tmp_path: Path) -> None:
    analysis = diagnose("B08.json", tmp_path)
    assert device_us(analysis) == (9.159, 0.030, 9.189)
    assert [row.total_ns for row in analysis.diagnosis.kernels] == [5120, 3032, 1007]
    window = only_window(analysis)
    assert (window.overlap_ns or {})["kernel_under_kernel"] == 0
    table = analysis.segment_table
    assert table is not None
    assert (table.end_ns - table.start_ns).tolist() == [5120, 3032, 30, 1007]


def test_b10_times_are_microseconds_whatever_the_display_unit(tmp_path: Path) -> None:
    analysis = diagnose("B10.json", tmp_path)
    assert kernel(analysis, "gemm_a").total_ns == 2250
    assert device_us(analysis) == (6.250, 7.250, 13.500)


def test_b12_a_kernel_before_its_own_launch_is_linked_and_counted(tmp_path: Path) -> None:
    analysis = diagnose("B12.json", tmp_path)
    rank = only_rank(analysis)
    assert (rank.linked_events, rank.unlinked_events) == (2, 0)
    assert (rank.clock.negative_latency_count, rank.clock.pair_count) == (1, 2)
    assert ledger(analysis)["start-before-launch"] == 1
    assert path_us(only_window(analysis))["launch.latency"] == 10
    assert sum(only_window(analysis).path_ns.values()) == 51_500


def test_b13_an_impossible_duration_is_cut_and_a_real_overlap_is_not(tmp_path: Path) -> None:
    analysis = diagnose("B13.json", tmp_path)
    assert device_us(analysis) == (180, 20, 200)
    assert only_window(analysis).kernels == 5
    cut = {row.name: row.clipped_ns for row in analysis.diagnosis.kernels if row.clipped_ns}
    assert cut == {"gemm_overrun": 1_999_970_000}
    assert kernel(analysis, "gemm_overrun").total_ns == 30_000
    assert kernel(analysis, "attn_primary").total_ns == 60_000
    assert kernel(analysis, "gemm_pdl_secondary").total_ns == 42_000
    assert ledger(analysis)["corrupt-duration-clipped"] == 1


def test_b15_engine_ranges_are_steps(tmp_path: Path) -> None:
    analysis = diagnose("B15.json", tmp_path)
    steps = analysis.diagnosis.steps
    assert (steps.rule, steps.count, steps.phases) == ("engine-range", 3, ["decode"])
    assert device_us(analysis) == (120, 120, 240)
    assert [exposed_us(window)["kernel"] for window in only_rank(analysis).windows] == [40, 40, 40]


def test_b43_overlap_is_counted_once(tmp_path: Path) -> None:
    analysis = diagnose("B43.json", tmp_path)
    window = only_window(analysis)
    assert device_us(analysis) == (160, 20, 180)
    assert exposed_us(window) == {"kernel": 120, "collective": 40, "idle.unlinked": 20}
    assert window.overlap_ns == {
        "collective_under_kernel": 40_000,
        "copy_under_kernel": 0,
        "kernel_under_kernel": 0,
    }
    assert sum(row.total_ns for row in analysis.diagnosis.kernels) == 200_000


def test_b45_time_of_the_profiler_is_its_own(tmp_path: Path) -> None:
    analysis = diagnose("B45.json", tmp_path)
    window = only_window(analysis)
    assert device_us(analysis) == (30, 460, 490)
    exposed = exposed_us(window)
    assert (exposed["kernel"], exposed["idle.profiler"]) == (30, 380)
    # 80 between the kernels and 8 from the first launch to the first kernel
    assert exposed["idle.host"] + exposed["idle.launch"] == 88
    assert path_us(window)["profiler"] == 380
    for row in analysis.diagnosis.hypotheses:
        if row.verdict == "supported" and row.id != "profiler-distortion":
            assert "under distortion" in row.verdict_note
            assert row.share is not None
            assert row.share.interval[1] * 498 < 118


def test_b46_a_first_step_that_loads_code_is_set_aside(tmp_path: Path) -> None:
    for boundary, lengths in (("device", [46.0, 8.5, 5.0, 5.1]), ("host", [50.0, 5.0, 5.1, 4.9])):
        analysis = diagnose("B46.json", tmp_path, boundary=boundary)
        windows = only_rank(analysis).windows
        assert [(window.end_ns - window.start_ns) / 1e6 for window in windows] == lengths
        assert [window.index for window in windows if window.warmup] == [0]
        assert "loads device code" in windows[0].warmup_reasons
        assert path_us(windows[0])["host.api"] == 40_000
        (budget,) = analysis.diagnosis.budget
        assert (budget.windows, budget.windows_excluded) == (3, 1)
    assert statistics.median(lengths[1:]) == 5.0
