"""Measured values with the variance of their error, and what is made of several independent ones.

Errors propagate to first order (delta method): of a product of powers relative errors add up squared, of a difference
errors do. The interval is Student's t with Welch and Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import stdtrit

LEVEL = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True)
class Uncertain:
    """A value and the variance of its error; None where that is not known. ``dof``: Student's degrees of freedom."""

    value: float
    variance: float | None
    dof: float


def product_interval(factors: Sequence[tuple[Uncertain, int]]) -> Interval | None:
    """95 % interval of ``prod(value ** power)``, all values above 0. None where a variance is not known.

    Symmetric in the logarithm, so that the interval of the inverse holds the inverses.
    """
    parts = []
    value = 1.0
    for one, power in factors:
        if one.variance is None or one.value <= 0:
            return None
        value *= one.value**power
        parts.append((power**2 * one.variance / one.value**2, one.dof))
    margin = margin_of(parts)
    return value * math.exp(-margin), value * math.exp(margin)


def difference_interval(first: Uncertain, second: Uncertain) -> Interval | None:
    """95 % interval of ``first - second``. None where a variance is not known."""
    if first.variance is None or second.variance is None:
        return None
    margin = margin_of([(first.variance, first.dof), (second.variance, second.dof)])
    difference = float(Fraction(first.value) - Fraction(second.value))
    return difference - margin, difference + margin


def interval(one: Uncertain) -> Interval | None:
    """95 % interval of the value itself. None where its variance is not known."""
    if one.variance is None:
        return None
    margin = margin_of([(one.variance, one.dof)])
    return one.value - margin, one.value + margin


def margin_of(parts: Sequence[tuple[float, float]]) -> float:
    """Half the interval of a sum of independent errors, of (variance, degrees of freedom) each."""
    whole = sum(variance for variance, _ in parts)
    if whole == 0:
        return 0.0
    dof = 1 / sum((variance / whole) ** 2 / max(dof, 1.0) for variance, dof in parts)
    return float(stdtrit(dof, (1 + LEVEL) / 2)) * math.sqrt(whole)
