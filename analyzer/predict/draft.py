"""A changed graph in the making: its lags under several readings of what the capture leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.assumptions import Assumption
from analyzer.predict.changes import HostKind
from analyzer.predict.edges import BoolArray, EdgeKind, Edges, join_edges
from analyzer.predict.event_graph import EventGraph
from analyzer.predict.forward import NEVER, Scenarios, observed


@dataclass(frozen=True)
class Variant:
    """One reading of what the capture leaves open.

    ``high``: assumptions at their upper ends, lags that were not observed at their usual instead of their least
    values, and threads that were blocked for no visible cause are woken by the one that steps instead of by nobody.
    ``dropped``: other inferred edges do not hold.
    """

    high: bool
    dropped: bool


VARIANTS = tuple(Variant(high, dropped) for dropped in (False, True) for high in (False, True))
"""The columns of a draft. The first, unchanged, is the capture itself."""


@dataclass
class Draft:
    """Edges with (e, m) lags, (s, m) durations; columns are VARIANTS.

    ``host_rows``: (k,) edges that are a thread's own time; ``host_ns``: by kind (k, m) how much of it there is.
    ``added``: edges were added. ``notes``: what a change does and what it could not change. ``assumed``: names of
    the assumptions that it made use of.
    """

    graph: EventGraph
    assumptions: Mapping[str, Assumption]
    edges: Edges
    lag_ns: IntArray
    body_ns: IntArray
    host_rows: IntArray
    host_ns: dict[HostKind, IntArray]
    added: bool = False
    notes: list[str] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)

    def assume(self, name: str) -> tuple[int, int]:
        """Both ends of an assumption; it is then listed with the prediction."""
        self.assumed.add(name)
        return self.assumptions[name].low, self.assumptions[name].high

    def by_end(self, low: int, high: int) -> IntArray:
        """(m,) the lower end in the variants that take it, else the upper one."""
        return np.array([high if variant.high else low for variant in VARIANTS], np.int64)

    def set_lags(self, rows: IntArray, lag_ns: IntArray | int) -> None:
        """Give edges new lags, (k, m) or less, in the variants in which they hold."""
        before = self.lag_ns[rows]
        self.lag_ns[rows] = np.where(before > NEVER, np.broadcast_to(lag_ns, before.shape), NEVER)

    def add(self, more: Sequence[tuple[Edges, IntArray]]) -> None:
        """Add edges with their (e, m) lags."""
        if more:
            self.edges = join_edges([self.edges, *(table for table, _ in more)])
            self.lag_ns = np.concatenate([self.lag_ns, *(lag for _, lag in more)])
            self.added = True

    def scenarios(self) -> Scenarios:
        """What to replay."""
        return Scenarios(self.edges, self.lag_ns, self.body_ns, self.added)


def unchanged(graph: EventGraph, assumptions: Mapping[str, Assumption]) -> Draft:
    """The capture itself under every variant."""
    table, m = graph.edges, len(VARIANTS)
    by_end = {False: observed(graph), True: observed(graph, usual=True)}
    lag = np.stack([by_end[variant.high] for variant in VARIANTS], axis=1)
    dropped = np.array([variant.dropped for variant in VARIANTS])
    high = np.array([variant.high for variant in VARIANTS])
    lag = np.where(dropped[None, :], _without_inference(graph, lag), lag)
    lag = np.where(_woken(graph)[:, None] & high[None, :], np.minimum(table.least_ns[:, None], lag), lag)
    own = np.flatnonzero((table.kind == EdgeKind.HOST) & table.binds)
    return Draft(
        graph=graph,
        assumptions=assumptions,
        edges=table,
        lag_ns=lag,
        body_ns=np.repeat(graph.body_ns[:, None], m, axis=1),
        host_rows=own,
        host_ns={
            kind: np.repeat(_host_ns(graph, kind)[table.target[own]][:, None], m, axis=1) for kind in HostKind
        },
    )


def _host_ns(graph: EventGraph, kind: HostKind) -> IntArray:
    """(s,) ns of a kind that a thread spent before each event."""
    spent: IntArray = np.zeros(len(graph), np.int64)
    for place in graph.ranks:
        spent[place.host : place.row] = getattr(place.graph.host, kind.value)
    return spent


def _without_inference(graph: EventGraph, lag: IntArray) -> IntArray:
    """Lags where inferred edges do not hold.

    A launch that was inferred to be held up has its usual latency, a thread that was blocked for no visible cause is
    not blocked, and collectives that only seem to be one take the time that each took.
    """
    table = graph.edges
    guessed = table.inferred & table.binds
    submitted = guessed & (table.kind == EdgeKind.SUBMISSION)
    blocked = guessed & (table.kind == EdgeKind.HOST) & ~_woken(graph)
    result = np.where(submitted[:, None], np.minimum(table.usual_ns[:, None], lag), lag)
    result = np.where(blocked[:, None], np.minimum(table.least_ns[:, None], lag), result)
    met = table.inferred & (table.kind == EdgeKind.MEETING)
    own = met & (graph.rank_of[table.source] == graph.rank_of[table.target])
    result = np.where(own[:, None], (graph.at_ns[table.target] - graph.at_ns[table.source])[:, None], result)
    gone = guessed & ~submitted & (table.kind != EdgeKind.HOST) & removable(graph)
    return np.where((gone | (met & ~own))[:, None], NEVER, result)


def _woken(graph: EventGraph) -> BoolArray:
    """(e,) time in which a thread was blocked for no visible cause, where the one that steps may have woken it."""
    table = graph.edges
    woken = table.target[(table.kind == EdgeKind.HANDOVER) & ~table.binds]
    blocked = table.inferred & table.binds & (table.kind == EdgeKind.HOST)
    return np.asarray(blocked & np.isin(table.target, woken), bool)


def removable(graph: EventGraph) -> BoolArray:
    """(e,) whether the target has an edge that is no inference: nothing may be left without any."""
    table = graph.edges
    others = np.bincount(table.target[~(table.inferred & table.binds)], minlength=len(graph))
    return np.asarray(others[table.target] > 0, bool)
