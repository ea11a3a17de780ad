from __future__ import annotations

import pytest

from analyzer.predict.steps import Steps
from analyzer.predict.validation import OddEven, event_windows, odd_even
from tests.builders import Schedule
from tests.predict.builders import EVERY, graph_of, loop


def test_few_steps_or_a_large_error_withhold_predictions_and_say_why() -> None:
    assert OddEven(6, 0.03, 0.2, 0.01).withheld == ""
    assert OddEven(6, 0.0301, 0.2, 0.01).withheld == (
        "lags learned on odd steps reproduce even ones only within 3.0 % (median; 3 % is required)"
    )
    assert OddEven(3, None, None, None).withheld == (
        "3 steps: at least 4 are needed to check whether lags learned on odd steps reproduce even ones"
    )


def test_equal_steps_reproduce_one_another() -> None:
    assert odd_even(graph_of(loop()), [EVERY]) == OddEven(6, 0.0, 0.0, 0.0)


def latency(built: Schedule, at: int) -> Schedule:
    """100 us; launches of even steps take 10 us to the kernel, of odd ones 14."""
    late = 4 * (at // 100 % 2)
    return (
        built.range(at, at + 99, "step")
        .launch(at + 10, at + 14, runs=(at + 20 + late, at + 80), name="gemm")
        .sync(at + 22, at + 86, stream=7)
    )


def test_even_steps_get_the_lags_of_odd_ones() -> None:
    """Even steps are replayed with 14 us for 10: 4 us in 80 of the first, in 100 of the others."""
    found = odd_even(graph_of(loop(latency)), [EVERY])
    assert (found.steps, found.error, found.worst) == (6, pytest.approx(0.04), pytest.approx(0.05))
    assert odd_even(graph_of(loop(latency)), [Steps(0, (1, 3, 5, 4))]).error == pytest.approx(0.04)


def test_too_few_steps_are_not_checked() -> None:
    assert odd_even(graph_of(loop()), [Steps(0, (0, 1, 2))]) == OddEven(3, None, None, None)
    assert odd_even(graph_of(loop()), [Steps(0, (0, 1)), Steps(0, (2, 3))]).error == 0.0
    assert odd_even(graph_of(loop()), [Steps(0, (1, 3, 5, 5))]).error is None  # no even step


def test_events_belong_to_the_step_that_had_begun() -> None:
    graph = graph_of(loop())
    window = event_windows(graph)
    (place,) = graph.ranks
    assert window[: place.row].tolist() == [step for step in range(6) for _ in range(6)]
    assert window[place.row :].tolist() == [step for step in range(6) for _ in range(2)]
