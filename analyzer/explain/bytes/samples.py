"""Sampled counters of a device (nsys GPU metrics): bytes of each step, and each kernel's share of a peak.

Written from NVIDIA's documentation and from what public tools read: no export with these tables was at hand. A value
is taken as the mean over the time since the sample before it, in percent of the peak; read and write shares add up. At
both ends of an interval it is not known when within the sample the traffic was: the ends count such samples not at
all, and whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from analyzer.explain.bytes.codes import FloatArray
from analyzer.model import IntArray, Trace

_DRAM_SPLIT = re.compile(r"DRAM (?:Read|Write) (?:Bandwidth|Throughput)\b.*%\]", re.IGNORECASE)
_DRAM_WHOLE = re.compile(r"DRAM (?:Bandwidth|Throughput)\b.*%\]", re.IGNORECASE)
_TENSOR = re.compile(r"(?:SM )?Tensor (?:Active|Pipe)\b.*%\]", re.IGNORECASE)
LONGEST_PERIODS = 3
"""A sample that stands for more than so many usual periods follows a gap: nothing is known of that time."""


@dataclass(frozen=True)
class Samples:
    """Intervals (m,) ns in time order, and the mean share of the peak in each (0..1)."""

    start_ns: IntArray
    end_ns: IntArray
    share: FloatArray
    names: tuple[str, ...]

    def over(self, start_ns: IntArray, end_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Least, likely and most of peak x ns in each interval (n,); NaN where samples do not cover it."""
        if not len(self.start_ns):
            nothing = np.full(len(start_ns), np.nan)
            return nothing, nothing, nothing
        length = (self.end_ns - self.start_ns).astype(np.float64)
        amount = np.append(0.0, np.cumsum(length * self.share))
        first = np.searchsorted(self.start_ns, start_ns, side="left")  # wholly inside: from here ...
        until = np.maximum(np.searchsorted(self.end_ns, end_ns, side="right"), first)  # ... up to here
        least = amount[until] - amount[first]
        touched = np.searchsorted(self.end_ns, start_ns, side="right")
        beyond = np.maximum(np.searchsorted(self.start_ns, end_ns, side="left"), touched)
        whole = amount[beyond] - amount[touched]
        covered = self._covered(start_ns, end_ns, touched, beyond)
        likely = self._until(end_ns, amount) - self._until(start_ns, amount)
        most = np.minimum(whole, (end_ns - start_ns).astype(np.float64))
        least, likely, most = (
            np.where(covered, one, np.nan) for one in (least, likely, np.maximum(most, likely))
        )
        return least, likely, most

    def _covered(
        self, start_ns: IntArray, end_ns: IntArray, touched: IntArray, beyond: IntArray
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(n,) whether samples follow one another without a gap from start to end."""
        last = len(self.start_ns) - 1
        gaps = np.append(0, np.cumsum(self.start_ns[1:] != self.end_ns[:-1]))
        some = beyond > touched
        a, b = np.minimum(touched, last), np.clip(beyond - 1, 0, last)
        return np.asarray(
            some & (self.start_ns[a] <= start_ns) & (self.end_ns[b] >= end_ns) & (gaps[a] == gaps[b]),
            np.bool_,
        )

    def _until(self, at_ns: IntArray, amount: FloatArray) -> FloatArray:
        """Peak x ns from the first sample up to an instant (n,), spread evenly over each sample."""
        at = np.searchsorted(self.end_ns, at_ns, side="right")
        held = np.minimum(at, len(self.start_ns) - 1)
        part = np.clip(at_ns - self.start_ns[held], 0, self.end_ns[held] - self.start_ns[held])
        return amount[at] + np.where(at < len(self.start_ns), part * self.share[held], 0.0)


def dram_samples(trace: Trace) -> Samples | None:
    """Traffic from and to device memory, None where it was not sampled."""
    return _samples(trace, (_DRAM_SPLIT, _DRAM_WHOLE))


def tensor_samples(trace: Trace) -> Samples | None:
    """Activity of the tensor pipes."""
    return _samples(trace, (_TENSOR,))


def _samples(trace: Trace, patterns: tuple[re.Pattern[str], ...]) -> Samples | None:
    """The first pattern that names a metric of this trace; several metrics of one instant add up."""
    metrics = trace.metrics
    if metrics is None or len(metrics) < 2:
        return None
    codes = np.unique(metrics.metric)
    for pattern in patterns:
        named = {int(code): trace.process.name_of(int(code)) for code in codes}
        found = {code: name for code, name in named.items() if pattern.match(name)}
        if found:
            mine = metrics.take(np.isin(metrics.metric, list(found)))
            return _intervals(mine.time_ns, mine.value, len(found), tuple(sorted(found.values())))
    return None


def _intervals(times: IntArray, values: FloatArray, metrics: int, names: tuple[str, ...]) -> Samples | None:
    at, which, count = np.unique(times, return_inverse=True, return_counts=True)
    whole = count == metrics  # an instant at which one of the metrics is missing tells nothing
    share = np.bincount(which, weights=values, minlength=len(at)) / 100
    if len(at) < 2:
        return None
    start, end = at[:-1], at[1:]
    period = float(np.median(end - start))
    keep = whole[1:] & (end - start <= LONGEST_PERIODS * period)
    return Samples(start[keep], end[keep], np.clip(share[1:], 0.0, None)[keep], names)
