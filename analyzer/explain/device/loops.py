"""Sequences with their loops folded: the layers of a model stand once, with the number of their repeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.model import IntArray

LONGEST_BODY = 256
"""Works of a loop's body up to which it is looked for."""
LEAST_SAVED = 4
"""Places that folding a loop must save."""


class Loop(NamedTuple):
    """``repeats`` times the ``length`` codes from ``start`` on."""

    start: int
    length: int
    repeats: int


def fold(codes: IntArray) -> list[Loop]:
    """Cut (n,) codes into loops and stretches without one (``repeats`` 1), which together are the whole.

    From the left: where loops begin, the one that saves the most places, of equal ones the shortest body.
    """
    saved, period = _best(codes)
    result: list[Loop] = []
    at, plain, n = 0, 0, len(codes)
    worth = np.flatnonzero(saved >= LEAST_SAVED).tolist()
    for start in worth:
        if start < at:
            continue
        length = int(period[start])
        repeats = 1 + int(saved[start]) // length
        if start > plain:
            result.append(Loop(plain, start - plain, 1))
        result.append(Loop(start, length, repeats))
        at = plain = start + length * repeats
    if plain < n:
        result.append(Loop(plain, n - plain, 1))
    return result


def _best(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Per position the places that a loop which begins there saves, and the length of its body."""
    n = len(codes)
    saved, period = np.zeros(n, np.int64), np.ones(n, np.int64)
    for length in range(1, min(LONGEST_BODY, n // 2) + 1):
        equal = codes[length:] == codes[:-length]
        differs = np.where(equal, len(equal), np.arange(len(equal)))
        until = np.minimum.accumulate(differs[::-1])[::-1]  # first place from here on that does not repeat
        whole = (until - np.arange(len(equal))) // length * length
        better = whole > saved[: len(equal)]
        saved[: len(equal)][better] = whole[better]
        period[: len(equal)][better] = length
    return saved, period
