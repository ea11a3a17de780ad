"""A's predictions against B: confirmed, refuted, or not tested and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from analyzer.comparison.predictions import held_predictions
from analyzer.comparison.result import PhasePair, Prediction, Replayed
from analyzer.errors import UsageError
from tests.report.builder import diagnosis
from tests.report.comparison_builder import comparison, work_check
from tests.report.whatif_builder import MS, change, whatif

EAGER = Replayed(kernels=5_000, in_graphs=0, whole_replays=0, share=0.0)
CAPTURED = Replayed(kernels=5_000, in_graphs=4_800, whole_replays=0, share=0.96)
WHOLE = Replayed(kernels=0, in_graphs=0, whole_replays=50, share=None)


def pair(b: Replayed = CAPTURED, **changes: Any) -> PhasePair:
    """9 ms against 8 ms, 95 % interval of the mean 7.96 to 8.04 ms."""
    return msgspec.structs.replace(comparison().pairs[0], replayed_a=EAGER, replayed_b=b, **changes)


def held(low: float, high: float, made: PhasePair, *tested: str, spec: str = "graph-capture") -> Prediction:
    predicted = change(spec, windows=50, predicted_step_ns=(round(low * MS), round(high * MS)))
    (found,) = held_predictions(diagnosis(whatif=whatif(predicted)), made, tested)
    return found


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (7.5, 8.5, "confirmed"),
        (8.03, 9, "confirmed"),
        (6, 7.97, "confirmed"),
        (8.1, 9, "refuted"),
        (5, 7.9, "refuted"),
    ],
)
def test_a_prediction_holds_where_its_range_meets_the_observed_interval(
    low: float, high: float, verdict: str
) -> None:
    found = held(low, high, pair())
    assert (found.verdict, found.observed_step_ns) == (verdict, 8 * MS)
    assert found.observed_ci95_ns == (7_960_000, 8_040_000)
    assert (found.hypothesis, found.change, found.because) == ("launch-bound", "graph-capture", "")


@pytest.mark.parametrize("b", [CAPTURED, WHOLE])
def test_that_b_replays_what_a_launched_shows_by_itself(b: Replayed) -> None:
    assert held(7, 9, pair(b)).verdict == "confirmed"


@pytest.mark.parametrize("b", [EAGER, Replayed(kernels=10, in_graphs=3, whole_replays=0, share=0.3)])
def test_a_run_that_replays_little_tests_no_capture(b: Replayed) -> None:
    found = held(7, 9, pair(b))
    assert (found.verdict, found.observed_step_ns) == ("not-tested", None)
    assert found.because == "this pair is not known to make that change"


def test_a_run_that_replayed_before_tests_no_capture() -> None:
    assert held(7, 9, msgspec.structs.replace(pair(), replayed_a=CAPTURED)).verdict == "not-tested"


@pytest.mark.parametrize("name", ["host=0.8", "launch-bound"])
def test_a_user_may_say_which_change_was_made(name: str) -> None:
    assert held(7, 9, pair(EAGER), spec="host=0.8").verdict == "not-tested"
    assert held(7, 9, pair(EAGER), name, spec="host=0.8").verdict == "confirmed"


def test_a_change_that_was_not_predicted_cannot_be_tested() -> None:
    with pytest.raises(
        UsageError, match=r"--tested \(no-sync\).*predicts no such change(.|\n)*graph-capture, launch-bound"
    ):
        held(7, 9, pair(), "no-sync")


def test_different_work_tests_nothing_and_unverifiable_work_says_so() -> None:
    found = held(7, 9, pair(work=work_check("different")))
    assert (found.verdict, found.because) == ("not-tested", "the runs did different work")
    found = held(7, 9, pair(work=work_check("unverifiable")))
    assert (found.verdict, found.because) == (
        "confirmed",
        "whether both runs did the same work cannot be shown",
    )


def test_a_prediction_from_a_part_of_the_steps_says_so() -> None:
    predicted = change(windows=12, predicted_step_ns=(7 * MS, 9 * MS))
    (found,) = held_predictions(diagnosis(whatif=whatif(predicted)), pair(), ())
    assert found.verdict == "confirmed"
    assert found.because == "predicted from 12 of A's 50 steps, whose mean may be another"


def test_too_few_steps_test_nothing() -> None:
    few = comparison(a_times=[9 * MS] * 3, b_times=[8 * MS] * 3).pairs[0]
    found = held(7, 9, msgspec.structs.replace(few, replayed_a=EAGER, replayed_b=CAPTURED))
    assert (found.verdict, found.because) == ("not-tested", "fewer than 5 steps on one side")


def test_only_predictions_of_the_compared_phase_count() -> None:
    rows = whatif(change(phase="prefill"), change(rank=1), change("no-skew", predicted_step_ns=None))
    assert held_predictions(diagnosis(whatif=rows), pair(), ()) == []
    assert held_predictions(diagnosis(whatif=None), pair(), ()) == []
