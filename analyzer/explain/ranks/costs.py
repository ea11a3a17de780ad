"""What collectives cost the steps of a phase: measured on the path, and as calls x duration would have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.across.waits import BoolArray, Calls
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import CollectiveCost, GlobalWindow, Window
from analyzer.explain.ranks.collectives import kinds_of, steps_of
from analyzer.explain.ranks.joint_report import JointReport, used_globally
from analyzer.explain.ranks.transfers import latencies
from analyzer.explain.windows import used_windows
from analyzer.model import IntArray
from analyzer.stats import quantile
from analyzer.tables import SegmentTable

KINDS = (Category.COLLECTIVE_TRANSFER, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_UNSPLIT)
Key = tuple[int, str]
"""A group, by its place among the groups, and an operation."""


@dataclass(frozen=True)
class _Steps:
    """The steps of a phase that its budget rests on: of all ranks together, or of one."""

    phase: str
    rank: int | None
    windows: Sequence[GlobalWindow] | Sequence[Window]
    path_ns: Mapping[Key, IntArray]  # by KINDS

    @property
    def total_ns(self) -> int:
        return sum(window.end_ns - window.start_ns for window in self.windows)

    @property
    def wanted(self) -> list[int]:
        return [window.index for window in self.windows]


@dataclass(frozen=True)
class _Known:
    """What does not depend on the phase, by group: the (k,) size, transfer and step of each call.

    ``steps``: by rank, None all together.
    """

    bytes: list[IntArray]
    transfer_ns: list[IntArray]
    steps: Mapping[int | None, list[IntArray]]


def collective_costs(joint: JointReport, phases: Sequence[str]) -> list[CollectiveCost]:
    """Rows of every phase, the largest product first: over all ranks, or of each where there is no common path."""
    known = _known(joint)
    return [row for phase in phases for steps in _steps(joint, phase) for row in _rows(joint, steps, known)]


def _known(joint: JointReport) -> _Known:
    parts = {report.rank.rank: report.part for report in joint.reports}
    of_window: dict[int | None, dict[int, dict[int, int]]] = {}
    if joint.paths is not None:
        for window in joint.paths.account.windows:
            for rank, at in window.windows.items():
                of_window.setdefault(None, {}).setdefault(rank, {})[at] = window.index
    else:
        for report in joint.reports:
            own = {window.index: window.index for window in report.rank.windows}
            of_window[report.rank.rank] = {report.rank.rank: own}
    groups = joint.joint.calls
    return _Known(
        [
            np.array([-1 if kind.bytes is None else kind.bytes for kind in kinds_of(calls, parts)], np.int64)
            for calls in groups
        ],
        [latencies(calls, parts) if len(calls) else np.empty(0, np.int64) for calls in groups],
        {
            rank: [steps_of(calls, np.arange(len(calls)), parts, windows) for calls in groups]
            for rank, windows in of_window.items()
        },
    )


def _steps(joint: JointReport, phase: str) -> Iterator[_Steps]:
    if joint.paths is not None:
        windows = used_globally(joint.paths, phase)
        if windows:
            wanted = [window.index for window in windows]
            path = _path(joint, joint.paths.segments, joint.paths.arrival, wanted)
            yield _Steps(phase, None, windows, path)
        return
    first = 0
    for report, length in zip(joint.reports, joint.segment_counts, strict=True):
        used, here = used_windows(report.rank, phase), slice(first, first + length)
        first += length
        if used:
            path = _path(joint, joint.segments, report.arrival, [window.index for window in used], here)
            yield _Steps(phase, report.rank.rank, used, path)


def _path(
    joint: JointReport,
    table: SegmentTable,
    arrival: IntArray,
    windows: Sequence[int],
    rows: slice = slice(None),
) -> dict[Key, IntArray]:
    """Path time of collectives in some windows. ``arrival``: of the rows of the slice."""
    found: dict[Key, IntArray] = {}
    chosen = (arrival >= 0) & np.isin(table.window[rows], windows) & np.isin(table.category[rows], KINDS)
    length = (table.end_ns[rows] - table.start_ns[rows])[chosen]
    ranks, kinds = table.rank[rows][chosen].tolist(), table.category[rows][chosen].tolist()
    for rank, at, kind, ns in zip(ranks, arrival[chosen].tolist(), kinds, length.tolist(), strict=True):
        waits = joint.joint.waits[rank]
        group, call = int(waits.group[at]), int(waits.call[at])
        if group >= 0:
            key = group, joint.joint.calls[group].operation[call]
            found.setdefault(key, np.zeros(len(KINDS), np.int64))[KINDS.index(kind)] += ns
    return found


def _rows(joint: JointReport, steps: _Steps, known: _Known) -> list[CollectiveCost]:
    rows = []
    for group, calls in enumerate(joint.joint.calls):
        if not len(calls) or (steps.rank is not None and steps.rank not in calls.group.members):
            continue
        inside = np.flatnonzero(np.isin(known.steps[steps.rank][group], steps.wanted))
        operation = np.array(calls.operation, dtype=object)[inside]
        for op in sorted(set(operation.tolist())):
            rows.append(_cost(calls, steps, group, op, inside[operation == op], known))
    return sorted(rows, key=lambda row: (-row.naive_ns_total, row.group, row.op))


def _of_ranks(duration: IntArray, present: BoolArray) -> IntArray:
    """(k,) median (the lower) over the ranks (k, m) that recorded each call."""
    ordered = np.sort(np.where(present, duration, np.iinfo(np.int64).max), axis=1)
    middle = (np.maximum(present.sum(axis=1), 1) - 1) // 2
    return np.asarray(np.take_along_axis(ordered, middle[:, None], axis=1)[:, 0], np.int64)


def _cost(calls: Calls, steps: _Steps, group: int, op: str, rows: IntArray, known: _Known) -> CollectiveCost:
    duration, present = calls.end_ns - calls.start_ns, calls.present
    if steps.rank is not None:
        only = np.arange(len(calls.group.members)) == calls.group.members.index(steps.rank)
        present = present & only
    naive, transfers, sizes = 0, [], known.bytes[group]
    for size in np.unique(sizes[rows]).tolist():
        mine = rows[sizes[rows] == size]
        split = mine[calls.split[mine]]
        moved = known.transfer_ns[group][split]
        if size < 0:  # of several sizes, whose median may be that of none: each call by itself
            naive += int(_of_ranks(duration[mine], present[mine]).sum())
            transfers.append(len(mine) * int(moved.sum()) // len(split) if len(split) else None)
        else:
            naive += len(mine) * quantile(duration[mine][present[mine]], 0.5)
            transfers.append(len(mine) * quantile(moved, 0.5) if len(split) else None)
    path = steps.path_ns.get((group, op), np.zeros(len(KINDS), np.int64))
    return CollectiveCost(
        phase=steps.phase,
        scope="global" if steps.rank is None else "rank",
        rank=steps.rank,
        group=calls.group.label,
        op=op,
        windows=len(steps.windows),
        step_ns_total=steps.total_ns,
        calls=len(rows),
        calls_per_step=len(rows) / len(steps.windows),
        median_duration_ns=quantile(duration[rows][present[rows]], 0.5),
        naive_ns_total=naive,
        naive_transfer_ns_total=None if None in transfers else sum(ns for ns in transfers if ns is not None),
        path_ns_total={CATEGORY_NAMES[kind]: int(path[at]) for at, kind in enumerate(KINDS)},
    )
