"""How long steps take without a profiler and with one, by the calls that end them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import comb
from statistics import median

from collectors.manifest import Inflation, Interval

MIN_TIMED_STEPS = 3
"""Fewer steps have no median that means anything."""
MIN_INTERVAL_STEPS = 6
"""Fewer steps have no 95 % interval of their median: six lie on one side of it once in 32 times."""
NO_FASTER = 0.95
"""A profiler makes no step faster: where there is no interval, profiled steps that take less than this share of plain
ones tell of a loop that was not steady."""
_OUTSIDE = 0.05
_LATER = "raise --wait, so that they come later"


class StepTimes:
    """Steps of one loop, by this host's monotonic clock, ns.

    A step lasts from ``begin()`` to ``now()``: what is done between them, at the end of a step, is in no step. Nothing
    is synchronized, so steps that only submit work to a device are host time.
    """

    def __init__(self) -> None:
        self.plain_ns: list[int] = []
        self.profiled_ns: list[int] = []
        self._began_ns: int | None = None

    def begin(self) -> None:
        """A step begins."""
        self._began_ns = time.perf_counter_ns()

    def now(self) -> int | None:
        """How long the step has lasted; None for one whose beginning was not seen."""
        now = time.perf_counter_ns()
        return None if self._began_ns is None else now - self._began_ns

    def inflation(self) -> tuple[Inflation | None, str]:
        """The median step with the profiler and without it; None where that cannot be told.

        Beside it a note where no cost can be claimed, and why; empty where one can.
        """
        plain, profiled = self.plain_ns, self.profiled_ns
        if min(len(plain), len(profiled)) < MIN_TIMED_STEPS:
            return None, (
                f"profiling cost not measured: {len(plain)} plain and {len(profiled)} profiled steps were timed, "
                f"{MIN_TIMED_STEPS} of each are needed (of the plain ones the first does not count): raise "
                f"{_short_of(plain, profiled, MIN_TIMED_STEPS)}"
            )
        cost = Inflation(
            round(median(profiled)),
            round(median(plain)),
            len(profiled),
            len(plain),
            interval_of_median(profiled),
            interval_of_median(plain),
        )
        if _faster(cost):
            why = (
                "a profiler makes no step faster, so the loop was still warming up in the plain steps, or something "
                f"else slowed them: {_LATER}"
            )
            return None, f"profiling cost not measured: {_words(cost)}; {why}"
        if cost.costs is None:
            raised = _short_of(plain, profiled, MIN_INTERVAL_STEPS)
            why = f"an interval takes {MIN_INTERVAL_STEPS} of each: raise {raised}"
            return cost, f"profiling cost not certain: {_words(cost)}; {why}"
        if not cost.costs:
            why = "the intervals overlap: more steps (--wait, --active) would narrow them"
            return cost, f"profiling cost not told from chance: {_words(cost)}; {why}"
        return cost, ""


def interval_of_median(values: Sequence[int]) -> Interval | None:
    """Between which of the values the median lies, at 95 % or more, whatever the distribution.

    By order statistics, for steps that do not depend on one another; None for fewer than 6.
    """
    count, ordered = len(values), sorted(values)
    rank, outside = 0, 0.0
    while True:
        outside += 2 * comb(count, rank) / 2**count  # ``rank`` of the values or fewer lie on one side
        if outside > _OUTSIDE:
            break
        rank += 1
    return Interval(ordered[rank - 1], ordered[count - rank]) if rank else None


def _faster(cost: Inflation) -> bool:
    if cost.profiled_interval is None or cost.plain_interval is None:
        return cost.ratio < NO_FASTER
    return cost.profiled_interval.high_ns < cost.plain_interval.low_ns


def _short_of(plain: Sequence[int], profiled: Sequence[int], needed: int) -> str:
    options = (("--wait", plain), ("--active", profiled))
    return " and ".join(option for option, steps in options if len(steps) < needed)


def _words(cost: Inflation) -> str:
    before = _step(cost.plain_step_ns, cost.plain_steps, cost.plain_interval)
    inside = _step(cost.profiled_step_ns, cost.profiled_steps, cost.profiled_interval)
    return f"steps took {before} before the window and {inside} in it"


def _step(step_ns: int, count: int, interval: Interval | None) -> str:
    spread = (
        "no interval"
        if interval is None
        else f"95 % interval {interval.low_ns / 1e6:.3f} to {interval.high_ns / 1e6:.3f}"
    )
    return f"{step_ns / 1e6:.3f} ms (median of {count}, {spread})"
