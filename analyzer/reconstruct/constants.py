"""The capture's own constants: launch latency, stream turnaround, submission-burst gaps.

Measured where the capture holds a sample, assumed otherwise; the assumed ones are named, so that a
report can label them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.cuda_api import LAUNCHES, CallKind, base_name
from analyzer.model import IntArray, ProcessTrace
from analyzer.reconstruct.work import NO_TIME, Calls, Work
from analyzer.stats import quantile

ASSUMED_LAMBDA_NS = (5_000, 20_000)
"""Launch latency low/high without a sample: the idle-GPU range seen on A100 to B200 (5 to 20 us)."""
ASSUMED_TAU_NS = 1_000
"""Back-to-back gap of queued kernels without a sample (A100 median 1.0 us)."""
TURNAROUND_FLOOR_NS = 2_000
IDLE_NS = 10_000
"""A stream counts as idle before a launch when nothing ran on the device for this long."""
QUIET_NS = 20_000
LONG_CALL_NS = 100_000
MIN_SAMPLE = 8
"""Fewer latencies of one API than this are pooled with the others; fewer gaps give no p95."""
TINY_SAMPLE = 3
"""Fewer latencies than this cannot stand against the assumed range."""
P95_SAMPLE = 20


@dataclass(frozen=True)
class Latency:
    """5 % and 95 % quantile of "start of launch call to start of its work" on an idle device."""

    low_ns: int
    high_ns: int
    samples: int


@dataclass(frozen=True)
class Constants:
    """What the reconstruction works with; all ns."""

    latency: dict[str, Latency]  # by API
    pooled: Latency
    tau_ns: int
    turnaround_ns: int
    turnaround_samples: int
    quiet_ns: int
    assumed: tuple[str, ...]

    def latency_of(self, api: str) -> Latency:
        """Latency of one API, or the pooled one where that API has no sample of its own."""
        return self.latency.get(api, self.pooled)


def learn(work: Work, calls: Calls, process: ProcessTrace) -> Constants:
    """Measure the constants of one rank's capture."""
    assumed: list[str] = []
    latency, pooled = _latencies(work, calls, process)
    if not pooled.samples:
        assumed.append("launch_lambda_ns")
    gaps = _queued_gaps(work, calls, pooled.low_ns)
    if len(gaps) >= MIN_SAMPLE:
        tau = quantile(gaps, 0.05)
        usual = quantile(gaps, 0.95) if len(gaps) >= P95_SAMPLE else 2 * quantile(gaps, 0.5)
        turnaround = max(TURNAROUND_FLOOR_NS, usual)
    else:  # a few gaps may all be waits of another kind: they may shorten what is assumed, never stretch it
        tau = min([ASSUMED_TAU_NS, *gaps.tolist()])
        turnaround = TURNAROUND_FLOOR_NS
        assumed += ["stream_tau_ns", "turnaround_ns"]
    return Constants(latency, pooled, tau, turnaround, len(gaps), QUIET_NS, tuple(assumed))


def first_of_launch(work: Work) -> IntArray:
    """Rows that are the first of their launch call, in total order."""
    linked = np.flatnonzero(work.linked)
    _, first = np.unique(work.launch[linked], return_index=True)
    return np.sort(linked[first])


def _latencies(work: Work, calls: Calls, process: ProcessTrace) -> tuple[dict[str, Latency], Latency]:
    """Latencies of launches made while the whole device had been idle for 10 us.

    The whole device rather than the one stream: a kernel behind an event of another stream would
    otherwise pass its wait off as launch latency. Calls longer than 100 us are left out: they loaded
    code or staged a copy, which the path charges to the call itself.
    """
    rows = first_of_launch(work)
    busy_until = _busy_before(work, rows)
    delay = work.start_ns[rows] - work.launch_ns[rows]
    idle = (busy_until <= work.launch_ns[rows] - IDLE_NS) & (delay > 0)
    call = work.launch[rows]
    idle &= calls.end_ns[call] - calls.start_ns[call] <= LONG_CALL_NS
    rows, delay = rows[idle], delay[idle]
    if not len(rows):
        return {}, Latency(*ASSUMED_LAMBDA_NS, samples=0)
    pooled = _latency(delay)
    names = process.host.name[calls.row[work.launch[rows]]]
    by_api: dict[str, list[IntArray]] = {}
    for code in np.unique(names):
        by_api.setdefault(base_name(process.names[code]), []).append(delay[names == code])
    latency = {}
    for api in sorted(by_api):
        sample = np.concatenate(by_api[api])
        if len(sample) >= MIN_SAMPLE:
            latency[api] = _latency(sample)
    return latency, pooled


def _latency(delay: IntArray) -> Latency:
    """Quantiles of a sample; a small one is held to the assumed range, lest one odd launch explain itself."""
    low, high = quantile(delay, 0.05), quantile(delay, 0.95)
    if len(delay) < TINY_SAMPLE:
        low = min(low, ASSUMED_LAMBDA_NS[0])
    if len(delay) < MIN_SAMPLE:
        high = max(low, quantile(delay, 0.5) if len(delay) >= TINY_SAMPLE else 0, ASSUMED_LAMBDA_NS[1])
    return Latency(low, high, len(delay))


def _busy_before(work: Work, rows: IntArray) -> IntArray:
    """(m,) ns: latest end among all rows that precede each row in total order, NO_TIME none."""
    if not len(work):
        return np.empty(0, np.int64)
    reach = np.concatenate(([NO_TIME], np.maximum.accumulate(work.end_ns)[:-1]))
    return reach[rows]


def silent_launches(work: Work, calls: Calls) -> IntArray:
    """Instants of launch calls without any device row, sorted: lost rows, or launches into a capture."""
    launch = np.isin(calls.kind, list(LAUNCHES))
    launch[work.launch[work.linked]] = False
    return np.sort(calls.start_ns[launch])


def _queued_gaps(work: Work, calls: Calls, lambda_ns: int) -> IntArray:
    """Gaps between neighbours of one stream whose second was submitted before the first had ended.

    Gaps that may be waits are left out: work of another stream ended in them, or between the two launches
    a stream was told to wait or something was launched whose device row is missing.
    """
    ends = np.sort(work.end_ns)
    told = np.sort(
        np.concatenate((calls.start_ns[calls.kind == CallKind.STREAM_WAIT], silent_launches(work, calls)))
    )
    gaps: list[IntArray] = []
    for rows in work.lanes.values():
        first, second = rows[:-1], rows[1:]
        gap = work.start_ns[second] - work.end_ns[first]
        queued = work.linked[second] & (work.launch_ns[second] + lambda_ns <= work.end_ns[first])
        queued &= (work.replay[second] < 0) & (gap >= 0)
        since = np.where(work.linked[first], work.launch_ns[first], work.start_ns[first])
        queued &= np.searchsorted(told, work.launch_ns[second]) <= np.searchsorted(told, since)
        first, second, gap = first[queued], second[queued], gap[queued]
        ended = np.searchsorted(ends, work.start_ns[second], side="right") - np.searchsorted(
            ends, work.end_ns[first], side="right"
        )
        ended -= work.end_ns[second] == work.start_ns[second]
        gaps.append(gap[ended <= 0])
    return np.concatenate(gaps) if gaps else np.empty(0, np.int64)
