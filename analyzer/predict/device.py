"""What the device work of one rank waited for, binding or not."""

from __future__ import annotations

import numpy as np

from analyzer.categories import Binding
from analyzer.model import IntArray
from analyzer.predict.edges import BoolArray, EdgeKind, Edges, edges, join_edges
from analyzer.reconstruct.bindings import stream_waits
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import group_indices

_KIND_OF = {
    Binding.STREAM: EdgeKind.STREAM,
    Binding.EVENT: EdgeKind.EVENT,
    Binding.GRAPH: EdgeKind.GRAPH,
    Binding.INFERRED: EdgeKind.UNSEEN,
    Binding.UNSEEN: EdgeKind.UNSEEN,
    Binding.MISSING: EdgeKind.UNSEEN,
}


def device_edges(account: RankAccount, entry: IntArray, h: int) -> Edges:
    """Edges into the starts of device work, numbered behind the ``h`` host events.

    ``entry``: (n,) host event at which the launch call of each row began, -1 none.
    """
    work, bindings = account.work, account.bindings
    rows = np.arange(len(work))
    pred = bindings.predecessor
    found = []
    behind = pred >= 0
    for binding, kind in _KIND_OF.items():
        mine = rows[behind & (bindings.kind == binding)]
        found.append(
            edges(
                h + mine, h + pred[mine], kind, done=True, binds=True,
                inferred=bindings.inferred[mine] | (kind == EdgeKind.UNSEEN), sample=int(kind),
            )
        )  # fmt: skip
    submitted = ~behind & (bindings.kind == Binding.SUBMISSION) & (entry >= 0)
    found.append(_submissions(account, rows[entry >= 0], entry, submitted, h))
    usual = {kind: _usual_gap(account, kind) for kind in (Binding.STREAM, Binding.EVENT, Binding.GRAPH)}
    tau = account.constants.tau_ns
    inner = account.replays.inner >= 0
    stream, event = np.where(inner, -1, bindings.stream), np.where(inner, -1, bindings.event)
    for source, kind, binding in (
        (stream, EdgeKind.STREAM, Binding.STREAM),
        (event, EdgeKind.EVENT, Binding.EVENT),
        (_own_lane_in_replay(account, inner), EdgeKind.GRAPH, Binding.GRAPH),
    ):
        mine = rows[(source >= 0) & (source != pred) & (source < rows)]
        least = min(tau, usual[binding]) if kind == EdgeKind.GRAPH else tau
        found.append(
            edges(
                h + mine,
                h + source[mine],
                kind,
                done=True,
                least_ns=least,
                usual_ns=max(least, usual[binding]),
            )
        )
    found.append(_whole_replays(account, stream, h, tau))
    found.append(_recorded_waits(account, h, tau))
    return join_edges(found)


def _submissions(account: RankAccount, rows: IntArray, entry: IntArray, binds: BoolArray, h: int) -> Edges:
    """Every row waits for its launch call: by the least latency of its API, or by what was observed."""
    work, bindings, calls = account.work, account.bindings, account.calls
    lag = work.start_ns - work.launch_ns
    unseen = binds & (lag > bindings.latency_high_ns)
    returned = np.where(work.linked, calls.end_ns[work.launch], 0)
    unseen &= work.start_ns > returned + bindings.latency_high_ns
    names = account.trace.process.host.name[calls.row[work.launch[rows]]].astype(np.int64)
    usual = bindings.latency_low_ns.copy()
    for of_api in group_indices(names).values():
        mine = rows[of_api]
        seen = mine[binds[mine] & ~unseen[mine]]
        if len(seen):
            usual[mine] = np.maximum(int(np.median(lag[seen])), usual[mine])
    return edges(
        h + rows, entry[rows], EdgeKind.SUBMISSION, binds=binds[rows], inferred=unseen[rows],
        least_ns=bindings.latency_low_ns[rows], usual_ns=usual[rows], sample=1_000 + names,
    )  # fmt: skip


def _usual_gap(account: RankAccount, binding: Binding) -> int:
    """Median gap of work that certainly waited for what it is bound by; the turnaround where none did."""
    work, bindings = account.work, account.bindings
    mine = np.flatnonzero((bindings.kind == binding) & ~bindings.inferred & (bindings.predecessor >= 0))
    if not len(mine):
        return account.constants.tau_ns
    return max(int(np.median(work.start_ns[mine] - work.end_ns[bindings.predecessor[mine]])), 0)


def _own_lane_in_replay(account: RankAccount, inner: BoolArray) -> IntArray:
    """(n,) the node before each inner node on the stream that shows it, -1 none."""
    work = account.work
    before: IntArray = np.full(len(work), -1, np.int64)
    nodes = np.flatnonzero(work.replay >= 0)
    order = nodes[np.lexsort((nodes, work.lane[nodes], work.replay[nodes]))]
    same = (np.diff(work.replay[order]) == 0) & (np.diff(work.lane[order]) == 0)
    before[order[1:][same]] = order[:-1][same]
    before[~inner] = -1
    return before


def _recorded_waits(account: RankAccount, h: int, tau_ns: int) -> Edges:
    """All work that recorded events order before a row: the binding one is only the last of it to end."""
    work, targets = account.work, account.targets
    waits = stream_waits(work, account.calls, targets, account.replays)
    _, record = targets.sync_row(waits.calls)
    pairs = [np.empty((2, 0), np.int64)]
    for source in targets.parts_before_record(record):
        origin = source[waits.wait]
        ok = (origin >= 0) & (origin < waits.row) & (origin != account.bindings.predecessor[waits.row])
        ok &= origin != account.bindings.event[waits.row]
        pairs.append(np.stack((waits.row[ok], origin[ok])))
    target, origin = np.unique(np.concatenate(pairs, axis=1), axis=1)
    return edges(h + target, h + origin, EdgeKind.EVENT, done=True, least_ns=tau_ns)


def _whole_replays(account: RankAccount, stream: IntArray, h: int, tau_ns: int) -> Edges:
    """What comes after a replay waits for all of it: for the last node on each of its streams."""
    work = account.work
    rows = np.flatnonzero((stream >= 0) & (work.replay[np.maximum(stream, 0)] >= 0))
    rows = rows[work.replay[rows] != work.replay[stream[rows]]]
    lasts = last_on_each_lane(work.replay, work.lane.astype(np.int64), work.end_ns)
    target, source = [], []
    for row, replay, bound in zip(
        rows.tolist(), work.replay[stream[rows]].tolist(), stream[rows].tolist(), strict=True
    ):
        for node in lasts.get(replay, ()):
            if node != bound and node < row:
                target.append(row)
                source.append(node)
    return edges(
        h + np.array(target, np.int64),
        h + np.array(source, np.int64),
        EdgeKind.STREAM,
        done=True,
        least_ns=tau_ns,
    )


def last_on_each_lane(unit: IntArray, lane: IntArray, end_ns: IntArray) -> dict[int, list[int]]:
    """By unit (-1 counts as none) the row that ends last on each of its lanes."""
    rows = np.flatnonzero(unit >= 0)
    order = rows[np.lexsort((rows, end_ns[rows], lane[rows], unit[rows]))]
    closes = np.flatnonzero((np.diff(unit[order], append=-2) != 0) | (np.diff(lane[order], append=-2) != 0))
    result: dict[int, list[int]] = {}
    for row in order[closes].tolist():
        result.setdefault(int(unit[row]), []).append(row)
    return result
