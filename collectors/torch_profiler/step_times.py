"""How long steps take without a profiler and with one, by the calls that end them."""

from __future__ import annotations

import time
from statistics import median

from collectors.manifest import Inflation

MIN_TIMED_STEPS = 3
"""Fewer steps have no median that means anything."""
NO_FASTER = 0.95
"""A profiler makes no step faster: where profiled steps take less than that of plain ones, the loop was not steady."""


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
        """The median profiled step over the median plain step; None and the reason where that cannot be told."""
        plain, profiled = self.plain_ns, self.profiled_ns
        if min(len(plain), len(profiled)) < MIN_TIMED_STEPS:
            return None, (
                f"profiling cost not measured: {len(plain)} plain and {len(profiled)} profiled steps were timed, "
                f"{MIN_TIMED_STEPS} of each are needed (of the plain ones the first does not count)"
            )
        cost = Inflation(round(median(profiled)), round(median(plain)), len(profiled), len(plain))
        if cost.ratio < NO_FASTER:
            return None, (
                f"profiling cost not measured: steps took {cost.plain_step_ns / 1e6:.3f} ms before the window and "
                f"{cost.profiled_step_ns / 1e6:.3f} ms in it, so the loop was still warming up; wait for more steps"
            )
        return cost, ""
