"""Where recording itself may have made the difference: one side was slowed down more than the other."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.comparison.result import Side
from analyzer.diagnosis import Diagnosis

UNEQUAL = 1.02
"""Profiling costs on the two sides whose ratio is smaller count as equal."""


def distortion_notes(a: Diagnosis, b: Diagnosis, side_a: Side, side_b: Side) -> list[str]:
    """Sentences about costs that only one side bears, or bears more of."""
    return [*_frames(a, b), *_nodes(side_a, side_b), *_profiling(a, b)]


def _frames(a: Diagnosis, b: Diagnosis) -> Iterator[str]:
    """Kineto names the category only where it has rows."""
    recorded = [
        any(one.kind == "kineto-json" and "frame" in one.captured for one in side.inputs) for side in (a, b)
    ]
    if recorded[0] != recorded[1]:
        side = "A" if recorded[0] else "B"
        yield (
            f"Python stacks were recorded in {side} only: its CPU time is longer by an unknown amount, and with it the"
            " difference."
        )


def _nodes(a: Side, b: Side) -> Iterator[str]:
    """Only nsys has another way: a replay as one row, which costs less."""
    traced = ["nsys-sqlite" in side.kinds and side.replayed.in_graphs > 0 for side in (a, b)]
    if traced[0] != traced[1]:
        side = "A" if traced[0] else "B"
        yield (
            f"Graphs of {side} were recorded node by node, which slows replays down: time its steps in a capture with"
            " --cuda-graph-trace=graph as well."
        )


def _profiling(a: Diagnosis, b: Diagnosis) -> Iterator[str]:
    costs = [_cost(side) for side in (a, b)]
    if costs[0] is None and costs[1] is None:
        return
    told = [
        f"{name}'s steps {cost:.2f} x as long"
        for name, cost in zip("AB", costs, strict=True)
        if cost is not None
    ]
    if costs[0] is None or costs[1] is None:
        missing = "A" if costs[0] is None else "B"
        yield f"Profiling made {told[0]}; what it cost in {missing} is not recorded."
    elif max(costs[0], costs[1]) >= UNEQUAL * min(costs[0], costs[1]):
        yield f"Profiling made {' and '.join(told)}: part of the difference may be its own."


def _cost(diagnosis: Diagnosis) -> float | None:
    """The largest of the ranks: median step with the profiler over that without it, in the same run."""
    ranks = [] if diagnosis.run is None else diagnosis.run.ranks
    ratios = [
        rank.profiled_step_ns / rank.plain_step_ns
        for rank in ranks
        if rank.profiled_step_ns is not None and rank.plain_step_ns
    ]
    return max(ratios, default=None)
