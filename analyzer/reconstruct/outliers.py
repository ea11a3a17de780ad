"""Steps whose time lies far outside their group: slow ones before the first ordinary step, and outliers.

A loop that has not yet warmed up is slow at its beginning. A step that is slow later, or fast at any time, is not
explained by that: it is an outlier, and somebody's tail latency.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray
from analyzer.stats import robust_z

OUTLIER_Z = 3.5
"""Robust z-score beyond which a step lies far outside its group (Iglewicz and Hoaglin's cut)."""
OUTLIER_RATIO = 1.25
"""... and only if it also differs from the group's median by this factor."""
MIN_GROUP = 4
"""No outlier is called in a smaller group."""
SLOW_START = "slow before the first ordinary step"


@dataclass(frozen=True)
class Judged:
    """(n,) masks over steps: those of a slow start, and outliers; the others are ordinary."""

    slow_start: BoolArray
    outlier: BoolArray


def judge(duration_ns: IntArray, phases: Sequence[Hashable], known_warmup: Sequence[bool]) -> Judged:
    """Tell the steps of each phase apart by their times. Columns are in order of time, empty steps left out.

    ``known_warmup``: warm-up for other reasons, and so no ordinary step.
    """
    slow_start, outlier = np.zeros(len(duration_ns), bool), np.zeros(len(duration_ns), bool)
    for phase in dict.fromkeys(phases):
        mine = np.array([at for at, of in enumerate(phases) if of == phase], np.int64)
        if len(mine) < MIN_GROUP:
            continue
        far, slow = _far_outside(duration_ns[mine])
        ordinary = ~far & ~np.array([known_warmup[at] for at in mine.tolist()], bool)
        before = np.cumsum(ordinary) == 0
        slow_start[mine] = far & slow & before
        outlier[mine] = far & ~slow_start[mine]
    return Judged(slow_start, outlier)


def _far_outside(duration_ns: IntArray) -> tuple[BoolArray, BoolArray]:
    """Whether each time lies far from the median, and whether it is above it."""
    times = duration_ns.astype(np.float64)
    middle = float(np.median(times))
    differs = (times > OUTLIER_RATIO * middle) | (times * OUTLIER_RATIO < middle)
    return (np.abs(robust_z(times)) > OUTLIER_Z) & differs, times > middle
