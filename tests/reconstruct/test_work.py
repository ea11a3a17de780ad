"""Device work: total order, launch records, prior work, corrupt durations, categories."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.categories import Category
from analyzer.model import CollectiveInfo, CopyKind
from tests.builders import Schedule, account_of, analysis_of, path_of, quality_of, schedule


def names(built: Schedule) -> list[str]:
    account = account_of(built)
    return [account.trace.process.names[code] for code in account.work.table.name]


def labels(built: Schedule) -> list[Category]:
    return [Category(int(label)) for label in account_of(built).work.label]


def test_ties_are_broken_by_end_launch_name_and_position_in_this_order() -> None:
    built = (
        schedule()
        .launch(4, 5, runs=(10, 20), name="z later launch", stream=1)
        .launch(2, 3, runs=(10, 20), name="b", stream=2)
        .launch(1, 2, runs=(10, 15), name="shorter", stream=3)
    )
    assert names(built) == ["shorter", "b", "z later launch"]


def test_of_one_launch_time_the_name_then_the_position_decides() -> None:
    built = schedule().graph(0, 4, [(10, 20, "b", 1), (10, 20, "a", 2), (10, 20, "a", 3)])
    assert names(built) == ["a", "a", "b"]
    assert account_of(built).work.table.position.tolist() == [1, 2, 0]


def test_the_outermost_call_with_the_correlation_id_is_the_launch() -> None:
    """cudaLaunchKernel 10-30 calls cuLaunchKernel 12-28 with the same id."""
    built = schedule().call(10, 30, "cudaLaunchKernel", corr=5).call(12, 28, "cuLaunchKernel", corr=5)
    built.kernel(40, 50, corr=5)
    assert account_of(built).work.launch_ns.tolist() == [10_000]


def test_correlation_zero_links_nothing() -> None:
    built = schedule().call(0, 4, "cudaLaunchKernel", corr=0).kernel(10, 20, corr=0)
    assert account_of(built).work.launch.tolist() == [-1]


def test_unified_memory_migrations_have_no_launch_and_are_no_lost_records() -> None:
    built = schedule().launch(0, 4, runs=(10, 20)).copy(5, 6, runs=(30, 40), kind=CopyKind.UM_HTOD)
    assert account_of(built).work.launch.tolist()[1] == -1
    assert quality_of(built)["driver-migration"] == 1
    assert "unlinked-device-work" not in quality_of(built)


def test_a_corrupt_duration_is_cut_at_its_streams_next_start_and_sets_no_window() -> None:
    """k1 claims to last 9 ms; its stream goes on at 31, 42, ... and ends at 60."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 20), name="k0")
        .launch(2, 4, runs=(21, 9_000), name="k1")
        .launch(4, 6, runs=(31, 41), name="k2")
        .launch(6, 8, runs=(42, 60), name="k3")
    )
    assert path_of(built)[2:5] == [
        (20, 21, "gap.dispatch", "k1"),
        (21, 31, "kernel", "k1"),
        (31, 41, "kernel", "k2"),
    ]
    window = analysis_of(built).diagnosis.ranks[0].windows[0]
    assert window.end_ns == 60_000
    assert quality_of(built)["corrupt-duration-clipped"] == 1
    clipped = {kernel.name: kernel.clipped_ns for kernel in analysis_of(built).diagnosis.kernels}
    assert clipped == {"k0": 0, "k1": (9_000 - 31) * 1000, "k2": 0, "k3": 0}


@pytest.mark.parametrize("end", [35, 700])
def test_overlap_of_neighbours_or_within_the_files_scale_is_no_corruption(end: int) -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, end), name="a")
        .launch(2, 4, runs=(31, 41), name="b")
        .launch(4, 6, runs=(42, 60), name="c")
    )
    assert account_of(built).work.clipped_ns.sum() == 0


def test_categories_of_device_work() -> None:
    built = (
        schedule()
        .launch(0, 1, runs=(10, 11), name="ampere_sgemm_128x64")
        .launch(1, 2, runs=(12, 13), name="ncclDevKernel_AllGather_RING_LL(ncclDevComm*)")
        .launch(2, 3, runs=(14, 15), name="__amd_rocclr_copyBuffer")
        .launch(3, 4, runs=(16, 17), name="__amd_rocclr_fillBufferAligned")
        .copy(4, 5, runs=(18, 19))
        .launch(5, 6, runs=(20, 21), name="void splitKreduce_kernel<32, 16, int, float>(float*)")
    )
    assert labels(built) == [
        Category.KERNEL, Category.COLLECTIVE_UNSPLIT, Category.COPY, Category.COPY, Category.COPY, Category.KERNEL,
    ]  # fmt: skip


def test_recorded_collective_metadata_beats_the_name() -> None:
    built = schedule().call(0, 1, "cudaLaunchKernel", corr=1)
    built.collectives.append(CollectiveInfo("all_reduce", None, None, None, None, None, None, None, None))
    built.kernel(10, 20, "my_fused_thing", corr=1, collective=0)
    assert labels(built) == [Category.COLLECTIVE_UNSPLIT]


def test_no_time_is_lost_to_rounding() -> None:
    """Odd nanoseconds: sums per name equal the sums of the rows."""
    built = schedule(unit_ns=1)
    for i in range(7):
        built.launch(
            1000 * i, 1000 * i + 3, runs=(10_000 + 101 * i, 10_000 + 101 * i + 33 + i), name="abc"[i % 3]
        )
    account = account_of(built)
    totals = {kernel.name: kernel.total_ns for kernel in analysis_of(built).diagnosis.kernels}
    assert totals == {"a": 33 + 36 + 39, "b": 34 + 37, "c": 35 + 38}
    assert sum(totals.values()) == int(np.sum(account.trace.device.duration_ns))


def test_work_of_no_length_is_counted_and_takes_no_time() -> None:
    built = schedule().launch(0, 2, runs=(10, 10), name="none").launch(2, 4, runs=(12, 20), name="some")
    assert quality_of(built)["zero-length-device-work"] == 1
    assert path_of(built)[-1] == (12, 20, "kernel", "some")
