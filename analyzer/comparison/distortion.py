"""Where recording itself may have made the difference: one side was slowed down more than the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.comparison.result import Side
from analyzer.diagnosis import Diagnosis, RunRank

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
    certain = [cost.ratio if cost is not None and cost.certain else None for cost in costs]
    told = [
        f"{name}'s steps {ratio:.2f} x as long"
        for name, ratio in zip("AB", certain, strict=True)
        if ratio is not None
    ]
    if not told:
        return
    if len(told) == 1:
        other = costs[1] if certain[1] is None else costs[0]
        name = "B" if certain[1] is None else "A"
        why = "not recorded" if other is None else f"not told from chance ({other.ratio:.2f} x)"
        yield f"Profiling made {told[0]}; what it cost in {name} is {why}."
        return
    low, high = sorted(ratio for ratio in certain if ratio is not None)
    if high >= UNEQUAL * low:
        yield f"Profiling made {' and '.join(told)}: part of the difference may be its own."


@dataclass(frozen=True)
class _Cost:
    """Median step with the profiler over that without it; certain where the 95 % intervals of both lie apart."""

    ratio: float
    certain: bool


def _cost(diagnosis: Diagnosis) -> _Cost | None:
    """The largest of the ranks, certain ones first; None where no rank timed both in the same run."""
    ranks = [] if diagnosis.run is None else diagnosis.run.ranks
    found = [
        _Cost(rank.profiled_step_ns / rank.plain_step_ns, _lie_apart(rank))
        for rank in ranks
        if rank.profiled_step_ns is not None and rank.plain_step_ns
    ]
    return max(found, key=lambda cost: (cost.certain, cost.ratio), default=None)


def _lie_apart(rank: RunRank) -> bool:
    inside, outside = rank.profiled_interval_ns, rank.plain_interval_ns
    return inside is not None and outside is not None and outside[1] < inside[0]
