"""A rank's own path as the cross-rank timeline shows it: without holes, and in pixels."""

from __future__ import annotations

import numpy as np

from analyzer.model import IntArray
from analyzer.report.figures.lanes import Runs


def partition(
    start: IntArray, end: IntArray, window: IntArray, low: int, high: int
) -> tuple[IntArray, IntArray, IntArray]:
    """``[low, high)`` cut into a rank's segments and what lies between them: (row, start, end) of each part.

    ``window``: 0 for the rank's own step, which goes first where steps overlap, negative before it. Row is
    len(start) where the rank has no segment.
    """
    own = window == 0
    own_low = int(start[own].min()) if own.any() else high
    own_high = int(end[own].max()) if own.any() else low
    since = np.clip(np.where(window > 0, np.maximum(start, own_high), start), low, high)
    until = np.clip(np.where(window < 0, np.minimum(end, own_low), end), low, high)
    order = np.lexsort((until, since))
    since, until = since[order], until[order]
    reached = np.maximum.accumulate(np.append(low, until))
    since = np.maximum(since, reached[:-1])
    kept = until > since
    order, since, until = order[kept], since[kept], until[kept]
    before, after = np.append(low, until), np.append(since, high)
    blank = after > before
    row = np.append(order, np.full(int(blank.sum()), len(start)))
    since, until = np.append(since, before[blank]), np.append(until, after[blank])
    sorted_ = np.argsort(since, kind="stable")
    return row[sorted_], since[sorted_], until[sorted_]


def shared_out(start_ns: IntArray, end_ns: IntArray, look: IntArray, late: IntArray, columns: int) -> Runs:
    """The path in ``columns`` pixels of one look and late rank (``lane``) each; times since its start.

    The segments are a partition in time order. A pixel shows something that lies in it, and what it hides of
    the rest counts in the next pixels: so a thousand short waits are drawn as the share of the time that they
    are, and what is wider than a few pixels stays where it is.
    """
    zero, span = int(start_ns[0]), int(end_ns[-1] - start_ns[0])
    columns = max(1, min(columns, span))
    edges = span * np.arange(columns + 1, dtype=np.int64) // columns
    bounds = np.unique(np.concatenate([edges, start_ns - zero]))
    owner = np.searchsorted(start_ns - zero, bounds[:-1], "right") - 1
    pixel = np.searchsorted(edges, bounds[:-1], "right") - 1
    kinds, kind = np.unique(np.stack([look, late], axis=1), axis=0, return_inverse=True)
    time = np.zeros((columns, len(kinds)), np.int64)
    np.add.at(time, (pixel, kind.reshape(-1)[owner]), np.diff(bounds))
    owed = np.zeros(len(kinds), np.int64)
    shown = np.empty(columns, np.int64)
    for at in range(columns):
        owed += time[at]
        shown[at] = np.argmax(np.where(time[at] > 0, owed, np.iinfo(np.int64).min))
        owed[shown[at]] -= edges[at + 1] - edges[at]
    opens = np.flatnonzero(np.append(True, shown[1:] != shown[:-1]))
    drawn = kinds[shown[opens]]
    return Runs(edges[opens], np.append(edges[opens[1:]], span), drawn[:, 0], drawn[:, 1])
