"""Host and device clocks of one rank: contradictions counted, the smallest consistent shift applied.

No device work can start before the call that launched it, and no synchronizing call can return before
the work it waits for has ended. Each pair bounds the device clock's shift (attribution contract,
section 3); the host clock stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.cuda_api import WAITS, CallKind
from analyzer.model import CopyKind, IntArray, MemoryKind, ProcessTrace
from analyzer.reconstruct.sync_targets import SyncTargets
from analyzer.reconstruct.work import Calls, Work

MIN_PAIRS = 50
"""Below this many launch pairs no shift is estimated."""


NOT_PINNED = (MemoryKind.PAGEABLE, MemoryKind.MANAGED)


@dataclass(frozen=True)
class DeviceClock:
    """``shift_ns`` was added to every device time; the interval is what the pairs allow for it."""

    shift_ns: int
    low_ns: int | None
    high_ns: int | None
    pair_count: int
    negative_latency_count: int  # raw: device work that starts before its own launch
    early_return_count: int  # raw: waits that return before their work ended
    correction: str  # none | shifted | clipped


def correct(
    work: Work, calls: Calls, process: ProcessTrace, *, sole_device: bool
) -> tuple[Work, DeviceClock]:
    """Work on the corrected device clock and how the correction came about.

    ``sole_device``: the process drives one device, so a device synchronization is about this one.
    """
    linked = np.flatnonzero(work.linked)
    lead = work.launch_ns[linked] - work.start_ns[linked]
    returns = _return_slack(work, calls, process, sole_device=sole_device)
    negative, early = int((lead > 0).sum()), int((returns < 0).sum())
    low = int(lead.max()) if len(lead) else None
    high = int(returns.min()) if len(returns) else None
    shift, correction = _choose(low, high, len(linked))
    if correction == "none" and (negative or early):
        correction = "clipped"
    clock = DeviceClock(shift, low, high, len(linked), negative, early, correction)
    return (work.shifted(shift) if shift else work), clock


def _choose(low: int | None, high: int | None, pairs: int) -> tuple[int, str]:
    """The shift nearest to zero inside ``[low, high]``; (0, "none") where no shift may be made."""
    if pairs < MIN_PAIRS or low is None or (high is not None and low > high):
        return 0, "none"
    if low > 0:
        return low, "shifted"
    if high is not None and high < 0:
        return high, "shifted"
    return 0, "none"


def _return_slack(work: Work, calls: Calls, process: ProcessTrace, *, sole_device: bool) -> IntArray:
    """Return time minus end of the awaited work, for every wait whose target is certain, (p,) ns.

    Staged copies to the device are no targets: their recorded end lies microseconds after the return of
    a wait for them (5 to 7 us in 14 of 14 on an H100).
    """
    if not len(work):
        return np.empty(0, np.int64)
    targets = SyncTargets(work, calls, process)
    waits = np.flatnonzero(np.isin(calls.kind, list(WAITS)))
    known = targets.certain(waits, sole_device=sole_device)
    table = work.table
    staged = (table.copy_kind[known] == CopyKind.HTOD) & np.isin(table.src_memory[known], NOT_PINNED)
    has = (known >= 0) & ~staged
    slack = calls.end_ns[waits[has]] - work.end_ns[known[has]]
    return np.concatenate((slack, _copy_slack(work, calls)))


def _copy_slack(work: Work, calls: Calls) -> IntArray:
    """The same for copies to the host that block: synchronous ones, and asynchronous pageable ones."""
    table = work.table
    down = work.linked & (table.copy_kind == CopyKind.DTOH)
    kind = np.where(work.linked, calls.kind[work.launch] if len(calls) else -1, -1)
    blocking = (kind == CallKind.COPY_SYNC) | (
        (kind == CallKind.COPY_ASYNC) & (table.dst_memory == MemoryKind.PAGEABLE)
    )
    rows = np.flatnonzero(down & blocking)
    if not len(rows):
        return np.empty(0, np.int64)
    return calls.end_ns[work.launch[rows]] - work.end_ns[rows]
