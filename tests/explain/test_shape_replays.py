"""Which steps were replayed, by batch shape, and which graph serves which shapes."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis, ShapeReplays
from tests.builders import Schedule, analysis_of, schedule

DECODE = "execute_context_0(0)_generation_{0}({0})"


def replayed(built: Schedule, at: int, name: str, *, exec_id: int = 1) -> None:
    """Two kernels in a replay and one launched after it, 90 us in all."""
    built.range(at, at + 90, name)
    built.graph(at, at + 4, [(at + 10, at + 20, "a", 7), (at + 20, at + 80, "b", 7)], exec_id=exec_id)
    built.launch(at + 5, at + 9, runs=(at + 80, at + 90), name="sample")


def eager(built: Schedule, at: int, name: str, *, length: int = 90) -> None:
    built.range(at, at + length, name)
    for start, kernel in ((10, "a"), (40, "b"), (70, "sample")):
        built.launch(at + start, at + start + 4, runs=(at + start + 5, at + start + 20), name=kernel)


def diagnosis(built: Schedule) -> Diagnosis:
    return analysis_of(built).diagnosis


def told(row: ShapeReplays) -> tuple[object, ...]:
    return (
        row.phase, row.shape, row.steps, row.replayed_steps, row.eager_steps, row.kernels_total,
        row.kernels_in_graphs_total,
    )  # fmt: skip


def test_one_shape_falls_back_while_the_others_replay() -> None:
    built = schedule()
    for at in range(6):
        replayed(built, at * 300, DECODE.format(8), exec_id=1)
        replayed(built, at * 300 + 100, DECODE.format(4), exec_id=2)
        eager(built, at * 300 + 200, DECODE.format(16))
    found = diagnosis(built)
    assert {told(row) for row in found.shape_replays} == {
        ("decode batch 4", "batch 4", 6, 6, 0, 18, 12),
        ("decode batch 8", "batch 8", 6, 6, 0, 18, 12),
        ("decode batch 16", "batch 16", 6, 0, 6, 18, 0),
    }
    assert {(row.graph, tuple(row.shapes), row.steps, row.kernels_total) for row in found.graph_replays} == {
        ("executable 1", ("batch 8",), 6, 12),
        ("executable 2", ("batch 4",), 6, 12),
    }
    for row in found.shape_replays:
        windows = [window for window in found.ranks[0].windows if window.phase == row.phase]
        assert row.step_ns_total == sum(window.end_ns - window.start_ns for window in windows)
        assert row.eager_ns_total == (row.step_ns_total if row.eager_steps else 0)


def test_shapes_that_share_a_phase_stand_apart() -> None:
    """More than six shapes are banded: the table still has each of them, the smallest first."""
    built = schedule()
    for at in range(32):
        size = at % 8 + 1
        (replayed if size % 2 else eager)(built, at * 100, DECODE.format(size))
    found = diagnosis(built)
    rows = [row for row in found.shape_replays if row.phase == "decode batch 5-8"]
    assert [(row.shape, row.steps, row.replayed_steps, row.eager_steps) for row in rows] == [
        ("batch 5", 4, 4, 0), ("batch 6", 4, 0, 4), ("batch 7", 4, 4, 0), ("batch 8", 4, 0, 4),
    ]  # fmt: skip
    (graph,) = [row for row in found.graph_replays if row.phase == "decode batch 5-8"]
    assert (graph.shapes, graph.steps) == (["batch 5", "batch 7"], 8)


def test_a_long_eager_step_is_counted_although_the_budget_leaves_it_out() -> None:
    built = schedule()
    for at in range(0, 2000, 100):
        replayed(built, at, DECODE.format(8))
    built.range(2000, 2900, DECODE.format(8))
    for at in range(2000, 2900, 100):
        built.launch(at + 10, at + 14, runs=(at + 15, at + 95), name="a")
    (row,) = diagnosis(built).shape_replays
    assert (row.steps, row.outlier_steps, row.eager_steps, row.eager_outlier_steps) == (21, 1, 1, 1)
    assert row.eager_ns_total == 905_000


def test_a_step_that_captures_its_graph_is_no_fall_back() -> None:
    built = schedule()
    eager(built, 0, DECODE.format(8))
    built.call(2, 8, "cudaStreamBeginCapture_v10000")
    for at in range(100, 700, 100):
        replayed(built, at, DECODE.format(8))
    (row,) = diagnosis(built).shape_replays
    assert (row.steps, row.replayed_steps, row.eager_steps) == (6, 6, 0)


def test_what_a_whole_row_holds_is_not_known() -> None:
    built = schedule()
    for at in range(0, 600, 100):
        built.range(at, at + 90, DECODE.format(8)).whole_graph(at, at + 4, runs=(at + 10, at + 80))
        built.launch(at + 5, at + 9, runs=(at + 80, at + 90), name="sample")
    found = diagnosis(built)
    assert [told(row) for row in found.shape_replays] == [("decode", "batch 8", 6, 6, 0, 6, None)]
    assert [(row.kernels_total, row.shapes) for row in found.graph_replays] == [(None, ["batch 8"])]


def test_a_replay_without_any_row_is_not_known_either() -> None:
    built = schedule()
    for at in range(0, 600, 100):
        built.range(at, at + 90, DECODE.format(8)).graph(at, at + 4)
        built.launch(at + 5, at + 9, runs=(at + 80, at + 90), name="sample")
    (row,) = diagnosis(built).shape_replays
    assert (row.replayed_steps, row.kernels_in_graphs_total) == (6, None)


def test_names_without_a_shape_leave_it_open() -> None:
    built = schedule()
    for at in range(0, 600, 100):
        eager(built, at, f"ProfilerStep#{at // 100}")
    assert [told(row) for row in diagnosis(built).shape_replays] == [("step", None, 6, 0, 6, 18, 0)]


def test_without_steps_or_device_work_there_is_no_row() -> None:
    assert diagnosis(schedule().launch(0, 4, runs=(5, 9))).shape_replays == []
    assert diagnosis(schedule().range(0, 90, DECODE.format(8)).op(1, 80, "aten::mm")).shape_replays == []


def test_without_calls_nothing_tells_what_was_replayed() -> None:
    built = schedule()
    for at in range(0, 600, 100):
        built.range(at, at + 90, DECODE.format(8)).kernel(at + 10, at + 60, "a")
    assert diagnosis(built).shape_replays == []


def test_kernels_that_were_not_captured_are_not_counted_as_none() -> None:
    built = schedule()
    built.captured -= {"kernel"}
    for at in range(0, 600, 100):
        built.range(at, at + 90, DECODE.format(8)).launch(at + 1, at + 4)
        built.copy(at + 5, at + 9, runs=(at + 10, at + 60))
    (row,) = diagnosis(built).shape_replays
    assert (row.kernels_total, row.kernels_in_graphs_total, row.steps) == (None, None, 6)
