"""Order inside CUDA graph replays: fork-join on the launch stream (attribution contract, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray, Calls, Work, group_indices


@dataclass(frozen=True)
class Replays:
    """One row per graph launch that brought device work, in launch order; node columns are per work row."""

    call: IntArray  # (r,) index into Calls
    lane: IntArray  # (r,) launch stream, recorded or inferred
    lane_inferred: BoolArray
    start_ns: IntArray  # (r,) first node
    last: IntArray  # (r,) row that ends last, on a tie the later in the total order
    previous: IntArray  # (r,) earlier replay of the same executable graph, -1 none or unknown
    is_root: BoolArray  # (n,) node that no node of its replay ended before
    inner: IntArray  # (n,) node that binds an inner node, -1 for roots and eager rows
    inner_inferred: BoolArray

    def __len__(self) -> int:
        return len(self.call)


def find_replays(work: Work, calls: Calls, turnaround_ns: int) -> Replays:
    """Group rows by graph launch and bind the nodes among themselves."""
    nodes = np.flatnonzero(work.replay >= 0)
    inner = np.full(len(work), -1, np.int64)
    inferred = np.zeros(len(work), bool)
    is_root = np.zeros(len(work), bool)
    if not len(nodes):
        nothing = np.empty(0, np.int64)
        return Replays(
            nothing, nothing, nothing.astype(bool), nothing, nothing, nothing, is_root, inner, inferred
        )
    order = nodes[np.lexsort((nodes, work.replay[nodes]))]
    opens = np.flatnonzero(np.diff(work.replay[order], prepend=-1))
    first_end = np.minimum.reduceat(work.end_ns[order], opens)
    is_root[nodes] = first_end[work.replay[nodes]] > work.start_ns[nodes]
    _bind_inner(work, order, turnaround_ns, is_root, inner, inferred)
    groups = np.split(order, opens[1:])
    last = np.array([rows[len(rows) - 1 - np.argmax(work.end_ns[rows[::-1]])] for rows in groups], np.int64)
    lane, lane_inferred = _launch_lanes(work, calls, groups)
    return Replays(
        call=work.launch[order[opens]],
        lane=lane,
        lane_inferred=lane_inferred,
        start_ns=work.start_ns[order[opens]],
        last=last,
        previous=_previous(work, order[opens]),
        is_root=is_root,
        inner=inner,
        inner_inferred=inferred,
    )


def _bind_inner(
    work: Work,
    order: IntArray,
    turnaround_ns: int,
    is_root: BoolArray,
    inner: IntArray,
    inferred: BoolArray,
) -> None:
    """Same stream if that gap is at most the turnaround, else the latest end inside the replay."""
    by_lane = order[np.lexsort((order, work.lane[order], work.replay[order]))]
    same = (np.diff(work.replay[by_lane]) == 0) & (np.diff(work.lane[by_lane]) == 0)
    before, after = by_lane[:-1][same], by_lane[1:][same]
    close = work.start_ns[after] - work.end_ns[before] <= turnaround_ns
    inner[after[close]] = before[close]
    open_nodes = order[(inner[order] < 0) & ~is_root[order]]
    if not len(open_nodes):
        return
    base = int(work.start_ns[order].min())
    span = int(work.end_ns[order].max()) - base + 1
    replay = work.replay[order]
    # One sorted key per (replay, end): replays are ordinals, so the product stays far below 2**63.
    key = replay * span + (work.end_ns[order] - base)
    by_key = np.argsort(key, kind="stable")
    wanted = work.replay[open_nodes] * span + (work.start_ns[open_nodes] - base)
    at = np.searchsorted(key[by_key], wanted, side="right") - 1
    candidate = order[by_key[np.maximum(at, 0)]]
    fits = (at >= 0) & (work.replay[candidate] == work.replay[open_nodes]) & (candidate < open_nodes)
    inner[open_nodes[fits]] = candidate[fits]
    # behind the last node of its own stream nothing is guessed, however long the gap is
    inferred[open_nodes[fits]] = work.lane[candidate[fits]] != work.lane[open_nodes[fits]]
    is_root[open_nodes[~fits]] = True


def _launch_lanes(work: Work, calls: Calls, groups: list[IntArray]) -> tuple[IntArray, BoolArray]:
    """The stream that each graph was launched on.

    Not recorded with node rows. A node stream that also carries eager work is taken as recorded order;
    failing that, the stream most used by the launching thread's eager work (inferred).
    """
    eager = np.flatnonzero((work.replay < 0) & work.linked)
    eager_lanes = np.unique(work.lane[eager])
    by_thread: dict[int, int] = {}
    for thread, rows in group_indices(calls.thread[work.launch[eager]]).items():
        lanes, counts = np.unique(work.lane[eager[rows]], return_counts=True)
        by_thread[thread] = int(lanes[np.argmax(counts)])
    lane = np.empty(len(groups), np.int64)
    guessed = np.zeros(len(groups), bool)
    for at, rows in enumerate(groups):
        used, counts = np.unique(work.lane[rows], return_counts=True)
        shared = np.isin(used, eager_lanes)
        if shared.any():
            lane[at] = used[shared][np.argmax(counts[shared])]
        else:
            fallback = by_thread.get(int(calls.thread[work.launch[rows[0]]]))
            lane[at] = work.lane[rows[0]] if fallback is None else fallback
            guessed[at] = fallback is not None
    return lane, guessed


def _previous(work: Work, first_rows: IntArray) -> IntArray:
    """Earlier replay of the same executable: an executable graph never runs twice at once."""
    executable = work.table.graph_exec[first_rows]
    previous = np.full(len(first_rows), -1, np.int64)
    for rows in group_indices(executable).values():
        if executable[rows[0]] >= 0:
            previous[rows[1:]] = rows[:-1]
    return previous
