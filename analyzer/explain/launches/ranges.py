"""Device work by the host range that launched it (the launching thread's own stack, never by time overlap)."""

from __future__ import annotations

import numpy as np

from analyzer.arrays import distinct, group
from analyzer.diagnosis import RangeTime
from analyzer.explain.host.enclosing import row_at
from analyzer.explain.launches.submissions import Submissions
from analyzer.explain.order_statistics import quantiles
from analyzer.explain.phase_windows import sums
from analyzer.explain.segments import merge_suffixes, place_of_thread
from analyzer.model import HostKind, IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import clean_name

KEEP = 100
"""Ranges kept per rank, longest first; work outside every range is always kept."""


def range_times(account: RankAccount, rank: int) -> list[RangeTime]:
    """Linked device work by innermost range of the launching thread at the call, longest first.

    Empty where the capture holds no ranges.
    """
    work, calls, process = account.work, account.calls, account.trace.process
    if not np.any(process.host.kind == HostKind.RANGE):
        return []
    rows = np.flatnonzero(work.linked)
    call = work.launch[rows]
    owner = _range_of_calls(account, distinct(call))[call]
    names = merge_suffixes(process, np.where(owner >= 0, process.host.name[np.maximum(owner, 0)], -1))
    groups, inverse = group([names, calls.thread[call]])
    total_ns = np.zeros(len(groups), np.int64)
    np.add.at(total_ns, inverse, (work.end_ns - work.start_ns)[rows])
    events = np.bincount(inverse, minlength=len(groups))
    owned = distinct(inverse * len(calls) + call)
    launches = np.bincount(owned // len(calls), minlength=len(groups))
    owner_of, owned_call = owned // len(calls), owned % len(calls)
    held = np.isin(owned_call, account.held.call)
    duration = np.where(held, 0, (calls.end_ns - calls.start_ns)[owned_call])
    api_ns = sums(owner_of, duration, len(groups))
    held_launches = np.bincount(owner_of[held], minlength=len(groups))
    latency = Submissions(work, calls).latency_ns(owned_call)
    latencies = quantiles(owner_of, latency, len(groups))
    table = [
        RangeTime(
            rank=rank,
            name=clean_name(process.names[code]) if code >= 0 else None,
            thread=place_of_thread(process, thread),
            launches=int(launches[at]),
            held_launches=int(held_launches[at]),
            device_events=int(events[at]),
            total_ns=int(total_ns[at]),
            api_ns=int(api_ns[at]),
            latency_ns=latencies[at],
        )
        for at, (code, thread) in enumerate(groups)
    ]
    table.sort(key=lambda row: (-row.total_ns, row.name or "", row.thread))
    return [row for at, row in enumerate(table) if at < KEEP or row.name is None]


def _range_of_calls(account: RankAccount, wanted: IntArray) -> IntArray:
    """(m,) host row of the innermost range around the start of each wanted call, -1 none."""
    calls, host = account.calls, account.trace.process.host
    owner = np.full(len(calls), -1, np.int64)
    for thread in np.unique(calls.thread[wanted]).tolist():
        rows = account.account.rows_of(thread)
        rows = rows[host.kind[rows] == HostKind.RANGE]
        mine = wanted[calls.thread[wanted] == thread]
        owner[mine] = row_at(host, rows, calls.start_ns[mine])
    return owner
