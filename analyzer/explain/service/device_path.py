"""The path up to device completion, as one line of segments through all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category
from analyzer.diagnosis import GlobalWindow, Window
from analyzer.model import IntArray
from analyzer.tables import SegmentTable


@dataclass(frozen=True)
class DevicePath:
    """Windows with work, by end, and the path through them. ``zero_ns``: epoch time of 0, None where not known.

    ``clock``: the host whose wall clock the times are of. ``scope`` and ``rank`` as of a budget.
    ``one_of``: "", or why this is the path of one of several ranks that a token may be from.
    """

    scope: str
    rank: int | None
    clock: str | None
    zero_ns: int | None
    windows: tuple[Window | GlobalWindow, ...]
    start_ns: IntArray
    end_ns: IntArray
    category: IntArray
    inferred: IntArray  # (s,) 0 or 1
    one_of: str = ""

    @property
    def ends_ns(self) -> IntArray:
        """(w,) when each window's work was complete, ascending."""
        return np.array([window.end_ns for window in self.windows], np.int64)

    def totals(self, low_ns: int, high_ns: int) -> tuple[IntArray, int]:
        """(c,) ns by category within ``[low, high)`` and how much of it is inferred; not what is off the path."""
        first = int(np.searchsorted(self.end_ns, low_ns, side="right"))
        last = int(np.searchsorted(self.start_ns, high_ns, side="left"))
        part = slice(first, max(first, last))
        length = np.minimum(self.end_ns[part], high_ns) - np.maximum(self.start_ns[part], low_ns)
        length = np.maximum(length, 0)
        totals = np.zeros(len(Category), np.int64)
        np.add.at(totals, self.category[part], length)
        return totals, int((length * self.inferred[part]).sum())


def device_path(
    scope: str,
    rank: int | None,
    clock: str | None,
    zero_ns: int | None,
    windows: Sequence[Window | GlobalWindow],
    segments: SegmentTable,
) -> DevicePath:
    """The path of windows that tile; ``segments``: theirs alone."""
    order = np.lexsort((segments.end_ns, segments.start_ns))
    full = sorted((window for window in windows if not window.empty), key=lambda window: window.end_ns)
    return DevicePath(
        scope, rank, clock, zero_ns, tuple(full), segments.start_ns[order], segments.end_ns[order],
        segments.category[order].astype(np.int64), segments.inferred[order].astype(np.int64),
    )  # fmt: skip
