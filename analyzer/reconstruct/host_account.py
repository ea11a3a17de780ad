"""What a host thread was doing at each instant, as categories of the path.

Built per thread on first use: only threads that the path visits cost anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from analyzer.arrays import distinct
from analyzer.categories import Category
from analyzer.cuda_api import SUBMISSIONS, WAITS
from analyzer.intervals import Intervals, subtract, union
from analyzer.model import HostKind, IntArray, ProcessTrace, SmallArray
from analyzer.reconstruct.blocking import HeldCalls
from analyzer.reconstruct.host_collectives import HostCollectives, find_host_collectives
from analyzer.reconstruct.nesting import innermost
from analyzer.reconstruct.work import BoolArray, Calls

OS_WAIT = re.compile(r"wait|join|poll|select|futex|read|recv|sleep|mutex_lock")
"""OS runtime calls that block."""

BURST_FLOOR_NS = 50_000
BURST_CEILING_NS = 1_000_000
BURST_MEDIANS = 4

NOT_PROFILER = frozenset(
    {"command buffer full", "lazy function loading", "runtime triggered module loading", "module loading"}
)
"""Overhead records that are CUDA's own work, not the profiler's."""

NESTING_KINDS = (
    HostKind.CALL,
    HostKind.OP,
    HostKind.RANGE,
    HostKind.FRAME,
    HostKind.OS,
    HostKind.OVERHEAD,
)


@dataclass(frozen=True)
class Roles:
    """Host rows with a declared meaning, (n,) bool masks over the host table."""

    step: BoolArray  # step markers: they name the window, not what the CPU did
    dispatch: BoolArray
    scheduling: BoolArray
    output: BoolArray


@dataclass(frozen=True)
class ThreadAccount:
    """From ``bounds[i]`` to ``bounds[i + 1]`` the thread is in ``category[i]``, inside host row ``row[i]``."""

    bounds: IntArray
    category: SmallArray
    row: IntArray  # innermost host row, -1 none
    burst_gap_ns: int
    crossings: int

    def pieces(self, low: int, high: int) -> tuple[IntArray, IntArray, SmallArray, IntArray]:
        """Starts, ends, categories and host rows that partition ``[low, high)``."""
        first = int(np.searchsorted(self.bounds, low, side="right"))
        last = int(np.searchsorted(self.bounds, high, side="left"))
        cuts = np.concatenate(([low], self.bounds[first:last], [high])).astype(np.int64)
        index = np.arange(first - 1, last)
        outside = (index < 0) | (index >= len(self.category))
        if not len(self.category):
            category = np.full(len(index), Category.HOST_UNTRACED, np.int8)
            return cuts[:-1], cuts[1:], category, np.full(len(index), -1, np.int64)
        safe = np.clip(index, 0, len(self.category) - 1)
        category = np.where(outside, np.int8(Category.HOST_UNTRACED), self.category[safe]).astype(np.int8)
        return cuts[:-1], cuts[1:], category, np.where(outside, -1, self.row[safe])


@dataclass
class HostAccount:
    """Accounts of all threads of one process, made when first asked for."""

    process: ProcessTrace
    calls: Calls
    held: HeldCalls
    roles: Roles
    device_recorded: bool = True
    _threads: dict[int, ThreadAccount] = field(default_factory=dict)
    _threadless: Intervals | None = None
    _collectives: HostCollectives | None = None

    def thread(self, thread: int) -> ThreadAccount:
        """The account of one thread (index into ``ProcessTrace.threads``)."""
        if thread not in self._threads:
            self._threads[thread] = self._build(thread)
        return self._threads[thread]

    @property
    def built(self) -> dict[int, ThreadAccount]:
        """Accounts made so far, by thread."""
        return self._threads

    def rows_of(self, thread: int) -> IntArray:
        """Host rows of one thread (the table is sorted by thread)."""
        column = self.process.host.thread
        return np.arange(
            np.searchsorted(column, thread, side="left"), np.searchsorted(column, thread, side="right")
        )

    def _build(self, thread: int) -> ThreadAccount:
        host = self.process.host
        rows = self.rows_of(thread)
        nested = rows[np.isin(host.kind[rows], NESTING_KINDS) & ~self.roles.step[rows]]
        bounds, owner, crossings = innermost(host.start_ns[nested], host.end_ns[nested])
        owner = np.where(owner >= 0, nested[np.maximum(owner, 0)], -1) if len(nested) else owner

        span = self.calls.of_thread(thread)
        mine = np.arange(span.start, span.stop)
        submits = mine[np.isin(self.calls.kind[mine], list(SUBMISSIONS))]
        bursts, gap_ns = self._bursts(thread, submits)
        declared = [self._declared(rows, mask) for mask in (self.roles.dispatch, self.roles.scheduling)]
        output = self._declared(rows, self.roles.output)
        never = union(
            np.concatenate((declared[1][0], output[0])), np.concatenate((declared[1][1], output[1]))
        )
        dispatch = subtract(
            union(np.concatenate((bursts[0], declared[0][0])), np.concatenate((bursts[1], declared[0][1]))),
            never,
        )
        # Later entries win: the contract's categories by precedence, weakest first.
        layers = (
            (self._of(mine), Category.HOST_API),
            (output, Category.HOST_OUTPUT),
            (dispatch, Category.LAUNCH_DISPATCH),
            (self._os_waits(rows), Category.HOST_WAIT),  # blocked, so no dispatch even inside a burst
            (self._of(submits), Category.LAUNCH_API),
            (self._profiler(rows), Category.PROFILER),
        )
        inside, collective = self._host_collectives().of_thread(thread)
        merged = distinct(np.concatenate([bounds, inside, *(edge for layer, _ in layers for edge in layer)]))
        row = _at(bounds, owner, merged)
        category = self._base_category(row)
        meanwhile = _at(inside, collective, merged)
        row = np.where(meanwhile >= 0, meanwhile, row)
        category[meanwhile >= 0] = Category.COLLECTIVE_HOST
        for layer, value in layers:
            category[_inside(layer, merged)] = value
        return ThreadAccount(merged, category, row, gap_ns, crossings)

    def _base_category(self, row: IntArray) -> SmallArray:
        category = np.full(len(row), Category.HOST_UNTRACED, np.int8)
        known = row >= 0
        category[known] = Category.HOST_FRAMEWORK
        blocked = np.zeros(len(row), bool)
        blocked[known] = self.process.host.kind[row[known]] == HostKind.OS
        category[blocked] = Category.HOST_WAIT
        return category

    def _host_collectives(self) -> HostCollectives:
        if self._collectives is None:
            self._collectives = find_host_collectives(self.process, self.roles.step)
        return self._collectives

    def _of(self, calls: IntArray) -> Intervals:
        return union(self.calls.start_ns[calls], self.calls.end_ns[calls])

    def _declared(self, rows: IntArray, mask: BoolArray) -> Intervals:
        chosen = rows[mask[rows]]
        return union(self.process.host.start_ns[chosen], self.process.host.end_ns[chosen])

    def _os_waits(self, rows: IntArray) -> Intervals:
        host = self.process.host
        rows = rows[host.kind[rows] == HostKind.OS]
        waits = [
            code
            for code in np.unique(host.name[rows]).tolist()
            if code >= 0 and OS_WAIT.search(self.process.names[code])
        ]
        rows = rows[np.isin(host.name[rows], waits)]
        return union(host.start_ns[rows], host.end_ns[rows])

    def _profiler(self, rows: IntArray) -> Intervals:
        own = profiler_intervals(self.process, rows)
        if self._threadless is None:
            self._threadless = profiler_intervals(self.process, self.rows_of(-1))
        other = self._threadless
        return union(np.concatenate((own[0], other[0])), np.concatenate((own[1], other[1])))

    def _bursts(self, thread: int, submits: IntArray) -> tuple[Intervals, int]:
        """Submission bursts of one thread and the gap that ends one (attribution contract, section 3)."""
        start, end = self.calls.start_ns[submits], self.calls.end_ns[submits]
        if not len(submits):
            nothing = np.empty(0, np.int64)
            return (nothing, nothing), BURST_FLOOR_NS
        gap = start[1:] - end[:-1]
        limit = BURST_FLOOR_NS
        if len(gap):
            limit = max(limit, min(BURST_MEDIANS * int(np.median(np.maximum(gap, 0))), BURST_CEILING_NS))
        held_end = self.held.end_ns[self.held.thread == thread]
        returned = np.searchsorted(held_end, start, side="right")
        held_between = np.diff(returned) > 0
        breaks = (gap >= limit) | held_between
        if not self.device_recorded:
            # Nothing shows whether a wait was held by the device: by its name it ends a burst.
            waits = self.calls.start_ns[(self.calls.thread == thread) & np.isin(self.calls.kind, list(WAITS))]
            breaks |= np.diff(np.searchsorted(waits, start, side="right")) > 0
        opens = np.concatenate(([True], breaks))
        closes = np.concatenate((breaks, [True]))
        return union(start[opens], np.maximum.accumulate(end)[closes]), limit


def profiler_intervals(process: ProcessTrace, rows: IntArray) -> Intervals:
    """When the profiler itself was at work, by its own records among ``rows``."""
    host = process.host
    rows = rows[host.kind[rows] == HostKind.OVERHEAD]
    own = [
        code
        for code in np.unique(host.name[rows]).tolist()
        if code < 0 or process.names[code].lower() not in NOT_PROFILER
    ]
    rows = rows[np.isin(host.name[rows], own)]
    return union(host.start_ns[rows], host.end_ns[rows])


def _inside(layer: Intervals, instants: IntArray) -> BoolArray:
    starts, ends = layer
    if not len(starts):
        return np.zeros(len(instants), bool)
    at = np.searchsorted(starts, instants, side="right") - 1
    return (at >= 0) & (instants < ends[np.maximum(at, 0)])


def _at(bounds: IntArray, owner: IntArray, instants: IntArray) -> IntArray:
    if not len(bounds):
        return np.full(len(instants), -1, np.int64)
    at = np.searchsorted(bounds, instants, side="right") - 1
    return np.where(at >= 0, owner[np.maximum(at, 0)], -1)


def mask_of(process: ProcessTrace, rows: npt.NDArray[np.int64] | Sequence[int]) -> BoolArray:
    """A (n,) bool mask over the host table with the given rows set."""
    mask = np.zeros(len(process.host), bool)
    mask[np.asarray(rows, np.int64)] = True
    return mask
