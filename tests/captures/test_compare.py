"""Comparisons of real captures: each with itself, and the pairs that invite a wrong speedup."""

from __future__ import annotations

import pytest

from analyzer.comparison.runs import compare
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
    assert (same.differences, same.checks, same.unpaired_phases) == ([], [], [])
    for pair in same.pairs:
        assert set(pair.delta_ns.values()) == {0}
        assert sum(pair.a_ns.values()) == pair.a.mean


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
