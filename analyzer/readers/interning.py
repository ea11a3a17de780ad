"""Codes for values that repeat: names, threads, lanes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np

from analyzer.model import CodeArray

K = TypeVar("K", bound=Hashable)


class Interner(dict[K, int]):
    """A dict that numbers its keys 0, 1, 2, ... in the order in which they are first asked for."""

    def __missing__(self, key: K) -> int:
        code = self[key] = len(self)
        return code

    def codes(self, values: Iterable[K]) -> CodeArray:
        """(n,) int32: the code of each value."""
        return np.array([self[value] for value in values], dtype=np.int32)
