"""Whether two runs did the same work, phase by phase and rank by rank.

Work is a multiset per mean step: kernels by name, grid and block; copies by direction and bytes; collectives by
operation, type, bytes and group. Of two captures that record different things only what both record counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analyzer.comparison.level import Level, level_of
from analyzer.comparison.result import Difference, SameWork, WorkCheck
from analyzer.comparison.sides import Amount, WorkKey, amounts
from analyzer.diagnosis import StepWork

EQUIVALENT_SHARE = Fraction(1, 100)
"""Device time without a partner, of a step's, up to which two runs did equivalent work (each side)."""
SHOWN = 20
ORDER: tuple[SameWork, ...] = ("identical", "equivalent", "unverifiable", "different")
"""From the best to the worst: one rank that differs makes the whole different."""

Rows = Sequence[StepWork]
NONE = Amount(Fraction(0), Fraction(0))


@dataclass(frozen=True)
class RankWork:
    """One rank's work in one phase: what its steps launched and how many they were."""

    rows: Rows
    windows: int


def check_work(a: Mapping[int, RankWork], b: Mapping[int, RankWork]) -> WorkCheck:
    """Compare all ranks of one phase. Ranks that only one side has are work that differs."""
    if sorted(a) != sorted(b):
        missing = Difference(what="ranks", a=_list(a), b=_list(b))
        return _verdict(
            "different",
            "the runs have different ranks (--ranks chooses those that both have)",
            None,
            None,
            [missing],
        )
    every = [row for side in (a, b) for one in side.values() for row in one.rows]
    if not any(one.rows for one in a.values()) or not any(one.rows for one in b.values()):
        side = "one side only" if every else "neither side"
        return _verdict("unverifiable", f"the steps' device work is known on {side}", None, None, [])
    if any(row.kind == "graph" for row in every):
        why = "graph replays were recorded as one row each: what ran inside is not known"
        return _verdict("unverifiable", why, None, None, [])
    level = level_of(_rows(a), _rows(b))
    parts = [_one_rank(a[rank], b[rank], level, rank if len(a) > 1 else None) for rank in sorted(a)]
    return _joined(parts, level)


def _list(ranks: Iterable[int]) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks)) or "none"


def _rows(side: Mapping[int, RankWork]) -> Iterable[StepWork]:
    return (row for one in side.values() for row in one.rows)


def _one_rank(a: RankWork, b: RankWork, level: Level, rank: int | None) -> WorkCheck:
    left = amounts(a.rows, a.windows, level)
    right = amounts(b.rows, b.windows, level)
    unequal = [key for key in {**left, **right} if _calls(left, key) != _calls(right, key)]
    unequal.sort(key=lambda key: (-max(left.get(key, NONE).ns, right.get(key, NONE).ns), repr(key)))
    differences = [_difference(key, left, right, rank) for key in unequal]
    share_a, share_b = _unmatched(left, right), _unmatched(right, left)
    fixed = [key for key in unequal if key[0] != "kernel"]
    if not unequal:
        return _verdict("identical", "", share_a, share_b, [])
    if not fixed and max(share_a, share_b) <= EQUIVALENT_SHARE:
        return _verdict("equivalent", "", share_a, share_b, differences)
    return _verdict("different", "", share_a, share_b, differences)


def _calls(side: Mapping[WorkKey, Amount], key: WorkKey) -> Fraction:
    return side.get(key, NONE).calls


def _unmatched(mine: Mapping[WorkKey, Amount], other: Mapping[WorkKey, Amount]) -> Fraction:
    """Share of this side's device time that has no partner on the other side."""
    total = sum((amount.ns for amount in mine.values()), Fraction(0))
    alone = Fraction(0)
    for key, amount in mine.items():
        extra = amount.calls - _calls(other, key)
        if extra > 0:
            alone += amount.ns * extra / amount.calls
    return alone / total if total else Fraction(0)


def _difference(
    key: WorkKey, left: Mapping[WorkKey, Amount], right: Mapping[WorkKey, Amount], rank: int | None
) -> Difference:
    place = "" if rank is None else f"rank {rank}: "
    return Difference(what=f"{place}{describe(key)}", a=_shown(left.get(key)), b=_shown(right.get(key)))


def describe(key: WorkKey) -> str:
    """A key in words: kind, name and what else is known."""
    kind, name, *rest = key
    if kind == "kernel":
        shape = [
            f"{word} {'x'.join(map(str, part))}"
            for word, part in zip(("grid", "block"), rest, strict=False)
            if isinstance(part, tuple)
        ]
        return " ".join(["kernel", str(name), *([f"({', '.join(shape)})"] if shape else [])])
    if kind == "collective":
        size, dtype, members = rest if rest else (None, None, None)
        known = [
            f"{size:,} bytes" if isinstance(size, int) else "",
            str(dtype or ""),
            f"{members} ranks" if members else "",
        ]
    elif kind == "graph":
        known = []
    else:
        known = [f"{rest[0]:,} bytes" if rest and isinstance(rest[0], int) else "size not recorded"]
    told = ", ".join(part for part in known if part)
    return f"{kind if kind == 'collective' else ''} {name}{f' ({told})' if told else ''}".strip()


def _shown(amount: Amount | None) -> str:
    return "none" if amount is None else f"{float(amount.calls):,.6g} per step"


def _joined(parts: Sequence[WorkCheck], level: Level) -> WorkCheck:
    worst = max(parts, key=lambda part: ORDER.index(part.same_work)).same_work
    shares_a = [part.unmatched_share_a for part in parts if part.unmatched_share_a is not None]
    shares_b = [part.unmatched_share_b for part in parts if part.unmatched_share_b is not None]
    differences = [difference for part in parts for difference in part.differences]
    return WorkCheck(
        same_work=worst,
        because=_because(worst, max(shares_a), max(shares_b), differences, level),
        unmatched_share_a=max(shares_a),
        unmatched_share_b=max(shares_b),
        differences=differences,
    )


def _because(worst: SameWork, a: float, b: float, differences: Sequence[Difference], level: Level) -> str:
    told = level.words()
    if worst == "identical":
        return f"every step launched the same: {told}"
    alone = f"{a:.2%} of A's and {b:.2%} of B's device time per step has no partner"
    if worst == "equivalent":
        return f"all collectives and copies are equal, and {alone}: {told}"
    fixed = any(not difference.what.split(": ")[-1].startswith("kernel ") for difference in differences)
    why = "; collectives or copies differ" if fixed else ""
    return f"{alone}{why}: {told}"


def _verdict(
    same: SameWork, because: str, a: Fraction | None, b: Fraction | None, differences: list[Difference]
) -> WorkCheck:
    return WorkCheck(
        same_work=same,
        because=because,
        unmatched_share_a=None if a is None else float(a),
        unmatched_share_b=None if b is None else float(b),
        differences=differences,
    )
