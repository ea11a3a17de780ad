"""Interval arithmetic against a set of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intervals import (
    EMPTY,
    Intervals,
    clip,
    complement,
    covered,
    intersect,
    measure,
    subtract,
    union,
)

POINTS = st.integers(-10, 30)
ANY = st.lists(st.tuples(POINTS, POINTS), max_size=8)


def intervals(pairs: list[tuple[int, int]]) -> Intervals:
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def points(pairs: list[tuple[int, int]]) -> set[int]:
    """The integers that the half-open pairs cover."""
    return {at for start, end in pairs for at in range(start, end)}


def points_of(given_set: Intervals) -> set[int]:
    starts, ends = given_set
    assert np.all(ends > starts), "an empty interval"
    assert np.all(starts[1:] > ends[:-1]), "not sorted, disjoint and merged"
    return points(list(zip(starts.tolist(), ends.tolist(), strict=True)))


@given(ANY)
def test_union(pairs: list[tuple[int, int]]) -> None:
    found = union(*intervals(pairs))
    assert points_of(found) == points(pairs)
    assert measure(found) == len(points(pairs))


@given(ANY, POINTS, POINTS)
def test_clip_and_complement_split_a_range(pairs: list[tuple[int, int]], low: int, high: int) -> None:
    given_set, inside = union(*intervals(pairs)), set(range(low, high))
    assert points_of(clip(given_set, low, high)) == points(pairs) & inside
    assert points_of(complement(given_set, low, high)) == inside - points(pairs)


@given(ANY, ANY)
def test_intersect_and_subtract(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    first, second = union(*intervals(a)), union(*intervals(b))
    assert points_of(intersect(first, second)) == points(a) & points(b)
    assert points_of(subtract(first, second)) == points(a) - points(b)


@given(ANY, st.lists(st.tuples(POINTS, st.integers(0, 20)), max_size=6))
def test_covered(pairs: list[tuple[int, int]], ranges: list[tuple[int, int]]) -> None:
    lows = np.array([low for low, _ in ranges], np.int64)
    highs = np.array([low + length for low, length in ranges], np.int64)
    expected = [len(points(pairs) & set(range(low, low + length))) for low, length in ranges]
    assert covered(union(*intervals(pairs)), lows, highs).tolist() == expected


def test_nothing_is_covered_by_nothing() -> None:
    assert measure(EMPTY) == 0
    assert covered(EMPTY, np.array([0, 5]), np.array([3, 9])).tolist() == [0, 0]
    assert subtract(EMPTY, union(*intervals([(0, 5)]))) == EMPTY
    assert [part.tolist() for part in complement(EMPTY, 3, 7)] == [[3], [7]]
    assert [part.tolist() for part in complement(EMPTY, 7, 3)] == [[], []]
