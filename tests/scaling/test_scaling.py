"""Scaling studies: the published worked example from simulated captures, pins, repeats, an earlier study."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from analyzer.diagnosis import Diagnosis, Input
from analyzer.errors import UsageError
from analyzer.scaling.against import held_against
from analyzer.scaling.result import Scaling
from analyzer.scaling.study import Given, study
from fixtures.planted.scaling import Plan, diagnosed, overhead_ns, program
from tests.scaling.runs import MS, PINS, alternating, diagnosis, on_device, with_pins

EXAMPLES = {"before": (196.65, 80.61, 64.03, 132.62, 32.56), "after": (60.66, 54.33, 53.43, 7.23, 88.07)}
"""Step of 1 and of 8 ranks, S, P (ms), serial share (%): as published."""


def simulated(step_1_ms: float, step_8_ms: float) -> Scaling:
    """A study of captures of all ranks whose mean steps are these to a few ns."""
    plan = Plan(10 * MS, 10 * MS, 0.0, (1, 8), 8)
    overhead = overhead_ns(plan)
    serial = (8 * step_8_ms - step_1_ms) / 7 * MS - overhead
    plan = replace(plan, serial_ns=serial, parallel_ns=step_1_ms * MS - serial - overhead)
    factors = [1.001, 0.999] * (plan.steps // 2)
    runs = [Given(f"ranks{n}", diagnosed(program(plan, n, factors), "kineto")) for n in plan.counts]
    return study(runs)


@pytest.fixture(scope="module")
def examples() -> dict[str, Scaling]:
    return {name: simulated(*values[:2]) for name, values in EXAMPLES.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_published_fit_comes_out_of_captures(examples: dict[str, Scaling], name: str) -> None:
    step_1, step_8, serial, parallel, share = EXAMPLES[name]
    found = examples[name]
    assert [run.ranks for run in found.runs] == [1, 8]  # read off the captures
    assert [run.scope for run in found.runs] == ["rank", "global"]
    assert [round(point.mean_step_ns / MS, 4) for point in found.points] == [step_1, step_8]
    assert found.fit is not None and found.fit.serial_share is not None
    assert round(found.fit.serial_ns / MS, 2) == serial
    assert round(found.fit.parallel_ns / MS, 2) == parallel
    assert round(found.fit.serial_share * 100, 2) == share
    assert found.fit.method == "exact"
    assert sum(one.serial_ns for one in found.categories) == pytest.approx(found.fit.serial_ns)


def test_faster_steps_that_scale_worse_are_both_told(examples: dict[str, Scaling]) -> None:
    found = held_against(examples["after"], "before.json", examples["before"])
    assert [(one.ranks, one.change) for one in found.common] == [(1, "better"), (8, "better")]
    assert found.common[-1].ratio == pytest.approx(80.61 / 54.33, rel=1e-4)
    assert found.speedup_change == "worse"
    assert found.speedup_other == pytest.approx(196.65 / 80.61, rel=1e-4)
    assert found.speedup_this == pytest.approx(60.66 / 54.33, rel=1e-4)
    assert (found.serial_share_other, found.serial_share_this) == pytest.approx((0.3256, 0.8807), abs=1e-4)


def given(**runs: tuple[int, int]) -> list[Given]:
    """``name=(ranks, kernel_us)``, all asked for the same."""
    return [
        Given(name, diagnosis(alternating(length), PINS, zero_us=at), ranks)
        for at, (name, (ranks, length)) in enumerate(runs.items())
    ]


def test_runs_stand_in_the_order_of_their_ranks() -> None:
    found = study(given(b=(4, 1_000), a=(1, 2_500), c=(2, 1_500)))
    assert [run.name for run in found.runs] == ["a", "c", "b"]
    assert [run.ranks_from for run in found.runs] == ["declared"] * 3
    assert [point.ranks for point in found.points] == [1, 2, 4]
    assert found.undeclared == []
    assert found.pins["timing_boundary"] == "device"
    assert found.points[0].speedup == 1 and found.points[0].speedup_ci95 is None
    assert found.points[2].efficiency == pytest.approx(found.points[2].speedup / 4)


def test_a_run_asked_for_other_work_is_marked_and_left_out() -> None:
    runs = given(a=(1, 2_000), b=(2, 1_200), c=(4, 800))
    runs[1] = replace(runs[1], diagnosis=with_pins(runs[1].diagnosis, {**PINS, "batch": "16"}))
    found = study(runs)
    assert [(run.name, run.unlike, run.used) for run in found.runs] == [
        ("a", [], True),
        ("b", ["batch"], False),
        ("c", [], True),
    ]
    assert [point.ranks for point in found.points] == [1, 4]
    assert found.differing == {"batch": ["8", "16", "8"]}
    kept = study(runs, keep_unlike=True)
    assert [point.ranks for point in kept.points] == [1, 2, 4]
    assert kept.runs[1].unlike == ["batch"]


def test_without_two_alike_rank_counts_there_is_no_fit() -> None:
    runs = given(a=(1, 2_000), b=(2, 1_200))
    runs[1] = replace(runs[1], diagnosis=with_pins(runs[1].diagnosis, {**PINS, "model": "qwen"}))
    found = study(runs)
    assert found.fit is None
    assert found.fit_because == "runs that are alike have one rank count only"
    assert found.categories == []


def test_flags_hardware_and_topology_may_differ_with_the_ranks() -> None:
    runs = given(a=(1, 2_000), b=(2, 1_200))
    runs[1] = replace(runs[1], diagnosis=with_pins(runs[1].diagnosis, {**PINS, "flags": "-tp 2"}))
    found = study(runs)
    assert all(run.used for run in found.runs)
    assert found.differing == {"flags": ["-tp 1", "-tp 2"]}
    assert "flags" not in found.pins


def recorded(made: Diagnosis, captured: list[str]) -> Diagnosis:
    file = Input(
        path="rank0.json",
        kind="kineto-json",
        profiler_version=None,
        schema_version=None,
        ranks=[0],
        partial=False,
        captured=captured,
        settings={},
        diagnostics=[],
    )
    return msgspec.structs.replace(made, inputs=[file])


def test_what_the_captures_show_by_themselves_counts_too() -> None:
    runs = given(a=(1, 2_000), b=(2, 1_200), c=(4, 900))
    work = [
        msgspec.structs.replace(row, calls_in_graphs=row.calls_total) for row in runs[2].diagnosis.step_work
    ]
    runs[2] = replace(runs[2], diagnosis=msgspec.structs.replace(runs[2].diagnosis, step_work=work))
    runs = [
        replace(one, diagnosis=recorded(one.diagnosis, ["frame"] if one.name == "b" else [])) for one in runs
    ]
    found = study(runs)
    assert [run.unlike for run in found.runs] == [[], [], ["graph replay"]]
    assert found.differing["graph replay"] == ["few kernels or none"] * 2 + ["most kernels"]
    assert found.differing["profiler"][1] == "kineto-json with Python stacks"
    assert any("recorded in different ways" in note for note in found.notes)


def test_undeclared_pins_are_listed() -> None:
    runs = [Given("a", diagnosis(alternating(2_000)), 1), *given(b=(2, 1_200))]
    assert study(runs).undeclared == list(PINS)


def test_one_rank_count_is_no_scaling() -> None:
    with pytest.raises(UsageError, match="2 runs of 4 ranks: no scaling"):
        study(given(a=(4, 2_000), b=(4, 1_200)))


def test_a_phase_that_a_run_lacks_is_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match=r"a: has no phase that '\^prefill' finds\n.*its phases are: step"):
        study(given(a=(1, 2_000), b=(2, 1_200)), phase="^prefill")


def renamed(made: Diagnosis, phase: str) -> Diagnosis:
    (rank,) = made.ranks
    windows = [msgspec.structs.replace(window, phase=phase) for window in rank.windows]
    return msgspec.structs.replace(
        made,
        ranks=[msgspec.structs.replace(rank, windows=windows)],
        budget=[msgspec.structs.replace(budget, phase=phase) for budget in made.budget],
    )


def test_phases_by_other_names_are_told() -> None:
    runs = given(a=(1, 2_000), b=(2, 1_200))
    runs[0] = replace(runs[0], diagnosis=renamed(runs[0].diagnosis, "decode"))
    found = study(runs)
    assert [run.phase for run in found.runs] == ["decode", "step"]
    assert any("No phase bears the same name" in note for note in found.notes)


def test_names_that_tell_other_batches_are_told() -> None:
    runs = [
        Given("a", diagnosis(alternating(2_000), phase="decode bs=8"), 1),
        Given("b", diagnosis(alternating(1_200), phase="decode bs=64"), 2),
    ]
    found = study(runs)
    assert [run.shape for run in found.runs] == ["batch 8", "batch 64"]
    told = (
        "The names of the steps tell different batch shapes (batch 8 at 1, batch 64 at 2): not the same work."
    )
    assert told in found.notes


def test_other_devices_are_told() -> None:
    a, b = given(a=(1, 2_000), b=(2, 1_200))
    found = study(
        [
            replace(a, diagnosis=on_device(a.diagnosis, "H100")),
            replace(b, diagnosis=on_device(b.diagnosis, "H200")),
        ]
    )
    assert any("different devices (H100 at 1, H200 at 2)" in note for note in found.notes)


def test_few_and_guessed_steps_are_told() -> None:
    a, b = given(a=(1, 2_000), b=(2, 1_200))
    steps = msgspec.structs.replace(b.diagnosis.steps, rule="kernel-period")
    guessed = replace(b, diagnosis=msgspec.structs.replace(b.diagnosis, steps=steps))
    notes = study([replace(a, diagnosis=diagnosis([2_000] * 3, PINS)), guessed]).notes
    assert any("The steps of b are a sequence of kernels that repeats" in note for note in notes)
    assert "Fewer than 5 steps in a: there is no interval." in notes


def test_repeated_runs_carry_how_they_differ() -> None:
    alone = study(given(a=(1, 2_000), c=(2, 1_200))).points[0]
    found = study(given(a=(1, 2_000), b=(1, 2_100), c=(2, 1_200)))
    both = found.points[0]
    assert both.runs == 2
    assert both.mean_step_ns == pytest.approx(alone.mean_step_ns + 50_000)
    assert alone.variance_ns2 is not None and both.variance_ns2 is not None
    assert both.variance_ns2 == pytest.approx(2_500e6)  # of two means 100 us apart: 50 us squared
    assert both.degrees_of_freedom == 1
    assert found.fit is not None and found.fit.residuals_ns is not None
    assert found.fit.residuals_ns[:2] == pytest.approx([-50_000, 50_000], rel=0.01)


_NEARLY_EVEN = (("a", 1, 2_000), ("b", 2, 1_950))


def test_where_more_ranks_stop_helping() -> None:
    found = study(given(a=(1, 2_000), b=(2, 1_200), c=(4, 1_200), d=(8, 1_300)))
    assert (found.stops_improving_at, found.stops_because) == (2, "")
    assert [point.than_before for point in found.points] == [None, "shorter", "not told", "longer"]
    unsure = study(
        [Given(name, diagnosis(alternating(us, 200), PINS), ranks) for name, ranks, us in _NEARLY_EVEN]
    )
    assert (unsure.stops_improving_at, unsure.stops_because) == (None, "the intervals are too wide to tell")
    still = study(given(a=(1, 2_000), b=(2, 1_200)))
    assert still.stops_improving_at is None
    assert still.stops_because == "the step still gets shorter up to 2 ranks, the most that were measured"


def test_ranks_that_are_not_aligned_give_the_slowest() -> None:
    plan = Plan(2 * MS, 2 * MS, 0.0, (1, 2), 8)
    aligned = diagnosed(program(plan, 2, [1.0] * 8), "nsys")
    apart = msgspec.structs.replace(
        aligned, global_=None, budget=[budget for budget in aligned.budget if budget.rank is not None]
    )
    found = study([Given("one", diagnosis(alternating(5_000)), 1), Given("two", apart)])
    assert found.runs[1].ranks == 2
    assert found.runs[1].rank in (0, 1)
    assert any("Ranks are not aligned in the runs of 2 ranks" in note for note in found.notes)


def test_ranks_without_a_file_are_told() -> None:
    found = study([*given(a=(1, 2_000)), replace(given(b=(4, 900))[0], name="b")])
    assert "Of the 4 ranks of b, 1 were captured: what the others did is not in its step." in found.notes


def test_a_study_comes_back_from_its_json() -> None:
    found = study(given(a=(1, 2_000), b=(2, 1_200)))
    again = msgspec.json.decode(found.to_json(), type=Scaling)
    assert again == found
    held = study(given(a=(1, 1_000), b=(2, 900)), against=("old.json", again)).against
    assert held is not None and held.other == "old.json"
    assert [one.ranks for one in held.common] == [1, 2]


def test_a_copy_of_a_capture_is_no_other_rank_count() -> None:
    same = diagnosis(alternating(2_000), PINS)
    with pytest.raises(UsageError, match="holds the same capture as 'a'"):
        study([Given("a", same, 1), Given("b", same, 8)])


def test_a_report_to_the_client_is_of_the_same_device_steps() -> None:
    one, two = given(a=(1, 2_000), b=(2, 1_200))
    client = msgspec.structs.replace(two.diagnosis, boundary="client")
    found = study([one, replace(two, diagnosis=client)])
    assert found.pins["timing_boundary"] == "device"
    assert [run.boundary for run in found.runs] == ["device", "device"]


def test_prefill_and_decode_are_not_fitted_together() -> None:
    def renamed(run: Given, phase: str) -> Given:
        budget = [msgspec.structs.replace(one, phase=phase) for one in run.diagnosis.budget]
        return replace(run, diagnosis=msgspec.structs.replace(run.diagnosis, budget=budget))

    one, two = given(a=(1, 2_000), b=(2, 1_200))
    with pytest.raises(UsageError, match="not of one kind: 'decode' of b, 'prefill' of a"):
        study([renamed(one, "prefill"), renamed(two, "decode")])
