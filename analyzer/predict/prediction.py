"""A prediction: the mean step time after a change, as a range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.apply import apply
from analyzer.predict.assumptions import Assumption, resolve
from analyzer.predict.bound import most_gain_ns, path_edges
from analyzer.predict.changes import Change
from analyzer.predict.draft import Draft, unchanged
from analyzer.predict.event_graph import EventGraph, source_event, time_order
from analyzer.predict.forward import CircleError, Scenarios, replay
from analyzer.predict.steps import Steps, step_lengths, step_span
from analyzer.predict.validation import OddEven

Z95 = 1.96
"""Normal quantile of a two-sided 95 % interval."""
MODEL_SHARE, GAIN_SHARE = 0.005, 0.05
"""No range is narrower than this share of the step and this share of the change, to either side.

So much replays miss by against simulated truth where nothing is open (docs/accuracy.md): a calibration, not a bound.
"""


@dataclass(frozen=True)
class Prediction:
    """Mean step time after a change, ns. ``observed_ns``: before it; ``range_ns``: lower and upper end.

    ``most_gain_ns``: what the change takes off the critical path, a bound on what it can give; None: no bound.
    """

    observed_ns: float
    range_ns: tuple[float, float]
    most_gain_ns: float | None
    steps: int
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    @property
    def middle_ns(self) -> float:
        """The middle of the range."""
        return (self.range_ns[0] + self.range_ns[1]) / 2


@dataclass(frozen=True)
class Replayed:
    """A change replayed once, to be read for any steps. Columns are the variants."""

    graph: EventGraph
    base: Scenarios
    changed: Scenarios
    before: IntArray
    after: IntArray
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    def predict(self, steps: Steps, checked: OddEven) -> Prediction:
        """The mean over the steps: observed, less what each variant gains; widened by what replays scatter."""
        was = step_lengths(self.graph, steps, self.before, self.base.body_ns)
        now = step_lengths(self.graph, steps, self.after, self.changed.body_ns)
        observed = float(was[:, 0].mean())  # the first variant is the capture itself
        gain = (was - now).mean(axis=0)
        ends = np.maximum(observed - gain, 0.0)
        scatter = Z95 * (checked.spread or 0.0) * float(ends.mean()) / math.sqrt(len(steps))
        scatter += MODEL_SHARE * observed + GAIN_SHARE * float(np.abs(gain).max())
        return Prediction(
            observed_ns=observed,
            range_ns=(max(float(ends.min()) - scatter, 0.0), float(ends.max()) + scatter),
            most_gain_ns=self._most_gain(steps),
            steps=len(steps),
            assumptions=self.assumptions,
            notes=self.notes,
        )

    def _most_gain(self, steps: Steps) -> float | None:
        """Mean over the steps of what the change takes off the critical path."""
        span = step_span(self.graph, steps, self.before[:, :1], self.base.body_ns[:, :1])
        if span is None:
            return None
        path = path_edges(self.graph, self.base, self.before[:, 0], span.last_event)
        at = self.before[:, 0]
        counts = np.zeros(len(self.graph), bool)
        for begin, end in span.bounds_ns.tolist():
            counts |= (at > begin) & (at <= end)
        total = most_gain_ns(self.graph, self.base, self.changed, path, counts, span.last_event)
        return None if total is None else total / len(steps)


@dataclass
class Predictor:
    """Replays changes of one graph. The unchanged capture is replayed once for all of them."""

    graph: EventGraph
    assumptions: Mapping[str, Assumption]

    def __post_init__(self) -> None:
        self._base = unchanged(self.graph, self.assumptions).scenarios()
        self._before = replay(self.graph, self._base)

    def replay(self, changes: Sequence[Change]) -> Replayed:
        """Replay several changes together. Raises UsageError where the capture lacks what one of them needs."""
        draft = unchanged(self.graph, self.assumptions)
        for change in changes:
            apply(draft, change)
        after = _replayed(draft)
        used = tuple(self.assumptions[name] for name in sorted(draft.assumed))
        return Replayed(
            self.graph, self._base, draft.scenarios(), self._before, after, used, tuple(draft.notes)
        )


def assumptions_of(graph: EventGraph, overrides: Mapping[str, tuple[int, int]]) -> dict[str, Assumption]:
    """Every assumption, with what the ranks' captures show in place of defaults."""
    measured = [place.graph.measured for place in graph.ranks]
    tau = [known.tau_ns for known in measured]
    turnaround = _hull([known.graph_turnaround_ns for known in measured])
    found: dict[str, tuple[int, int] | None] = {
        "graph_latency_ns": _hull([known.graph_latency_ns for known in measured]),
        "graph_turnaround_ns": turnaround or ((min(tau) // 2, max(tau)) if tau else None),
    }
    launch = _hull([known.graph_launch_ns for known in measured])
    if launch is not None:
        found |= {"graph_launch_ns": launch, "graph_launch_node_ns": (0, 0)}
    return resolve(found, overrides)


def _hull(ranges: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [found for found in ranges if found is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _replayed(draft: Draft) -> IntArray:
    """The forward pass; where a change would make events wait in a circle, without the edges that close it."""
    scenarios = draft.scenarios()
    try:
        return replay(draft.graph, scenarios)
    except CircleError:
        place = np.empty(len(draft.graph), np.int64)
        place[time_order(draft.graph)] = np.arange(len(draft.graph))
        table = scenarios.edges
        keep = place[source_event(draft.graph, table)] < place[table.target]
        draft.notes.append(f"{int((~keep).sum())} waits between bursts and other threads' work are left out")
        kept = Scenarios(table.take(keep), scenarios.lag_ns[keep], scenarios.body_ns)
        return replay(draft.graph, replace(kept, added=False))
