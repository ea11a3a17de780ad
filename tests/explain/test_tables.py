"""Windows, budgets, kernels, host culprits and segments, from schedules computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analyzer.errors import UsageError
from analyzer.model import CopyKind
from tests.builders import EVERYTHING, Schedule, analysis_of, quality_of, schedule


def lengths(*window_us: int) -> Schedule:
    """Steps whose device-boundary windows have these lengths: each work ends where its window does."""
    built, end = schedule(), 0
    for length in window_us:
        built.range(end, end + length - 1, "s").launch(end, end + 4, runs=(end + 10, end + length))
        end += length
    return built


def indices(built: Schedule, step_index: str) -> list[int]:
    diagnosis = analysis_of(built, steps="^s$", step_index=step_index).diagnosis
    return [window.index for window in diagnosis.ranks[0].windows]


@pytest.mark.parametrize(("asked", "window"), [("0", 0), ("3", 3), ("median", 2), ("slowest", 1), ("p95", 3)])
def test_one_window_may_be_asked_for(asked: str, window: int) -> None:
    """Lengths 100, 140, 110, 120: in order 0, 2, 3, 1. Quantiles are windows themselves, the lower of two."""
    assert indices(lengths(100, 140, 110, 120), asked) == [window]


def test_the_slowest_step_is_no_warm_up_and_not_an_empty_one() -> None:
    built = lengths(100, 140, 110).call(110, 112, "cudaMalloc")
    assert indices(built, "slowest") == [2]
    assert indices(built, "1") == [1]


@pytest.mark.parametrize("asked", ["7", "-1", "fastest", "1.0"])
def test_a_window_that_is_not_there(asked: str) -> None:
    with pytest.raises(UsageError, match="windows are 0 to 1"):
        indices(lengths(100, 100), asked)


def test_the_budget_of_one_window_is_that_windows() -> None:
    budget = analysis_of(lengths(100, 140), steps="^s$", step_index="1").diagnosis.budget
    assert [(entry.windows, entry.step_ns_total) for entry in budget] == [(1, 140_000)]


def test_budgets_sum_to_the_steps_they_rest_on() -> None:
    diagnosis = analysis_of(lengths(100, 140, 110), steps="^s$").diagnosis
    (budget,) = diagnosis.budget
    assert (budget.windows, budget.step_ns_total) == (3, 350_000)
    assert sum(budget.path_ns_total.values()) == 350_000
    assert budget.path_ns_total["launch.latency"] == 3 * 10_000
    assert budget.path_ns_total["kernel"] == 90_000 + 130_000 + 100_000
    assert budget.exposed_ns_total is not None and sum(budget.exposed_ns_total.values()) == 350_000


def test_counts_of_a_window_are_of_what_its_step_launched() -> None:
    built = (
        schedule()
        .range(0, 90, "s")
        .launch(0, 4, runs=(10, 20), name="gemm")
        .copy(4, 8, runs=(21, 25))
        .graph(8, 12, [(30, 35, "n0", 7), (36, 40, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7)])
        .launch(12, 16, runs=(41, 50), name="__amd_rocclr_copyBuffer")
        .sync(16, 55, stream=7)
    )
    window = analysis_of(built, steps="^s$").diagnosis.ranks[0].windows[0]
    assert (window.kernels, window.kernels_in_graphs, window.collectives, window.copies) == (3, 2, 1, 2)
    assert (window.launches, window.graph_replays) == (3, 1)


def test_counts_of_what_was_not_captured_are_unknown_and_not_zero() -> None:
    """The kernels inside a replay recorded as one row, copies without their table, launches without calls."""
    whole = schedule().range(0, 90, "s").whole_graph(5, 10, runs=(20, 80)).kernel(80, 85)
    built = replace(whole, captured=EVERYTHING - {"copy"})
    window = analysis_of(built, steps="^s$").diagnosis.ranks[0].windows[0]
    assert (window.kernels_in_graphs, window.copies) == (None, None)
    assert (window.launches, window.graph_replays) == (1, 1)
    alone = replace(schedule(), captured=EVERYTHING - {"call"}).kernel(10, 20)
    window = analysis_of(alone).diagnosis.ranks[0].windows[0]
    assert (window.kernels, window.launches, window.graph_replays) == (1, None, None)


def test_kernels_by_name() -> None:
    """gemm runs twice on stream 7; copy lies under the second on stream 20 and is never on the path."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 30), name="gemm")
        .copy(4, 8, runs=(40, 50), kind=CopyKind.DTOH, stream=20)
        .launch(8, 12, runs=(31, 71), name="gemm")
    )
    table = {kernel.name: kernel for kernel in analysis_of(built).diagnosis.kernels}
    gemm, copy = table["gemm"], table["Memcpy DTOH"]
    assert (gemm.calls_total, gemm.total_ns, gemm.path_ns, gemm.exposed_ns) == (2, 60_000, 60_000, 60_000)
    assert (copy.calls_total, copy.total_ns, copy.path_ns, copy.exposed_ns) == (1, 10_000, 0, 0)
    assert (gemm.class_, copy.class_) == ("gemm", "copy")
    assert list(table) == ["gemm", "Memcpy DTOH"]  # longest total first


def test_calls_per_step_count_only_work_of_steps() -> None:
    built = lengths(100, 100)
    built.launch(600, 604, runs=(610, 620))  # beyond the last step's reach
    (kernel,) = analysis_of(built, steps="^s$").diagnosis.kernels
    assert (kernel.calls_total, kernel.calls_per_step) == (3, 1.0)


def host_work() -> Schedule:
    """
    main   |L |L |L 0-6 |range sample 6-100 [op topk 10-60 [frame sampler.py 20-60]] |os wait 100-160 |L 170
    """
    built = schedule()
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at))
    built.range(6, 100, "sample").op(10, 60, "aten::topk").frame(20, 60, "sampler.py(12): pick")
    return built.os(100, 160, "futex_wait").launch(170, 174, runs=(180, 190))


def test_culprits_are_path_time_by_innermost_record_longest_first() -> None:
    culprits = analysis_of(host_work()).diagnosis.host_culprits
    assert [(c.category, c.name, c.path_ns // 1000, c.segments) for c in culprits] == [
        ("host.wait", "futex_wait", 60, 1),
        ("host.framework", "sample", 4 + 40, 2),
        ("host.framework", "sampler.py(12): pick", 40, 1),
        ("host.framework", "aten::topk", 10, 1),
        ("host.untraced", "(nothing recorded)", 10, 1),
        ("launch.api", "cudaLaunchKernel", 6, 3),
    ]  # fmt: skip
    pick = culprits[2]
    assert pick.stack == ["sample", "aten::topk", "sampler.py(12): pick"]
    assert pick.frame == "sampler.py(12): pick"
    assert {culprit.thread for culprit in culprits} == {"thread main"}


def test_what_encloses_a_culprit_does_not_name_one_step_among_several() -> None:
    built = schedule()
    for step in (0, 100, 200):
        built.range(step, step + 95, f"step {step}").range(step + 5, step + 90, "decode")
        built.range(step + 10, step + 60, "sample").launch(step + 70, step + 74, runs=(step + 80, step + 85))
    culprits = analysis_of(built, steps=r"^step \d+$").diagnosis.host_culprits
    assert {(c.name, *c.stack) for c in culprits} == {
        ("sample", "decode", "sample"),
        ("decode", "decode"),
        ("(nothing recorded)",),
    }


def test_culprits_differ_in_nothing_but_an_appended_op_id() -> None:
    built = schedule()
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at))
    built.range(6, 50, "layer, op_id = 1").range(50, 90, "layer, op_id = 2").launch(100, 104, runs=(110, 120))
    named = [
        (c.name, c.path_ns)
        for c in analysis_of(built).diagnosis.host_culprits
        if c.category == "host.framework"
    ]
    assert named == [("layer", 84_000)]


def test_culprits_count_the_windows_of_the_budget_and_no_empty_ones() -> None:
    """
    main      |step a 0-40        |step a 100-140 (nothing) |step b 200-240
              [op 5-20][L 20-24]                            [L 210-214]
    stream 7        |k 30-40                                     |k 220-230
    """
    built = (
        schedule()
        .range(0, 40, "step a").op(5, 20, "prepare").launch(20, 24, runs=(30, 40))
        .range(100, 140, "step a")
        .range(200, 240, "step b").launch(210, 214, runs=(220, 230))
    )  # fmt: skip
    diagnosis = analysis_of(built, steps="^step").diagnosis
    budget = next(row for row in diagnosis.budget if row.phase == "step a")
    culprit = next(row for row in diagnosis.host_culprits if row.name == "prepare")
    assert (culprit.phase, culprit.windows, culprit.windows_with) == ("step a", budget.windows, 1)
    assert budget.windows == 1
    assert [window.empty for window in diagnosis.ranks[0].windows] == [False, True, False]


def test_host_time_on_the_path_is_what_the_culprits_sum_to() -> None:
    diagnosis = analysis_of(host_work()).diagnosis
    path = diagnosis.ranks[0].windows[0].path_ns
    on_host = sum(ns for name, ns in path.items() if name.startswith("host.") or name == "launch.api")
    assert sum(culprit.path_ns for culprit in diagnosis.host_culprits) == on_host


def test_segments_carry_names_and_places() -> None:
    table = analysis_of(host_work()).segment_table
    assert table is not None
    last = len(table) - 1
    assert (table.names[table.name[last]], table.places[table.place[last]]) == ("k", "device 0 stream 7")
    assert table.places[table.place[0]] == "thread main"
    assert (table.start_ns[1:] == table.end_ns[:-1]).all()


def test_inferred_time_is_counted_beside_the_path() -> None:
    """33 us before b have no recorded cause."""
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(7, 9, runs=(60, 70), name="b", stream=20)
    diagnosis = analysis_of(built).diagnosis
    assert diagnosis.ranks[0].windows[0].inferred_ns == 33_000
    assert quality_of(built)["inferred-path-time-ns"] == 33_000


def test_the_device_span_and_its_union() -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, 30))
        .launch(2, 4, runs=(20, 40), stream=20)
        .launch(50, 52, runs=(60, 70))
    )
    span = analysis_of(built).diagnosis.ranks[0].device_span
    assert span is not None
    assert (span.start_ns, span.end_ns, span.busy_ns, span.idle_ns) == (10_000, 70_000, 40_000, 20_000)


def test_constants_say_which_of_them_are_assumed() -> None:
    """One kernel: no sample of queued gaps; the one latency is held to the assumed range."""
    constants = analysis_of(schedule().launch(0, 4, runs=(10, 20))).diagnosis.ranks[0].constants
    assert constants.launch_lambda_ns == {"any other call": (5_000, 20_000)}
    assert constants.assumed == ["stream_tau_ns", "turnaround_ns"]
    assert (constants.stream_tau_ns, constants.turnaround_ns, constants.turnaround_samples) == (
        1_000,
        2_000,
        0,
    )


def test_constants_are_measured_where_the_capture_holds_a_sample() -> None:
    """20 launches into an idle device with latencies 6 to 25 us: quantiles 5 % and 95 % by position."""
    built = schedule()
    for i in range(20):
        built.launch(100 * i, 100 * i + 4, runs=(100 * i + 6 + i, 100 * i + 40))
    constants = analysis_of(built).diagnosis.ranks[0].constants
    assert constants.launch_lambda_ns["cudaLaunchKernel"] == (6_000, 24_000)
    assert constants.launch_samples["cudaLaunchKernel"] == 20
    assert "launch_lambda_ns" not in constants.assumed


def test_the_turnaround_is_the_95_percent_quantile_of_queued_gaps() -> None:
    """40 queued kernels: 36 gaps of 1 us, 3 of 4 us."""
    built, at = schedule(), 10
    for i in range(40):
        built.launch(0 + i // 20, 1 + i // 20, runs=(at, at + 50), name=f"k{i}")
        at += 50 + (4 if i in (10, 20, 30) else 1)
    constants = analysis_of(built).diagnosis.ranks[0].constants
    assert (constants.stream_tau_ns, constants.turnaround_ns, constants.turnaround_samples) == (
        1_000,
        4_000,
        39,
    )
