"""Device work that was added, removed, replaced at its place, or became slower or faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from analyzer.apportion import round_half_up
from analyzer.comparison.level import Level, level_of
from analyzer.comparison.places import (
    Found,
    Places,
    Replacement,
    SideShares,
    match_places,
    ordered_work,
)
from analyzer.comparison.result import Change, PlacedWork, Replaced, WorkChange
from analyzer.comparison.sides import Amount, WorkKey, amounts, budget_of, step_work_of
from analyzer.comparison.work import NONE, describe
from analyzer.diagnosis import Diagnosis

SAME = Fraction(5, 100)
"""Mean durations of one call that differ by less count as equal: two captures of one program differ by that."""

WHOLE = "graph"
"""Kind of a replay recorded as one row."""
K = TypeVar("K")
Sides = list[Amount | None]
"""A's part and B's, None on a side that has none."""


@dataclass(frozen=True)
class WorkChanges:
    """All work of a mean step, each once: in ``changes`` or in ``replaced``, the largest difference first.

    ``by_place``: places were compared, on one rank at least; ``because``: why not, or not on all, else "".
    """

    changes: list[WorkChange]
    replaced: list[Replaced]
    by_place: bool
    because: str


@dataclass
class _Sums:
    """Work added over the ranks: matched or of one side alone by key, and replaced."""

    matched: dict[WorkKey, Sides] = field(default_factory=dict)
    alone: dict[WorkKey, Sides] = field(default_factory=dict)
    replaced: dict[Replacement, Sides] = field(default_factory=dict)
    found: dict[Replacement, Found] = field(default_factory=dict)


def work_changes(
    a: Diagnosis, b: Diagnosis, phase_a: str, phase_b: str, ranks: Sequence[tuple[int, int]]
) -> WorkChanges:
    """All work of a phase over the ranks compared.

    Matched by its place in the step where the order of both is recorded, else by what it is (name, grid and block, or
    bytes) alone.
    """
    left = [row for rank, _ in ranks for row in step_work_of(a, phase_a, rank)]
    right = [row for _, rank in ranks for row in step_work_of(b, phase_b, rank)]
    level = level_of(left, right)
    sums = _Sums()
    refused: dict[int, str] = {}
    few = ""
    for rank_a, rank_b in ranks:
        places = _places(a, b, (phase_a, rank_a), (phase_b, rank_b), level)
        if isinstance(places, str):
            refused[rank_a] = places
            places = Places(0, SideShares(), SideShares(), {})
        few = few or places.few
        for side, (diagnosis, phase, rank, shares) in enumerate(
            ((a, phase_a, rank_a, places.a), (b, phase_b, rank_b, places.b))
        ):
            _add(sums, side, _amounts(diagnosis, phase, rank, level), shares)
        for key, found in places.found.items():
            known = sums.found.get(key, Found(0, found.after))
            sums.found[key] = Found(known.places + found.places, known.after)
    _settle(sums)
    hidden = [any(row.kind == WHOLE for row in rows) for rows in (left, right)]
    return WorkChanges(
        changes=_changes(sums, hidden),
        replaced=_replaced(sums),
        by_place=len(refused) < len(ranks),
        because=_because(refused, len(ranks), few),
    )


def _because(refused: Mapping[int, str], ranks: int, few: str) -> str:
    if not refused:
        return f"no sequence is that of most steps: aligned is that of {few}" if few else ""
    first = next(iter(refused.values()))
    if len(refused) == ranks:
        return first
    return f"not on rank {', '.join(map(str, refused))}: {first}"


def _places(
    a: Diagnosis, b: Diagnosis, of_a: tuple[str, int], of_b: tuple[str, int], level: Level
) -> Places | str:
    """The steps of one phase and rank on each side aligned, or why they cannot be."""
    left, right = ordered_work(a, *of_a, level), ordered_work(b, *of_b, level)
    if isinstance(left, str):
        return left
    return right if isinstance(right, str) else match_places(left, right)


def _amounts(diagnosis: Diagnosis, phase: str, rank: int, level: Level) -> dict[WorkKey, Amount]:
    """One rank's work per mean step."""
    budget = budget_of(diagnosis, phase, rank)
    if budget is None:
        return {}
    rows = step_work_of(diagnosis, phase, rank)
    return amounts(rows, budget.windows, level)


def _add(sums: _Sums, side: int, work: dict[WorkKey, Amount], shares: SideShares) -> None:
    """One rank's work on one side, cut into what is matched, alone and replaced."""
    for key, amount in work.items():
        rest = amount
        for replacement, parts in shares.replaced.items():
            if key in parts:
                rest = _take(sums.replaced, replacement, side, amount, parts[key], rest)
        if key in shares.alone:
            rest = _take(sums.alone, key, side, amount, shares.alone[key], rest)
        if rest.calls:
            _put(sums.matched, key, side, rest)


def _take(
    table: dict[K, Sides],
    key: K,
    side: int,
    amount: Amount,
    share: tuple[Fraction, Fraction],
    rest: Amount,
) -> Amount:
    part = Amount(amount.calls * share[0], amount.ns * share[1])
    _put(table, key, side, part)
    return Amount(rest.calls - part.calls, rest.ns - part.ns)


def _put(table: dict[K, Sides], key: K, side: int, part: Amount) -> None:
    sides = table.setdefault(key, [None, None])
    held = sides[side] or NONE
    sides[side] = Amount(held.calls + part.calls, held.ns + part.ns)


def _settle(sums: _Sums) -> None:
    """Work without a partner at its place has a row of its own only beside work of its key that has one."""
    for key, sides in list(sums.alone.items()):
        if None not in sides or None in sums.matched.get(key, [None, None]):
            for side, part in enumerate(sums.alone.pop(key)):
                if part is not None:
                    _put(sums.matched, key, side, part)


def _changes(sums: _Sums, hidden: Sequence[bool]) -> list[WorkChange]:
    """``hidden``: whether A and B have replays recorded as one row each."""
    rows = [
        _change(key, sides, hidden) for table in (sums.matched, sums.alone) for key, sides in table.items()
    ]
    return sorted(
        rows,
        key=lambda row: (-abs((row.ns_b or 0) - (row.ns_a or 0)), row.kind, row.name, row.detail, row.change),
    )


def _change(key: WorkKey, sides: Sides, hidden: Sequence[bool]) -> WorkChange:
    work, (a, b) = _placed(key), sides
    inside = work.kind != WHOLE and ((a is None and hidden[0]) or (b is None and hidden[1]))
    return WorkChange(
        name=work.name,
        kind=work.kind,
        detail=work.detail,
        change="not known" if inside else _word(a, b),
        calls_a=None if a is None else float(a.calls),
        calls_b=None if b is None else float(b.calls),
        ns_a=None if a is None else round_half_up(a.ns),
        ns_b=None if b is None else round_half_up(b.ns),
    )


def _placed(key: WorkKey) -> PlacedWork:
    kind, name = str(key[0]), str(key[1])
    words = describe(key)
    return PlacedWork(
        name=name,
        kind=kind,
        detail=words.partition(name)[2].strip(" ()") if name in words else "",
    )


def _word(a: Amount | None, b: Amount | None) -> Change:
    if a is None or b is None:
        return "added" if a is None else "removed"
    return _compared(a.ns / a.calls, b.ns / b.calls)


def _compared(before: Fraction, after: Fraction) -> Change:
    if abs(after - before) <= SAME * max(before, after):
        return "same"
    return "slower" if after > before else "faster"


def _replaced(sums: _Sums) -> list[Replaced]:
    rows = []
    for key, sides in sums.replaced.items():
        before, after = (side or NONE for side in sides)
        found = sums.found[key]
        rows.append(
            Replaced(
                a=_all(key.a),
                b=_all(key.b),
                change=_compared(before.ns, after.ns),
                places=found.places,
                after=None if found.after is None else _placed(found.after),
                calls_a=float(before.calls),
                calls_b=float(after.calls),
                ns_a=round_half_up(before.ns),
                ns_b=round_half_up(after.ns),
            )
        )
    return sorted(rows, key=lambda row: (-abs(row.ns_b - row.ns_a), [work.name for work in row.a + row.b]))


def _all(keys: Iterable[WorkKey]) -> list[PlacedWork]:
    return [_placed(key) for key in keys]
