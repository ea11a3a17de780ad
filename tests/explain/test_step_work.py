"""The work of a phase's steps as a multiset."""

from __future__ import annotations

from analyzer.diagnosis import StepWork
from analyzer.model import CollectiveInfo, CopyKind
from tests.builders import Schedule, analysis_of, schedule


def work_of(built: Schedule) -> list[StepWork]:
    return analysis_of(built, steps="^s$").diagnosis.step_work


def rows(built: Schedule) -> set[tuple[object, ...]]:
    return {(row.kind, row.name, row.bytes, row.calls_total, row.total_ns // 1000) for row in work_of(built)}


def test_kernels_count_by_name_grid_and_block() -> None:
    built = schedule()
    for at in (0, 100, 200):
        built.range(at, at + 90, "s")
        built.launch(at, at + 2, runs=(at + 10, at + 20), name="void gemm<float>(int)", grid=4)
        built.launch(at + 2, at + 4, runs=(at + 20, at + 30), name="gemm<float>(int)", grid=4)
        built.launch(at + 4, at + 6, runs=(at + 30, at + 35), name="gemm<float>(int)", grid=8)
    found = work_of(built)
    assert [(row.name, row.grid, row.block, row.calls_total, row.total_ns) for row in found] == [
        ("gemm<float>(int)", (4, 1, 1), (32, 1, 1), 6, 60_000),
        ("gemm<float>(int)", (8, 1, 1), (32, 1, 1), 3, 15_000),
    ]


def test_copies_count_by_direction_and_bytes_whatever_the_profiler_calls_them() -> None:
    built = schedule().range(0, 90, "s").launch(0, 1, runs=(2, 3))
    built.copy(4, 5, runs=(10, 12), size=64).copy(5, 6, runs=(12, 15), size=64)
    built.copy(6, 7, runs=(15, 16), size=64, kind=CopyKind.DTOH)
    assert rows(built) == {
        ("kernel", "k", None, 1, 1),
        ("copy", "copy HTOD", 64, 2, 5),
        ("copy", "copy DTOH", 64, 1, 1),
    }


def test_collectives_count_by_what_they_do_and_not_by_their_grid() -> None:
    built = schedule().range(0, 90, "s")
    built.collectives = [CollectiveInfo("allreduce", "BFloat16", 32, 32, "0", None, 8, None, None)]
    for at, grid in ((0, 8), (20, 24)):
        built.launch(
            at,
            at + 2,
            runs=(at + 5, at + 15),
            name=f"ncclDevKernel_AllReduce_{grid}",
            grid=grid,
            collective=0,
        )
    found = work_of(built)
    assert {(row.kind, row.name, row.bytes, row.dtype, row.group_size, row.grid) for row in found} == {
        ("collective", "all_reduce", 64, "BFloat16", 8, None)
    }
    assert {(row.kernel, row.kernel_operation, row.calls_total) for row in found} == {
        ("ncclDevKernel_AllReduce_8", "all_reduce", 1),
        ("ncclDevKernel_AllReduce_24", "all_reduce", 1),
    }


def test_a_collective_without_metadata_says_so() -> None:
    built = schedule().range(0, 90, "s").launch(0, 2, runs=(5, 15), name="ncclDevKernel_AllGather_RING_LL")
    (row,) = work_of(built)
    assert (row.kind, row.name, row.bytes, row.dtype, row.group_size) == (
        "collective",
        "all_gather",
        None,
        None,
        None,
    )


def test_replays_are_counted_node_by_node_or_as_one_row() -> None:
    built = (
        schedule()
        .range(0, 90, "s")
        .graph(0, 2, [(5, 15, "a", 7), (15, 20, "b", 7)])
        .launch(4, 5, runs=(20, 22), name="a")
    )
    assert {(row.name, row.calls_total, row.calls_in_graphs) for row in work_of(built)} == {
        ("a", 2, 1),
        ("b", 1, 1),
    }
    whole = schedule().range(0, 90, "s").whole_graph(0, 2, runs=(5, 15))
    assert rows(whole) == {("graph", "(graph replay)", None, 1, 10)}


def test_work_from_before_the_capture_belongs_to_no_step() -> None:
    built = schedule().kernel(0, 5, "before").range(6, 90, "s").launch(6, 8, runs=(10, 20), name="mine")
    assert rows(built) == {("kernel", "mine", None, 1, 10)}


def test_phases_and_warm_up_are_kept_apart() -> None:
    built = schedule()
    for at in (0, 100, 200, 300):
        built.range(at, at + 90, "s").launch(at, at + 2, runs=(at + 10, at + 20))
    diagnosis = analysis_of(built, steps="^s$").diagnosis
    (budget,) = diagnosis.budget
    (row,) = diagnosis.step_work
    assert row.calls_total == budget.windows
