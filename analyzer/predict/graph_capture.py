"""Eager bursts as graph replays: what a capture into CUDA graphs would leave of them.

A burst is a run of launches of one thread with nothing between them but submission and dispatch: no wait, no
step boundary, no call that cannot be captured. It becomes one launch call; the work keeps its order as edges
of the graph, begins together, and what comes after it waits for all of it (the streams that it used are joined).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.predict.device import last_on_each_lane
from analyzer.predict.draft import VARIANTS, Draft
from analyzer.predict.edges import BoolArray, EdgeKind, Edges, edges
from analyzer.predict.event_graph import Placed
from analyzer.predict.forward import NEVER
from analyzer.predict.host_events import Role
from analyzer.reconstruct.host_account import BURST_FLOOR_NS

Added = tuple[Edges, IntArray]
"""New edges with their (e, m) lags."""
_DEVICE = (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.GRAPH, EdgeKind.UNSEEN)


@dataclass(frozen=True)
class Bursts:
    """Which burst each event belongs to: (s,) its number, -1 none. ``first``, ``last``: launch events of each."""

    of_event: IntArray
    first: IntArray
    last: IntArray
    nodes: IntArray

    def __len__(self) -> int:
        return len(self.first)


def capture_graphs(draft: Draft) -> None:
    """Replace the bursts of all ranks. Where a gap may be no dispatch the upper variants leave it as it is."""
    least, _ = draft.assume("graph_least_launches")
    counts = []
    for high in (False, True):
        columns = np.array([variant.high == high for variant in VARIANTS])
        bursts = find_bursts(draft, least, BURST_FLOOR_NS if high else None)
        counts.append((len(bursts), int(bursts.nodes.sum())))
        if len(bursts):
            _replace(draft, bursts, columns)
    (number, launches), (fewer, certain) = counts
    words = f"{launches} launches in {number} bursts become {number} graph launches"
    if (number, launches) != (fewer, certain):
        words += f" (or only {certain} in {fewer}, where gaps between launches are no dispatch)"
    draft.notes.append(
        words if number else f"no burst of at least {least} launches that a graph could replay"
    )
    for name in ("graph_launch_ns", "graph_launch_node_ns", "graph_latency_ns", "graph_turnaround_ns"):
        draft.assume(name)


def find_bursts(draft: Draft, least: int, gap_ns: int | None) -> Bursts:
    """Bursts of at least ``least`` launches; ``gap_ns``: a gap this long ends one, None: only what is no dispatch."""
    of_event = np.full(len(draft.graph), -1, np.int64)
    firsts: list[int] = []
    lasts, nodes = [], []
    for place in draft.graph.ranks:
        host = place.graph.host
        n_rows = np.bincount(place.graph.rows.entry[place.graph.rows.entry >= 0], minlength=len(host))
        for run in _runs(place, gap_ns):
            if len(run) < least:
                continue
            of_event[place.host + run] = len(firsts)
            firsts.append(place.host + int(run[0]))
            lasts.append(place.host + int(run[-1]))
            nodes.append(int(n_rows[run].sum()))
        rows = np.flatnonzero(place.graph.rows.entry >= 0)
        of_event[place.rows(rows)] = of_event[place.host + place.graph.rows.entry[rows]]
    return Bursts(of_event, np.array(firsts, np.int64), np.array(lasts, np.int64), np.array(nodes, np.int64))


def _runs(place: Placed, gap_ns: int | None) -> list[IntArray]:
    """Runs of consecutive launch events of one thread that a graph could replay together."""
    host = place.graph.host
    if not len(host):
        return []
    fits = (host.role == Role.CALL) & host.capturable
    joined = np.zeros(len(host), bool)
    joined[1:] = fits[1:] & fits[:-1] & (host.thread[1:] == host.thread[:-1]) & (host.stray_ns[1:] == 0)
    if gap_ns is not None:
        since = host.at_ns[1:] - host.at_ns[:-1] - host.call_ns[:-1]
        joined[1:] &= since < gap_ns
    begins = np.flatnonzero(fits & ~joined)
    ends = np.flatnonzero(fits & ~np.append(joined[1:], False))
    return [np.arange(begin, end + 1) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _replace(draft: Draft, bursts: Bursts, columns: BoolArray) -> None:
    table, of = draft.edges, bursts.of_event
    source, target = of[table.source], of[table.target]
    inside = (source >= 0) & (source == target)
    is_row = np.zeros(len(draft.graph), bool)
    for place in draft.graph.ranks:
        is_row[place.row : place.row + len(place.graph.rows)] = True
    device = np.isin(table.kind, _DEVICE)
    _set(draft, inside & (table.kind == EdgeKind.HOST), 0, columns)
    gone = inside[draft.host_rows][:, None] & columns[None, :]
    draft.host_ns = {kind: np.where(gone, 0, spent) for kind, spent in draft.host_ns.items()}
    _shorten_last(draft, bursts, columns)
    latency = draft.by_end(*draft.assume("graph_latency_ns"))
    turnaround = draft.by_end(*draft.assume("graph_turnaround_ns"))
    submitted = (table.kind == EdgeKind.SUBMISSION) & (target >= 0)
    _set(draft, submitted, latency, columns)
    _set(draft, inside & device & is_row[table.source] & is_row[table.target], turnaround, columns)
    more = _entries(draft, bursts, device & (target >= 0) & (source != target), inside & device, columns)
    more += _exits(draft, bursts, table.done & (source >= 0) & (source != target), columns)
    draft.add(more)


def _set(draft: Draft, chosen: BoolArray, value: IntArray | int, columns: BoolArray) -> None:
    rows = np.flatnonzero(chosen)
    draft.set_lags(
        rows, np.where(columns[None, :], np.broadcast_to(value, (len(VARIANTS),)), draft.lag_ns[rows])
    )


def _shorten_last(draft: Draft, bursts: Bursts, columns: BoolArray) -> None:
    """After the last launch the thread goes on when the graph launch returns."""
    number = np.full(len(draft.graph), -1, np.int64)
    number[bursts.last] = np.arange(len(bursts))
    table = draft.edges
    rows = np.flatnonzero((table.kind == EdgeKind.HOST) & (number[table.source] >= 0))
    of = number[table.source[rows]]
    call_ns = np.zeros(len(draft.graph), np.int64)
    for place in draft.graph.ranks:
        call_ns[place.host : place.row] = place.graph.host.call_ns
    base, node = draft.assume("graph_launch_ns"), draft.assume("graph_launch_node_ns")
    low, high = (base[end] + node[end] * bursts.nodes[of] for end in (0, 1))
    takes = np.stack([high if variant.high else low for variant in VARIANTS], axis=1)
    after = draft.lag_ns[rows] - call_ns[table.source[rows]][:, None] + takes
    draft.lag_ns[rows] = np.where(
        columns[None, :] & (draft.lag_ns[rows] > NEVER), np.maximum(after, 0), draft.lag_ns[rows]
    )


def _entries(
    draft: Draft, bursts: Bursts, incoming: BoolArray, inside: BoolArray, columns: BoolArray
) -> list[Added]:
    """What any node waited for outside holds the whole replay: every node that waits for no other."""
    table, of = draft.edges, bursts.of_event
    has_inner = np.zeros(len(draft.graph), bool)
    has_inner[table.target[inside]] = True
    roots: dict[int, list[int]] = {}
    for place in draft.graph.ranks:
        events = place.rows(np.arange(len(place.graph.rows)))
        for event in events[(of[events] >= 0) & ~has_inner[events]].tolist():
            roots.setdefault(int(of[event]), []).append(event)
    targets, sources, lags = [], [], []
    for row in np.flatnonzero(incoming & (table.kind != EdgeKind.UNSEEN)).tolist():
        burst = int(of[table.target[row]])
        for root in roots.get(burst, ()):
            if root != table.target[row]:
                targets.append(root)
                sources.append(int(table.source[row]))
                lags.append(np.minimum(draft.lag_ns[row], table.least_ns[row]))
    return _added(targets, sources, lags, EdgeKind.REPLAYED, columns)


def _exits(draft: Draft, bursts: Bursts, outgoing: BoolArray, columns: BoolArray) -> list[Added]:
    """What waited for any node waits for all of them: for the last one on each stream."""
    table, of = draft.edges, bursts.of_event
    lasts: dict[int, list[int]] = {}
    for place in draft.graph.ranks:
        rows = place.graph.rows
        unit = of[place.rows(np.arange(len(rows)))]
        for burst, found in last_on_each_lane(unit, rows.lane, rows.end_ns).items():
            lasts[burst] = place.rows(np.array(found, np.int64)).tolist()
    more: list[Added] = []
    for kind in (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.HELD):
        targets, sources, lags = [], [], []
        for row in np.flatnonzero(outgoing & (table.kind == kind)).tolist():
            for node in lasts.get(int(of[table.source[row]]), ()):
                if node != table.source[row]:
                    targets.append(int(table.target[row]))
                    sources.append(node)
                    lags.append(draft.lag_ns[row])
        by = kind if kind == EdgeKind.HELD else EdgeKind.REPLAYED
        more += _added(targets, sources, lags, by, columns)
    return more


def _added(
    targets: list[int], sources: list[int], lags: list[IntArray], kind: EdgeKind, columns: BoolArray
) -> list[Added]:
    if not targets:
        return []
    table = edges(np.array(targets, np.int64), np.array(sources, np.int64), kind, done=True)
    return [(table, np.where(columns[None, :], np.stack(lags), NEVER))]
