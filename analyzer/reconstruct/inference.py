"""What is inferred where no recorded cause explains why device work started when it did.

Kept apart from the recorded causes (``bindings``): each rule here has a constant, and a reason from a capture.
"""

from __future__ import annotations

import numpy as np

from analyzer.categories import Binding, Category
from analyzer.cuda_api import CallKind
from analyzer.model import IntArray, SmallArray
from analyzer.reconstruct.constants import Constants, silent_launches
from analyzer.reconstruct.work import BoolArray, Calls, Work
from analyzer.stats import quantile

EVENT_HOP_NS = 5_000
"""A recorded event explains a start at least up to this long after its work: 1 to 3 us are usual ..."""
HOP_SAMPLE = 8
"""... and up to the 95 % quantile of this capture's own hops, if it has so many (19 us on a V100)."""
LONGEST_HOP_NS = 20_000
"""The longest hop over an event seen in a real capture, for waits whose event is not recorded."""
LOOK_BACK = 8
"""So many ends before a start are looked at for work that it may have waited for."""
HOP_SHARE = 20
HOP_MAX_NS = 50_000
"""An inferred dependency may leave this part of the unexplained time, and at most this long, unexplained."""


def event_hop(
    work: Work, rows: IntArray, predecessor: IntArray, ready_launch: IntArray, constants: Constants
) -> int:
    """Longest usual time from the end of the work before an event to the start of what waits for it, ns."""
    sure = rows[ready_launch[rows] <= work.end_ns[predecessor[rows]]]
    hops = work.start_ns[sure] - work.end_ns[predecessor[sure]]
    learned = min(quantile(hops, 0.95), HOP_MAX_NS) if len(hops) >= HOP_SAMPLE else 0
    return max(EVENT_HOP_NS, constants.turnaround_ns, learned)


def told_to_wait(work: Work, calls: Calls, stream: IntArray) -> BoolArray:
    """(n,) whether some stream was told to wait between the launches of a row and of its predecessor.

    Where such a row then starts behind work elsewhere, that it waited is recorded; only for what is not.
    """
    orders = np.sort(calls.start_ns[(calls.kind == CallKind.STREAM_WAIT) & (calls.result <= 0)])
    told = np.zeros(len(work), bool)
    rows = np.flatnonzero(work.linked & (stream >= 0))
    before = np.searchsorted(orders, work.submitted_ns[stream[rows]])
    told[rows] = np.searchsorted(orders, work.launch_ns[rows]) > before
    return told


def infer(
    work: Work,
    kind: SmallArray,
    predecessor: IntArray,
    inferred: BoolArray,
    stream: IntArray,
    latency_high_ns: IntArray,
    turnaround_ns: int,
    event_hop_ns: int,
    told: BoolArray,
) -> None:
    """Where no candidate explains the start, work that ended just before it elsewhere; else "unseen".

    Submission explains a start up to the high latency, a recorded event up to the hop, stream order up to
    the turnaround. Without a launch record nothing can be called unseen: such gaps are missing evidence.
    """
    if not len(work):
        return
    by_submission = kind == Binding.SUBMISSION
    missing = kind == Binding.MISSING
    gap = work.start_ns - work.end_ns[predecessor]
    wait = work.start_ns - work.launch_ns
    usual = np.where(kind == Binding.EVENT, event_hop_ns, turnaround_ns)
    stretched = (predecessor >= 0) & (gap > usual)
    late = by_submission & (wait > latency_high_ns)
    unexplained = np.where(stretched, gap, np.where(late, wait - latency_high_ns, 0))
    nearest = _ended_elsewhere(
        work, np.flatnonzero(stretched | late | missing), unexplained, told, turnaround_ns
    )
    elsewhere = nearest >= 0
    kind[elsewhere] = Binding.INFERRED
    predecessor[elsewhere] = nearest[elsewhere]
    inferred[elsewhere] = ~told[elsewhere]
    unseen = stretched & ~elsewhere
    kind[unseen & work.linked] = Binding.UNSEEN
    inferred[unseen & work.linked] = True
    lost = (unseen & ~work.linked) | (missing & ~elsewhere)
    kind[lost] = Binding.MISSING
    predecessor[lost] = stream[lost]


def _ended_elsewhere(
    work: Work, rows: IntArray, unexplained_ns: IntArray, told: BoolArray, turnaround_ns: int
) -> IntArray:
    """(n,) for each of ``rows`` the work of another stream whose end it may have waited for, else -1.

    It ended just before the start: within the turnaround, or a twentieth of the unexplained time (at most
    50 us; a hop over an event took 19 us on a V100 whose turnaround is 9 us), or as far as the longest hop
    where the row was told to wait. A wait is for work that was submitted before it; of work submitted later
    only the kernel that ended last can have been in the way, of SMs. Nothing that ended before the row's own
    stream was free explains anything.
    """
    found = np.full(len(work), -1, np.int64)
    by_end = np.argsort(work.end_ns, kind="stable")
    at = np.searchsorted(work.end_ns[by_end], work.start_ns[rows], side="right") - 1
    reach = np.maximum(turnaround_ns, np.minimum(unexplained_ns // HOP_SHARE, HOP_MAX_NS))[rows]
    far = np.where(told[rows], np.maximum(reach, LONGEST_HOP_NS), reach)
    for back in range(LOOK_BACK):
        if not len(rows):
            break
        other = by_end[np.maximum(at - back, 0)]
        ago = work.start_ns[rows] - work.end_ns[other]
        open_ = (at - back >= 0) & (work.lane[other] != work.lane[rows]) & (ago <= far)
        given = (work.submitted_ns[other] < work.launch_ns[rows]) | ~work.linked[rows]
        fits = open_ & (other < rows) & given
        if back == 0:
            in_the_way = open_ & (other < rows) & ~given & (ago <= reach)
            in_the_way &= work.own_label[other] != Category.COPY
            found[rows[in_the_way]] = other[in_the_way]
        found[rows[fits]] = other[fits]
        on = open_ & ~fits
        rows, at, reach, far = rows[on], at[on], reach[on], far[on]
    return found


def behind_a_loss(work: Work, calls: Calls, kind: SmallArray, predecessor: IntArray) -> IntArray:
    """Rows whose wait nothing explains and between whose launch and their predecessor's something was
    launched that left no device row: it may have run in the gap.
    """
    rows = np.flatnonzero((kind == Binding.UNSEEN) & (predecessor >= 0))
    silent = silent_launches(work, calls)
    before = work.submitted_ns[predecessor[rows]]
    between = np.searchsorted(silent, work.launch_ns[rows]) > np.searchsorted(silent, before)
    return rows[between]
