"""Quantities as people write them: ``2GB``, ``14KiB``, ``4.8TB/s``, ``58.7us``, ``989TFLOP/s``.

SI prefixes are powers of 1000 (``GB`` is 10^9 bytes), binary ones powers of 1024 (``GiB`` is 2^30). A time
or a rate without unit is refused: a guess could be wrong by a factor of a million.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from analyzer.errors import UsageError

_SI = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTP", 1)}
_SIZES = {f"{prefix}B": factor for prefix, factor in (_SI | _BINARY).items()}
_TIMES = {
    "ns": Fraction(1),
    "us": Fraction(10**3),
    "\N{MICRO SIGN}s": Fraction(10**3),
    "\N{GREEK SMALL LETTER MU}s": Fraction(10**3),
    "ms": Fraction(10**6),
    "s": Fraction(10**9),
}
_FLOPS = {f"{prefix}FLOP/s": factor for prefix, factor in _SI.items()} | {
    f"{prefix}FLOPS": factor for prefix, factor in _SI.items()
}
# bounded digits and exponent: exact arithmetic on "1e999999999" would never end
_QUANTITY = re.compile(r"\s*([+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?)\s*(\S*)\s*", re.ASCII)


def size_bytes(option: str, text: str) -> float:
    """``"7MiB"`` as bytes; a bare number is bytes."""
    return _read(option, text, _SIZES | {"": 1}, "a size such as 2GB, 7MiB or 14336 (bytes)")


def time_ns(option: str, text: str) -> float:
    """``"58.7us"`` as nanoseconds."""
    return _read(option, text, _TIMES, "a time with its unit, such as 900ns, 58.7us, 16.6ms or 2s")


def rate_bytes_per_s(option: str, text: str) -> float:
    """``"4.8TB/s"`` as bytes/s."""
    units = {f"{name}/s": factor for name, factor in _SIZES.items()}
    return _read(option, text, units, "a rate with its unit, such as 4.8TB/s or 900GB/s")


def rate_flop_per_s(option: str, text: str) -> float:
    """``"989TFLOP/s"`` as FLOP/s."""
    return _read(option, text, _FLOPS, "a rate with its unit, such as 989TFLOP/s")


def _read(option: str, text: str, units: Mapping[str, int | Fraction], valid: str) -> float:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UsageError(option, "", f"{text!r} is no quantity", f"write {valid}")
    number, unit = match.groups()
    factor = units.get(unit)
    if factor is None:
        problem = f"the unit {unit!r} is not known" if unit else "the unit is missing"
        raise UsageError(option, "", f"{text!r}: {problem}", f"write {valid}")
    try:
        value = float(Fraction(number) * factor)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise UsageError(option, "", f"{text!r} is too large", f"write {valid}")
    return value
