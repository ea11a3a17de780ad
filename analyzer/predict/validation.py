"""Whether the graph predicts at all: lags learned on odd steps must reproduce the even ones.

That the graph reproduces the capture it was made from is a consistency check, no evidence: every binding edge has
the lag that was observed. Here the even steps get the odd ones' lags instead, and keep only their own durations of
device work and CPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.edges import EdgeKind
from analyzer.predict.event_graph import EventGraph
from analyzer.predict.forward import Scenarios, observed, replay
from analyzer.predict.steps import Steps, step_lengths

WITHHELD_ABOVE = 0.03
"""Predictions are withheld where the median error is larger (attribution contract, section 6)."""
LEAST_STEPS = 4
"""Two steps to learn from and two to reproduce."""


@dataclass(frozen=True)
class OddEven:
    """``error``: median over the even steps of |replayed - observed| / observed; ``spread`` their standard deviation;
    ``worst`` the largest. None: too few steps to tell.
    """

    steps: int
    error: float | None
    worst: float | None
    spread: float | None

    @property
    def withheld(self) -> str:
        """Why predictions are withheld, "" where they are not."""
        if self.error is None:
            return (
                f"{self.steps} steps: at least {LEAST_STEPS} are needed to check whether lags learned on odd steps "
                "reproduce even ones"
            )
        if self.error > WITHHELD_ABOVE:
            return (
                f"lags learned on odd steps reproduce even ones only within {100 * self.error:.1f} % (median; "
                f"{100 * WITHHELD_ABOVE:.0f} % is required)"
            )
        return ""


def odd_even(graph: EventGraph, all_steps: Sequence[Steps]) -> OddEven:
    """The error over all steps of all phases."""
    window = event_windows(graph)
    count = sum(len(steps) for steps in all_steps)
    if count < LEAST_STEPS:
        return OddEven(count, None, None, None)
    lag = observed(graph)
    learned = _with_learned_lags(graph, window, lag)
    body = graph.body_ns[:, None]
    both = Scenarios(graph.edges, np.stack((lag, learned), axis=1), np.repeat(body, 2, axis=1))
    times = replay(graph, both)
    errors = []
    for steps in all_steps:
        even = _even(steps)
        was, now = step_lengths(graph, steps, times, both.body_ns)[even].T
        errors.append(((now - was) / np.maximum(was, 1))[was > 0])
    error = np.concatenate(errors)
    if not len(error):
        return OddEven(count, None, None, None)
    size = np.abs(error)
    return OddEven(count, float(np.median(size)), float(size.max()), float(error.std()))


def _even(steps: Steps) -> IntArray:
    """Positions of the steps whose windows are even on the first rank that has them."""
    windows = steps.windows if steps.rank is not None else [min(step)[1] for step in steps.members]
    return np.flatnonzero(np.array(windows, np.int64) % 2 == 0)


def event_windows(graph: EventGraph) -> IntArray:
    """(s,) step of each event on its rank, -1 none."""
    window: IntArray = np.full(len(graph), -1, np.int64)
    for place in graph.ranks:
        window[place.host : place.row] = place.graph.host_window
        window[place.row : place.row + len(place.graph.rows)] = place.graph.rows.window
    window[graph.meetings.event] = window[graph.meetings.start]
    return window


def _with_learned_lags(graph: EventGraph, window: IntArray, lag: IntArray) -> IntArray:
    """Lags of even steps as the median of the same kind on odd ones, where there are any."""
    table, learned = graph.edges, lag.copy()
    of = window[table.target]
    learnable = table.binds & (of >= 0) & (table.kind != EdgeKind.HOST)  # a thread's own time is no lag
    kind = np.where(learnable, table.sample, -1)
    for sample in np.unique(kind[kind >= 0]).tolist():
        mine = np.flatnonzero(kind == sample)
        odd, even = mine[of[mine] % 2 == 1], mine[of[mine] % 2 == 0]
        if len(odd) and len(even):
            learned[even] = int(np.median(lag[odd]))
    return learned
