"""Quantiles of integer values by group, each one of the values itself."""

from __future__ import annotations

import numpy as np

from analyzer.diagnosis import Quantiles
from analyzer.model import IntArray


def quantiles(codes: IntArray, values: IntArray, count: int) -> list[Quantiles | None]:
    """Quantiles of the values of each code ``0 .. count - 1``, None without a value.

    The ``q`` quantile stands at position ``int(q * (n - 1))`` in order: of two neighbours the lower. Codes
    below 0 count nowhere.
    """
    keep = np.flatnonzero(codes >= 0)
    codes, values = codes[keep], values[keep]
    ordered = values[np.lexsort((values, codes))]
    sizes = np.bincount(codes, minlength=count)
    result: list[Quantiles | None] = []
    first = 0
    for size in sizes.tolist():
        part = ordered[first : first + size]
        first += size
        if not size:
            result.append(None)
            continue
        low, middle, high = (int(part[int(q * (size - 1))]) for q in (0.05, 0.5, 0.95))
        result.append(Quantiles(count=size, p05=low, median=middle, p95=high, max=int(part[-1])))
    return result
