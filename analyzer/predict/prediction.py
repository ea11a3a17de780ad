"""A prediction: the mean step time after a change, as a range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.apply import apply
from analyzer.predict.assumptions import Assumption, resolve
from analyzer.predict.bound import most_gain_ns, path_edges
from analyzer.predict.changes import Change
from analyzer.predict.draft import Draft, unchanged
from analyzer.predict.edges import BoolArray
from analyzer.predict.event_graph import EventGraph, source_event, time_order
from analyzer.predict.forward import CircleError, Scenarios, replay
from analyzer.predict.steps import Steps, step_lengths, step_span
from analyzer.predict.validation import OddEven

AT_ONCE, EDGES_AT_ONCE = 8, 1_000_000
"""So many changes in one pass, and edges of all together: it costs little more than one, but memory for each."""
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
class Base:
    """The unchanged capture under every variant, (s, m) ``times``; and the critical paths asked for so far."""

    graph: EventGraph
    scenarios: Scenarios
    times: IntArray
    _paths: dict[Steps, tuple[IntArray, BoolArray, int] | None] = field(default_factory=dict)

    def path(self, steps: Steps) -> tuple[IntArray, BoolArray, int] | None:
        """Edges of the critical path that ends the steps, (s,) which events lie in them, the last; None: no path."""
        if steps not in self._paths:
            self._paths[steps] = self._find(steps)
        return self._paths[steps]

    def _find(self, steps: Steps) -> tuple[IntArray, BoolArray, int] | None:
        at = self.times[:, 0]
        span = step_span(self.graph, steps, self.times[:, :1], self.scenarios.body_ns[:, :1])
        if span is None:
            return None
        inside = np.zeros(len(self.graph), bool)
        for begin, end in span.bounds_ns.tolist():
            inside |= (at > begin) & (at <= end)
        return path_edges(self.graph, self.scenarios, at, span.last_event), inside, span.last_event


@dataclass(frozen=True)
class Replayed:
    """A change replayed once, (s, m) ``times``, to be read for any steps."""

    base: Base
    scenarios: Scenarios
    times: IntArray
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    def predict(self, steps: Steps, checked: OddEven) -> Prediction:
        """The mean over the steps: observed, less what each variant gains; widened by what replays scatter."""
        was = step_lengths(self.base.graph, steps, self.base.times, self.base.scenarios.body_ns)
        now = step_lengths(self.base.graph, steps, self.times, self.scenarios.body_ns)
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
        found = self.base.path(steps)
        if found is None:
            return None
        total = most_gain_ns(self.base.graph, self.base.scenarios, self.scenarios, *found)
        return None if total is None else total / len(steps)


@dataclass
class Predictor:
    """Replays changes of one graph, many in one pass. The unchanged capture is replayed once for all of them."""

    graph: EventGraph
    assumptions: Mapping[str, Assumption]

    def __post_init__(self) -> None:
        scenarios = unchanged(self.graph, self.assumptions).scenarios()
        self.base = Base(self.graph, scenarios, replay(self.graph, scenarios))

    def draft(self, changes: Sequence[Change]) -> Draft:
        """Several changes together. Raises UsageError where the capture lacks what one of them needs."""
        draft = unchanged(self.graph, self.assumptions)
        for change in changes:
            apply(draft, change)
        return draft

    def replay(self, changes: Sequence[Change]) -> Replayed:
        """The same, replayed."""
        return self.replay_all([self.draft(changes)])[0]

    def replay_all(self, drafts: Sequence[Draft]) -> list[Replayed]:
        """Replay drafts; those with the capture's own edges side by side."""
        times: dict[int, IntArray] = {}
        alike = [at for at, draft in enumerate(drafts) if not draft.added]
        at_once = max(1, min(AT_ONCE, EDGES_AT_ONCE // max(len(self.graph.edges), 1)))
        for first in range(0, len(alike), at_once):
            some = alike[first : first + at_once]
            together = Scenarios(
                drafts[some[0]].edges,
                np.concatenate([drafts[at].lag_ns for at in some], axis=1),
                np.concatenate([drafts[at].body_ns for at in some], axis=1),
            )
            parts = np.split(replay(self.graph, together), len(some), axis=1)
            times |= dict(zip(some, parts, strict=True))
        times |= {at: _replayed(draft) for at, draft in enumerate(drafts) if draft.added}
        return [self._result(draft, times[at]) for at, draft in enumerate(drafts)]

    def _result(self, draft: Draft, times: IntArray) -> Replayed:
        used = tuple(self.assumptions[name] for name in sorted(draft.assumed))
        return Replayed(self.base, draft.scenarios(), times, used, tuple(draft.notes))


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
