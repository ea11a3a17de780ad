"""Checks of what a caller gives: each refusal names the argument, the reason and what is valid."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from analyzer.errors import UsageError

_LARGEST_WHOLE = 2**63


def finite(name: str, value: float, valid: str, where: str = "") -> float:
    """``value`` as a float that is a number; ``where`` is its place in an argument of many."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(name, where, f"{_shown(value)} is no finite number", f"give {valid}")
    return number


def positive(name: str, value: float) -> float:
    """A number above 0."""
    valid = "a number above 0"
    number = finite(name, value, valid)
    if number <= 0:
        raise UsageError(name, "", f"{_shown(value)} is not above 0", f"give {valid}")
    return number


def not_negative(name: str, value: float, where: str = "") -> float:
    """A number from 0 on."""
    valid = "a number from 0 on"
    number = finite(name, value, valid, where)
    if number < 0:
        raise UsageError(name, where, f"{_shown(value)} is negative", f"give {valid}")
    return number


def share(name: str, value: float) -> float:
    """A share from 0 to 1."""
    valid = "a share from 0 to 1, such as 0.7 for 70 %"
    number = finite(name, value, valid)
    if not 0 <= number <= 1:
        raise UsageError(name, "", f"{_shown(value)} is no share", f"give {valid}")
    return number


def whole(name: str, value: int, least: int) -> int:
    """A whole number from ``least`` on."""
    valid = f"a whole number from {least} on"
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(name, "", f"{_shown(value)} is no whole number", f"give {valid}") from None
    if number < least:
        raise UsageError(name, "", f"{_shown(value)} is less than {least}", f"give {valid}")
    if number >= _LARGEST_WHOLE:
        raise UsageError(name, "", f"{_shown(value)} is too large", f"give {valid}, below 2^63")
    return number


def together(names: Sequence[str], values: Sequence[object]) -> bool:
    """Whether all of ``values`` are given; refuses only some of them."""
    missing = [name for name, value in zip(names, values, strict=True) if value is None]
    if missing and len(missing) < len(names):
        raise UsageError(missing[0], "", "is missing", f"give all of {', '.join(names)}, or none of them")
    return not missing


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, (int, str)) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."
