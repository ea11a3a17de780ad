"""What was measured at each rank count: mean step, speedup and efficiency, and where more ranks stop helping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.fits import RunMean
from analyzer.study.scaling_fit import CountedRun, line_at, whole_means
from analyzer.study.scaling_result import ScalingPoint
from analyzer.uncertain import Uncertain, difference_interval, interval, product_interval


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
                ci95_ns=interval(time),
                fitted_ns=fit,
                fitted_ci95_ns=fit_ends,
                speedup=speedup,
                speedup_ci95=ends,
                efficiency=speedup / ideal,
                efficiency_ci95=None if ends is None else (ends[0] / ideal, ends[1] / ideal),
                shorter_than_before=None if at == 0 else shorter(time, times[counts[at - 1]]),
            )
        )
    return result


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


def shorter(time: Uncertain, before: Uncertain) -> bool | None:
    """Whether a step is shorter beyond chance. None where too few steps tell how they scatter."""
    ends = difference_interval(time, before)
    return None if ends is None else ends[1] < 0


def last_improvement(points: Sequence[ScalingPoint]) -> tuple[int | None, str]:
    """The fewest ranks that no larger measured count is shown to beat, or why they are not known."""
    times = [Uncertain(one.mean_step_ns, one.variance_ns2, one.degrees_of_freedom) for one in points]
    if any(time.variance is None for time in times):
        return None, "too few steps tell how they scatter"
    for at, point in enumerate(points[:-1]):
        if not any(shorter(later, times[at]) for later in times[at + 1 :]):
            return point.ranks, ""
    return None, f"the step still gets shorter up to {points[-1].ranks} ranks, the most that were measured"
