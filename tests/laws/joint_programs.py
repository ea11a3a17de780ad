"""Simulated runs of several ranks through the whole analyzer, and what to compare of the joint answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.tables import SegmentTable
from fixtures.simulator import program as p
from fixtures.simulator.recording import CAPTURE_EPOCH_NS
from fixtures.simulator.run import Run
from fixtures.simulator.truth import Segment, Truth
from tests.laws.programs import merged

Place = tuple[int, int, str]
HONEST = ("unattributed", "collective.unsplit")
"""Labels that claim nothing."""


def zero_of(analysis: Analysis) -> int:
    """The diagnosis' zero on the simulator's clock."""
    assert analysis.diagnosis.time_zero_ns is not None
    return int(analysis.diagnosis.time_zero_ns) - CAPTURE_EPOCH_NS


def global_path(analysis: Analysis, window: int | None = None) -> list[Place]:
    """The path through all ranks, labels ``category@rank``; of one window or of all."""
    table = analysis.global_segments
    assert table is not None
    rows = slice(None) if window is None else table.window == window
    return _pieces(table, rows, zero_of(analysis))


def own_path(analysis: Analysis, rank: int, window: int | None = None) -> list[Place]:
    """One rank's own path with its collectives split, the same way."""
    table = analysis.segment_table
    assert table is not None
    rows = table.rank == rank if window is None else (table.rank == rank) & (table.window == window)
    return _pieces(table, rows, zero_of(analysis))


def _pieces(table: SegmentTable, rows: object, zero: int) -> list[Place]:
    columns = (table.start_ns[rows], table.end_ns[rows], table.category[rows], table.rank[rows])  # type: ignore[index]
    return merged(
        (start + zero, end + zero, f"{CATEGORY_NAMES[Category(category)]}@{rank}")
        for start, end, category, rank in zip(*(column.tolist() for column in columns), strict=True)
    )


def of_truth(path: Iterable[Segment]) -> list[Place]:
    """A true path with the same labels."""
    return merged((s.start_ns, s.end_ns, f"{CATEGORY_NAMES[s.category]}@{s.rank}") for s in path)


def true_global(truth: Truth, window: int) -> list[Place]:
    """The true path through all ranks."""
    return of_truth(truth.global_paths[window][1])


def true_split(truth: Truth, rank: int, window: int) -> list[Place]:
    """One rank's true path with its collectives split."""
    return of_truth(truth.ranks[rank][window].split)


def differences(mine: list[Place], true: list[Place]) -> list[tuple[int, str, str]]:
    """(ns, true label, label) of all time in which two paths differ; where both are known."""
    if not mine or not true:
        return []
    low, high = max(mine[0][0], true[0][0]), min(mine[-1][1], true[-1][1])
    cuts = sorted({min(max(edge, low), high) for piece in mine + true for edge in piece[:2]})
    starts = [[piece[0] for piece in path] for path in (mine, true)]

    def label(which: int, path: list[Place], instant: int) -> str:
        return path[max(bisect_right(starts[which], instant) - 1, 0)][2]

    found = []
    for begin, end in pairwise(cuts):
        is_, was = label(0, mine, begin), label(1, true, begin)
        if is_ != was:
            found.append((end - begin, was, is_))
    return found


def wrong_ns(mine: list[Place], true: list[Place]) -> int:
    """Time with a wrong label; labels that claim nothing are not wrong."""
    return sum(ns for ns, _, label in differences(mine, true) if not label.startswith(HONEST))


def inside(path: list[Place], low: int, high: int) -> list[Place]:
    """The part of a path within ``[low, high)``."""
    return [(max(a, low), min(b, high), label) for a, b, label in path if min(b, high) > max(a, low)]


def one_way(run: Run) -> bool:
    """Whether the run has sends and receives, whose senders are never called waiting."""
    return any(isinstance(work.op, p.Collective) and work.op.op in ("send", "recv") for work in run.works)
