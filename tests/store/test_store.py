"""What goes into a store comes out of it, once, whichever database holds it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from analyzer.analysis import Analysis
from analyzer.diagnosis import PinnedFact
from analyzer.errors import UsageError
from analyzer.history import CheckedPrediction, StoredInput, StoredOutcome, StoredPin, StoredRun
from analyzer.store import Recorded, Store, StoreError
from tests.report.builder import DECODE_PATH, Input, budget, hypothesis, rank, window
from tests.store.runs import CAPTURED_NS, MS, PINS, checked, compared, run

replace = msgspec.structs.replace


def only_run(store: Store) -> StoredRun:
    (workload,) = store.history().workloads
    (found,) = workload.runs
    return found


def test_a_run_comes_back_as_it_went_in(where: str) -> None:
    store = Store.opened(where)
    assert store.record(run()) == Recorded(1, new=True)
    found = only_run(store)
    assert (found.run, found.captured_ns, found.run_id) == (1, str(CAPTURED_NS), "run-0")
    assert (found.tracebound_version, found.boundary, found.steps_rule) == ("0.1.0", "device", "regex")
    assert (found.ranks, found.same_capture_as) == (1, None)
    assert found.inputs == [
        StoredInput(path="decode.sqlite", kind="nsys-sqlite", profiler_version="2024.5.1", partial=False)
    ]
    assert found.pins["flags"] == StoredPin(value="--enforce-eager", source="declared")
    assert found.pins["hardware"] == StoredPin(value="NVIDIA H200", source="capture")
    assert found.undeclared == ["weights", "input", "context", "cache_initialization", "clocks"]


def test_budgets_are_exact_and_sum(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    prefill, decode = only_run(store).budgets
    assert (prefill.phase, prefill.steps, decode.phase, decode.rank) == ("prefill", 1, "decode", 0)
    assert (decode.steps, decode.steps_excluded, decode.step_ns_total) == (3, 1, 30 * MS)
    assert (decode.mean_ns, decode.median_ns, decode.p05_ns, decode.p95_ns) == (10 * MS,) * 4
    assert (decode.inferred_ns_total, decode.path_ns) == (6 * MS, DECODE_PATH)
    assert decode.path_ns_total == {name: 3 * ns for name, ns in DECODE_PATH.items()}


def test_a_mean_that_is_no_whole_number_still_sums(where: str) -> None:
    parts = {"kernel": 10, "copy": 10, "launch.api": 9}
    store = Store.opened(where)
    store.record(run(budget=[budget(path_ns_total=parts, step_ns_total=29)]))
    (found,) = only_run(store).budgets
    assert (found.mean_ns, sum(found.path_ns.values())) == (10, 10)
    assert (found.step_ns_total, found.path_ns_total) == (29, parts)


def test_predictions_are_those_that_say_what_a_change_gives(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    first, second = only_run(store).predictions
    assert (first.hypothesis, first.verdict, first.predicted_step_ns) == (
        "launch-bound", "supported", (4 * MS, 6 * MS),
    )  # fmt: skip
    assert (first.share, first.share_interval, first.gain_upper_bound_ns) == (
        0.533,
        (0.481, 0.612),
        5_333_333,
    )
    assert first.intervention == "Capture the decode step in a CUDA graph."
    assert (second.hypothesis, second.predicted_step_ns, second.assumptions) == ("kernel-bound", None, None)
    assert first.assumptions == "graph-capture; graph_launch_ns=2500..12000 (assumed)"
    assert (first.outcomes, second.outcomes) == ([], [])


def test_what_is_not_known_is_null(where: str) -> None:
    store = Store.opened(where)
    store.record(run(time_zero_ns=None, run=None, budget=[budget()], ranks=[rank(windows=[])]))
    found = only_run(store)
    assert (found.captured_ns, found.run_id) == (None, None)
    assert found.budgets[0].median_ns is None
    assert list(found.pins) == ["hardware"]
    assert found.undeclared[:3] == ["model", "precision", "weights"]


@pytest.mark.parametrize("clock", ["-5", "99999999999999999999", "no number"])
def test_a_clock_that_tells_no_moment_is_not_known(clock: str, where: str) -> None:
    store = Store.opened(where)
    store.record(run(time_zero_ns=clock))
    assert only_run(store).captured_ns is None


def test_the_same_diagnosis_is_kept_once(where: str) -> None:
    store = Store.opened(where)
    assert store.record(run()) == Recorded(1, new=True)
    elsewhere = run(
        inputs=[replace(run().inputs[0], path="/mnt/decode.sqlite")],
        ranks=[rank(source="/mnt/decode.sqlite")],
    )
    assert Store.opened(where).record(elsewhere) == Recorded(1, new=False)
    read_back = Analysis.from_json(Analysis(run(), None).to_json()).diagnosis
    assert store.record(read_back) == Recorded(1, new=False)
    assert only_run(store).inputs[0].path == "decode.sqlite"


@pytest.mark.parametrize(
    "changes",
    [
        {"tracebound_version": "0.2.0"},
        {"boundary": "host"},
        {"budget": [budget()]},
        {"ranks": [rank(windows=[window(0)])]},
        {"hypotheses": [hypothesis(verdict="inconclusive")]},
    ],
)
def test_what_says_something_else_is_another_run_of_the_same_capture(
    changes: dict[str, Any], where: str
) -> None:
    store = Store.opened(where)
    store.record(run())
    assert store.record(run(**changes)) == Recorded(2, new=True)
    (workload,) = store.history().workloads
    assert [one.same_capture_as for one in workload.runs] == [None, 1]


def test_another_capture_is_no_second_analysis(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    store.record(run(1))
    (workload,) = store.history().workloads
    assert [one.same_capture_as for one in workload.runs] == [None, None]


def test_a_workload_is_what_was_asked_of_the_model(where: str) -> None:
    store = Store.opened(where)
    store.record(run(2))
    store.record(run(1, pins={**PINS, "flags": "", "hardware": "H100", "runtime": "vllm 0.9"}))
    store.record(run(0, pins={**PINS, "batch": "8"}))
    store.record(run(3, pins={}))
    first, second, third = store.history().workloads
    assert [one.run for one in first.runs] == [2, 1]  # in order of time
    assert first.pins == {"model": "llama-8b", "precision": "bf16", "batch": "1"}
    assert first.undeclared == ["weights", "input", "context", "cache_initialization"]
    assert [one.run for one in second.runs] == [3]
    assert (third.pins, len(third.undeclared)) == ({}, 7)


def test_workloads_are_chosen_by_key_or_pin(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    store.record(run(pins={**PINS, "batch": "8"}))
    key = store.history().workloads[1].workload
    assert [one.workload for one in store.history(["batch=8"]).workloads] == [key]
    assert [one.workload for one in store.history([key[:8]]).workloads] == [key]
    assert len(store.history(["model=llama-8b"]).workloads) == 2
    assert [one.workload for one in store.history(["model=llama-8b", "batch=8"]).workloads] == [key]
    for wrong in ("batch=2", "flags=--enforce-eager", "zz", ""):
        with pytest.raises(UsageError, match=r"no workload matches .*\n.*llama-8b"):
            store.history([wrong])


def test_a_comparison_keeps_both_runs_and_the_outcomes(where: str) -> None:
    store = Store.opened(where)
    store.record(run(0))
    found = store.record_comparison(compared(checked()), run(0), run(1))
    assert found == (Recorded(1, new=True), Recorded(1, new=False), Recorded(2, new=True))
    (workload,) = store.history().workloads
    (kept,) = workload.comparisons
    assert (kept.a, kept.b, kept.same_work, kept.speedup) == (1, 2, "identical", 1.125)
    assert (kept.mean_a_ns, kept.mean_b_ns, kept.delta_mean_ns) == (9 * MS, 8 * MS, -MS)
    assert (kept.ci95_ns, kept.shown) == ((-1_040_000, -960_000), True)
    assert kept.speedup_ci95 == compared(checked()).speedup_ci95 == (1.12, 1.13)
    prediction = workload.runs[0].predictions[0]
    assert prediction.outcomes == [
        StoredOutcome(comparison=1, run=2, observed_step_ns=8 * MS, verdict="refuted")
    ]


def test_an_outcome_that_is_not_tested_has_no_figure(where: str) -> None:
    store = Store.opened(where)
    store.record_comparison(compared(checked("not-tested", None)), run(0), run(1))
    (outcome,) = store.history().workloads[0].runs[0].predictions[0].outcomes
    assert (outcome.verdict, outcome.observed_step_ns) == ("not-tested", None)


def test_an_outcome_of_no_stored_prediction_is_kept(where: str) -> None:
    store = Store.opened(where)
    store.record_comparison(compared(checked(hypothesis="new")), run(0), run(1))
    (workload,) = store.history().workloads
    assert workload.comparisons[0].predictions == [
        CheckedPrediction(
            hypothesis="new", predicted_step_ns=(4 * MS, 6 * MS), observed_step_ns=8 * MS, verdict="refuted"
        )
    ]
    assert workload.runs[0].predictions[0].outcomes == []


def test_outcomes_go_to_the_prediction_of_their_phase(where: str) -> None:
    store = Store.opened(where)
    alike = [hypothesis(phase=phase, predicted_step_ns=(4 * MS, 6 * MS)) for phase in ("prefill", "decode")]
    store.record_comparison(compared(checked()), run(0, hypotheses=alike), run(1))
    prefill, decode = store.history().workloads[0].runs[0].predictions
    assert (prefill.outcomes, len(decode.outcomes)) == ([], 1)


def test_the_same_comparison_is_kept_once(where: str) -> None:
    store = Store.opened(where)
    store.record_comparison(compared(checked()), run(0), run(1))
    again = store.record_comparison(compared(checked()), run(0), run(1))
    assert [one.new for one in again] == [False, False, False]
    back = store.record_comparison(compared(), run(1), run(0))
    assert (back[0], back[1].number, back[2].number) == (Recorded(2, new=True), 2, 1)
    assert len(store.history().workloads[0].runs[0].predictions[0].outcomes) == 1


def test_a_run_may_be_compared_with_itself(where: str) -> None:
    store = Store.opened(where)
    kept, a, b = store.record_comparison(compared(), run(), run())
    assert (kept, a, b) == (Recorded(1, True), Recorded(1, True), Recorded(1, False))


def test_text_that_a_database_refuses_is_spelled_out(where: str) -> None:
    odd = "nul \0 byte \udc80 \U0001f600"
    spelled = "nul \\x00 byte \\udc80 \U0001f600"
    one = Input(
        path=odd, kind="kineto-json", profiler_version=odd, schema_version=None, ranks=[0], partial=True,
        captured=[], settings={}, diagnostics=[],
    )  # fmt: skip
    store = Store.opened(where)
    changed = run(
        inputs=[one],
        budget=[budget(odd)],
        hypotheses=[hypothesis(odd, phase=odd, predicted_step_ns=(4 * MS, 6 * MS))],
    )
    a = replace(changed, run=replace(changed.run, pins={"model": PinnedFact(value=odd, source="declared")}))  # type: ignore[type-var]
    store.record_comparison(compared(checked(hypothesis=odd)), a, run(1))
    found = store.history().workloads[0].runs[0]
    assert (found.inputs[0].path, found.budgets[0].phase) == (spelled, spelled)
    assert (found.predictions[0].hypothesis, found.pins["model"].value) == (spelled, spelled)
    assert len(found.predictions[0].outcomes) == 1


def test_names_of_any_length_are_kept(where: str) -> None:
    """PostgreSQL indexes no value of more than 2,704 bytes: none of a capture's names may stand in an index."""
    long = "x" * 20_000
    store = Store.opened(where)
    store.record(run(budget=[budget(long)], hypotheses=[hypothesis(long, phase=long)], pins={"model": long}))
    found = only_run(store)
    assert (found.budgets[0].phase, found.pins["model"].value) == (long, long)


def test_a_figure_beyond_64_bits_is_an_error_and_nothing_is_kept(where: str) -> None:
    store = Store.opened(where)
    with pytest.raises(StoreError):
        store.record(run(budget=[budget(inferred_ns_total=2**63)]))
    assert store.history().workloads == []


def test_the_history_is_strict_json(where: str) -> None:
    store = Store.opened(where)
    store.record(run())
    found = msgspec.json.decode(store.history().to_json())
    assert (found["format"], found["format_version"]) == ("tracebound.history", 1)
    assert found["workloads"][0]["runs"][0]["captured_ns"] == str(CAPTURED_NS)
