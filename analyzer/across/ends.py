"""The collectives of one rank as the matching compares them: what each is, and when it ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.reconstruct.work import BoolArray

NEAR_NS = 150_000
"""Ends of one collective lie within so much of one another, apart from the clocks."""


@dataclass(frozen=True)
class Ends:
    """Collectives of one rank in one group in the order of their ends: what each is, and when it ended."""

    key: IntArray  # (n,) equal where the collectives could be one
    end_ns: IntArray  # (n,)
    ends_together: BoolArray  # (n,) synchronizing: the end tells

    def __len__(self) -> int:
        return len(self.key)


def middle(values: IntArray) -> int:
    """The lower median: one of the values themselves."""
    return int(np.sort(values)[(len(values) - 1) // 2])
