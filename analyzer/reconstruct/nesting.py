"""Which record is innermost at each instant of one thread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyzer.model import HostTable, IntArray

BoolArray = npt.NDArray[np.bool_]


def innermost(start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray, int]:
    """Flatten nested intervals of one thread.

    Input rows are sorted by (start, -end, position). Returns ``(bounds, owner, crossings)``: from
    ``bounds[i]`` until ``bounds[i + 1]`` row ``owner[i]`` is innermost (-1 none); before the first and
    after the last bound nothing is recorded. Crossing intervals (clock rounding) are cut at the end of
    the one they began in, and counted. Empty intervals own no time.
    """
    rows = np.flatnonzero(end_ns > start_ns)
    if not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.int64), 0
    start, end = start_ns[rows], end_ns[rows]
    times, opening, who = _boundaries(start, end)
    depth = np.cumsum(np.where(opening, 1, -1))
    owner = _owner_at_depth(depth, opening, who)
    crossings = 0
    if _crosses(opening, who, owner):
        end, crossings = _cut(start, end)
        keep = end > start
        rows, start, end = rows[keep], start[keep], end[keep]
        times, opening, who = _boundaries(start, end)
        depth = np.cumsum(np.where(opening, 1, -1))
        owner = _owner_at_depth(depth, opening, who)
    last = np.append(times[1:] != times[:-1], True)  # of several bounds at one instant the last holds
    owner = np.where(owner[last] >= 0, rows[owner[last]], -1)
    return times[last], owner, crossings


def enclosed(host: HostTable, rows: IntArray, outer: IntArray) -> BoolArray:
    """(k,) whether each of ``rows`` lies inside one of ``outer`` on its thread.

    Both are host rows in table order; no two of ``outer`` on one thread overlap.
    """
    if not len(outer):
        return np.zeros(len(rows), bool)
    before = outer[np.maximum(np.searchsorted(outer, rows) - 1, 0)]
    same = (before < rows) & (host.thread[before] == host.thread[rows])
    return np.asarray(same & (host.end_ns[rows] <= host.end_ns[before]), bool)


def _boundaries(start: IntArray, end: IntArray) -> tuple[IntArray, BoolArray, IntArray]:
    """All starts and ends in time order; at one instant inner ends, outer ends, outer starts, inner starts."""
    n = len(start)
    index = np.arange(n)
    times = np.concatenate((start, end))
    opening = np.concatenate((np.ones(n, bool), np.zeros(n, bool)))
    who = np.concatenate((index, index))
    rank = np.where(opening, who, -who)
    order = np.lexsort((rank, opening, times))
    return times[order], opening[order], who[order]


def _owner_at_depth(depth: IntArray, opening: BoolArray, who: IntArray) -> IntArray:
    """After each boundary the interval that was opened last at the current depth, -1 at depth 0."""
    order = np.argsort(depth, kind="stable")
    level = depth[order]
    mark = np.where(opening[order], np.arange(len(order)), -1)
    fresh = np.diff(level, prepend=level[0] - 1) != 0
    base = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    latest = np.maximum.accumulate(np.where(mark >= 0, mark, -1))
    valid = (latest >= base) & (level > 0)
    owner = np.full(len(order), -1, np.int64)
    owner[order] = np.where(valid, who[order[np.maximum(latest, 0)]], -1)
    return owner


def _crosses(opening: BoolArray, who: IntArray, owner: IntArray) -> bool:
    """Whether some interval ends while another than itself is innermost."""
    before = np.concatenate(([-1], owner[:-1]))
    return bool(np.any(~opening & (before != who)))


def _cut(start: IntArray, end: IntArray) -> tuple[IntArray, int]:
    """Ends cut so that intervals nest; only for threads that cross."""
    cut = end.copy()
    stack: list[int] = []
    crossings = 0
    starts, ends = start.tolist(), end.tolist()
    for row, begin in enumerate(starts):
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack and ends[row] > ends[stack[-1]]:
            ends[row] = ends[stack[-1]]
            cut[row] = ends[row]
            crossings += 1
        if ends[row] > begin:
            stack.append(row)
    return cut, crossings
