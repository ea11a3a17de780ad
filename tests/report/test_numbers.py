from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.report.numbers import (
    count,
    fixed,
    int_ranges,
    largest_remainder,
    ms,
    ms_parts,
    percent,
    percent_parts,
    plain,
    share,
)

PARTS = st.lists(st.integers(min_value=0, max_value=10**13), min_size=1, max_size=30)


def as_units(text: str) -> Fraction:
    return Fraction(text.replace(",", "").removesuffix(" %"))


@given(PARTS, st.integers(min_value=1, max_value=5_000))
def test_the_shown_parts_sum_to_the_shown_total(parts: list[int], steps: int) -> None:
    assert sum(map(as_units, ms_parts(parts, steps))) == as_units(ms(sum(parts), steps))


@given(PARTS, st.integers(min_value=1, max_value=5_000))
def test_no_shown_part_is_off_by_a_whole_unit(parts: list[int], steps: int) -> None:
    for part, shown in zip(parts, ms_parts(parts, steps), strict=True):
        assert abs(as_units(shown) - Fraction(part, steps * 1_000_000)) < Fraction(1, 1000)


@given(PARTS.filter(any))
def test_the_shown_shares_sum_to_100(parts: list[int]) -> None:
    assert sum(map(as_units, percent_parts(parts))) == 100


@given(st.lists(st.fractions(min_value=-100, max_value=100), max_size=20))
def test_largest_remainder_keeps_the_rounded_sum(parts: list[Fraction]) -> None:
    assert abs(sum(largest_remainder(parts)) - sum(parts)) <= Fraction(1, 2)


def test_ties_go_to_the_earlier_part() -> None:
    assert ms_parts([500, 500, 500, 500]) == ["0.001", "0.001", "0.000", "0.000"]


def test_shares_of_nothing_are_not_shown_as_zero() -> None:
    assert percent_parts([0, 0]) == ["-", "-"]
    assert percent(0, 0) == "-"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (ms(7_811_144_000), "7,811.144"),
        (ms(-1_500), "-0.002"),
        (ms(1_499), "0.001"),
        (fixed(-5, 3), "-0.005"),
        (percent(1, 3), "33.3 %"),
        (share(0.285), "28.5 %"),
        (count(1, "step"), "1 step"),
        (count(0, "step"), "0 steps"),
        (count(1_234, "entry", "entries"), "1,234 entries"),
        (plain(5.95), "5.95"),
        (plain(1632.0), "1,632"),
        (int_ranges([0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8"),
        (int_ranges([]), ""),
        (int_ranges([0, 2, 4, 6], limit=2), "0, 2, and 2 more"),
    ],
)
def test_how_numbers_look(shown: str, expected: str) -> None:
    assert shown == expected
