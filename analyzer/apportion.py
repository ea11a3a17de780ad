"""Rounding that keeps sums: parts of a whole as integers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def round_half_up(value: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    sign = -1 if value < 0 else 1
    return sign * int(abs(value) + Fraction(1, 2))


def largest_remainder(parts: Sequence[Fraction]) -> list[int]:
    """``parts`` as integers whose sum is the rounded sum of ``parts``.

    Each part is off by less than one unit; the units left over go to the largest remainders, on ties
    to the earlier part.
    """
    floors = [part.numerator // part.denominator for part in parts]
    missing = round_half_up(sum(parts, Fraction(0))) - sum(floors)
    order = sorted(range(len(parts)), key=lambda index: (floors[index] - parts[index], index))
    for index in order[:missing]:
        floors[index] += 1
    return floors
