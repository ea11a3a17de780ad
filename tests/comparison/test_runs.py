"""Two runs of literal steps: same work or not, where the difference lies, what is claimed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgspec
import pytest

import analyzer
from analyzer.comparison.result import Comparison
from analyzer.comparison.runs import compare
from analyzer.diagnosis import Diagnosis, PinnedFact, RunFacts, RunRank
from analyzer.errors import UsageError
from analyzer.model import CollectiveInfo
from tests.builders import Schedule, analysis_of, schedule

Add = Callable[[Schedule, int], object]


def nothing(_: Schedule, __: int) -> None:
    pass


def run(
    *,
    count: int = 8,
    launch: int = 15,
    step: int = 90,
    name: str = "gemm",
    grid: int = 1,
    phase: str = "decode",
    add: Add = nothing,
    boundary: str = "device",
) -> Diagnosis:
    """Steps of one kernel of 45 us that begins when its launch call ends; the CPU goes on until the step's end."""
    built = schedule()
    for at in range(0, count * 1000, 1000):
        built.range(at, at + step, phase)
        built.launch(at, at + launch, runs=(at + launch, at + launch + 45), name=name, grid=grid)
        add(built, at + launch + 45)
        built.sync(at + launch + 1, at + step, stream=7)
    return analysis_of(built, steps=f"^{phase}$", boundary=boundary).diagnosis


def extra(length: int, name: str = "fill") -> Add:
    return lambda built, at: built.launch(at - 30, at - 29, runs=(at, at + length), name=name)


def copied(size: int) -> Add:
    return lambda built, at: built.copy(at - 30, at - 29, runs=(at, at + 2), size=size)


def reduced(elements: int, *, grid: int = 8) -> Add:
    info = CollectiveInfo("allreduce", "Float", elements, elements, "0", None, 2, (0, 1), None)

    def add(built: Schedule, at: int) -> None:
        built.collectives = [info]
        built.launch(
            at - 30, at - 29, runs=(at, at + 5), name="ncclDevKernel_AllReduce", collective=0, grid=grid
        )

    return add


def same(a: Diagnosis, b: Diagnosis) -> str:
    return compare(a, b).same_work


def test_equal_work_in_less_time_is_a_speedup() -> None:
    found = compare(run(launch=30), run(launch=10))
    assert found.same_work == "identical"
    assert found.differences == []
    assert found.delta_ns["kernel"] == 0
    assert found.delta_ns["launch.latency"] == -20_000
    assert sum(found.delta_ns.values()) == found.step_delta_ns.mean
    assert found.speedup == pytest.approx(found.a.step_ns.mean / found.b.step_ns.mean)
    assert found.step_delta_ns.median == found.b.step_ns.median - found.a.step_ns.median


def test_four_and_a_half_to_one_and_a_half_the_worked_example() -> None:
    """9 ms of 4.5 + 2 + 1.5 + 1; launching falls from 1.5 to 0.5 ms: 8 ms, 1.125 x."""

    def steps(launch: int) -> Diagnosis:
        built = schedule()
        rest = 4500 + 2000 + 1000
        for at in range(0, 10 * (rest + launch), rest + launch):
            built.range(at, at + launch, "s").launch(
                at, at + launch // 2, runs=(at + launch, at + launch + 4500), name="gemm"
            )
            built.launch(
                at + launch // 2, at + launch, runs=(at + launch + 4500, at + launch + 6500), name="attention"
            )
            built.copy(at + launch, at + launch, runs=(at + launch + 6500, at + launch + rest))
            built.sync(at + launch, at + launch + rest, stream=7)
        return analysis_of(built, steps="^s$").diagnosis

    found = compare(steps(1500), steps(500))
    assert (found.a.step_ns.median, found.b.step_ns.median) == (9_000_000, 8_000_000)
    assert found.speedup == 1.125
    assert found.same_work == "identical"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run(count=5), "identical"),
        (run(name="void gemm"), "identical"),  # profilers spell names differently
        (run(name="other"), "different"),
        (run(grid=2), "different"),
        (run(add=extra(10)), "different"),
        (run(add=copied(8)), "different"),
    ],
)
def test_what_counts_as_the_same_work(other: Diagnosis, expected: str) -> None:
    assert (same(run(), other), same(other, run())) == (expected, expected)


def test_little_kernel_time_without_a_partner_is_equivalent() -> None:
    base = run(add=lambda built, at: built.launch(at - 30, at - 29, runs=(at, at + 900 - 45), name="big"))

    def more(length: int) -> Add:
        def add(built: Schedule, at: int) -> None:
            built.launch(at - 30, at - 29, runs=(at, at + 855), name="big")
            built.launch(at - 28, at - 27, runs=(at + 855, at + 855 + length), name="fill")

        return add

    found = compare(base, run(add=more(9)))
    assert found.same_work == "equivalent"
    assert found.speedup is not None
    assert [(row.what, row.a, row.b) for row in found.differences] == [
        ("kernel fill (grid 1x1x1, block 32x1x1)", "none", "1 per step")
    ]
    assert found.pairs[0].work.unmatched_share_b == pytest.approx(float(Fraction(9, 909)))
    assert same(base, run(add=more(10))) == "different"


def test_copies_and_collectives_must_be_equal_however_short() -> None:
    assert same(run(add=copied(8)), run(add=copied(8))) == "identical"
    assert same(run(add=copied(8)), run(add=copied(16))) == "different"
    assert same(run(add=reduced(64)), run(add=reduced(64, grid=24))) == "identical"  # the tuner's choice
    found = compare(run(add=reduced(64)), run(add=reduced(128)))
    assert found.same_work == "different"
    assert {row.what for row in found.differences} == {
        "collective all_reduce (256 bytes, Float, 2 ranks)",
        "collective all_reduce (512 bytes, Float, 2 ranks)",
    }


def collective(name: str, *, operation: str | None = None, replayed: bool = False) -> Add:
    """A collective kernel of that name, in a replay or with what its metadata calls it."""
    info = CollectiveInfo(operation or "", "Float", 64, 64, "0", None, 2, (0, 1), None)

    def add(built: Schedule, at: int) -> None:
        built.collectives = [info] if operation else []
        if replayed:
            built.graph(at - 30, at - 29, [(at, at + 5, name, 7)])
        else:
            built.launch(at - 30, at - 29, runs=(at, at + 5), name=name, collective=0 if operation else -1)

    return add


def test_collectives_of_another_algorithm_are_the_same_and_it_is_told() -> None:
    ring, tree = (
        f"ncclDevKernel_AllReduce_Sum_bf16_{one}(ncclDevKernelArgs)" for one in ("RING_LL", "TREE_LL")
    )
    found = compare(run(add=collective(ring)), run(add=collective(tree)))
    assert found.same_work == "identical"
    assert found.matched_by == "place"
    assert [(row.what, row.a, row.b) for row in found.checks] == [
        (
            "kernels of collective all_reduce",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
            "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL",
        )
    ]
    assert [row.change for row in found.changes if row.kind == "collective"] == ["same"]
    assert compare(run(add=collective(ring)), run(add=collective(ring))).checks == []


def test_an_operation_that_one_side_knows_by_its_kernel_alone_is_compared_by_that() -> None:
    """An all-to-all is made of sends and receives; a replay's kernel does not tell more."""
    name = "ncclDevKernel_SendRecv(ncclDevKernelArgs)"
    eager = run(add=collective(name, operation="all_to_allv"))
    assert [row.name for row in eager.step_work if row.kind == "collective"] == ["all_to_all"]
    for graph in (run(add=collective(name, replayed=True)), run(add=collective(name))):
        found = compare(eager, graph)
        assert found.same_work == "identical"
        assert (
            "collectives by what their kernels' names tell (operations are not recorded on both sides)"
            in (found.same_work_because)
        )
        assert compare(graph, eager).same_work == "identical"
    other = run(add=collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"))
    assert same(eager, other) == "different"
    assert "by operation, type, bytes and group" in compare(eager, eager).same_work_because


def test_a_generic_kernel_is_compared_by_its_name() -> None:
    name = "ncclDevKernel_Generic(ncclDevKernelArgs)"
    known, unknown = run(add=collective(name, operation="allreduce")), run(add=collective(name))
    assert same(known, unknown) == same(unknown, known) == "identical"


def test_bytes_that_one_side_does_not_record_are_no_difference() -> None:
    a, b = run(add=copied(8)), run(add=copied(-1))
    found = compare(a, b)
    assert found.same_work == "identical"
    assert "copies by direction alone (bytes are not recorded on both sides)" in found.same_work_because


def test_a_side_whose_work_is_not_known_is_unverifiable() -> None:
    found = compare(run(), msgspec.structs.replace(run(), step_work=[]))
    assert (found.same_work, found.speedup) == ("unverifiable", None)
    assert found.same_work_because == "the steps' device work is known on one side only"


def test_different_work_claims_nothing() -> None:
    found = compare(run(), run(launch=5, name="other"))
    assert (found.speedup, found.pairs[0].speedup) == (None, None)
    assert found.speedup_because == "no speedup is claimed: the work is different"
    assert {(row.change, row.name) for row in found.changes} == {("removed", "gemm"), ("added", "other")}


def test_replays_of_one_row_are_unverifiable() -> None:
    built = schedule()
    for at in range(0, 8000, 1000):
        built.range(at, at + 90, "decode").whole_graph(at, at + 15, runs=(at + 15, at + 60))
        built.sync(at + 16, at + 90, stream=7)
    graph = analysis_of(built, steps="^decode$").diagnosis
    found = compare(run(), graph)
    assert (found.same_work, found.level, found.speedup) == ("unverifiable", "whole replays", None)
    assert "one row each" in found.same_work_because
    assert found.b.replayed.whole_replays == 7  # the first step is warm-up
    assert found.b.replayed_kernel_share is None
    assert found.step_delta_ns.ci95 is not None  # times may be compared
    assert {(row.change, row.name) for row in found.changes} == {
        ("not known", "gemm"),  # it may run inside
        ("added", "(graph replay)"),
    }
    back = compare(graph, run())
    assert {(row.change, row.name) for row in back.changes} == {
        ("not known", "gemm"), ("removed", "(graph replay)"),
    }  # fmt: skip
    assert {row.change for row in compare(graph, graph).changes} == {"same"}


def test_replayed_kernels_are_counted() -> None:
    built = schedule()
    for at in range(0, 8000, 1000):
        built.range(at, at + 90, "decode").graph(at, at + 15, [(at + 15, at + 60, "gemm", 7)])
        built.sync(at + 16, at + 90, stream=7)
    found = compare(run(), analysis_of(built, steps="^decode$").diagnosis)
    assert (found.a.replayed_kernel_share, found.b.replayed_kernel_share) == (0.0, 1.0)
    assert found.same_work == "identical"


def test_times_at_different_boundaries_are_no_speedup() -> None:
    found = compare(run(), run(boundary="host"))
    assert found.speedup is None
    assert "boundaries" in found.speedup_because
    assert [row.what for row in found.checks] == ["boundary"]


def test_steps_that_are_a_guess_prove_nothing() -> None:
    built = schedule()
    for at in range(0, 8000, 1000):
        for k in range(10):
            built.launch(at + 9 * k, at + 9 * k + 5, runs=(at + 9 * k + 6, at + 9 * k + 8), name=f"k{k}")
    guessed = analysis_of(built).diagnosis
    assert guessed.steps.rule == "kernel-period"
    found = compare(guessed, guessed)
    assert (found.same_work, found.speedup) == ("unverifiable", None)
    assert "guess" in found.same_work_because


def pinned(diagnosis: Diagnosis, **pins: str) -> Diagnosis:
    facts = {name: PinnedFact(value=value, source="declared") for name, value in pins.items()}
    told = RunFacts(run_id="r", manifest="m", complete=True, pins=facts, ranks=[])
    return msgspec.structs.replace(diagnosis, run=told)


def test_pins_that_name_other_work_overrule_equal_kernels() -> None:
    a, b = pinned(run(), batch="8", flags="eager"), pinned(run(), batch="16", flags="eager")
    found = compare(a, b)
    assert found.same_work == "different"
    assert "pin batch" in found.same_work_because
    assert [(row.what, row.a, row.b) for row in found.checks] == [("pin batch", "8", "16")]


def test_pins_that_name_the_change_are_listed_only() -> None:
    found = compare(pinned(run(), flags="eager"), pinned(run(), flags="graphs"))
    assert found.same_work == "identical"
    assert [row.what for row in found.checks] == ["pin flags"]


def test_phases_without_a_common_name_are_held_against_each_other() -> None:
    found = compare(renamed(run(), "decode"), renamed(run(), "forward"))
    assert (found.a.phase, found.b.phase) == ("decode", "forward")
    assert found.notes == ["No phase bears the same name in both runs: 'decode' is held against 'forward'."]
    assert found.unpaired_phases == []
    assert found.same_work == "identical"


def test_a_phase_that_one_side_lacks_is_named() -> None:
    one, other = run(), renamed(run(launch=30), "prefill")
    (rank,) = one.ranks
    both = msgspec.structs.replace(
        one,
        budget=[*one.budget, *other.budget],
        step_work=[*one.step_work, *other.step_work],
        ranks=[msgspec.structs.replace(rank, windows=[*rank.windows, *other.ranks[0].windows])],
    )
    found = compare(both, one)
    assert [(row.what, row.a, row.b) for row in found.unpaired_phases] == [("phase", "prefill", "none")]
    assert [(pair.phase_a, pair.phase_b) for pair in found.pairs] == [("step", "step")]


def renamed(diagnosis: Diagnosis, phase: str) -> Diagnosis:
    def rows(given: list[Any]) -> list[Any]:
        return [msgspec.structs.replace(row, phase=phase) for row in given]

    (rank,) = diagnosis.ranks
    return msgspec.structs.replace(
        diagnosis,
        budget=rows(diagnosis.budget),
        step_work=rows(diagnosis.step_work),
        ranks=[msgspec.structs.replace(rank, windows=rows(rank.windows))],
    )


def test_few_steps_show_no_difference() -> None:
    found = compare(run(count=4), run(count=4, launch=5))
    assert (found.step_delta_ns.ci95, found.step_delta_ns.shown) == (None, False)
    assert "fewer than 5 steps" in found.step_delta_ns.because


def test_ranks_that_only_one_run_has_are_other_work() -> None:
    one = run()
    (rank,) = one.ranks
    more = msgspec.structs.replace(
        one,
        ranks=[rank, msgspec.structs.replace(rank, rank=1)],
        budget=[*one.budget, *(msgspec.structs.replace(row, rank=1) for row in one.budget)],
    )
    found = compare(one, more)
    assert found.pairs[0].scope == "rank"
    assert {row.what for row in found.checks} == {"ranks"}
    assert (found.same_work, found.speedup) == ("different", None)
    assert "different ranks" in found.same_work_because


def test_a_run_without_steps_cannot_be_compared() -> None:
    empty = msgspec.structs.replace(run(), budget=[])
    with pytest.raises(UsageError, match="holds no step"):
        compare(run(), empty)


def mirrored(found: Comparison) -> dict[str, Any]:
    low_high = found.step_delta_ns.ci95
    return {
        "same": found.same_work,
        "mean": -found.step_delta_ns.mean,
        "median": -found.step_delta_ns.median,
        "interval": None if low_high is None else (-low_high[1], -low_high[0]),
        "delta": {name: -ns for name, ns in found.delta_ns.items()},
        "a": found.b.step_ns,
        "b": found.a.step_ns,
    }


@pytest.mark.parametrize("other", [run(launch=7), run(name="other", count=6), run(add=copied(8), launch=30)])
def test_b_against_a_mirrors_a_against_b(other: Diagnosis) -> None:
    one, two = compare(run(), other), compare(other, run())
    forth = mirrored(one)
    low_high = two.step_delta_ns.ci95
    assert forth == {
        "same": two.same_work,
        "mean": two.step_delta_ns.mean,
        "median": two.step_delta_ns.median,
        "interval": low_high,
        "delta": {name: two.delta_ns[name] for name in forth["delta"]},
        "a": two.a.step_ns,
        "b": two.b.step_ns,
    }
    swapped = {"added": "removed", "removed": "added", "slower": "faster", "faster": "slower", "same": "same"}
    assert {(row.name, row.detail, swapped[row.change]) for row in one.changes} == {
        (row.name, row.detail, row.change) for row in two.changes
    }


def test_a_run_against_itself_is_neutral() -> None:
    found = compare(run(), run())
    assert (found.same_work, found.speedup, found.step_delta_ns.mean) == ("identical", 1.0, 0)
    assert not found.step_delta_ns.shown
    assert set(found.delta_ns.values()) == {0}
    assert {row.change for row in found.changes} == {"same"}


def test_the_library_compares_analyses() -> None:
    built = schedule().range(0, 90, "s").launch(0, 2, runs=(10, 20))
    one = analysis_of(built, steps="^s$")
    assert analyzer.compare(one, one) == compare(one.diagnosis, one.diagnosis)


# -- what recording itself cost ------------------------------------------------------------------------


def with_inputs(diagnosis: Diagnosis, **changes: Any) -> Diagnosis:
    (one,) = diagnosis.inputs
    return msgspec.structs.replace(diagnosis, inputs=[msgspec.structs.replace(one, **changes)])


def test_one_capture_on_both_sides_is_told() -> None:
    """Told apart by the wall clock of the capture, not by its files."""
    first = msgspec.structs.replace(run(), time_zero_ns="1795000000000000000")
    later = msgspec.structs.replace(run(), time_zero_ns="1795000060000000000")
    (note,) = compare(first, first).notes
    assert note.startswith("A and B are one capture")
    assert compare(first, later).notes == []


def test_stacks_on_one_side_are_told() -> None:
    plain = with_inputs(run(), captured=["kernel", "op"])
    slow = with_inputs(run(), captured=["kernel", "op", "frame"])
    assert compare(plain, plain).notes == compare(slow, slow).notes == []
    assert compare(plain, slow).notes[0].startswith("Python stacks were recorded in B only")
    assert compare(slow, plain).notes[0].startswith("Python stacks were recorded in A only")


def test_replays_that_nsys_recorded_node_by_node_are_told() -> None:
    built = schedule()
    for at in range(0, 8000, 1000):
        built.range(at, at + 90, "decode").graph(at, at + 15, [(at + 15, at + 60, "gemm", 7)])
        built.sync(at + 16, at + 90, stream=7)
    graph = analysis_of(built, steps="^decode$").diagnosis
    by_nsys = with_inputs(graph, kind="nsys-sqlite")
    assert compare(run(), graph).notes == []  # torch.profiler has no other way
    assert "Graphs of B were recorded node by node" in compare(run(), by_nsys).notes[-1]


def profiled(cost: float | None, spread: float = 0.02) -> Diagnosis:
    """Profiled steps ``cost`` times as long as plain ones; ``spread``: half of both intervals, 0: none recorded."""
    found = pinned(run())
    assert found.run is not None
    rank = RunRank(
        rank=0, host=None, collector="torch", status="complete", exit_code=0, notes=[],
        profiled_step_ns=None if cost is None else round(1_000_000 * cost),
        plain_step_ns=None if cost is None else 1_000_000,
        profiled_interval_ns=around(cost, spread),
        plain_interval_ns=around(1.0, spread),
    )  # fmt: skip
    return msgspec.structs.replace(found, run=msgspec.structs.replace(found.run, ranks=[rank]))


def around(of: float | None, spread: float) -> tuple[int, int] | None:
    return None if of is None or not spread else (round(1e6 * (of - spread)), round(1e6 * (of + spread)))


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_a_cost_of_profiling_that_chance_explains_is_not_claimed(spread: float) -> None:
    assert compare(profiled(1.5, spread), profiled(1.1, spread)).notes == []
    (note,) = compare(profiled(1.5, spread), profiled(1.8)).notes
    assert (
        note == "Profiling made B's steps 1.80 x as long; what it cost in A is not told from chance (1.50 x)."
    )


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (1.5, 1.5, ""),
        (1.5, 1.52, ""),
        (None, None, ""),
        (1.5, 1.1, "Profiling made A's steps 1.50 x as long and B's steps 1.10 x as long: part of"),
        (None, 1.1, "Profiling made B's steps 1.10 x as long; what it cost in A is not recorded."),
    ],
)
def test_unequal_costs_of_profiling_are_told(a: float | None, b: float | None, told: str) -> None:
    notes = compare(profiled(a), profiled(b)).notes
    assert len(notes) == bool(told)
    assert "".join(notes).startswith(told)
