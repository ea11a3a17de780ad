"""What the device did in each nanosecond (attribution, section 5), by hand."""

from __future__ import annotations

import pytest

from analyzer.model import CopyKind
from analyzer.reconstruct.exposure import exposed_by_row
from tests.builders import account_of, analysis_of, exposed_of, schedule

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def test_idle_is_split_by_when_its_work_was_submitted() -> None:
    """
    main    |L 0-4          |L 40-44      |L 45-49
    stream 7     |a 10-30        |b 50-60        |c 64-70
    0-10 launched at 0: launch; 30-40 nothing submitted: host; 40-50: launch; 60-64 submitted before 60: dependency
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 30), name="a")
        .launch(40, 44, runs=(50, 60), name="b")
        .launch(45, 49, runs=(64, 70), name="c")
    )
    assert exposed_of(built) == {
        "kernel": 20 + 10 + 6,
        "idle.launch": 10 + 10,
        "idle.host": 10,
        "idle.dependency": 4,
    }


def test_idle_before_work_without_a_launch_record_is_unlinked() -> None:
    built = schedule().launch(0, 4, runs=(10, 30), name="a").kernel(50, 60, "from a library")
    assert exposed_of(built) == {"kernel": 30, "idle.launch": 10, "idle.unlinked": 20}


def test_idle_after_the_last_work_of_the_host_boundary() -> None:
    built = schedule().range(0, 100, "step").launch(0, 4, runs=(10, 30))
    assert exposed_of(built, boundary="host", steps="^step$") == {
        "idle.launch": 10,
        "kernel": 20,
        "idle.after_last": 70,
    }


def test_recorded_overhead_covers_idle_and_never_work() -> None:
    """Overhead 20-45 of the profiler: 20-30 the kernel runs, 30-40 covers idle.host, 40-45 idle.launch."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 30), name="a")
        .overhead(20, 45, "Activity Buffer Request")
        .launch(40, 44, runs=(50, 60), name="b")
    )
    assert exposed_of(built) == {"kernel": 30, "idle.launch": 10 + 5, "idle.profiler": 15}


def test_labels_by_precedence_and_overlap_beside_them() -> None:
    """
    stream 7   |gemm 10-30        |gemm 50-60
    stream 20       |all-reduce 20-45
    stream 21            |copy 25-55
    """
    built = (
        schedule()
        .launch(0, 1, runs=(10, 30), name="gemm")
        .launch(1, 2, runs=(20, 45), name=ALL_REDUCE, stream=20)
        .copy(2, 3, runs=(25, 55), kind=CopyKind.DTOH, stream=21)
        .launch(3, 4, runs=(50, 60), name="gemm")
    )
    assert exposed_of(built) == {"idle.launch": 10, "kernel": 30, "collective": 15, "copy": 5}
    overlap = analysis_of(built).diagnosis.ranks[0].windows[0].overlap_ns
    assert overlap == {
        "collective_under_kernel": 10_000,
        "copy_under_kernel": 10_000,  # 25-30 and 50-55
        "kernel_under_kernel": 0,
    }


def test_kernels_under_kernels() -> None:
    built = (
        schedule()
        .launch(0, 1, runs=(10, 30), name="a")
        .launch(1, 2, runs=(20, 50), name="b", stream=20)
        .launch(2, 3, runs=(28, 40), name="c", stream=21)
    )
    assert exposed_of(built) == {"idle.launch": 10, "kernel": 40}
    overlap = analysis_of(built).diagnosis.ranks[0].windows[0].overlap_ns
    assert overlap is not None
    assert (
        overlap["kernel_under_kernel"] == 20_000
    )  # 20-30 a and b, 28-40 b and c: 20 us where two or more run


def test_prior_work_and_whole_graphs_have_labels_of_their_own() -> None:
    built = (
        schedule()
        .kernel(0, 20, "from before", corr=3)
        .whole_graph(5, 9, runs=(25, 60))
        .launch(10, 14, runs=(62, 70))
    )
    assert exposed_of(built) == {
        "prior_work": 20,
        "graph.unresolved": 35,
        "kernel": 8,
        "idle.dependency": 5 + 2,
    }


def test_rows_of_a_label_sum_to_the_label() -> None:
    """b runs 15 us of which a takes 10; the copy's 30 us shrink to the 10 that no kernel covers."""
    built = (
        schedule()
        .launch(0, 1, runs=(10, 30), name="a")
        .launch(1, 2, runs=(20, 35), name="b", stream=20)
        .copy(2, 3, runs=(15, 45), stream=21)
    )
    work = account_of(built).work
    assert exposed_by_row(work, 0, 45_000).tolist() == [20_000, 10_000, 5_000]
    assert [work.table.name[row] for row in range(3)] == [built.names[n] for n in ("a", "Memcpy HTOD", "b")]
    assert exposed_of(built) == {"idle.launch": 10, "kernel": 25, "copy": 10}


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 12, [2, 0]), (25, 38, [5, 3]), (50, 60, [0, 0])])
def test_rows_are_cut_to_the_window(low: int, high: int, expected: list[int]) -> None:
    built = schedule().launch(0, 1, runs=(10, 30), name="a").launch(1, 2, runs=(35, 40), name="b")
    work = account_of(built).work
    assert exposed_by_row(work, low * 1000, high * 1000).tolist() == [ns * 1000 for ns in expected]


def test_idle_time_that_began_before_the_window_is_judged_from_its_beginning() -> None:
    """
    main       |L 0-2      |L 95-97  |step 100-130  |L 110-112
    stream 7     |a 10-20               |b 106-120      |c 121-130
    b was submitted after the device fell idle at 20, though before the step: 100-106 is its launch
    """
    built = schedule().launch(0, 2, runs=(10, 20)).launch(95, 97, runs=(106, 120))
    built.range(100, 130, "ProfilerStep#1").launch(110, 112, runs=(121, 130))
    assert exposed_of(built) == {"kernel": 14 + 9, "idle.launch": 6, "idle.dependency": 1}
