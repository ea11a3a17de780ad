"""Which phase of one run stands against which of the other, and what differs between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec

from analyzer.comparison.result import Difference, PhasePair, Replayed, WorkCheck
from analyzer.comparison.sides import budget_of, mean_ns, replayed, step_times_of, step_work_of
from analyzer.comparison.statistics import speedup_interval, step_delta, step_times
from analyzer.comparison.work import RankWork, check_work
from analyzer.diagnosis import Budget, Diagnosis

PROVEN = ("identical", "equivalent")


def phase_pairs(a: Diagnosis, b: Diagnosis) -> tuple[list[tuple[str, str]], list[Difference]]:
    """Phases of both runs in A's order, the most time first, and those that only one side has.

    Runs that share no phase's name are held against each other by their leading phases.
    """
    left, right = _phases(a), _phases(b)
    common = [(phase, phase) for phase in left if phase in right]
    if not common and left and right:
        common = [(left[0], right[0])]
    paired_a, paired_b = {one for one, _ in common}, {two for _, two in common}
    alone = [Difference(what="phase", a=phase, b="none") for phase in left if phase not in paired_a]
    alone += [Difference(what="phase", a="none", b=phase) for phase in right if phase not in paired_b]
    return common, alone


def _phases(diagnosis: Diagnosis) -> list[str]:
    time: dict[str, int] = {}
    for budget in diagnosis.budget:
        time[budget.phase] = max(time.get(budget.phase, 0), budget.step_ns_total)
    return sorted(time, key=lambda phase: (-time[phase], phase))


def compared_pairs(
    a: Diagnosis,
    b: Diagnosis,
    phases: Sequence[tuple[str, str]],
    limited: Callable[[WorkCheck], WorkCheck] = lambda work: work,
) -> list[PhasePair]:
    """Every pair of phases: of all ranks where both have that, then rank by rank, the slowest in A first.

    ``limited``: what a finding about launched work is worth in these two runs.
    """
    result = []
    for one, two in phases:
        work_a, work_b = _work(a, one), _work(b, two)
        if len(work_a) == len(work_b) == 1:  # one rank each: these two, whatever their numbers
            shared = check_work(dict(enumerate(work_a.values())), dict(enumerate(work_b.values())))
        else:
            shared = check_work(work_a, work_b)
        both = budget_of(a, one, None), budget_of(b, two, None)
        if both[0] is not None and both[1] is not None:
            result.append(_pair(a, b, both[0], both[1], limited(shared)))
        for left, right in _by_rank(a, b, one, two):
            work = shared
            if sorted(work_a) == sorted(work_b):
                work = check_work({0: work_a[_rank_of(left)]}, {0: work_b[_rank_of(right)]})
            result.append(_pair(a, b, left, right, limited(work)))
    return result


def _rank_of(budget: Budget) -> int:
    assert budget.rank is not None
    return budget.rank


def _by_rank(a: Diagnosis, b: Diagnosis, one: str, two: str) -> list[tuple[Budget, Budget]]:
    """Budgets of equal ranks; where each side has one rank, these two whatever their numbers."""
    left = {budget.rank: budget for budget in a.budget if budget.phase == one and budget.rank is not None}
    right = {budget.rank: budget for budget in b.budget if budget.phase == two and budget.rank is not None}
    if len(left) == len(right) == 1:
        return [(next(iter(left.values())), next(iter(right.values())))]
    common = [rank for rank in left if rank in right]
    common.sort(key=lambda rank: (-_mean(left[rank]), rank))
    return [(left[rank], right[rank]) for rank in common]


def _mean(budget: Budget) -> Fraction:
    return Fraction(budget.step_ns_total, budget.windows)


def _work(diagnosis: Diagnosis, phase: str) -> dict[int, RankWork]:
    """What each rank launched in a phase."""
    budgets = [budget for budget in diagnosis.budget if budget.phase == phase and budget.rank is not None]
    return {
        _rank_of(budget): RankWork(step_work_of(diagnosis, phase, _rank_of(budget)), budget.windows)
        for budget in budgets
    }


def _pair(a: Diagnosis, b: Diagnosis, left: Budget, right: Budget, work: WorkCheck) -> PhasePair:
    times_a, times_b = step_times_of(a, left), step_times_of(b, right)
    mean_a, mean_b = mean_ns(left), mean_ns(right)
    total_a, total_b = sum(mean_a.values()), sum(mean_b.values())
    delta = {name: mean_b.get(name, 0) - mean_a.get(name, 0) for name in {**mean_a, **mean_b}}
    # The mean as its categories sum to it: both sides are rounded to whole ns before they are subtracted.
    difference = msgspec.structs.replace(step_delta(times_a, times_b), mean=total_b - total_a)
    comparable = work.same_work in PROVEN and a.step_boundary == b.step_boundary and total_b > 0
    return PhasePair(
        phase_a=left.phase,
        phase_b=right.phase,
        scope=left.scope,
        rank_a=left.rank,
        rank_b=right.rank,
        a=msgspec.structs.replace(step_times(times_a), mean=total_a),
        b=msgspec.structs.replace(step_times(times_b), mean=total_b),
        step_delta_ns=difference,
        delta_ns=delta,
        a_ns=mean_a,
        b_ns=mean_b,
        work=work,
        speedup=total_a / total_b if comparable else None,
        speedup_ci95=_speedup_ci95(times_a, times_b, total_a / total_b) if comparable else None,
        replayed_a=_replayed(a, left),
        replayed_b=_replayed(b, right),
    )


def _speedup_ci95(
    times_a: Sequence[int], times_b: Sequence[int], speedup: float
) -> tuple[float, float] | None:
    """The speedup is that of means rounded to whole ns: the interval reaches at least to it."""
    found = speedup_interval(times_a, times_b)
    return None if found is None else (min(found[0], speedup), max(found[1], speedup))


def _replayed(diagnosis: Diagnosis, budget: Budget) -> Replayed:
    ranks = [rank.rank for rank in diagnosis.ranks] if budget.rank is None else [budget.rank]
    return replayed([row for rank in ranks for row in step_work_of(diagnosis, budget.phase, rank)])
