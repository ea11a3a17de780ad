"""Whether each piece of device work ran near a peak by counters, as codes that a path can carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.model import SmallArray

FloatArray = npt.NDArray[np.float64]

BELOW, COULD, LIKELY, ABOVE = 0, 1, 2, 3
"""Below the share of the peak; it cannot be told; above by what is measured; above whatever the error."""


@dataclass(frozen=True)
class RowCodes:
    """(n,) int8 codes of each row of Work; None: nothing was counted."""

    bandwidth: SmallArray | None = None
    compute: SmallArray | None = None


NO_CODES = RowCodes()


def codes_of(low: FloatArray, middle: FloatArray, high: FloatArray, at: float) -> SmallArray:
    """(n,) int8 from the share of the peak and its ends; NaN: not measured."""
    with np.errstate(invalid="ignore"):
        code = np.select([low >= at, middle >= at, high < at], [ABOVE, LIKELY, BELOW], COULD)
    return np.where(np.isnan(middle), COULD, code).astype(np.int8)


def first_known(codes: list[SmallArray]) -> SmallArray | None:
    """The first code of each row that tells anything; ``codes``: the better source first."""
    if not codes:
        return None
    result = codes[-1]
    for code in reversed(codes[:-1]):
        result = np.where(code == COULD, result, code).astype(np.int8)
    return result
