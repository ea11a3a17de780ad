"""What counts of accepted drafts tell: tokens per cycle, chances by position, and whether one chance describes them.

The mean of tokens per cycle is measured whatever the chances are. The model ``E = (1 - a^(k+1)) / (1 - a)`` needs one
chance ``a`` for every position; its best value (maximum likelihood of a geometric length cut at the draft's end) is
the share of accepted among the tokens that were *judged*: accepted ones and the first rejected one of each cycle. An
engine's counter, accepted / drafted, is another number: drafted tokens behind a rejected one were never judged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.calculators.decoding import expected_tokens
from analyzer.model import IntArray
from analyzer.speculation.counts import Cycles, Totals
from analyzer.speculation.one_chance import REJECTED_BELOW, Judged, chance_of, one_chance_test, words
from analyzer.speculation.ratios import (
    MIN_REQUESTS,
    TAIL,
    Ratio,
    chance_interval,
    clustered,
    independent,
)
from analyzer.speculation.result import Acceptance, ConstantChance, Position
from analyzer.stats import mean_inflation


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


def _position(judged: Judged, inflation: float, *, clusters: bool) -> Position:
    n, successes = int(judged.trials.sum()), int(judged.accepted.sum())
    if not n:
        return Position(position=judged.position, trials=0, accepted=0, chance=None, ci95=None)
    chance = chance_of(judged.trials, judged.accepted, clusters, inflation)
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
    best = chance_of(trials, accepted, clusters, inflation)
    assert counts.drafted is not None
    lengths, at = np.unique(counts.drafted, return_inverse=True)
    model = np.array([expected_tokens(best.value, int(length)) for length in lengths])
    expected = float(model[at] @ counts.times) / counts.cycles
    test = one_chance_test(judged, best.value, clusters, inflation)
    return ConstantChance(
        chance=best.value,
        ci95=chance_interval(best, n),
        expected_tokens=expected,
        statistic=test.statistic,
        degrees_of_freedom=test.freedom,
        design_effect=test.effect,
        p_value=test.p_value,
        describes=None if test.p_value is None else test.p_value >= REJECTED_BELOW,
        shape=test.shape,
        because=words(test),
    )


def _why_no_chance(counts: Cycles) -> str:
    if counts.drafted is None:
        return (
            "some drafts were shorter and nothing tells which: how often a position was judged is not known, and no"
            " chance follows"
        )
    return "no drafted token was judged"
