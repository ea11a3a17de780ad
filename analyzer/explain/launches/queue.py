"""How far the CPU runs ahead of the device, over the windows of a rank in equal bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from analyzer.arrays import distinct
from analyzer.explain.launches.submissions import Submissions
from analyzer.model import IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.tables import QueueTable

BINS = 600
"""At most so many bins per rank: more than a figure has columns of pixels to tell apart."""
_COLUMNS = tuple(field.name for field in fields(QueueTable))


def queue_table(account: RankAccount, rank: int) -> QueueTable:
    """Depth and launch latency from the start of the first window to the end of the last.

    Depth counts submissions: one per launch call whose work is recorded, a replay once. Launches are
    kernel and graph launches that begin in the bin. Empty without device work or windows.
    """
    low = min((window.start_ns for window in account.windows), default=0)
    high = max((window.end_ns for window in account.windows), default=0)
    bins = min(BINS, high - low) if len(account.work) else 0
    if bins <= 0:
        return _table(rank, *(np.empty(0, np.int64) for _ in _COLUMNS[1:]))
    edges = low + (high - low) * np.arange(bins + 1, dtype=np.int64) // bins
    submissions = Submissions(account.work, account.calls)
    depth = _depth(submissions, edges)
    return _table(rank, edges[:-1], edges[1:], *depth, *_latencies(submissions, edges))


def _depth(submissions: Submissions, edges: IntArray) -> tuple[IntArray, IntArray]:
    """Lowest and highest depth in each bin; of several changes at one instant only the sum is seen."""
    instants = np.concatenate((*submissions.changes, edges[:-1]))
    instants = distinct(instants[(instants >= edges[0]) & (instants < edges[-1])])
    depth = submissions.depth_at(instants)
    opens = np.searchsorted(instants, edges[:-1])
    return np.minimum.reduceat(depth, opens), np.maximum.reduceat(depth, opens)


def _latencies(submissions: Submissions, edges: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Launches, lowest, median (lower of two) and highest latency in each bin, -1 without a launch."""
    bins = len(edges) - 1
    start = submissions.calls.start_ns
    call = np.flatnonzero(submissions.launched & (start >= edges[0]) & (start < edges[-1]))
    of_call = np.searchsorted(edges, start[call], "right") - 1
    latency = submissions.latency_ns(call)
    ordered = latency[np.lexsort((latency, of_call))]
    count = np.bincount(of_call, minlength=bins)
    first = np.cumsum(count) - count
    columns = []
    for at in (first, first + (count - 1) // 2, first + count - 1):
        column = np.full(bins, -1, np.int64)
        column[count > 0] = ordered[at[count > 0]]
        columns.append(column)
    return count, columns[0], columns[1], columns[2]


def _table(rank: int, *columns: IntArray) -> QueueTable:
    return QueueTable(np.full(len(columns[0]), rank, np.int32), *columns)


def join_queues(tables: Sequence[QueueTable]) -> QueueTable:
    """The tables of several ranks as one, in their order."""

    def column(name: str) -> IntArray:
        return np.concatenate([np.empty(0, np.int64), *(getattr(table, name) for table in tables)])

    rank, *others = (column(name) for name in _COLUMNS)
    return QueueTable(rank.astype(np.int32), *others)
