"""Numbers as they are shown: fixed decimals, and parts that visibly add up to their total.

Everything is integer arithmetic on nanoseconds and on exact fractions, so what is shown never depends
on how a float was rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.apportion import largest_remainder, round_half_up

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
MS_DECIMALS = 3


def fixed(units: int, decimals: int) -> str:
    """``units`` of ``10**-decimals`` as a decimal number: ``fixed(12345, 3)`` is ``12.345``."""
    sign = "-" if units < 0 else ""
    whole, rest = divmod(abs(units), 10**decimals)
    return f"{sign}{whole:,}.{rest:0{decimals}d}" if decimals else f"{sign}{whole:,}"


def ms(ns: int, per: int = 1, decimals: int = MS_DECIMALS) -> str:
    """Nanoseconds as milliseconds, shared out over ``per`` steps."""
    return fixed(round_half_up(Fraction(ns * 10**decimals, NS_PER_MS * per)), decimals)


def signed_ms(ns: int, decimals: int = MS_DECIMALS) -> str:
    """Milliseconds with their sign, also for what grows."""
    return f"{'+' if ns > 0 else ''}{ms(ns, decimals=decimals)}"


def us(ns: int, decimals: int = 1) -> str:
    """Nanoseconds as microseconds."""
    return fixed(round_half_up(Fraction(ns * 10**decimals, NS_PER_US)), decimals)


def ms_parts(parts: Sequence[int], per: int = 1, decimals: int = MS_DECIMALS) -> list[str]:
    """Like ``ms`` for each of ``parts``, so that the shown parts sum to the shown total."""
    scaled = [Fraction(part * 10**decimals, NS_PER_MS * per) for part in parts]
    return [fixed(units, decimals) for units in largest_remainder(scaled)]


def percent_units(parts: Sequence[int], decimals: int = 1) -> list[int]:
    """The share of each part in their sum, in units of ``10**-decimals`` percent, which sum to 100 %."""
    total = sum(parts)
    return largest_remainder([Fraction(part * 100 * 10**decimals, total) for part in parts])


def percent_parts(parts: Sequence[int], decimals: int = 1) -> list[str]:
    """The share of each part in their sum, in percent; the shown shares sum to 100."""
    if sum(parts) <= 0:
        return ["-" for _ in parts]
    return [f"{fixed(units, decimals)} %" for units in percent_units(parts, decimals)]


def percent(part: int, whole: int, decimals: int = 1) -> str:
    """``part`` of ``whole`` in percent; "-" where there is no whole."""
    if whole <= 0:
        return "-"
    return f"{fixed(round_half_up(Fraction(part * 100 * 10**decimals, whole)), decimals)} %"


def share(value: float, decimals: int = 1) -> str:
    """A share of 0..1 in percent."""
    return f"{fixed(round_half_up(Fraction(value) * 100 * 10**decimals), decimals)} %"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 step``, ``2 steps``, ``1,234 steps``."""
    word = noun if number == 1 else plural if plural is not None else f"{noun}s"
    return f"{number:,} {word}"


def plain(value: float) -> str:
    """A measured value with at most six significant digits, whole numbers with separators."""
    exact = Fraction(value)
    if exact.denominator == 1:
        return f"{exact.numerator:,}"
    return f"{value:,.6g}"


def int_ranges(values: Sequence[int], limit: int = 12) -> str:
    """``0-3, 7`` for sorted distinct integers; after ``limit`` runs the rest is only counted."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], value]
        else:
            runs.append([value])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:limit]]
    if len(runs) > limit:
        shown.append(f"and {len(runs) - limit} more")
    return ", ".join(shown)
