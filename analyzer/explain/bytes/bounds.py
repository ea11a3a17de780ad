"""How long kernels ran near a peak, from their total alone: what the amount of work proves, and no more.

Let ``K`` be the summed durations of a step's kernels, ``F`` the least time that their bytes (or arithmetic) take at
the peak, and ``H`` the summed durations of those that ran at a share ``t`` of the peak or more. Kernel ``k`` of
duration ``d_k`` runs at the share ``r_k`` of the peak, ``0 <= r_k <= 1``, and ``F = sum(r_k d_k)``. Then

- ``F <= H + t (K - H)``, since none exceeds 1 and those outside ``H`` stay below ``t``:  ``H >= (F - t K) / (1 - t)``;
- ``F >= t H``:  ``H <= F / t``.

Of the ``K`` only ``P`` lies on the path, at most ``d_k`` of each kernel, so at most ``K - P`` of ``H`` lies off it:
on the path it is at least ``H - (K - P)`` and at most ``min(P, H)``. Kernels that run at the same time do not break
this: the shares of the peak that they reach add up to 1 at most, and each of them to no more than 1.

Where part of the work is not told, ``F`` is too small: the lower end still holds, the upper one is ``P``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.explain.verdicts.shares import FloatArray

SLACK = 1e-9
"""Relative: what floating point may add to a floor."""


@dataclass(frozen=True)
class KernelTimes:
    """Of a group of kernels, per window (w,), ns.

    ``total``: durations of the kernels that the step launched. ``own``: their time on the step's path. ``path``: time
    on the path of all kernels of the group, whichever step launched them. ``hidden``: path time of rows that hold
    kernels which were not recorded one by one; any of it can belong to the group.
    """

    total: FloatArray
    own: FloatArray
    path: FloatArray
    hidden: FloatArray


@dataclass(frozen=True)
class Near:
    """Time on the path near the peak per window (w,), ns: its estimate and both ends, to be summed over windows."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def exceeded(floor_ns: float, times: KernelTimes) -> bool:
    """Whether the kernels would have had to be faster than the peak: the work does not fit their time."""
    if times.hidden.any():
        return False
    return floor_ns * len(times.total) > float(times.total.sum()) * (1 + SLACK)


def near_peak(
    floor_ns: float, times: KernelTimes, at: float, *, complete: bool = True, more_ns: float = 0.0
) -> Near:
    """Ends on the sum over the windows, spread over them so that the spread between steps is kept.

    The estimate is the middle of what is possible: the amounts prove no more. ``floor_ns``: of one step.
    ``complete``: it stands for all work of these kernels, but for what takes ``more_ns`` and may be theirs, too.
    ``at``: the share of the peak.
    """
    foreign = np.maximum(times.path - times.own, 0)
    low = np.zeros_like(times.total)
    if at < 1 and not times.hidden.any():
        proven = (floor_ns - at * times.total) / (1 - at) - (times.total - times.own)
        low = proven if proven.sum() > 0 else low
    possible = times.path + times.hidden
    high = possible
    if complete and at > 0:
        limit = np.full_like(times.total, (floor_ns + more_ns) / at) + foreign
        high = limit if limit.sum() < possible.sum() else possible
    return Near((low + high) / 2, low, high)
