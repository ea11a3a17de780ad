"""Two sequences of work against each other, place by place.

A global alignment (Needleman and Wunsch 1970): of all ways to write the two under each other in order, one with the
highest score. Equal works score most; works of one name, and then of one kind, score a little, so that what replaced a
work stands at its place. Gaps cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.model import IntArray

EQUAL, SAME_NAME, SAME_KIND = 6, 2, 1
"""Scores: an equal pair is worth more than two that merely share their name."""
NOWHERE = -1
_DIAGONAL, _UP, _LEFT = 0, 1, 2

Scores = npt.NDArray[np.int32]


def align(a: IntArray, b: IntArray, scores: Scores) -> list[tuple[int, int]]:
    """Pairs of places in order, ``NOWHERE`` on the side that has none.

    ``a``: (n,) and ``b``: (m,) codes; ``scores``: (k, k) of one code against another, symmetric, 0 where the two may
    not stand under each other. Time and memory are in proportion to n times m. ``align(b, a)`` is the mirror image.
    """
    if (len(b), b.tolist()) < (len(a), a.tolist()):
        return [(one, two) for two, one in align(b, a, scores)]
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    n, m = len(a) - tail, len(b) - tail
    inner = _inner(a[head:n], b[head:m], scores)
    return [
        *((at, at) for at in range(head)),
        *(
            (one if one == NOWHERE else one + head, two if two == NOWHERE else two + head)
            for one, two in inner
        ),
        *((n + at, m + at) for at in range(tail)),
    ]


def _common(a: IntArray, b: IntArray) -> int:
    """How many places the two begin alike."""
    shorter = min(len(a), len(b))
    differs = np.flatnonzero(a[:shorter] != b[:shorter])
    return int(differs[0]) if len(differs) else shorter


def _inner(a: IntArray, b: IntArray, scores: Scores) -> list[tuple[int, int]]:
    came = np.empty((len(a), len(b)), np.int8)
    against = {code: scores[code][b] for code in np.unique(a).tolist()}
    above = np.zeros(len(b) + 1, np.int32)
    row = np.zeros(len(b) + 1, np.int32)
    for at, code in enumerate(a.tolist()):
        gained = against[code]
        diagonal = above[:-1] + gained
        np.maximum(diagonal, above[1:], out=row[1:])
        np.maximum.accumulate(row, out=row)  # gaps cost nothing: the best so far in this row
        took = (row[1:] == diagonal) & (gained > 0)
        came[at] = np.where(took, _DIAGONAL, np.where(row[1:] == above[1:], _UP, _LEFT))
        above, row = row, above
        row[0] = 0
    return _traced(came)


def _traced(came: npt.NDArray[np.int8]) -> list[tuple[int, int]]:
    one, two = came.shape
    result = []
    while one and two:
        step = int(came[one - 1, two - 1])
        one -= step != _LEFT
        two -= step != _UP
        result.append((NOWHERE if step == _LEFT else one, NOWHERE if step == _UP else two))
    result += [(at, NOWHERE) for at in reversed(range(one))]
    result += [(NOWHERE, at) for at in reversed(range(two))]
    return result[::-1]


def score_table(kinds: Sequence[str], names: Sequence[str]) -> Scores:
    """(k, k) scores of codes whose work is of these kinds and names."""
    kind, name = np.array(kinds, object), np.array(names, object)
    same_kind = kind[:, None] == kind[None, :]
    same_name = same_kind & (name[:, None] == name[None, :])
    table = np.where(same_name, SAME_NAME, np.where(same_kind, SAME_KIND, 0)).astype(np.int32)
    np.fill_diagonal(table, EQUAL)
    return table
