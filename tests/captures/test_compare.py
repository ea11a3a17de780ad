"""Comparisons of real captures: each with itself, and the pairs that invite a wrong speedup."""

from __future__ import annotations

import pytest

from analyzer.comparison.result import Comparison
from analyzer.comparison.runs import compare
from analyzer.comparison.sides import step_work_of
from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.pipeline import analyze, read
from tests.captures.results import analysis_of, capture_names
from tests.shared import SHARED, needs_shared

PAIRS = [
    ("cs336-zx/gpt2_2.7B_eager.sqlite", "cs336-zx/gpt2_2.7B_cudagraph.sqlite"),
    ("cs336-zx/gpt2_2.7B_nvtx.sqlite", "cs336-zx/gpt2_2.7B_cudagraph.sqlite"),
    ("cs336-zx/gpt2_2.7B_eager.sqlite", "cs336-zx/gpt2_2.7B_nvtx.sqlite"),
    ("nsysai/mfu_2gpu_before.sqlite", "nsysai/mfu_2gpu_after.sqlite"),
]


def diagnosis(name: str) -> Diagnosis:
    return analysis_of(name).diagnosis


@needs_shared
@pytest.mark.parametrize("name", capture_names())
def test_a_capture_against_itself_is_neutral(name: str) -> None:
    found = diagnosis(name)
    if not found.budget:
        with pytest.raises(UsageError, match="holds no step"):
            compare(found, found)
        return
    same = compare(found, found)
    assert same.same_work in ("identical", "unverifiable")
    assert (same.speedup is None) == (same.same_work == "unverifiable")
    assert same.speedup in (None, 1.0)
    assert (same.step_delta_ns.mean, same.step_delta_ns.median, same.step_delta_ns.shown) == (0, 0, False)
    assert {row.change for row in same.changes} <= {"same"}
    assert same.replaced == []
    assert (same.speedup_ci95 is None) == (same.speedup is None or same.a.step_ns.n < 5)
    if same.speedup_ci95 is not None:
        assert same.speedup_ci95[0] <= 1 <= same.speedup_ci95[1]
    assert all_work(same) == pytest.approx(
        (work_ns(found, same), work_ns(found, same)), abs=len(same.changes)
    )
    assert same.a.shapes == same.b.shapes
    assert (same.differences, same.checks, same.unpaired_phases) == ([], [], [])
    for pair in same.pairs:
        assert set(pair.delta_ns.values()) == {0}
        assert sum(pair.a_ns.values()) == pair.a.mean


def all_work(found: Comparison) -> tuple[int, int]:
    """The time of all rows on both sides (ns)."""
    rows = [*found.changes, *found.replaced]
    return sum(row.ns_a or 0 for row in rows), sum(row.ns_b or 0 for row in rows)


def work_ns(diagnosis: Diagnosis, found: Comparison) -> float:
    """Device work of a mean step of the headline phase, over the ranks compared (ns)."""
    rank = found.a.rank
    ranks = (
        {budget.rank for budget in diagnosis.budget if budget.phase == found.a.phase}
        if rank is None
        else {rank}
    )
    return sum(
        sum(row.total_ns for row in step_work_of(diagnosis, budget.phase, budget.rank)) / budget.windows
        for budget in diagnosis.budget
        if budget.rank in ranks and budget.rank is not None and budget.phase == found.a.phase
    )


@needs_shared
@pytest.mark.parametrize("name", capture_names())
def test_sequences_and_shapes_agree_with_the_work_of_the_steps(name: str) -> None:
    found = diagnosis(name)
    budgets = {(one.phase, one.rank): one for one in found.budget}
    for sequence in found.step_sequences:
        rows = step_work_of(found, sequence.phase, sequence.rank)
        ns = [0] * len(rows)
        for section in sequence.sections:
            for work, total in zip(section.work, section.ns, strict=True):
                ns[work] += total
        assert all(one <= row.total_ns for one, row in zip(ns, rows, strict=True))
        assert sum(part.repeats * len(part.work) for part in sequence.sections) == sequence.recorded
        assert sequence.steps == budgets[sequence.phase, sequence.rank].windows
        if sequence.steps_alike == sequence.steps and sequence.recorded == sequence.length:
            assert ns == [row.total_ns for row in rows]
    assert {(one.phase, one.rank) for one in found.step_sequences} == {
        (row.phase, row.rank) for row in found.step_work
    }
    for shape in found.shape_replays:
        assert shape.replayed_steps + shape.eager_steps <= shape.steps
        assert shape.eager_ns_total <= shape.step_ns_total
    for graph in found.graph_replays:
        assert (graph.kernels_total is None) == (graph.kernels_per_replay is None)


@needs_shared
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_pairs_of_unproven_work_claim_no_speedup_and_mirror(first: str, second: str) -> None:
    a, b = diagnosis(first), diagnosis(second)
    forth, back = compare(a, b), compare(b, a)
    for found in (forth, back):
        assert (found.same_work, found.speedup) == ("unverifiable", None)
        assert all(pair.speedup is None for pair in found.pairs)
        assert found.step_delta_ns.mean == sum(found.delta_ns.values()) != 0
    assert forth.delta_ns == {name: -ns for name, ns in back.delta_ns.items()}
    low, high = forth.step_delta_ns.ci95 or (0, 0)
    assert (back.step_delta_ns.ci95 or (0, 0)) == (-high, -low)
    assert all_work(back) == all_work(forth)[::-1]
    assert [(row.a, row.b, row.places) for row in forth.replaced] == [
        (row.b, row.a, row.places) for row in back.replaced
    ]
    swapped = {"added": "removed", "removed": "added", "slower": "faster", "faster": "slower"}
    assert {(row.name, row.detail, swapped.get(row.change, row.change)) for row in forth.changes} == {
        (row.name, row.detail, row.change) for row in back.changes
    }


@needs_shared
def test_replays_of_one_row_are_compared_in_time_only() -> None:
    found = compare(diagnosis(PAIRS[0][0]), diagnosis(PAIRS[0][1]))
    assert found.level == "whole replays"
    assert found.b.replayed.whole_replays == 10
    assert found.step_delta_ns.shown
    assert found.step_delta_ns.mean < 0


@needs_shared
@pytest.mark.parametrize(
    ("first", "second"), [("tracelens-vllm", "tracelens-sglang"), ("tracelens-sglang", "tracelens-vllm")]
)
def test_two_engines_did_different_work(first: str, second: str) -> None:
    names = [next(name for name in capture_names() if name.startswith(folder)) for folder in (first, second)]
    found = compare(*(diagnosis(name) for name in names))
    assert found.same_work in ("different", "unverifiable")
    assert found.speedup is None


@needs_shared
def test_a_replay_with_one_kernel_more_is_named() -> None:
    """B52: three kernels of 10 us each, launched one by one with gaps, against one replay with a fill after them."""
    eager, graph = (
        analyze(read([SHARED / "cases" / f"B52.{name}.json"])).diagnosis for name in ("eager", "graph")
    )
    found = compare(eager, graph)
    assert [(row.what, row.a, row.b) for row in found.differences] == [
        ("kernel fill_kernel", "none", "1 per step")
    ]
    assert [row.name for row in found.changes if row.change == "added"] == ["fill_kernel"]
    assert [row.change for row in found.changes].count("same") == 3
    assert found.step_delta_ns.median == -9_000
    assert (found.a.replayed_kernel_share, found.b.replayed_kernel_share) == (0.0, 1.0)
    assert found.speedup is None
