"""A literal loop, its event graph, and what a change of it gives. Times are microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from analyzer.across.joint import join_ranks
from analyzer.predict.assumptions import given
from analyzer.predict.changes import parse
from analyzer.predict.event_graph import EventGraph, event_graph
from analyzer.predict.prediction import Predictor, Replayed, assumptions_of
from analyzer.predict.rank_graph import rank_graph
from analyzer.predict.steps import Steps, step_lengths
from tests.builders import Schedule, account_of, schedule

STEPS = 6
EVERY = Steps(0, tuple(range(STEPS)))
Step = Callable[[Schedule, int], Schedule]
"""Adds one step that begins at an instant."""


def two_kernels(built: Schedule, at: int) -> Schedule:
    """100 us: the host works for 23 us, launches a gemm and a norm 10 us ahead, waits, is back 6 us after them."""
    return (
        built.range(at, at + 99, "step")
        .launch(at + 10, at + 14, runs=(at + 20, at + 60), name="gemm")
        .launch(at + 16, at + 20, runs=(at + 61, at + 81), name="norm")
        .sync(at + 22, at + 87, stream=7)
    )


def loop(step: Step = two_kernels, steps: int = STEPS, length: int = 100, first: int = 0) -> Schedule:
    """The step, several times."""
    built = schedule()
    for number in range(steps):
        step(built, first + number * length)
    return built


def graph_of(built: Schedule, small: Any = None, **options: Any) -> EventGraph:
    """The event graph of one rank."""
    found = rank_graph(account_of(built, steps="^step$", **options), 0, small)
    assert found is not None
    return event_graph([found], join_ranks([], ()))


def replayed(graph: EventGraph, spec: str, assume: Sequence[str] = ()) -> Replayed:
    """One change of it."""
    return Predictor(graph, assumptions_of(graph, given(assume))).replay(parse(spec))


def step_us(found: Replayed, step: int = 2, variant: int = 0, steps: Steps = EVERY) -> float:
    """How long a step in the middle takes after the change, us."""
    return float(
        step_lengths(found.base.graph, steps, found.times, found.scenarios.body_ns)[step, variant] / 1000
    )


def after(spec: str, step: Step = two_kernels, *, assume: Sequence[str] = (), **options: Any) -> float:
    """How long a step of the loop takes after a change, us, where everything is recorded."""
    return step_us(replayed(graph_of(loop(step), **options), spec, assume))
