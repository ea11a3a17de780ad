"""Small vectorized helpers: distinct values, codes for values, groups over several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Integers = npt.NDArray[np.signedinteger[Any]]


def distinct(values: IntArray) -> IntArray:
    """As ``np.unique(values)``, by merging sorted runs: instants come in runs, where hashing is slow."""
    if len(values) < 2:
        return values.copy()
    ordered = np.sort(values, kind="stable")
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def unique_inverse(values: Integers) -> tuple[IntArray, IntArray]:
    """As ``np.unique(values, return_inverse=True)``, linear in time where the range of values is small."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if low == high:
        return np.array([low], np.int64), np.zeros(len(values), np.int64)
    if high - low < 4 * len(values) + 1024:
        offsets = values.astype(np.int64, copy=False) - low
        seen = np.zeros(high - low + 1, np.bool_)
        seen[offsets] = True
        rank = np.cumsum(seen, dtype=np.int64) - 1
        return np.flatnonzero(seen) + low, rank[offsets]
    unique, inverse = np.unique(values, return_inverse=True)
    return unique.astype(np.int64, copy=False), inverse.reshape(-1).astype(np.int64, copy=False)


def group(columns: Sequence[Integers]) -> tuple[list[tuple[int, ...]], IntArray]:
    """Distinct rows of several equally long columns, sorted, and the (n,) position of each row in them."""
    codes = np.zeros(len(columns[0]), np.int64)
    distinct: list[tuple[int, ...]] = [()]
    for column in columns:
        values, inverse = unique_inverse(column)
        pairs, codes = unique_inverse(codes * max(len(values), 1) + inverse)
        width = max(len(values), 1)
        distinct = [(*distinct[pair // width], int(values[pair % width])) for pair in pairs.tolist()]
    return distinct, codes
