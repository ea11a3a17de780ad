"""Collectives that run on the CPU (gloo): when they ran, and which thread stood still for them.

A thread of the backend records the collective itself (``gloo:all_reduce``). Nothing is recorded in the thread that
called it and waits: it is silent from its call (``c10d::allreduce_``) on until the collective is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from analyzer.arrays import distinct
from analyzer.model import HostKind, IntArray, ProcessTrace
from analyzer.reconstruct.nesting import innermost
from analyzer.reconstruct.step_markers import clean_names
from analyzer.reconstruct.work import BoolArray

RECORD = re.compile(r"^gloo:\w")
"""What a backend's thread records while a collective runs."""
CALL = re.compile(r"^(?:c10d::|record_param_comms$)")
"""What the calling thread records."""
LAG_NS = 500_000
"""A thread that goes on this soon after the collective's end had waited for it ..."""
MIN_COVER = 0.5
"""... or whose silence the collective ends in its second half: waking up takes long where there are too few CPUs."""

_WORK = (HostKind.CALL, HostKind.OP)
_NESTED = (HostKind.CALL, HostKind.OP, HostKind.RANGE, HostKind.FRAME)


@dataclass(frozen=True)
class HostCollectives:
    """(k,) times that a thread spent in a collective on the CPU; ``row``: the record of the collective."""

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray
    row: IntArray

    def of_thread(self, thread: int) -> tuple[IntArray, IntArray]:
        """Bounds of one thread, and from each on the record of the collective that it is in, -1 none."""
        mine = np.flatnonzero(self.thread == thread)
        mine = mine[np.lexsort((-self.end_ns[mine], self.start_ns[mine]))]
        bounds, owner, _ = innermost(self.start_ns[mine], self.end_ns[mine])
        return bounds, np.where(owner >= 0, self.row[mine][np.maximum(owner, 0)], -1) if len(mine) else owner


def find_host_collectives(process: ProcessTrace, around_steps: BoolArray) -> HostCollectives:
    """Records of collectives on the CPU, and the silences of the threads that waited for them.

    ``around_steps``: mask of host rows that hold whole steps: their ends are no sign of life.
    """
    host, names = process.host, clean_names(process.names)
    spoken = np.isin(host.kind, _NESTED) & ~around_steps & (host.thread >= 0)
    rows = np.flatnonzero(spoken & names.matching(RECORD.match)[host.name])
    parts = [(host.thread[rows].astype(np.int64), host.start_ns[rows], host.end_ns[rows], rows)]
    if len(rows):
        calls = np.flatnonzero(spoken & names.matching(CALL.match)[host.name])
        for thread in distinct(host.thread[calls].astype(np.int64)).tolist():
            own = np.flatnonzero(spoken & (host.thread == thread))
            parts.append(_waited(process, thread, own, calls[host.thread[calls] == thread], rows))
    return HostCollectives(*(np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)))


def backend_threads(process: ProcessTrace) -> IntArray:
    """Threads that record collectives on the CPU and no work beside them: they work for whoever calls."""
    host, names = process.host, clean_names(process.names)
    collective = names.matching(RECORD.match)[host.name] & np.isin(host.kind, _NESTED)
    works = np.isin(host.kind, _WORK) & ~collective
    return np.setdiff1d(distinct(host.thread[collective].astype(np.int64)), host.thread[works])


def _waited(
    process: ProcessTrace, thread: int, own: IntArray, calls: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Silences of ``thread`` that end with a collective (``rows``) that it had called."""
    host = process.host
    rows = rows[host.thread[rows] != thread]
    edges = distinct(np.concatenate((host.start_ns[own], host.end_ns[own])))
    done = host.end_ns[rows]
    last_call = np.searchsorted(host.start_ns[calls], host.start_ns[rows], side="right") - 1
    at = np.searchsorted(edges, done, side="right") - 1
    silent = edges[np.maximum(at, 0)]
    last = at + 1 >= len(edges)  # nothing follows: the record ends here
    resumed = np.where(last, done, edges[np.minimum(at + 1, len(edges) - 1)])
    working = own[np.isin(host.kind[own], _WORK) & ~np.isin(own, calls)]
    waited = (last_call >= 0) & (at >= 0) & ~np.isin(silent, host.start_ns[working])
    waited &= (silent >= host.start_ns[calls[np.maximum(last_call, 0)]]) & (silent < done)
    waited &= (resumed - done <= LAG_NS) | (done - silent >= MIN_COVER * (resumed - silent))
    rows = rows[waited]
    return np.full(len(rows), thread, np.int64), silent[waited], done[waited], rows
