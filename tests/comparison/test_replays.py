"""Which batch shapes of a run were replayed, and which fell back to launching one by one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from analyzer.comparison.result import Comparison
from analyzer.comparison.runs import compare
from analyzer.diagnosis import Diagnosis
from analyzer.report.comparison import render_comparison
from tests.builders import Schedule, analysis_of, schedule

DECODE = "execute_context_0(0)_generation_{0}({0})"
Step = Callable[[Schedule, int], object]


def replayed(built: Schedule, at: int) -> None:
    """Two kernels in a replay and one launched after it."""
    built.graph(at, at + 4, [(at + 10, at + 20, "a", 7), (at + 20, at + 80, "b", 7)])
    built.launch(at + 5, at + 9, runs=(at + 80, at + 90), name="sample")


def eager(built: Schedule, at: int) -> None:
    for start, kernel in ((10, "a"), (40, "b"), (70, "sample")):
        built.launch(at + start, at + start + 4, runs=(at + start + 5, at + start + 20), name=kernel)


def in_pieces(built: Schedule, at: int) -> None:
    """Of ten kernels three in a replay."""
    built.graph(at, at + 4, [(at + 10 + k, at + 11 + k, "a", 7) for k in range(3)])
    for k in range(7):
        built.launch(at + 20 + 10 * k, at + 23 + 10 * k, runs=(at + 24 + 10 * k, at + 30 + 10 * k), name="b")


def whole(built: Schedule, at: int) -> None:
    built.whole_graph(at, at + 4, runs=(at + 10, at + 90))


def run(*steps: tuple[int, Step]) -> Diagnosis:
    """Steps in turn, six times: the batch size of each, and how it runs."""
    built = schedule()
    for turn in range(6):
        for k, (size, step) in enumerate(steps):
            at = 100 * (turn * len(steps) + k)
            built.range(at, at + 95, DECODE.format(size))
            step(built, at)
    return analysis_of(built).diagnosis


def ran(found: Comparison) -> dict[str | None, str]:
    return {use.shape: use.ran for use in found.b.shapes}


def test_the_shape_without_a_graph_fell_back() -> None:
    a = run((4, eager), (8, eager), (16, eager))
    found = compare(a, run((4, replayed), (8, replayed), (16, eager)))
    assert {use.ran for use in found.a.shapes} == {"no replay"}
    assert ran(found) == {"batch 4": "replayed", "batch 8": "replayed", "batch 16": "eager"}
    (use,) = [use for use in found.b.shapes if use.ran == "eager"]
    assert (use.steps, use.eager_steps, use.step_ns, use.eager_step_ns, use.share) == (
        6,
        6,
        100_000,
        100_000,
        0,
    )
    assert use.other_step_ns is None
    (note,) = found.notes
    assert note == (
        "B, phase 'decode batch 16': all 6 steps fell back to eager, replaying no graph (0.100 ms each)."
    )


def test_some_steps_of_a_shape_may_fall_back() -> None:
    b = run((8, replayed), (8, replayed), (8, eager))
    found = compare(b, b)
    (use,) = found.b.shapes
    assert (use.ran, use.steps, use.eager_steps) == ("some steps eager", 18, 6)
    assert found.notes == [
        "B, phase 'decode', batch 8: 6 of 18 steps fell back to eager, replaying no graph (0.100 ms each, those with"
        " a replay 0.099 ms)."
    ]


def test_a_shape_replayed_in_part_is_told() -> None:
    found = compare(run((4, eager), (8, eager)), run((4, replayed), (8, in_pieces)))
    assert ran(found) == {"batch 4": "replayed", "batch 8": "partly"}
    (note,) = found.notes
    assert note == (
        "B, phase 'decode batch 8': only 30.0 % of the kernels ran inside replays, less than half of what other"
        " shapes of the run reach."
    )


def test_a_run_without_replays_fell_back_from_nothing() -> None:
    found = compare(run((4, eager), (8, eager)), run((4, eager), (8, eager)))
    assert {use.ran for use in (*found.a.shapes, *found.b.shapes)} == {"no replay"}
    assert (found.notes, found.a.graphs, found.b.graphs) == ([], [], [])


def test_replays_of_one_row_are_replays_of_an_unknown_share() -> None:
    found = compare(run((4, eager), (8, eager)), run((4, whole), (8, eager)))
    assert ran(found) == {"batch 4": "replayed", "batch 8": "eager"}
    assert {use.shape: use.share for use in found.b.shapes} == {"batch 4": None, "batch 8": 0.0}
    (graph,) = found.b.graphs
    assert (graph.replays, graph.kernels_per_replay, graph.share) == (6, None, None)


def test_graphs_are_told_with_their_share_and_shapes() -> None:
    found = compare(run((4, eager), (8, eager)), run((4, replayed), (8, in_pieces)))
    assert found.a.graphs == []
    assert {(use.phase, tuple(use.shapes), use.replays, use.kernels_per_replay, use.share)
            for use in found.b.graphs} == {
        ("decode batch 4", ("batch 4",), 6, 2.5, 2 / 3),
        ("decode batch 8", ("batch 8",), 6, 2.5, 0.3),
    }  # fmt: skip


def test_ranks_are_added() -> None:
    """Two ranks that ran the same: shares stay, replays add up, steps do not."""
    one = run((8, replayed), (4, eager))
    (rank,) = one.ranks

    def both(rows: list[msgspec.Struct]) -> list[msgspec.Struct]:
        return [*rows, *(msgspec.structs.replace(row, rank=1) for row in rows)]

    two = msgspec.structs.replace(
        one,
        ranks=[rank, msgspec.structs.replace(rank, rank=1)],
        **{
            name: both(getattr(one, name))
            for name in ("budget", "step_work", "graph_replays", "shape_replays")
        },
    )
    found, alone = compare(two, two), compare(one, one)
    assert found.b.shapes == alone.b.shapes
    (graph,), (single,) = found.b.graphs, alone.b.graphs
    assert (graph.ranks, graph.replays, graph.share) == ([0, 1], 2 * single.replays, single.share)


def test_a_diagnosis_without_shapes_still_names_the_phase() -> None:
    b = msgspec.structs.replace(run((4, replayed), (8, eager)), shape_replays=[])
    found = compare(b, b)
    assert found.notes == ["Phase 'decode batch 8' of B replays no graph, while 'decode batch 4' does."]


def test_the_report_lists_shapes_and_graphs() -> None:
    shown = render_comparison(compare(run((4, eager), (8, eager)), run((4, replayed), (8, eager))))
    rows = [
        [part.strip() for part in line.split("|")[1:-1]]
        for line in shown.splitlines()
        if line.startswith("| B ")
    ]
    assert sorted(rows) == [
        ["B", "`decode batch 4`", "`batch 4`", "6", "0.098", "66.7 %", "replayed"],
        ["B", "`decode batch 4`", "`executable 1`", "0", "`batch 4`", "6", "2.0", "66.7 %"],
        ["B", "`decode batch 8`", "`batch 8`", "6", "0.100", "0.0 %", "fell back to eager"],
    ]
    assert "fell back to eager" in shown.split("## What was compared")[0]
