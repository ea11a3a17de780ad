"""``T(N) = S + P / N`` through the mean steps of runs, whole and by category.

Two runs solve exactly, ``S = (N T_N - T_1) / (N - 1)``; three or more are fitted by weighted least squares
(:mod:`analyzer.fits`). Categories are fitted with the weights of the whole, so their S and P sum to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzer.comparison.headline import Headline
from analyzer.fits import Estimate, FloatArray, RunLine, RunMean, fit_runs, run_mean, weights_of
from analyzer.scaling.result import Behaviour, CategoryFit, CurvePoint, Interval, ScalingFit

MISFIT_BELOW = 0.01
"""Chance of such residuals from the steps' noise alone, below which the curve is said not to describe the runs."""
CURVE_POINTS = 33
NEXT_TO_NOTHING = 1e-6
"""Parallel shares below it: the place at which the line is 0 lies too far away to be computed with."""
ROUNDING = 1e-12
"""Of the largest mean step: what floating point leaves of a part that is 0."""
LEAST_SHARE = 0.001
"""Of the shortest mean step: categories whose P is less are not said to grow or to shrink with the ranks."""


@dataclass(frozen=True)
class CountedRun:
    """The steps of one run of ``ranks`` ranks."""

    ranks: int
    steps: Headline


def whole_means(runs: Sequence[CountedRun]) -> list[RunMean]:
    """Mean step of each run over 1 / ranks."""
    return [run_mean(1 / run.ranks, run.steps.step_ns) for run in runs]


def fitted(runs: Sequence[CountedRun]) -> tuple[ScalingFit, list[CategoryFit]]:
    """The fit of the whole and of each category that any run has. Raises ValueError at one rank count."""
    means = whole_means(runs)
    weights = weights_of(means)
    line = fit_runs(means, weights)
    categories = _categories(runs, weights)
    largest = max(mean.mean for mean in means)
    serial, parallel = (_rounded(one.value, largest) for one in (line.intercept, line.slope))
    exact = len(runs) == 2
    share = _share(means, weights, serial, parallel)
    residuals = list(line.residuals)
    counts = sorted({run.ranks for run in runs})
    growing = sum(-one.parallel_ns for one in categories if one.behaviour == "grows")
    fit = ScalingFit(
        method="exact" if exact else "least squares",
        serial_ns=serial,
        serial_ci95_ns=line.intercept.ci95,
        parallel_ns=parallel,
        parallel_ci95_ns=line.slope.ci95,
        serial_share=None if share is None else share[0],
        serial_share_ci95=None if share is None else share[1],
        growing_ns=growing,
        own_serial_share=None
        if share is None or serial < growing
        else (serial - growing) / (serial + parallel),
        residuals_ns=None if exact else residuals,
        rms_residual_ns=None if exact else math.sqrt(sum(one**2 for one in residuals) / len(residuals)),
        misfit_p=line.misfit_p,
        between_runs=line.between_runs,
        limit_speedup=(serial + parallel) / serial if share is not None and serial > 0 else None,
        curve=[
            CurvePoint(ranks=at, step_ns=value, ci95_ns=ends) for at, value, ends in _curve(means, weights)
        ],
        cautions=_cautions(line, serial, parallel, counts, len(runs)),
    )
    return fit, categories


def line_at(runs: Sequence[CountedRun], ranks: float) -> tuple[float, Interval | None]:
    """The fitted step at a rank count and its 95 % interval (ns)."""
    means = whole_means(runs)
    return _value_at(means, weights_of(means), 1 / ranks)


def _rounded(value: float, largest: float) -> float:
    """0 where a value is what the arithmetic leaves of nothing: its sign says nothing."""
    return 0.0 if abs(value) <= ROUNDING * largest else value


def _curve(means: Sequence[RunMean], weights: FloatArray) -> Iterator[tuple[float, float, Interval | None]]:
    """(ranks, fitted step, its interval) between the measured counts."""
    xs = [mean.x for mean in means]
    for x in np.geomspace(max(xs), min(xs), CURVE_POINTS).tolist():
        yield (1 / x, *_value_at(means, weights, x))


def _value_at(means: Sequence[RunMean], weights: FloatArray, x: float) -> tuple[float, Interval | None]:
    """The line at ``x``: the intercept of the same runs moved by it."""
    at = fit_runs([replace(mean, x=mean.x - x) for mean in means], weights).intercept
    return at.value, at.ci95


def _share(
    means: Sequence[RunMean], weights: FloatArray, serial: float, parallel: float
) -> tuple[float, Interval | None] | None:
    """``S / (S + P)`` with its interval, None where a part is negative.

    To first order the error of the share ``s`` is that of ``(1 - s) S - s P`` over ``S + P``, and that is ``1 - s``
    times the line at ``x = -s / (1 - s)``, where it is 0.
    """
    if serial < 0 or parallel < 0 or serial + parallel <= 0:
        return None
    share = serial / (serial + parallel)
    if 1 - share < NEXT_TO_NOTHING:
        ends = fit_runs(means, weights).slope.ci95
        scale = serial
    else:
        _, ends = _value_at(means, weights, -share / (1 - share))
        scale = (serial + parallel) / (1 - share)
    if ends is None:
        return share, None
    margin = (ends[1] - ends[0]) / 2 / scale
    return share, (max(0.0, share - margin), min(1.0, share + margin))


def _categories(runs: Sequence[CountedRun], weights: FloatArray) -> list[CategoryFit]:
    names = [name for name in runs[0].steps.path_ns if any(any(run.steps.path_ns[name]) for run in runs)]
    shortest = min(run.steps.mean_step_ns for run in runs)
    return [_category(name, runs, weights, LEAST_SHARE * shortest) for name in names]


def _category(name: str, runs: Sequence[CountedRun], weights: FloatArray, least_ns: float) -> CategoryFit:
    means = [run_mean(1 / run.ranks, run.steps.path_ns[name]) for run in runs]
    line = fit_runs(means, weights)
    at: dict[int, list[float]] = {}
    for run, mean in zip(runs, means, strict=True):
        at.setdefault(run.ranks, []).append(mean.mean)
    behaviour = _behaviour(line.slope, least_ns)
    if behaviour == "not told" and line.slope.value < 0 and _comes_with_ranks(at, least_ns):
        behaviour = "grows"
    return CategoryFit(
        category=name,
        mean_ns={ranks: sum(values) / len(values) for ranks, values in sorted(at.items())},
        serial_ns=line.intercept.value,
        serial_ci95_ns=line.intercept.ci95,
        parallel_ns=line.slope.value,
        parallel_ci95_ns=line.slope.ci95,
        behaviour=behaviour,
    )


def _comes_with_ranks(at: Mapping[int, Sequence[float]], least_ns: float) -> bool:
    """Whether runs of the fewest ranks have none of a category (ns of each run by rank count) and all others some.

    That needs no curve: collectives that grow as no ``P / N`` does have an interval that tells nothing.
    """
    fewest = min(at)
    return not any(at[fewest]) and all(
        value > least_ns for ranks, values in at.items() if ranks > fewest for value in values
    )


def _behaviour(parallel: Estimate, least_ns: float) -> Behaviour:
    """What differs by less than ``least_ns`` between one rank and many is no news, however certain it is."""
    if parallel.ci95 is None or abs(parallel.value) < least_ns or parallel.ci95[0] <= 0 <= parallel.ci95[1]:
        return "not told"
    return "grows" if parallel.value < 0 else "spreads"


def _cautions(line: RunLine, serial: float, parallel: float, counts: Sequence[int], runs: int) -> list[str]:
    misfit_p = line.misfit_p
    untold = [
        name
        for name, ends in (("S", line.intercept.ci95), ("P", line.slope.ci95))
        if ends is not None and ends[0] <= 0 <= ends[1]
    ]
    found = []
    if parallel < 0 and "P" in untold:
        found.append(
            "P comes out negative, and is not told from 0: the fit does not show that more ranks help, or harm"
        )
    elif parallel < 0:
        found.append("more ranks are slower: no split into serial and parallel time describes this")
    if serial < 0 and "S" in untold:
        found.append("S comes out negative, and is not told from 0: there is no serial share")
    elif serial < 0:
        found.append("faster than the ranks account for (caches, other shapes): there is no serial share")
    values = {"S": serial, "P": parallel}
    found += [
        f"{name} is not told from 0: the serial share is as unsure" for name in untold if values[name] >= 0
    ]
    if len(counts) == 2:
        found.append(
            "two rank counts always fit: S and P absorb communication and everything else that changed with the ranks"
        )
    if runs == 2:
        found.append(
            "how much two runs of one program differ is not in the intervals: repeat each count to see"
        )
    if misfit_p is not None and misfit_p < MISFIT_BELOW:
        found.append(
            "the runs lie further from the curve than their steps scatter: runs of one rank count differ, or S + P / N"
            " does not describe them; the intervals hold that scatter"
        )
    if counts[0] > 1:
        found.append("one rank was not measured: S + P and the serial share extrapolate to it, a model")
    return found
