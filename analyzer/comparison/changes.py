"""Device work that was added, removed, or became slower or faster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from analyzer.apportion import round_half_up
from analyzer.comparison.result import Change, WorkChange
from analyzer.comparison.sides import Amount, WorkKey, amounts, budget_of, step_work_of
from analyzer.comparison.work import Level, describe, level_of
from analyzer.diagnosis import Diagnosis, StepWork

SAME = Fraction(5, 100)
"""Mean durations of one call that differ by less count as equal: two captures of one program differ by that."""


def work_changes(
    a: Diagnosis, b: Diagnosis, phase_a: str, phase_b: str, ranks: Sequence[tuple[int, int]]
) -> list[WorkChange]:
    """All work of a phase over the ranks compared, the largest difference first.

    Matched by what it is (name, grid and block, or bytes), not by its place in the step.
    """
    left = [(row, rank) for rank, _ in ranks for row in step_work_of(a, phase_a, rank)]
    right = [(row, rank) for _, rank in ranks for row in step_work_of(b, phase_b, rank)]
    level = level_of((row for row, _ in left), (row for row, _ in right))
    mine, other = _summed(a, phase_a, left, level), _summed(b, phase_b, right, level)
    rows = [_change(key, mine.get(key), other.get(key)) for key in {**mine, **other}]
    return sorted(
        rows, key=lambda row: (-abs((row.ns_b or 0) - (row.ns_a or 0)), row.kind, row.name, row.detail)
    )


def _summed(
    diagnosis: Diagnosis, phase: str, rows: Iterable[tuple[StepWork, int]], level: Level
) -> dict[WorkKey, Amount]:
    """Work per mean step, added over the ranks."""
    of_rank: dict[int, list[StepWork]] = {}
    for row, rank in rows:
        of_rank.setdefault(rank, []).append(row)
    total: dict[WorkKey, Amount] = {}
    for rank, mine in of_rank.items():
        budget = budget_of(diagnosis, phase, rank)
        if budget is None:
            continue
        for key, amount in amounts(
            mine, budget.windows, sized=level.sized, shaped=level.shaped, counted=level.counted
        ).items():
            held = total.get(key, Amount(Fraction(0), Fraction(0)))
            total[key] = Amount(held.calls + amount.calls, held.ns + amount.ns)
    return total


def _change(key: WorkKey, a: Amount | None, b: Amount | None) -> WorkChange:
    kind, name = str(key[0]), str(key[1])
    words = describe(key)
    return WorkChange(
        name=name,
        kind=kind,
        detail=words.partition(name)[2].strip(" ()") if name in words else "",
        change=_word(a, b),
        calls_a=None if a is None else float(a.calls),
        calls_b=None if b is None else float(b.calls),
        ns_a=None if a is None else round_half_up(a.ns),
        ns_b=None if b is None else round_half_up(b.ns),
    )


def _word(a: Amount | None, b: Amount | None) -> Change:
    if a is None or b is None:
        return "added" if a is None else "removed"
    before, after = a.ns / a.calls, b.ns / b.calls
    if abs(after - before) <= SAME * max(before, after):
        return "same"
    return "slower" if after > before else "faster"
