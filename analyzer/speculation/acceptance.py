"""What counts of accepted drafts tell: tokens per cycle, chances by position, and whether one chance describes them.

The mean of tokens per cycle is measured whatever the chances are. The model ``E = (1 - a^(k+1)) / (1 - a)`` needs one
chance ``a`` for every position; its best value (maximum likelihood of a geometric length cut at the draft's end) is
the share of accepted among the tokens that were *judged*: accepted ones and the first rejected one of each cycle. An
engine's counter, accepted / drafted, is another number: drafted tokens behind a rejected one were never judged.

Whether one chance describes the counts is a G test that all positions have one chance (Sokal and Rohlf), divided by
the mean design effect of the positions where requests cluster (Rao and Scott 1984) and then held against F.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc
from scipy.stats import chi2_contingency

from analyzer.calculators.decoding import expected_tokens
from analyzer.model import IntArray
from analyzer.speculation.counts import Cycles, Totals
from analyzer.speculation.ratios import (
    MIN_REQUESTS,
    TAIL,
    Ratio,
    chance_interval,
    clustered,
    design_effect,
    independent,
)
from analyzer.speculation.result import Acceptance, ConstantChance, Position
from analyzer.stats import mean_inflation

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


def measured(source: str, counts: Cycles | Totals) -> tuple[Acceptance, Ratio | None]:
    """What the counts tell, and tokens per cycle with its variance (None where cycles were not counted)."""
    if isinstance(counts, Totals):
        return _of_totals(source, counts)
    inflation = _order_inflation(counts)
    tokens = tokens_per_cycle(counts, inflation)
    judged = _judged(counts)
    clusters = counts.request is not None
    positions = [_position(one, inflation, clusters=clusters) for one in judged]
    constant = _constant(counts, judged, inflation) if judged else None
    acceptance = Acceptance(
        source=source,
        form=counts.form,
        cycles=counts.cycles,
        requests=counts.requests,
        draft_tokens=counts.draft_tokens,
        accepted=counts.accepted_total,
        drafted=counts.drafted_total,
        tokens_per_cycle=tokens.value,
        tokens_ci95=_tokens_interval(counts, tokens),
        tokens_because=_rests_on(counts, tokens),
        accepted_per_drafted=counts.accepted_total / counts.drafted_total if counts.drafted_total else None,
        positions=positions,
        constant=constant,
        constant_because="" if constant else _why_no_chance(counts),
    )
    return acceptance, tokens


def _of_totals(source: str, totals: Totals) -> tuple[Acceptance, Ratio | None]:
    tokens = None if totals.cycles is None else 1 + totals.accepted / totals.cycles
    acceptance = Acceptance(
        source=source,
        form="totals",
        cycles=totals.cycles,
        requests=None,
        draft_tokens=None,
        accepted=totals.accepted,
        drafted=totals.drafted,
        tokens_per_cycle=tokens,
        tokens_ci95=None,
        tokens_because=(
            "totals do not tell how cycles differ: there is no interval"
            if tokens is not None
            else "the number of verifications was not counted: tokens per cycle are not known"
        ),
        accepted_per_drafted=totals.accepted / totals.drafted if totals.drafted else None,
        positions=[],
        constant=None,
        constant_because=(
            "accepted / drafted is an average over drafted tokens, most of which are never judged once one before them"
            " is rejected: it is not the chance of the model, and no chance follows from totals"
        ),
    )
    return acceptance, None if tokens is None else Ratio(tokens, None, 0.0, 0)


def tokens_per_cycle(counts: Cycles, inflation: float = 1.0) -> Ratio:
    """Mean of accepted + 1 over cycles."""
    if counts.request is None:
        return independent(counts.accepted + 1, counts.times, inflation)
    parts = _by_request(counts, (counts.accepted + 1) * counts.times)
    return clustered(parts, _by_request(counts, counts.times))


def _order_inflation(counts: Cycles) -> float:
    """Of the variance of a mean, where cycles are listed one by one and nothing tells requests apart."""
    if counts.form != "cycles" or counts.request is not None:
        return 1.0
    return mean_inflation(counts.accepted - counts.accepted.mean())


def _by_request(counts: Cycles, values: IntArray) -> IntArray:
    assert counts.request is not None
    sums = np.bincount(counts.request, weights=values.astype(np.float64), minlength=counts.requests or 0)
    return sums.astype(np.int64)


def _tokens_interval(counts: Cycles, tokens: Ratio) -> tuple[float, float] | None:
    """Student's t; where all cycles are alike, what an unseen kind of cycle could still change."""
    margin = tokens.margin
    if margin is None:
        return None
    if tokens.variance == 0:
        unseen = 1 - TAIL ** (1 / tokens.clusters)
        lowest, highest = 1.0, counts.draft_tokens + 1.0
        return (
            tokens.value - unseen * (tokens.value - lowest),
            tokens.value + unseen * (highest - tokens.value),
        )
    return max(1.0, tokens.value - margin), min(counts.draft_tokens + 1.0, tokens.value + margin)


def _rests_on(counts: Cycles, tokens: Ratio) -> str:
    what = "cycles" if counts.request is None else "requests"
    if tokens.variance is None:
        return f"fewer than {MIN_REQUESTS} {what} (or one that outweighs all): there is no interval"
    if counts.request is not None:
        return f"95 % interval from how {tokens.clusters:,} requests differ (jackknife)"
    order = ", widened by the correlation of neighbours" if counts.form == "cycles" else ""
    return (
        f"95 % interval of {tokens.clusters:,} cycles taken as independent{order}: cycles of one request resemble one"
        " another, and without a column request the true interval may be wider"
    )


def _judged(counts: Cycles) -> list[Judged]:
    """Trials by position: cycles that drafted it and accepted all before it. None where drafts' lengths are unknown."""
    if counts.drafted is None:
        return []
    result = []
    for position in range(1, counts.draft_tokens + 1):
        trial = (counts.accepted >= position - 1) & (counts.drafted >= position)
        trials = counts.times * trial
        accepted = counts.times * (trial & (counts.accepted >= position))
        if counts.request is not None:
            trials, accepted = _by_request(counts, trials), _by_request(counts, accepted)
        result.append(Judged(position, trials, accepted))
    return result


def _chance(trials: IntArray, accepted: IntArray, clusters: bool, inflation: float) -> Ratio:
    if clusters:
        return clustered(accepted, trials)
    n, successes = int(trials.sum()), int(accepted.sum())
    outcome = np.array([1, 0], np.int64)
    return independent(outcome, np.array([successes, n - successes], np.int64), inflation)


def _position(judged: Judged, inflation: float, *, clusters: bool) -> Position:
    n, successes = int(judged.trials.sum()), int(judged.accepted.sum())
    if not n:
        return Position(position=judged.position, trials=0, accepted=0, chance=None, ci95=None)
    chance = _chance(judged.trials, judged.accepted, clusters, inflation)
    return Position(
        position=judged.position,
        trials=n,
        accepted=successes,
        chance=chance.value,
        ci95=chance_interval(chance, n),
    )


def _constant(counts: Cycles, judged: Sequence[Judged], inflation: float) -> ConstantChance | None:
    clusters = counts.request is not None
    trials = np.sum([one.trials for one in judged], axis=0)
    accepted = np.sum([one.accepted for one in judged], axis=0)
    n = int(trials.sum())
    if not n:
        return None
    best = _chance(trials, accepted, clusters, inflation)
    assert counts.drafted is not None
    lengths, at = np.unique(counts.drafted, return_inverse=True)
    model = np.array([expected_tokens(best.value, int(length)) for length in lengths])
    expected = float(model[at] @ counts.times) / counts.cycles
    test = _one_chance_test(judged, best.value, clusters, inflation)
    return ConstantChance(
        chance=best.value,
        ci95=chance_interval(best, n),
        expected_tokens=expected,
        statistic=test.statistic,
        degrees_of_freedom=test.freedom,
        design_effect=test.effect,
        p_value=test.p_value,
        describes=None if test.p_value is None else test.p_value >= REJECTED_BELOW,
        shape=test.shape,  # type: ignore[arg-type]
        because=_words(test),
    )


@dataclass(frozen=True)
class Test:
    """That all positions have one chance. ``freedom`` 0: nothing to test."""

    statistic: float | None
    freedom: int
    effect: float
    p_value: float | None
    shape: str


def _one_chance_test(judged: Sequence[Judged], chance: float, clusters: bool, inflation: float) -> Test:
    groups = _groups(judged, chance)
    if len(groups) < 2:
        return Test(None, 0, 1.0, None, "untested")
    trials = np.array([int(group.trials.sum()) for group in groups], np.float64)
    accepted = np.array([int(group.accepted.sum()) for group in groups], np.float64)
    freedom = len(groups) - 1
    ratios = [_chance(group.trials, group.accepted, clusters, inflation) for group in groups]
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


def _shape(
    p_value: float, trials: np.ndarray[tuple[int], np.dtype[np.float64]], accepted: object, effect: float
) -> str:
    """How chances go with the position: Cochran and Armitage's trend where one chance is rejected."""
    if p_value >= REJECTED_BELOW:
        return "constant"
    successes = np.asarray(accepted, np.float64)
    place = np.arange(len(trials), dtype=np.float64)
    pooled = float(successes.sum() / trials.sum())
    centred = place - float(place @ trials / trials.sum())
    trend = float(centred @ (successes - pooled * trials))
    spread = math.sqrt(pooled * (1 - pooled) * float(trials @ centred**2) * effect)
    if abs(trend) < TREND_Z * spread:
        return "mixed"
    return "falls" if trend < 0 else "rises"


def _words(test: Test) -> str:
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


def _why_no_chance(counts: Cycles) -> str:
    if counts.drafted is None:
        return (
            "some drafts were shorter and nothing tells which: how often a position was judged is not known, and no"
            " chance follows"
        )
    return "no drafted token was judged"
