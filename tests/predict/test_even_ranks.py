"""A late rank that is mended: the loop with it, predicted, against the loop without it."""

from __future__ import annotations

from statistics import fmean

import pytest

from analyzer.errors import UsageError
from analyzer.predict.validation import OddEven
from fixtures.predictions.case import graph_of
from fixtures.simulator import decode_loop
from fixtures.simulator.decode_loop import Shape
from fixtures.simulator.engine import simulate
from fixtures.simulator.windows import global_windows
from tests.predict.builders import replayed

RANKS, STEPS, LAYERS = 4, 8, 3
EVEN = Shape(late_dispatches=1.0)


def mean_step_ns(shape: Shape) -> float:
    run = simulate(decode_loop.eager(RANKS, STEPS, LAYERS, shape))
    return fmean(window.end_ns - window.start_ns for window in global_windows(run))


@pytest.mark.parametrize(
    ("late", "least_gain"),
    [
        pytest.param(Shape(late_rank=1, late_dispatches=1.3), 0.12, id="dispatches slowly"),
        pytest.param(Shape(late_rank=2, late_dispatches=1.0, late_prepares=4.0), 0.2, id="prepares long"),
    ],
)
def test_without_the_late_rank_the_loop_takes_a_time_within_the_range(late: Shape, least_gain: float) -> None:
    graph, steps = graph_of(simulate(decode_loop.eager(RANKS, STEPS, LAYERS, late)), "nsys")
    found = replayed(graph, "even-ranks").predict(steps, OddEven(STEPS, 0.0, 0.0, 0.0))
    before, after = mean_step_ns(late), mean_step_ns(EVEN)
    assert found.observed_ns == pytest.approx(before)
    assert 1 - after / before > least_gain  # the rank that is late holds all of them up
    low, high = found.range_ns
    assert low <= after <= high
    assert high - low <= 0.1 * before


def test_two_ranks_have_no_median() -> None:
    graph, _ = graph_of(simulate(decode_loop.eager(2, 4, 1)), "nsys")
    with pytest.raises(UsageError, match="two ranks have no median to be even with"):
        replayed(graph, "even-ranks")
