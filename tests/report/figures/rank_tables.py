"""Literal steps of several ranks that wait for one another in collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analyzer.analysis import Analysis
from analyzer.categories import Binding, Category
from analyzer.diagnosis import Diagnosis, GlobalAccount, GlobalWindow
from analyzer.tables import NO_EVENT, SegmentTable
from tests.report import builder
from tests.report.builder import MS
from tests.report.joint_builder import global_window

KERNEL, WAIT, TRANSFER = Category.KERNEL, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER
Row = tuple[int, int, int, int, int, int]
"""Rank, window, start and end in ns, category, late rank."""


def segment_table(rows: Sequence[Row]) -> SegmentTable:
    return _table(sorted(rows, key=lambda row: row[:3]))


def global_table(rows: Sequence[Row]) -> SegmentTable:
    """Like ``segment_table``, in the order of a path through all ranks."""
    return _table(sorted(rows, key=lambda row: row[1:3]))


def _table(rows: Sequence[Row]) -> SegmentTable:
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    n = columns.shape[1]
    return SegmentTable(
        rank=columns[0].astype(np.int32),
        window=columns[1].astype(np.int32),
        start_ns=columns[2],
        end_ns=columns[3],
        category=columns[4].astype(np.int8),
        binding=np.full(n, Binding.WORK, np.int8),
        inferred=np.zeros(n, bool),
        name=np.full(n, -1, np.int32),
        place=np.full(n, -1, np.int32),
        correlation=np.zeros(n, np.int64),
        event_start_ns=np.full(n, NO_EVENT, np.int64),
        late_rank=columns[5].astype(np.int32),
        names=(),
        places=(),
    )


def window(index: int = 0, ranks: int = 2, **changes: Any) -> GlobalWindow:
    """A step of ranks that wait for nobody."""
    values: dict[str, Any] = {
        "start_ns": index * 10 * MS,
        "end_ns": (index + 1) * 10 * MS,
        "path_ns": builder.path(),
        "windows": dict.fromkeys(range(ranks), index),
        "last_rank": 0,
        "ranks_visited": [0],
        "rank_ns": {rank: 10 * MS if rank == 0 else 0 for rank in range(ranks)},
        "late_ranks": [],
        "late_calls": {},
        "late_wait_ns": {},
        "waited_ns": 0,
        "waited_at_most_ns": 0,
        "launch_stagger_ns": None,
    }
    return global_window(index, **{**values, **changes})


def account(*windows: GlobalWindow) -> GlobalAccount:
    return GlobalAccount(reference_rank=0, windows=list(windows))


def joint(
    ranks: int = 4,
    calls: int = 5,
    late: Callable[[int], int] = lambda _: 2,
    span_ns: int = 10 * MS,
    share: float = 0.4,
    text: str = "decode 7",
    start_ns: int = 20 * MS,
    **changes: Any,
) -> Analysis:
    """One step of ``calls`` equal parts: kernels, in which rank ``late(call)`` is last, then a collective.

    The others wait for it over ``share`` of each part; the collective itself takes a tenth. Ends on rank 0.
    """
    edges = [start_ns + span_ns * at // calls for at in range(calls + 1)]
    own: list[Row] = []
    path: list[Row] = []
    for call in range(calls):
        low, high = edges[call], edges[call + 1]
        came = high - (high - low) // 10
        others = came - round((high - low) * share)
        for rank in range(ranks):
            mine = came if rank == late(call) else others
            own.append((rank, 0, low, mine, KERNEL, -1))
            if mine < came:
                own.append((rank, 0, mine, came, WAIT, late(call)))
            own.append((rank, 0, came, high, TRANSFER, -1))
        after = late(call + 1) if call + 1 < calls else 0
        path += [(late(call), 0, low, came, KERNEL, -1), (after, 0, came, high, TRANSFER, -1)]
    visited = [row[0] for row in path]
    changed = [at for at in range(len(visited)) if not at or visited[at] != visited[at - 1]]
    calls_of = {rank: sum(late(call) == rank for call in range(calls)) for rank in range(ranks)}
    calls_of = {rank: number for rank, number in calls_of.items() if number}
    values: dict[str, Any] = {
        "step": text,
        "phase": text,
        "start_ns": start_ns,
        "end_ns": start_ns + span_ns,
        "windows": dict.fromkeys(range(ranks), 0),
        "ranks_visited": [visited[at] for at in changed],
        "rank_ns": {rank: sum(r[3] - r[2] for r in path if r[0] == rank) for rank in range(ranks)},
        "late_ranks": sorted(calls_of, key=lambda rank: (-calls_of[rank], rank)),
        "late_calls": calls_of,
        "waited_ns": round(span_ns * share),
    }
    step = window(**{**values, **changes})
    return analysis(step, own, path)


def analysis(step: GlobalWindow, own: Sequence[Row], path: Sequence[Row]) -> Analysis:
    """One step with the ranks' own paths and the path through all of them."""
    diagnosis: Diagnosis = builder.diagnosis(
        ranks=[builder.rank(rank) for rank in sorted(step.windows)], global_=account(step)
    )
    return Analysis(diagnosis, segment_table(own), global_segments=global_table(path))
