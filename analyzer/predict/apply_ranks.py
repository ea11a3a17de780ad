"""A change of whole ranks: none slower than the median of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.errors import UsageError
from analyzer.model import IntArray
from analyzer.predict.changes import CPU
from analyzer.predict.draft import Draft
from analyzer.predict.event_graph import EventGraph

FloatArray = npt.NDArray[np.float64]


def even_ranks(draft: Draft) -> None:
    """Per step, CPU time and kernels of a rank that has more of them than the median shrink to the median's.

    Raises UsageError with fewer than three ranks: the slower of two is no exception.
    """
    graph = draft.graph
    if len(graph.ranks) < 3:
        raise UsageError(
            "--change", "even-ranks", f"{len(graph.ranks)} ranks have no median to be even with",
            "give the captures of all ranks",
        )  # fmt: skip
    cells = _cells(graph)
    table, rows = draft.edges, draft.host_rows
    spent = sum(draft.host_ns[kind][:, 0] for kind in CPU)
    of_edge = cells.of[table.target[rows]]
    host = _factors(cells, of_edge, np.asarray(spent, np.int64))
    less = np.zeros((len(rows), draft.lag_ns.shape[1]), np.int64)
    for kind in CPU:
        gone = np.rint(draft.host_ns[kind] * (1 - host[of_edge])[:, None]).astype(np.int64)
        draft.host_ns[kind] = draft.host_ns[kind] - gone
        less += gone
    draft.set_lags(rows, np.maximum(draft.lag_ns[rows] - less, 0))
    kernels = np.concatenate([place.rows(np.flatnonzero(place.graph.rows.scalable)) for place in graph.ranks])
    device = _factors(cells, cells.of[kernels], draft.body_ns[kernels, 0])
    draft.body_ns[kernels] = np.rint(draft.body_ns[kernels] * device[cells.of[kernels]][:, None]).astype(
        np.int64
    )


@dataclass(frozen=True)
class _Cells:
    """(s,) which rank and step each event belongs to, as one number; ``shape``: ranks and steps."""

    of: IntArray
    shape: tuple[int, int]


def _cells(graph: EventGraph) -> _Cells:
    """By step where all ranks cover the same steps, else the whole replay as one."""
    covers = {(place.graph.first, place.graph.last, place.graph.windows) for place in graph.ranks}
    steps = max(place.graph.windows for place in graph.ranks) + 1 if len(covers) == 1 else 1
    of: IntArray = np.zeros(len(graph), np.int64)
    for at, place in enumerate(graph.ranks):
        windows = (
            np.concatenate((place.graph.host_window, place.graph.rows.window)) + 1
        )  # -1: before the first
        of[place.host : place.row + len(place.graph.rows)] = at * steps + (windows if steps > 1 else 0)
    return _Cells(of, (len(graph.ranks), steps))


def _factors(cells: _Cells, of: IntArray, spent_ns: IntArray) -> FloatArray:
    """(ranks x steps,) by how much each shrinks; 1 for those at or below the median of the ranks."""
    total = np.bincount(of, spent_ns, cells.shape[0] * cells.shape[1]).reshape(cells.shape)
    middle = np.median(total, axis=0, keepdims=True)
    factors = np.where(total > middle, middle / np.maximum(total, 1), 1.0)
    return np.asarray(factors.reshape(-1), np.float64)
