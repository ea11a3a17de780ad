"""What was measured at each rank count: mean step, speedup and efficiency, and where more ranks stop helping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.fits import RunMean
from analyzer.study.scaling_fit import CountedRun, line_at, whole_means
from analyzer.study.scaling_result import Interval, ScalingPoint, StepChange
from analyzer.uncertain import Uncertain, difference_interval, interval, product_interval

NEXT_TO_NOTHING = 0.01
"""Of the step: fewer ranks are enough where more make it at most so much shorter."""


def points_of(runs: Sequence[CountedRun], *, with_fit: bool) -> list[ScalingPoint]:
    """One point per rank count, fewest ranks first."""
    counts = sorted({run.ranks for run in runs})
    means = whole_means(runs)
    times = {
        ranks: pooled([mean for run, mean in zip(runs, means, strict=True) if run.ranks == ranks])
        for ranks in counts
    }
    result = []
    for at, ranks in enumerate(counts):
        time, first = times[ranks], times[counts[0]]
        fit, fit_ends = line_at(runs, ranks) if with_fit else (None, None)
        speedup = first.value / time.value
        ends = None if at == 0 else product_interval([(first, 1), (time, -1)])
        ideal = ranks / counts[0]
        result.append(
            ScalingPoint(
                ranks=ranks,
                runs=sum(run.ranks == ranks for run in runs),
                mean_step_ns=time.value,
                variance_ns2=time.variance,
                degrees_of_freedom=time.dof,
                ci95_ns=_not_negative(interval(time)),
                fitted_ns=fit,
                fitted_ci95_ns=fit_ends,
                speedup=speedup,
                speedup_ci95=ends,
                efficiency=speedup / ideal,
                efficiency_ci95=None if ends is None else (ends[0] / ideal, ends[1] / ideal),
                than_before=None if at == 0 else _change(time, times[counts[at - 1]]),
            )
        )
    return result


def _not_negative(ends: Interval | None) -> Interval | None:
    return None if ends is None else (max(0.0, ends[0]), ends[1])


def pooled(means: Sequence[RunMean]) -> Uncertain:
    """The mean of repeated runs. Its variance is that of the steps, or of the runs where these scatter more."""
    m = len(means)
    value = sum(one.mean for one in means) / m
    known = [one.variance for one in means if one.variance is not None]
    within = sum(known) / m**2 if len(known) == m else None
    between = float(np.var([one.mean for one in means], ddof=1)) / m if m > 1 else None
    if between is not None and (within is None or between > within):
        return Uncertain(value, between, m - 1)
    return Uncertain(value, within, float(sum(one.dof for one in means)))


def _change(time: Uncertain, before: Uncertain) -> StepChange:
    """How a step differs from the one before it, beyond chance."""
    ends = difference_interval(time, before)
    if ends is None or ends[0] <= 0 <= ends[1]:
        return "not told"
    return "shorter" if ends[1] < 0 else "longer"


def last_improvement(points: Sequence[ScalingPoint]) -> tuple[int | None, str]:
    """The fewest ranks that every larger measured count is shown not to beat by more than ``NEXT_TO_NOTHING``.

    That no improvement is shown is not enough: else noise would make ranks look useless. The text says why they are not
    known.
    """
    times = [Uncertain(one.mean_step_ns, one.variance_ns2, one.degrees_of_freedom) for one in points]
    if any(time.variance is None for time in times):
        return None, "too few steps tell how they scatter"
    for at, point in enumerate(points[:-1]):
        if all(_no_better(later, times[at]) for later in times[at + 1 :]):
            return point.ranks, ""
    if len(points) == 1:
        return None, "one rank count says nothing of more"
    if points[-1].than_before == "shorter":
        return (
            None,
            f"the step still gets shorter up to {points[-1].ranks} ranks, the most that were measured",
        )
    return None, "the intervals are too wide to tell"


def _no_better(later: Uncertain, time: Uncertain) -> bool:
    """Whether a step is shown to be at most next to nothing shorter."""
    ends = difference_interval(later, time)
    return ends is not None and ends[0] > -NEXT_TO_NOTHING * time.value
