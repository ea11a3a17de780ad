"""Launch bill, replays, small kernels and time by class, from schedules computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analyzer.categories import CATEGORY_NAMES, DEVICE_CATEGORIES
from analyzer.diagnosis import Diagnosis, LaunchBill, Quantiles
from analyzer.explain.launches.bill import launch_bills
from analyzer.explain.phase_windows import PhaseWindows, phase_windows
from analyzer.explain.windows import used_windows, window_results
from tests.builders import EVERYTHING, Schedule, account_of, analysis_of, schedule
from tests.captures.results import analysis_of as analysis_of_capture
from tests.shared import needs_shared


def diagnosis_of(built: Schedule, **options: object) -> Diagnosis:
    return analysis_of(built, **options).diagnosis


def bill_of(built: Schedule, **options: object) -> LaunchBill:
    (bill,) = diagnosis_of(built, **options).launch_bill
    return bill


def order(*values: int) -> Quantiles:
    """Quantiles of microseconds given in order; of few values the 95 % quantile is the last but one."""
    ns = [value * 1000 for value in values]
    last = len(ns) - 1
    return Quantiles(count=len(ns), p05=ns[0], median=ns[last // 2], p95=ns[int(0.95 * last)], max=ns[last])


def four_launches() -> Schedule:
    """
    main  |L0 0-4|L1 4-6|L2 6-8|sync 8 .................... 42|     |L3 50-54
    s7                |a 10-20|b 20-30|c 30-40                            |d 60-70
    """
    return (
        schedule()
        .launch(0, 4, runs=(10, 20), name="a")
        .launch(4, 6, runs=(20, 30), name="b")
        .launch(6, 8, runs=(30, 40), name="c")
        .sync(8, 42, stream=7)
        .launch(50, 54, runs=(60, 70), name="d")
    )


def test_the_bill_of_four_launches() -> None:
    bill = bill_of(four_launches())
    assert (bill.windows, bill.launches_total, bill.graph_launches_total, bill.copy_calls_total) == (
        1,
        4,
        0,
        0,
    )
    assert (bill.kernels_total, bill.kernels_in_graphs_total, bill.held_launches_total) == (4, 0, 0)
    assert bill.launch_api_ns_total == 12_000
    assert bill.api_ns == order(2, 2, 4, 4)
    assert bill.latency_ns == order(10, 10, 16, 24)
    assert bill.run_ahead_ns == order(6, 6, 14, 22)
    assert bill.path_launch_ns_total == 20_000  # the latencies of a and d


def test_idle_latency_is_that_of_launches_to_a_device_with_nothing_to_do() -> None:
    bill = bill_of(four_launches())
    assert bill.depth_at_launch == Quantiles(count=4, p05=0, median=0, p95=1, max=2)
    assert bill.idle_latency_ns == order(10, 10)


def test_the_slot_is_the_mean_step_over_its_launches() -> None:
    assert bill_of(four_launches()).slot_ns == 17_500
    copies = schedule().copy(0, 4, runs=(10, 20))
    assert bill_of(copies).slot_ns is None
    assert bill_of(copies).copy_calls_total == 1


def test_a_launch_that_the_device_held_is_counted_and_its_time_is_no_api_time() -> None:
    built = schedule().launch(0, 4, runs=(10, 100)).launch(10, 105, runs=(110, 120))
    built.overhead(12, 100, "Command Buffer Full")
    bill = bill_of(built)
    assert (bill.launches_total, bill.held_launches_total, bill.launch_api_ns_total) == (2, 1, 4_000)
    assert bill.api_ns == order(4)
    assert bill.latency_ns == order(10, 100)


def test_a_graph_launch_counts_once_and_its_latency_ends_at_the_first_node() -> None:
    built = schedule().graph(0, 6, [(15, 20, "a", 7), (20, 30, "b", 7)]).launch(6, 8, runs=(31, 40))
    bill = bill_of(built)
    assert (bill.launches_total, bill.graph_launches_total) == (2, 1)
    assert (bill.kernels_total, bill.kernels_in_graphs_total) == (3, 2)
    assert bill.latency_ns == order(15, 25)


def test_only_steps_that_the_budget_rests_on_are_billed() -> None:
    """The second of three steps allocates device memory: it is flagged, and its launch is not billed."""
    built = schedule()
    for at, api in ((0, 4), (100, 8), (200, 2)):
        built.range(at, at + 90, "s").launch(at, at + api, runs=(at + 10, at + 95))
    built.call(150, 152, "cudaMalloc")
    bill = bill_of(built, steps="^s$")
    assert (bill.windows, bill.launches_total, bill.launch_api_ns_total) == (2, 2, 6_000)


def test_each_phase_has_its_own_bill() -> None:
    built = schedule()
    for at, name in ((0, "one"), (100, "two"), (200, "one")):
        built.range(at, at + 90, name).launch(at, at + 4, runs=(at + 10, at + 95))
    bills = {bill.phase: bill for bill in diagnosis_of(built, steps="^(one|two)$").launch_bill}
    assert {phase: bill.launches_total for phase, bill in bills.items()} == {"one": 2, "two": 1}
    assert bills["two"].latency_ns == order(10)


def test_a_capture_without_calls_has_no_bill() -> None:
    built = replace(schedule(), captured=EVERYTHING - {"call"}).kernel(10, 20)
    assert diagnosis_of(built).launch_bill == []


def test_without_device_work_the_bill_knows_calls_only() -> None:
    bill = bill_of(schedule().launch(0, 4).launch(6, 8))
    assert (bill.launches_total, bill.launch_api_ns_total) == (2, 6_000)
    assert (bill.kernels_total, bill.kernels_in_graphs_total) == (None, None)
    assert (bill.latency_ns, bill.idle_latency_ns, bill.depth_at_launch) == (None, None, None)


def test_of_a_process_with_several_devices_only_calls_with_work_on_this_one_count() -> None:
    account = account_of(schedule().launch(0, 4, runs=(10, 20)).launch(6, 8))
    rank = diagnosis_of(schedule().launch(0, 4, runs=(10, 20))).ranks[0]
    phases: PhaseWindows = phase_windows(account, rank)
    (alone,) = launch_bills(account, 0, phases, sole_device=True)
    (one_of_two,) = launch_bills(account, 0, phases, sole_device=False)
    assert (alone.launches_total, one_of_two.launches_total) == (2, 1)


def test_windows_of_a_process_with_several_devices_count_the_same_calls() -> None:
    """As many as the bill: else launches of two devices would be counted on both."""
    built = schedule().launch(0, 4, runs=(10, 20)).launch(6, 8)
    built.graph(30, 34, [(40, 50, "a", 7)]).call(60, 64, "cudaGraphLaunch", corr=99)
    account = account_of(built)
    counted = [window_results(replace(account, sole_device=sole))[0] for sole in (True, False)]
    assert [(window.launches, window.graph_replays) for window in counted] == [(4, 2), (2, 1)]


def lost(built: Schedule) -> tuple[int, float | None]:
    found = [row for row in diagnosis_of(built).quality if row.reason == "launches-without-device-work"]
    return (found[0].count, found[0].share) if found else (0, None)


def test_launches_without_a_device_row_are_counted_and_told() -> None:
    built = four_launches().launch(80, 84)
    assert lost(built) == (1, 0.2)
    (note,) = [note for note in diagnosis_of(built).notes if "no device row" in note]
    assert note.startswith("Rank 0: 1 of 5 launches left no device row")
    assert lost(four_launches()) == (0, None)
    assert not any("no device row" in note for note in diagnosis_of(four_launches()).notes)


def test_launches_into_a_capture_and_failed_ones_put_nothing_on_the_device() -> None:
    """The first capture had begun before the first record, the last one ends after it."""
    built = schedule().launch(0, 4).call(5, 6, "cudaStreamEndCapture_v10000").launch(10, 14, runs=(20, 30))
    built.call(32, 33, "cudaStreamBeginCapture").launch(34, 35).launch(36, 37).call(
        38, 39, "cudaStreamEndCapture"
    )
    built.call(40, 41, "cudaLaunchKernel", corr=77, result=719).launch(42, 44, runs=(50, 60))
    built.call(70, 71, "hipStreamBeginCapture").launch(72, 73)
    assert lost(built) == (0, None)
    assert lost(built.call(74, 75, "hipStreamEndCapture").launch(80, 81)) == (1, 1 / 3)


def test_replays_by_executable() -> None:
    built = schedule()
    for at, executable in ((0, 5), (100, 6), (200, 5)):
        built.graph(at, at + 4, [(at + 10, at + 20, "a", 7), (at + 20, at + 90, "b", 7)], exec_id=executable)
        built.sync(at + 5, at + 92, stream=7)
    rows = diagnosis_of(built).graph_replays
    assert [
        (row.graph, row.replays, row.kernels_per_replay, row.device_ns_total, row.path_ns) for row in rows
    ] == [
        ("executable 5", 2, 2.0, 160_000, 160_000),
        ("executable 6", 1, 2.0, 80_000, 80_000),
    ]


def test_replays_of_no_known_executable_by_what_they_bring() -> None:
    """The same names each as often are one graph, in whatever order they ran."""
    built = schedule()
    for at, names in ((0, "aab"), (100, "aba"), (200, "abb")):
        nodes = [(at + 10 + 5 * i, at + 15 + 5 * i, name, 7) for i, name in enumerate(names)]
        built.graph(at, at + 4, nodes, exec_id=-1)
    rows = diagnosis_of(built).graph_replays
    assert [(row.graph, row.replays) for row in rows] == [
        ("3 nodes: a ... b", 2),
        ("3 nodes: a ... b (2)", 1),
    ]


def test_replays_recorded_as_one_row_hide_their_kernels() -> None:
    built = schedule().whole_graph(0, 4, runs=(10, 50)).launch(5, 8, runs=(51, 60))
    (row,) = diagnosis_of(built).graph_replays
    assert (row.replays, row.kernels_per_replay, row.device_ns_total) == (1, None, 40_000)
    bill = bill_of(built)
    assert (bill.kernels_total, bill.kernels_in_graphs_total) == (1, None)


def test_small_kernels_are_shorter_than_the_limit() -> None:
    built = schedule(unit_ns=1).launch(0, 400, runs=(10_000, 11_999)).launch(400, 800, runs=(12_100, 14_100))
    built.launch(800, 900, runs=(14_200, 24_200)).copy(900, 950, runs=(24_300, 24_400))
    rows = {row.below_ns: row for row in diagnosis_of(built).small_kernels}
    assert {limit: row.kernels_total for limit, row in rows.items()} == {
        2_000: 1, 5_000: 2, 10_000: 2, 20_000: 3, 50_000: 3,
    }  # fmt: skip
    assert (rows[5_000].total_ns, rows[5_000].of_total_ns, rows[5_000].of_kernels) == (3_999, 13_999, 3)
    assert rows[2_000].path_ns == 1_999


def test_time_by_class_is_the_launched_work_and_its_path() -> None:
    """A copy under the kernel, off the path; the path of device work is the sum over the classes."""
    built = schedule().launch(0, 4, runs=(10, 50), name="gemm").copy(4, 8, runs=(20, 40), stream=20)
    rows = {row.class_: row for row in diagnosis_of(built).classes}
    assert (rows["copy"].events, rows["copy"].total_ns, rows["copy"].path_ns) == (1, 20_000, 0)
    (gemm,) = (row for name, row in rows.items() if name != "copy")
    assert (gemm.total_ns, gemm.path_ns) == (40_000, 40_000)


def test_ranges_carry_the_launch_bill_of_their_calls() -> None:
    """The device holds the copy to pageable memory: its call's time is no API time."""
    built = schedule().range(0, 100, "layer").launch(1, 5, runs=(20, 30)).launch(5, 8, runs=(30, 40))
    built.range(110, 130, "other").launch(111, 113, runs=(120, 125))
    rows = {row.name: row for row in diagnosis_of(built).ranges}
    assert (rows["layer"].launches, rows["layer"].api_ns, rows["layer"].held_launches) == (2, 7_000, 0)
    assert rows["layer"].latency_ns == order(19, 25)
    assert rows["other"].latency_ns == order(9)


CAPTURES = (
    "hta-diff/trace_diff_test.json.gz",
    "tracelens-vllm/vllm_piecewise.json.gz",
    "cs336-zx/gpt2_2.7B_nvtx.sqlite",
    "cs336-zx/gpt2_2.7B_cudagraph.sqlite",
)


@needs_shared
@pytest.mark.parametrize("name", CAPTURES)
def test_figures_of_a_real_capture_agree_with_its_windows(name: str) -> None:
    diagnosis = analysis_of_capture(name).diagnosis
    device = [CATEGORY_NAMES[category] for category in DEVICE_CATEGORIES]
    for rank in diagnosis.ranks:
        for bill in (bill for bill in diagnosis.launch_bill if bill.rank == rank.rank):
            windows = used_windows(rank, bill.phase)
            assert bill.launches_total == sum(window.launches for window in windows)
            assert bill.graph_launches_total == sum(window.graph_replays for window in windows)
            assert bill.kernels_total == sum(window.kernels for window in windows)
            if bill.kernels_in_graphs_total is not None:
                assert bill.kernels_in_graphs_total == sum(window.kernels_in_graphs for window in windows)
            launch_path = sum(
                ns
                for window in windows
                for label, ns in window.path_ns.items()
                if label.startswith("launch.")
            )
            assert bill.path_launch_ns_total == launch_path
            work = [row for row in diagnosis.classes if (row.rank, row.phase) == (rank.rank, bill.phase)]
            on_device = sum(window.path_ns[label] for window in windows for label in device)
            assert sum(row.path_ns for row in work) == on_device


@needs_shared
@pytest.mark.parametrize("name", CAPTURES)
def test_each_phase_with_a_budget_has_a_bill(name: str) -> None:
    diagnosis = analysis_of_capture(name).diagnosis
    budgets = {(budget.rank, budget.phase, budget.windows) for budget in diagnosis.budget}
    assert {(bill.rank, bill.phase, bill.windows) for bill in diagnosis.launch_bill} == budgets


def test_work_from_before_the_capture_is_a_class_of_its_own() -> None:
    """
    main      |L a 20-24
    stream 7  |before 5-30, no launch |a 31-41
    """
    built = schedule().kernel(5, 30, "before", corr=1).launch(20, 24, runs=(31, 41), name="a")
    diagnosis = analysis_of(built).diagnosis
    found = {row.class_: (row.events, row.total_ns, row.path_ns) for row in diagnosis.classes}
    assert found["prior_work"] == (1, 25_000, 25_000)  # without steps all work counts
    assert found["other"] == (1, 10_000, 10_000)
    assert {row.path_ns for row in diagnosis.small_kernels} == {0, 10_000}
