"""Changes of collectives: no waiting for late ranks, other transfers, none at all."""

from __future__ import annotations

import numpy as np

from analyzer.errors import UsageError
from analyzer.latency_fit import median_line
from analyzer.model import IntArray
from analyzer.predict.changes import Collectives, CollectivesHidden, NoSkew
from analyzer.predict.draft import VARIANTS, Draft
from analyzer.predict.edges import BoolArray, EdgeKind
from analyzer.predict.event_graph import Placed
from analyzer.predict.forward import NEVER


def apply(draft: Draft, change: Collectives | CollectivesHidden | NoSkew) -> None:
    """Bring the change into the draft. Raises UsageError where the capture holds no such collective."""
    match change:
        case NoSkew():
            _without_skew(draft)
        case CollectivesHidden():
            _hide_collectives(draft)
        case Collectives():
            _set_transfers(draft, change)
    likely = draft.edges.take((draft.edges.kind == EdgeKind.MEETING) & draft.edges.inferred)
    if len(likely):
        draft.notes.append(
            f"{len(np.unique(likely.target))} collectives are only taken to belong together because they end together"
        )


def _own_edges(draft: Draft) -> tuple[BoolArray, BoolArray]:
    """(e,) edges of meetings: from the member's own arrival, and from another member's."""
    table, rank = draft.edges, draft.graph.rank_of
    meeting = table.kind == EdgeKind.MEETING
    own = meeting & (rank[table.source] == rank[table.target])
    return own, meeting & ~own


def _without_skew(draft: Draft) -> None:
    _, others = _own_edges(draft)
    if not others.any():
        raise UsageError(
            "--change", "no-skew", "no collective of the capture is split into waiting and transfer",
            "give the captures of all ranks",
        )  # fmt: skip
    draft.lag_ns[others] = NEVER
    unsplit = len(_unsplit(draft))
    if unsplit:
        draft.notes.append(
            f"{unsplit} collectives are not split into waiting and transfer: they keep their time"
        )


def _unsplit(draft: Draft) -> IntArray:
    """Events of collectives that are not known to wait for their members."""
    graph = draft.graph
    events = np.concatenate([np.empty(0, np.int64), *(_known_rows(place) for place in graph.ranks)])
    unsplit: IntArray = events[graph.end_event[events] < 0]
    return unsplit


def _known_rows(place: Placed) -> IntArray:
    """Events of a rank's collectives, without those that are cut off."""
    rows = place.graph.collective_row
    return place.rows(rows[rows >= 0])


def _hide_collectives(draft: Draft) -> None:
    own, others = _own_edges(draft)
    unsplit = _unsplit(draft)
    if not own.any() and not len(unsplit):
        raise UsageError(
            "--change", "collectives-hidden", "the capture holds no collective", "nothing to hide"
        )
    draft.lag_ns[others] = NEVER
    draft.lag_ns[own] = 0
    draft.body_ns[unsplit] = 0


def _set_transfers(draft: Draft, change: Collectives) -> None:
    own, others = _own_edges(draft)
    rows = np.flatnonzero(own | others)
    unsplit = _unsplit(draft)
    if not len(rows) and not len(unsplit):
        raise UsageError("--change", "collective", "the capture holds no collective", "nothing to change")
    if change.factor is not None:
        draft.lag_ns[rows] = np.where(
            draft.lag_ns[rows] > NEVER, np.rint(draft.lag_ns[rows] * change.factor).astype(np.int64), NEVER
        )
    else:
        _set_alpha_beta(draft, change, rows)
    if len(unsplit):
        draft.notes.append(
            f"{len(unsplit)} collectives are not split into waiting and transfer: "
            "from none to all of their time changes"
        )
        if change.factor is not None:
            for column, variant in enumerate(VARIANTS):
                if variant.high == (change.factor > 1):
                    draft.body_ns[unsplit, column] = np.rint(draft.body_ns[unsplit, column] * change.factor)


def _set_alpha_beta(draft: Draft, change: Collectives, rows: IntArray) -> None:
    meetings = draft.graph.meetings
    place = np.full(len(draft.graph), -1, np.int64)
    place[meetings.event] = np.arange(len(meetings.event))
    rows = rows[place[draft.edges.target[rows]] >= 0]
    of_edge = place[draft.edges.target[rows]]
    nbytes = meetings.bytes[of_edge]
    known = nbytes >= 0
    if not known.any():
        raise UsageError(
            "--change", "collective:alpha,beta", "no collective's size is recorded in the capture",
            "sizes are read from torch.profiler traces and from nsys exports with NCCL's payload (--include-json=true);"
            " here scale transfers: collective=0.5",
        )  # fmt: skip
    if not known.all():
        unknown = len(np.unique(meetings.call[of_edge[~known]]))
        draft.notes.append(f"{unknown} collectives of unknown size keep their time")
    operation = np.array(meetings.operation, dtype=object)[of_edge]
    for name in sorted(set(operation[known].tolist())):
        mine = np.flatnonzero(known & (operation == name))
        edges, size = rows[mine], nbytes[mine]
        before = draft.lag_ns[edges]
        if change.alpha_ns is not None and change.bytes_per_s is not None:
            after = np.repeat(
                np.rint(change.alpha_ns + size * 1e9 / change.bytes_per_s)[:, None], before.shape[1], axis=1
            )
        else:
            here = before[:, 0] > NEVER  # arrivals that another change took away have no transfer
            alpha, ns_per_byte = _fit(name, size[here], before[here, 0])
            shift = np.zeros(len(size))
            if change.alpha_ns is not None:
                shift += change.alpha_ns - alpha
            if change.bytes_per_s is not None:
                shift += size * (1e9 / change.bytes_per_s - ns_per_byte)
            after = np.maximum(before + np.rint(shift)[:, None], 0)
        draft.lag_ns[edges] = np.where(before > NEVER, after.astype(np.int64), NEVER)


def _fit(name: str, size: IntArray, transfer_ns: IntArray) -> tuple[float, float]:
    """Alpha in ns and ns per byte of the capture's own transfers: the line through their medians."""
    if len(np.unique(size)) < 2:
        raise UsageError(
            "--change", "collective", f"all {name} calls have one size: one size does not tell alpha from beta",
            "give both, collective:alpha=10us,beta=200GB/s, or a factor, collective=0.5",
        )  # fmt: skip
    return median_line(size, np.maximum(transfer_ns, 1))
