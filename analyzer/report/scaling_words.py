"""Numbers of a scaling study as report and figures show them."""

from __future__ import annotations

from fractions import Fraction

from analyzer.apportion import round_half_up
from analyzer.report.numbers import fixed, share
from analyzer.study.scaling_result import Interval


def ms(ns: float) -> str:
    """Nanoseconds as milliseconds with three decimals."""
    return fixed(round_half_up(Fraction(ns) / 1_000), 3)


def interval_ms(ends: Interval | None, *, bare: bool = False) -> str:
    """An interval in ms; nothing ("-" in a table) where there is none."""
    return _interval(None if ends is None else (ms(ends[0]), ms(ends[1])), bare=bare)


def ratio_interval(ends: Interval | None, *, bare: bool = False) -> str:
    """An interval of a ratio."""
    return _interval(None if ends is None else (f"{ends[0]:.3f}", f"{ends[1]:.3f}"), bare=bare)


def share_interval(ends: Interval | None, *, bare: bool = False) -> str:
    """An interval of a share, in percent."""
    return _interval(None if ends is None else (share(ends[0], 2), share(ends[1], 2)), bare=bare)


def _interval(ends: tuple[str, str] | None, *, bare: bool) -> str:
    if ends is None:
        return "-" if bare else ""
    text = f"{ends[0]} to {ends[1]}"
    return text if bare else f" (95 % interval {text})"


def of_ranks(ranks: int) -> str:
    """``1 rank``, ``8 ranks``."""
    return f"{ranks} rank" if ranks == 1 else f"{ranks:,} ranks"


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
