"""Device work of one rank, matched to the calls that launched it, in the one total order.

Input is a :class:`Trace`; output is :class:`Work`, the table that every later stage indexes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from analyzer.categories import Category
from analyzer.cuda_api import CallKind, call_kind
from analyzer.model import (
    CopyKind,
    DeviceKind,
    DeviceTable,
    HostKind,
    IntArray,
    ProcessTrace,
    SmallArray,
    Trace,
)
from analyzer.rules import Rules, builtin_rules

BoolArray = npt.NDArray[np.bool_]

NO_TIME = np.iinfo(np.int64).min // 4
"""Stands for "no instant": earlier than any event, and safe to add to."""

OVERRUN_FLOOR_NS = 1_000_000
"""A duration is called corrupt only when it overruns its stream's next start by more than this."""


@dataclass(frozen=True)
class Calls:
    """CUDA calls of one process, (m,) columns sorted by (thread, start); ``row`` indexes the host table."""

    row: IntArray
    start_ns: IntArray
    end_ns: IntArray
    thread: npt.NDArray[np.int32]
    kind: SmallArray  # CallKind
    correlation: IntArray
    result: IntArray

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def by_correlation(self) -> tuple[IntArray, IntArray]:
        """Sorted distinct correlation ids and, for each, the outermost call that carries it."""
        used = np.flatnonzero(self.correlation != 0)
        order = used[np.lexsort((-self.end_ns[used], self.start_ns[used], self.correlation[used]))]
        ids, first = np.unique(self.correlation[order], return_index=True)
        return ids, order[first]

    def of_thread(self, thread: int) -> slice:
        """Positions of one thread's calls: the table is sorted by thread."""
        low, high = np.searchsorted(self.thread, [thread, thread + 1])
        return slice(int(low), int(high))

    def find(self, correlation: IntArray) -> IntArray:
        """(n,) int64: index of the outermost call of each correlation id, -1 where none is recorded."""
        ids, calls = self.by_correlation
        found = np.full(len(correlation), -1, np.int64)
        if not len(ids):
            return found
        at = np.minimum(np.searchsorted(ids, correlation), len(ids) - 1)
        hit = (ids[at] == correlation) & (correlation != 0)
        found[hit] = calls[at[hit]]
        return found


def calls_of(process: ProcessTrace) -> Calls:
    """The process's CUDA calls with the role that each name proposes."""
    host = process.host
    row = np.flatnonzero(host.kind == HostKind.CALL)
    names, inverse = np.unique(host.name[row], return_inverse=True)
    kinds = np.array([call_kind(process.names[code]) if code >= 0 else 0 for code in names], np.int8)
    return Calls(
        row=row,
        start_ns=host.start_ns[row],
        end_ns=host.end_ns[row],
        thread=host.thread[row],
        kind=kinds[inverse] if len(row) else np.empty(0, np.int8),
        correlation=host.correlation[row],
        result=host.result[row],
    )


@dataclass(frozen=True)
class Work:
    """Device work in total order (start, end, launch time, name, position); (n,) columns."""

    table: DeviceTable
    launch: IntArray  # index into Calls, -1 no launch record
    launch_ns: IntArray  # start of the launching call, NO_TIME without one
    label: SmallArray  # Category: KERNEL, COPY, GRAPH_UNRESOLVED, PRIOR_WORK, COLLECTIVE_UNSPLIT
    own_label: SmallArray  # the same without PRIOR_WORK
    prior: BoolArray
    migration: BoolArray  # unified-memory migrations: driver work that nobody launches
    replay: IntArray  # ordinal of the graph launch that brought the row, -1 eager
    clipped_ns: IntArray  # how much of a corrupt duration was cut off

    def __len__(self) -> int:
        return len(self.table)

    @property
    def start_ns(self) -> IntArray:
        """(n,) int64, ns, sorted."""
        return self.table.start_ns

    @property
    def end_ns(self) -> IntArray:
        """(n,) int64, ns."""
        return self.table.end_ns

    @property
    def lane(self) -> npt.NDArray[np.int32]:
        """(n,) int32 index into ``ProcessTrace.lanes``."""
        return self.table.lane

    @property
    def linked(self) -> BoolArray:
        """(n,) bool: has a launch record."""
        return self.launch >= 0

    @cached_property
    def kernels(self) -> BoolArray:
        """(n,) kernels recorded one by one; those that copy or fill memory count as copies."""
        return np.asarray(
            (self.table.kind == DeviceKind.KERNEL) & (self.own_label != Category.COPY), np.bool_
        )

    @cached_property
    def submitted_ns(self) -> IntArray:
        """(n,) int64: when the row had been submitted at the latest (its launch, else its own start)."""
        return np.where(self.linked, self.launch_ns, np.where(self.prior, NO_TIME, self.start_ns))

    @cached_property
    def lanes(self) -> dict[int, IntArray]:
        """Indices of each lane's rows, in total order."""
        return group_indices(self.lane)

    def shifted(self, shift_ns: int) -> Work:
        """The same work on a device clock moved by ``shift_ns``."""
        table = replace(
            self.table, start_ns=self.table.start_ns + shift_ns, end_ns=self.table.end_ns + shift_ns
        )
        return replace(self, table=table)


def group_indices(codes: npt.NDArray[np.generic]) -> dict[int, IntArray]:
    """Positions of each distinct value, ascending."""
    if not len(codes):
        return {}
    order = np.argsort(codes, kind="stable")
    values, first = np.unique(codes[order], return_index=True)
    return {int(value): part for value, part in zip(values, np.split(order, first[1:]), strict=True)}


def match(trace: Trace, calls: Calls, rules: Rules | None = None) -> Work:
    """Link device rows to calls, put them into total order, find prior work, clip corrupt durations.

    ``rules`` say which kernels communicate or copy; None: the built-in ones.
    """
    table = trace.device
    launch = calls.find(table.correlation)
    migration = np.isin(table.copy_kind, (CopyKind.UM_HTOD, CopyKind.UM_DTOH, CopyKind.UM_DTOD))
    launch[migration] = -1
    launch_ns = np.where(launch >= 0, calls.start_ns[launch] if len(calls) else NO_TIME, NO_TIME)
    end_ns, clipped_ns = clip_corrupt(table)
    order = np.lexsort((table.position, _name_ranks(table, trace.process), launch_ns, end_ns, table.start_ns))
    table = replace(table, end_ns=end_ns).take(order)
    launch, launch_ns, migration = launch[order], launch_ns[order], migration[order]
    prior = _prior(table, launch, migration, calls)
    own_label = _labels(table, trace, rules or builtin_rules())
    return Work(
        table=table,
        launch=launch,
        launch_ns=launch_ns,
        label=np.where(prior, np.int8(Category.PRIOR_WORK), own_label).astype(np.int8),
        own_label=own_label,
        prior=prior,
        migration=migration,
        replay=_replays(launch, calls),
        clipped_ns=clipped_ns[order],
    )


def _name_ranks(table: DeviceTable, process: ProcessTrace) -> IntArray:
    """Rank of each row's name in text order, so that ties do not depend on interning order."""
    codes, inverse = np.unique(table.name, return_inverse=True)
    texts = [process.names[code] if code >= 0 else "" for code in codes]
    rank = np.empty(len(codes), np.int64)
    rank[sorted(range(len(codes)), key=texts.__getitem__)] = np.arange(len(codes))
    return rank[inverse] if len(codes) else np.empty(0, np.int64)


def clip_corrupt(table: DeviceTable) -> tuple[IntArray, IntArray]:
    """End times with corrupt durations cut at their stream's next start, and what was cut.

    Corrupt: covers at least two later starts of its own stream and overruns the first of them by more
    than a millisecond *and* by more than all other work of that stream together. Overlap of two
    neighbours (programmatic dependent launch) or of branches of a graph never qualifies.
    """
    end_ns = table.end_ns.copy()
    for index in group_indices(table.lane).values():
        if len(index) < 3:
            continue
        rows = index[np.argsort(table.start_ns[index], kind="stable")]
        start, end = table.start_ns[rows], table.end_ns[rows]
        following = np.append(start[1:], np.iinfo(np.int64).max)
        own = np.minimum(end, following) - start
        overrun = np.where(end > following, end - following, 0)
        covers = np.searchsorted(start, end, side="left") - np.arange(1, len(rows) + 1)
        limit = np.maximum(OVERRUN_FLOOR_NS, own.sum() - own)
        corrupt = (covers >= 2) & (overrun > limit)
        end_ns[rows[corrupt]] = following[corrupt]
    return end_ns, table.end_ns - end_ns


def _prior(table: DeviceTable, launch: IntArray, migration: BoolArray, calls: Calls) -> BoolArray:
    """Rows that were submitted before the capture began (attribution contract, section 1)."""
    unlinked = (launch < 0) & ~migration
    prior = np.zeros(len(table), bool)
    ids, _ = calls.by_correlation
    if len(ids):
        prior |= unlinked & (table.correlation > 0) & (table.correlation < ids[0])
    for rows in group_indices(table.lane).values():
        linked = rows[launch[rows] >= 0]
        if len(linked):
            first = table.start_ns[linked].min()
            prior[rows] |= unlinked[rows] & (table.start_ns[rows] < first)
    return prior


def _labels(table: DeviceTable, trace: Trace, rules: Rules) -> SmallArray:
    label = np.full(len(table), Category.KERNEL, np.int8)
    label[table.kind == DeviceKind.GRAPH] = Category.GRAPH_UNRESOLVED
    kernels = table.kind == DeviceKind.KERNEL
    codes = np.unique(table.name[kernels])
    names = trace.process.names
    codes = codes[codes >= 0]
    collective = [code for code in codes if rules.is_collective(names[code])]
    copies = [
        code for code in codes if rules.is_copy_kernel(names[code]) or rules.is_fill_kernel(names[code])
    ]
    label[kernels & (np.isin(table.name, collective) | (table.collective >= 0))] = Category.COLLECTIVE_UNSPLIT
    label[
        (kernels & np.isin(table.name, copies)) | np.isin(table.kind, (DeviceKind.COPY, DeviceKind.SET))
    ] = Category.COPY
    return label


def _replays(launch: IntArray, calls: Calls) -> IntArray:
    """Ordinal of the graph launch each row came from, counted in launch order; -1 for eager rows."""
    replay = np.full(len(launch), -1, np.int64)
    linked = np.flatnonzero(launch >= 0)
    from_graph = linked[calls.kind[launch[linked]] == CallKind.GRAPH_LAUNCH]
    if len(from_graph):
        launches = np.unique(launch[from_graph])
        ordinal = np.empty(len(launches), np.int64)
        ordinal[np.argsort(calls.start_ns[launches], kind="stable")] = np.arange(len(launches))
        replay[from_graph] = ordinal[np.searchsorted(launches, launch[from_graph])]
    return replay
