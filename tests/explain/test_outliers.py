"""Outliers by name: what a reader of the tail looks at."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis, GlobalAccount, Outlier
from analyzer.explain.outliers import outliers
from analyzer.explain.ranks.global_account import with_outliers
from tests.builders import Schedule, analysis_of, schedule
from tests.report.builder import MS, rank, window
from tests.report.joint_builder import global_window


def with_a_stall() -> Schedule:
    """Six steps of 100 us with 60 us of an op each; the fifth sleeps for 800 us more, the last is short."""
    built, at = schedule(), 0
    for index, length in enumerate((100, 101, 99, 100, 900, 100, 30)):
        built.range(at, at + length, f"tracebound.step#{index + 40}").op(
            at + 5, at + min(65, length), "aten::mm"
        )
        if length == 900:
            built.os(at + 70, at + 870, "clock_nanosleep")
        at += length + 5
    return built


def found() -> Diagnosis:
    return analysis_of(with_a_stall()).diagnosis


def test_each_outlier_is_named_with_what_it_has_more_of() -> None:
    slow, fast = found().outliers
    assert slow == Outlier(
        phase="step", scope="rank", rank=0, window=4, step="tracebound.step#44", duration_ns=900_000,
        median_ns=100_000, times_median=9.0, category="host.wait", category_ns=800_000, category_mean_ns=0,
    )  # fmt: skip
    assert (fast.step, fast.times_median, fast.category) == ("tracebound.step#46", 0.3, "host.framework")


def test_the_mean_leaves_them_out_and_their_time_stands_beside_it() -> None:
    diagnosis = found()
    (budget,) = diagnosis.budget
    assert (budget.windows, budget.step_ns_total) == (5, 500_000)
    assert (budget.windows_excluded, budget.outliers, budget.outlier_ns_total) == (2, 2, 930_000)
    assert (diagnosis.steps.count, diagnosis.steps.warmup_count, diagnosis.steps.outlier_count) == (7, 0, 2)


def test_a_chosen_outlier_is_explained_by_itself() -> None:
    """The slowest step is one that somebody asks for, whatever the mean leaves out."""
    for index in ("4", "slowest"):
        diagnosis = analysis_of(with_a_stall(), step_index=index).diagnosis
        (budget,) = diagnosis.budget
        assert (budget.windows, budget.step_ns_total, budget.outliers) == (1, 900_000, 0)
        assert budget.note == "this step is an outlier"
        assert diagnosis.look_first[0].name == "clock_nanosleep"


def test_all_ranks_together_are_judged_by_their_own_time() -> None:
    """One rank's odd window is no outlier of all; a slow step of all is one, and slow first steps are warm-up."""
    times = (31, 10, 10, 11, 10, 42, 10)
    steps = [
        global_window(
            at, start_ns=0, end_ns=time * MS, path_ns={**global_window().path_ns, "kernel": time * MS}
        )
        for at, time in enumerate(times)
    ]
    judged = with_outliers(steps)
    assert [step.warmup for step in judged] == [True] + [False] * 6
    assert judged[0].warmup_reasons == ["slow before the first ordinary step"]
    assert [step.index for step in judged if step.outlier] == [5]
    odd = rank(windows=[window(at, outlier=at == 2) for at in range(7)])
    of_all, of_rank = outliers([odd], GlobalAccount(reference_rank=0, windows=judged))
    assert (of_all.rank, of_all.scope, of_all.window, of_all.times_median) == (None, "global", 5, 4.2)
    assert (of_rank.rank, of_rank.window) == (0, 2)
