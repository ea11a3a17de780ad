"""Changes of the host: less CPU time, no waiting for the device."""

from __future__ import annotations

import numpy as np

from analyzer.predict.changes import Host, NoSync
from analyzer.predict.draft import Draft
from analyzer.predict.edges import EdgeKind
from analyzer.predict.event_graph import kind_of_lag
from analyzer.predict.forward import NEVER
from analyzer.predict.host_edges import CALL_UNKNOWN
from analyzer.predict.host_events import Role


def apply(draft: Draft, change: Host | NoSync) -> None:
    """Bring the change into the draft."""
    if isinstance(change, Host):
        _scale(draft, change)
    else:
        _remove_waits(draft)


def _scale(draft: Draft, change: Host) -> None:
    less = np.zeros((len(draft.host_rows), draft.lag_ns.shape[1]), np.int64)
    for kind in change.kinds:
        gone = np.rint(draft.host_ns[kind] * (1 - change.factor)).astype(np.int64)
        draft.host_ns[kind] = draft.host_ns[kind] - gone
        less += gone
    draft.set_lags(draft.host_rows, np.maximum(draft.lag_ns[draft.host_rows] - less, 0))


def _remove_waits(draft: Draft) -> None:
    """Calls that exist to wait are gone; other held calls take what they take unheld. A full queue still holds."""
    graph, table = draft.graph, draft.edges
    wait, other = np.zeros(len(graph), bool), np.zeros(len(graph), bool)
    for place in graph.ranks:
        host = place.graph.host
        returns = host.role == Role.RETURN
        wait[place.host : place.row] = returns & host.waits
        other[place.host : place.row] = returns & ~host.waits & ~host.launches
    draft.lag_ns[(table.kind == EdgeKind.HELD) & (wait | other)[table.target]] = NEVER
    own = table.kind == EdgeKind.HOST
    draft.set_lags(np.flatnonzero(own & wait[table.target]), 0)
    low, high = draft.assume("call_ns")
    unknown = np.flatnonzero(own & other[table.target] & (kind_of_lag(graph, table) == CALL_UNKNOWN))
    draft.set_lags(unknown, draft.by_end(low, high))
    draft.notes.append(
        "what the host reads after a removed wait may not be there yet: whether the program allows it is not checked"
    )
