"""Which work of one step stands where in the other's: at the same place, moved, replaced, or in one step alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from analyzer.comparison.alignment import NOWHERE, align, score_table
from analyzer.comparison.level import Level
from analyzer.comparison.sides import WorkKey, step_work_of, work_key
from analyzer.diagnosis import Diagnosis, StepSequence

REPLACED_AT_MOST = 8
"""Works in a row, on the longer side, that count as replaced; more are a stretch of its own that differs."""
MATCHED_AT_LEAST = Fraction(1, 2)
"""Of the shorter step's works, that must stand at equal places: below it two steps have no places in common."""
DEVICE = ("kernel", "collective")
"""Kinds that may replace one another; copies are replaced by copies in the same direction only, fills by fills."""

Share = tuple[Fraction, Fraction]
"""Of a key's calls and of its time, 0..1."""


@dataclass(frozen=True)
class OrderedWork:
    """One step's work by key in the order of its submission, with the time at each place (ns, of one step).

    ``alike`` of ``steps`` ran exactly this.
    """

    keys: tuple[WorkKey, ...]
    ns: tuple[Fraction, ...]
    alike: int = 1
    steps: int = 1


@dataclass(frozen=True)
class Replacement:
    """Works in a row that stand at the same place of the two steps, by key."""

    a: tuple[WorkKey, ...]
    b: tuple[WorkKey, ...]


@dataclass(frozen=True)
class Found:
    """How one replacement occurs: at how many places, and after which work first (None: the step begins with it)."""

    places: int
    after: WorkKey | None


@dataclass(frozen=True)
class SideShares:
    """What share of each key's work is alone, and what share belongs to each replacement; the rest is matched."""

    alone: dict[WorkKey, Share] = field(default_factory=dict)
    replaced: dict[Replacement, dict[WorkKey, Share]] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Two steps aligned. ``matched``: pairs of equal works at equal places; ``few``: sides whose other steps differ."""

    matched: int
    a: SideShares
    b: SideShares
    found: dict[Replacement, Found]
    few: str = ""


@dataclass
class _Gap:
    """Places of both steps between two pairs that are equal."""

    after: WorkKey | None
    a: list[int]
    b: list[int]

    @property
    def one_sided(self) -> bool:
        return not self.a or not self.b


def ordered_work(diagnosis: Diagnosis, phase: str, rank: int, level: Level) -> OrderedWork | str:
    """The step that a diagnosis holds for a phase and rank, or why there is none to be aligned."""
    rows = step_work_of(diagnosis, phase, rank)
    if any(row.kind == "graph" for row in rows):
        return "graph replays were recorded as one row each"
    sequence = _sequence_of(diagnosis, phase, rank)
    if sequence is None or any(work >= len(rows) for part in sequence.sections for work in part.work):
        return "the order of the steps' work is not recorded on both sides"
    if sequence.recorded < sequence.length:
        return f"a step has {sequence.length:,} works, of which the first {sequence.recorded:,} are recorded"
    keys = [work_key(row, level) for row in rows]
    every: list[WorkKey] = []
    times: list[Fraction] = []
    for part in sequence.sections:
        every += [keys[work] for work in part.work] * part.repeats
        times += [Fraction(ns, part.repeats * sequence.steps_alike) for ns in part.ns] * part.repeats
    return OrderedWork(tuple(every), tuple(times), sequence.steps_alike, sequence.steps)


def _sequence_of(diagnosis: Diagnosis, phase: str, rank: int) -> StepSequence | None:
    mine = (row for row in diagnosis.step_sequences if (row.phase, row.rank) == (phase, rank))
    return next(mine, None)


def match_places(a: OrderedWork, b: OrderedWork) -> Places | str:
    """Align two steps, or say why they cannot be. ``match_places(b, a)`` is the mirror image."""
    pairs = _aligned(a.keys, b.keys)
    matched = sum(NOWHERE not in pair and a.keys[pair[0]] == b.keys[pair[1]] for pair in pairs)
    shorter = min(len(a.keys), len(b.keys))
    if matched < MATCHED_AT_LEAST * shorter:
        return f"only {matched:,} of the shorter step's {shorter:,} works stand at equal places"
    gaps = list(_gaps(pairs, a, b))
    _settle_moves(gaps, a, b)
    alone: tuple[list[int], list[int]] = ([], [])
    replaced: tuple[dict[Replacement, list[int]], ...] = (defaultdict(list), defaultdict(list))
    found: dict[Replacement, Found] = {}
    for gap in gaps:
        for left, right in _by_family(gap, a, b):
            if not left or not right or max(len(left), len(right)) > REPLACED_AT_MOST:
                alone[0].extend(left)
                alone[1].extend(right)
                continue
            key = Replacement(tuple(a.keys[at] for at in left), tuple(b.keys[at] for at in right))
            replaced[0][key].extend(left)
            replaced[1][key].extend(right)
            known = found.get(key, Found(0, gap.after))
            found[key] = Found(known.places + 1, known.after)
    return Places(
        matched=matched,
        a=_shares(a, alone[0], replaced[0]),
        b=_shares(b, alone[1], replaced[1]),
        found=found,
        few=", ".join(text for name, side in (("A", a), ("B", b)) if (text := _few(name, side))),
    )


def _few(name: str, side: OrderedWork) -> str:
    """Where the sequence is that of less than half of the steps."""
    return f"{side.alike:,} of {name}'s {side.steps:,} steps" if 2 * side.alike < side.steps else ""


@lru_cache(maxsize=4)  # ranks mostly run the same sequence
def _aligned(a: tuple[WorkKey, ...], b: tuple[WorkKey, ...]) -> list[tuple[int, int]]:
    known = sorted({*a, *b}, key=repr)  # the same codes whichever side comes first
    code = {key: at for at, key in enumerate(known)}
    scores = score_table([_family(key) for key in known], [str(key[1]) for key in known])
    one, two = (np.array([code[key] for key in side], np.int64) for side in (a, b))
    return align(one, two, scores)


def _family(key: WorkKey) -> str:
    return "device" if key[0] in DEVICE else f"{key[0]} {key[1]}"


def _gaps(pairs: Iterable[tuple[int, int]], a: OrderedWork, b: OrderedWork) -> Iterator[_Gap]:
    gap = _Gap(None, [], [])
    for one, two in pairs:
        if NOWHERE not in (one, two) and a.keys[one] == b.keys[two]:
            if gap.a or gap.b:
                yield gap
            gap = _Gap(a.keys[one], [], [])
            continue
        gap.a += [one] if one != NOWHERE else []
        gap.b += [two] if two != NOWHERE else []
    if gap.a or gap.b:
        yield gap


def _settle_moves(gaps: list[_Gap], a: OrderedWork, b: OrderedWork) -> None:
    """Take out equal works that only moved: one of them, at least, stands where the other side has nothing."""
    left, right = _loose(gaps, a, first=True), _loose(gaps, b, first=False)
    for key in left.keys() & right.keys():
        (bare, held), (other_bare, other_held) = left[key], right[key]
        both = min(len(bare), len(other_bare))
        pairs = [
            *zip(bare[:both], other_bare[:both], strict=True),
            *zip(bare[both:], other_held, strict=False),
            *zip(held, other_bare[both:], strict=False),
        ]
        for (gap, place), (other, where) in pairs:
            gaps[gap].a.remove(place)
            gaps[other].b.remove(where)


_Loose = dict[WorkKey, tuple[list[tuple[int, int]], list[tuple[int, int]]]]


def _loose(gaps: list[_Gap], side: OrderedWork, *, first: bool) -> _Loose:
    """Gap and place of one side's works by key: in gaps where the other side has nothing, and in others."""
    result: _Loose = defaultdict(lambda: ([], []))
    for at, gap in enumerate(gaps):
        for place in gap.a if first else gap.b:
            result[side.keys[place]][0 if gap.one_sided else 1].append((at, place))
    return dict(result)


def _by_family(gap: _Gap, a: OrderedWork, b: OrderedWork) -> Iterator[tuple[list[int], list[int]]]:
    of_a = [(_family(a.keys[at]), at) for at in gap.a]
    of_b = [(_family(b.keys[at]), at) for at in gap.b]
    for family in dict.fromkeys(name for name, _ in of_a + of_b):
        yield [at for name, at in of_a if name == family], [at for name, at in of_b if name == family]


def _shares(side: OrderedWork, alone: list[int], replaced: Mapping[Replacement, list[int]]) -> SideShares:
    whole = _totals(side, range(len(side.keys)))
    return SideShares(
        alone=_of(whole, _totals(side, alone)),
        replaced={key: _of(whole, _totals(side, places)) for key, places in replaced.items()},
    )


def _totals(side: OrderedWork, places: Iterable[int]) -> dict[WorkKey, tuple[int, Fraction]]:
    result: dict[WorkKey, tuple[int, Fraction]] = {}
    for at in places:
        calls, ns = result.get(side.keys[at], (0, Fraction(0)))
        result[side.keys[at]] = (calls + 1, ns + side.ns[at])
    return result


def _of(
    whole: Mapping[WorkKey, tuple[int, Fraction]], part: Mapping[WorkKey, tuple[int, Fraction]]
) -> dict[WorkKey, Share]:
    result = {}
    for key, (calls, ns) in part.items():
        every, every_ns = whole[key]
        of_calls = Fraction(calls, every)
        result[key] = (of_calls, ns / every_ns if every_ns else of_calls)
    return result
