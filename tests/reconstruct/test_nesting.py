"""Which record is innermost, against a slow look at every instant."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.reconstruct.nesting import innermost

Pair = tuple[int, int]


def found(pairs: list[Pair]) -> tuple[dict[int, int], int]:
    """Owner at each instant (-1 none), and the crossings."""
    bounds, owner, crossings = innermost(
        np.array([start for start, _ in pairs], np.int64), np.array([end for _, end in pairs], np.int64)
    )
    owners = {}
    for at in range(-1, 40):
        index = int(np.searchsorted(bounds, at, side="right")) - 1
        owners[at] = int(owner[index]) if index >= 0 else -1
    return owners, crossings


@st.composite
def nested(draw: st.DrawFn) -> list[Pair]:
    """Properly nested records of one thread, sorted by (start, -end)."""
    pairs: list[Pair] = []

    def fill(low: int, high: int, depth: int) -> None:
        at = low
        while at < high and len(pairs) < 12:
            start = draw(st.integers(at, high))
            end = draw(st.integers(start, high))
            pairs.append((start, end))
            if depth:
                fill(start, end, depth - 1)
            at = end + draw(st.integers(0, 3)) if end > start else high

    fill(0, 30, 2)
    return sorted(pairs, key=lambda pair: (pair[0], -pair[1]))


@given(nested())
@settings(deadline=None)
def test_nested_records_are_told_by_the_one_that_opened_last(pairs: list[Pair]) -> None:
    owners, crossings = found(pairs)
    assert crossings == 0
    for at, owner in owners.items():
        around = [row for row, (start, end) in enumerate(pairs) if start <= at < end]
        assert owner == (max(around) if around else -1), (at, pairs)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple), max_size=8))
@settings(deadline=None)
def test_whatever_crosses_somebody_owns_every_covered_instant(drawn: list[Pair]) -> None:
    """A record is cut at the end of the one it began in: its owner always encloses the instant."""
    pairs = sorted(drawn, key=lambda pair: (pair[0], -pair[1]))
    owners, _ = found(pairs)
    for at, owner in owners.items():
        around = [row for row, (start, end) in enumerate(pairs) if start <= at < end]
        if owner >= 0:
            assert owner in around
    outermost = [p for i, p in enumerate(pairs) if all(p[0] >= q[1] for q in pairs[:i])]
    for start, end in outermost:
        assert all(owners[at] >= 0 for at in range(start, end))


def test_a_crossing_record_is_cut_and_counted() -> None:
    """
    0 |outer 0-20          |
    1        |crossing 10-30        cut at 20
    2        |inside 12-15
    """
    owners, crossings = found([(0, 20), (10, 30), (12, 15)])
    assert crossings == 1
    assert [owners[at] for at in (0, 9, 10, 12, 14, 15, 19, 20, 29)] == [0, 0, 1, 2, 2, 1, 1, -1, -1]


def test_records_of_no_length_own_nothing() -> None:
    owners, crossings = found([(0, 10), (5, 5), (10, 10)])
    assert crossings == 0
    assert {at for at, owner in owners.items() if owner == 0} == set(range(10))
    assert set(owners.values()) == {0, -1}


def test_nothing_recorded() -> None:
    bounds, owner, crossings = innermost(np.empty(0, np.int64), np.empty(0, np.int64))
    assert (len(bounds), len(owner), crossings) == (0, 0, 0)
