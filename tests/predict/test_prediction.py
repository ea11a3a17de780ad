from __future__ import annotations

from collections.abc import Sequence

import pytest

from analyzer.predict.prediction import GAIN_SHARE, MODEL_SHARE, Prediction
from analyzer.predict.steps import Steps
from analyzer.predict.validation import OddEven
from tests.builders import Schedule
from tests.predict.builders import Step, graph_of, loop, replayed, two_kernels

LATER = Steps(0, (1, 2, 3, 4, 5))
"""Steps of 100 us; the first has no wait before it."""


def prediction(
    spec: str, step: Step = two_kernels, *, spread: float = 0.0, length: int = 100, assume: Sequence[str] = ()
) -> Prediction:
    graph = graph_of(loop(step, length=length))
    return replayed(graph, spec, assume).predict(LATER, OddEven(5, 0.0, 0.0, spread))


def test_a_range_is_never_narrower_than_the_model_is_known_to_miss() -> None:
    found = prediction("kernel:gemm=0.5")
    least = MODEL_SHARE * 100_000 + GAIN_SHARE * 20_000
    assert (found.observed_ns, found.middle_ns, found.steps) == (100_000, 80_000, 5)
    assert found.range_ns == pytest.approx((80_000 - least, 80_000 + least))


def test_what_steps_scatter_widens_it_by_the_root_of_their_number() -> None:
    narrow, wide = prediction("kernel:gemm=0.5"), prediction("kernel:gemm=0.5", spread=0.05)
    more = 1.96 * 0.05 * 80_000 / 5**0.5
    assert wide.range_ns == pytest.approx((narrow.range_ns[0] - more, narrow.range_ns[1] + more))


def test_a_range_does_not_go_below_nothing() -> None:
    assert prediction("host=0+kernel:.=0", spread=2.0).range_ns[0] == 0


def launches(built: Schedule, at: int) -> Schedule:
    """300 us with eight launches."""
    built.range(at, at + 299, "step")
    for number in range(8):
        begin = at + 20 + 20 * number
        built.launch(begin, begin + 4, runs=(begin + 10, begin + 20), name="small")
    return built.sync(at + 170, at + 185, stream=7)


def test_both_ends_of_an_assumption_are_ends_of_the_range() -> None:
    ends = ["graph_launch_ns=10000", "graph_launch_node_ns=0", "graph_turnaround_ns=1000"]
    found = prediction("graph-capture", launches, length=300, assume=[*ends, "graph_latency_ns=2000..22000"])
    low, high = 2 + 80 + 7 + 5 + 135, 22 + 80 + 7 + 5 + 135
    least = MODEL_SHARE * 300_000 + GAIN_SHARE * (300 - low) * 1000
    assert found.range_ns == pytest.approx((low * 1000 - least, high * 1000 + least))
    assert {used.name for used in found.assumptions} >= {"graph_latency_ns", "graph_least_launches"}


def knot(built: Schedule, at: int) -> Schedule:
    """Between two halves of a burst the main stream waits for another thread's work, and that for the first half."""
    built.thread("main").range(at, at + 299, "step")
    for number in range(4):
        begin = at + 10 + 10 * number
        built.launch(begin, begin + 4, runs=(begin + 10, begin + 18), name="a")
    built.event_record(at + 45, at + 46, "first").thread("other").range(at, at + 299, "serve")
    built.event_wait(at + 48, at + 49, "first", stream=9)
    built.launch(at + 50, at + 54, runs=(at + 60, at + 70), name="b", stream=9)
    built.event_record(at + 55, at + 56, "second", stream=9)
    built.thread("main").event_wait(at + 58, at + 59, "second", stream=7)
    for number in range(4):
        begin = at + 60 + 10 * number
        built.launch(begin, begin + 4, runs=(begin + 12, begin + 20), name="c")
    return built.sync(at + 105, at + 115, stream=7)


def test_what_would_wait_in_a_circle_is_left_out_and_counted() -> None:
    found = prediction("graph-capture", knot, length=300)
    assert found.notes[-1] == "24 waits between bursts and other threads' work are left out"
    assert found.range_ns[0] < found.range_ns[1] <= 1.1 * found.observed_ns


def test_predictions_are_deterministic() -> None:
    assert prediction("graph-capture+host=0.5", launches) == prediction("graph-capture+host=0.5", launches)
