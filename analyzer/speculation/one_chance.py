"""Whether one chance for all positions describes counts of accepted drafts.

A G test that all positions have one chance (Sokal and Rohlf), divided by the mean design effect of the positions where
requests cluster (Rao and Scott 1984) and then held against F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc
from scipy.stats import chi2_contingency

from analyzer.model import IntArray
from analyzer.speculation.ratios import Ratio, clustered, design_effect, independent

FloatArray = npt.NDArray[np.float64]
Shape = Literal["falls", "rises", "mixed", "constant", "untested"]

REJECTED_BELOW = 0.01
LEAST_EXPECTED = 5
"""Expected successes and failures that a position of the G test has at least; smaller ones are pooled."""
TREND_Z = 1.96


@dataclass(frozen=True)
class Judged:
    """Trials at one position, by cluster where requests are known (m,), else as one number."""

    position: int
    trials: IntArray
    accepted: IntArray


def chance_of(trials: IntArray, accepted: IntArray, clusters: bool, inflation: float) -> Ratio:
    """Accepted over trials: over (m,) requests each, else of one number each that stands for all cycles."""
    if clusters:
        return clustered(accepted, trials)
    n, successes = int(trials.sum()), int(accepted.sum())
    outcome = np.array([1, 0], np.int64)
    return independent(outcome, np.array([successes, n - successes], np.int64), inflation)


@dataclass(frozen=True)
class Test:
    """That all positions have one chance. ``freedom`` 0: nothing to test."""

    statistic: float | None
    freedom: int
    effect: float
    p_value: float | None
    shape: Shape


def one_chance_test(judged: Sequence[Judged], chance: float, clusters: bool, inflation: float) -> Test:
    """Test ``chance``, the best single one, against the positions' own."""
    groups = _groups(judged, chance)
    if len(groups) < 2:
        return Test(None, 0, 1.0, None, "untested")
    trials = np.array([int(group.trials.sum()) for group in groups], np.float64)
    accepted = np.array([int(group.accepted.sum()) for group in groups], np.float64)
    freedom = len(groups) - 1
    ratios = [chance_of(group.trials, group.accepted, clusters, inflation) for group in groups]
    effects = [design_effect(one, int(n)) for one, n in zip(ratios, trials, strict=True)]
    effect = max(1.0, float((1 - trials / trials.sum()) @ np.array(effects)) / freedom)
    table = np.array([accepted, trials - accepted])
    statistic = float(chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic) / effect
    fewest = min(one.clusters for one in ratios)
    p_value = (
        float(fdtrc(freedom, freedom * max(1, fewest - 1), statistic / freedom))
        if clusters
        else float(chdtrc(freedom, statistic))
    )
    return Test(statistic, freedom, effect, p_value, _shape(p_value, trials, accepted, effect))


def _groups(judged: Sequence[Judged], chance: float) -> list[Judged]:
    """Neighbouring positions together until each group is expected to have enough of both outcomes."""
    least = LEAST_EXPECTED / max(min(chance, 1 - chance), 1e-300)
    groups: list[Judged] = []
    for one in judged:
        if groups and int(groups[-1].trials.sum()) < least:
            groups[-1] = _joined(groups[-1], one)
        else:
            groups.append(one)
    if len(groups) > 1 and int(groups[-1].trials.sum()) < least:
        last = groups.pop()
        groups[-1] = _joined(groups[-1], last)
    return groups if groups and int(groups[0].trials.sum()) >= least else []


def _joined(one: Judged, two: Judged) -> Judged:
    return Judged(one.position, one.trials + two.trials, one.accepted + two.accepted)


def _shape(p_value: float, trials: FloatArray, accepted: FloatArray, effect: float) -> Shape:
    """How chances go with the position: Cochran and Armitage's trend where one chance is rejected."""
    if p_value >= REJECTED_BELOW:
        return "constant"
    place = np.arange(len(trials), dtype=np.float64)
    pooled = float(accepted.sum() / trials.sum())
    centred = place - float(place @ trials / trials.sum())
    trend = float(centred @ (accepted - pooled * trials))
    spread = math.sqrt(pooled * (1 - pooled) * float(trials @ centred**2) * effect)
    if abs(trend) < TREND_Z * spread:
        return "mixed"
    return "falls" if trend < 0 else "rises"


def words(test: Test) -> str:
    """What the test tells, as the rest of a sentence."""
    if test.p_value is None:
        return "too few judged tokens to tell whether one chance describes them"
    told = f"G test that all positions have one chance: p = {test.p_value:.2g}"
    if test.shape == "constant":
        return f"{told}: the counts do not contradict it"
    how = {
        "falls": "acceptance falls with the position",
        "rises": "acceptance rises with the position (requests that differ look so: late positions are reached by the"
        " easy ones)",
        "mixed": "acceptance differs between positions without a trend",
    }[test.shape]
    return f"{told}: {how}; at another draft length the model with one chance is wrong"
