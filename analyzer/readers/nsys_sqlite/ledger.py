"""Collects what had to be dropped, repaired or left open while a file is read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyzer.model import IntArray, QualityEntry
from analyzer.readers.nsys_sqlite.bulk import NO_TIME

Mask = npt.NDArray[np.bool_]


class Ledger:
    """Quality entries in the order of reading; entries without a count are left out."""

    def __init__(self) -> None:
        self._entries: list[QualityEntry] = []

    def add(self, reason: str, count: int, effect: str, place: str = "", total: int | None = None) -> None:
        """One line, unless ``count`` is 0."""
        if count:
            self._entries.append(QualityEntry(reason, int(count), total, effect, place))

    @property
    def entries(self) -> tuple[QualityEntry, ...]:
        """What was collected so far."""
        return tuple(self._entries)


def usable_rows(starts: IntArray, ends: IntArray | None, ledger: Ledger, place: str) -> Mask:
    """(n,) bool: rows with a start (and an end, where ``ends`` is given); the others are counted."""
    usable: Mask = starts != NO_TIME
    ledger.add(
        "no-start",
        int((~usable).sum()),
        "Rows without a start time cannot be placed and are left out.",
        place,
        len(starts),
    )
    if ends is not None:
        open_rows = usable & (ends == NO_TIME)
        ledger.add(
            "no-end",
            int(open_rows.sum()),
            "Device work without a recorded end is left out: its duration is unknown.",
            place,
            len(starts),
        )
        usable &= ~open_rows
    return usable


def ordered_ends(starts: IntArray, ends: IntArray, ledger: Ledger, place: str) -> IntArray:
    """(n,) ends, never before their starts; what was repaired is counted."""
    negative = ends < starts
    if not negative.any():
        return ends
    ledger.add(
        "negative-duration",
        int(negative.sum()),
        "Rows that end before they start count with a duration of zero.",
        place,
        len(starts),
    )
    return np.maximum(ends, starts)
