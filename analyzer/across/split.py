"""Path segments of collectives split into waiting and transfer."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from analyzer.across.waits import RankWaits
from analyzer.categories import Category
from analyzer.model import IntArray
from analyzer.tables import SegmentTable


def take(table: SegmentTable, rows: IntArray) -> SegmentTable:
    """The rows of a segment table, in the order given; texts stay whole."""
    columns = {
        column.name: getattr(table, column.name)[rows]
        for column in fields(table)
        if column.name not in ("names", "places")
    }
    return SegmentTable(**columns, names=table.names, places=table.places)


def split_segments(table: SegmentTable, arrival: IntArray, waits: RankWaits) -> tuple[SegmentTable, IntArray]:
    """The table with collectives told apart where that can be done, and the (s,) old row of each new one.

    ``arrival``: (n,) position of the collective behind each segment, -1 none. Waiting that is shorter than
    the clocks' uncertainty stays ``collective.unsplit``; what follows the latest arrival is transfer.
    """
    apart = (arrival >= 0) & (table.category == Category.COLLECTIVE_UNSPLIT)
    apart[apart] = waits.split[arrival[apart]]
    rows = np.flatnonzero(apart)
    if not len(rows):
        return table, np.arange(len(table))
    of = arrival[rows]
    cut = np.clip(waits.until_ns[of], table.start_ns[rows], table.end_ns[rows])
    before, after = cut > table.start_ns[rows], cut < table.end_ns[rows]
    pieces = np.ones(len(table), np.int64)
    pieces[rows] = before.astype(np.int64) + after.astype(np.int64)
    old = np.repeat(np.arange(len(table)), pieces)
    result = take(table, old)
    first = (np.cumsum(pieces) - pieces)[rows]
    waiting, transfer = first[before], (first + before)[after]
    category, late = result.category.copy(), result.late_rank.copy()
    start, end = result.start_ns.copy(), result.end_ns.copy()
    certain = waits.certain[of[before]]
    category[waiting] = np.where(certain, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_UNSPLIT)
    late[waiting] = np.where(certain, waits.late_rank[of[before]], -1)
    category[transfer] = Category.COLLECTIVE_TRANSFER
    end[waiting], start[transfer] = cut[before], cut[after]
    return replace(result, category=category, late_rank=late, start_ns=start, end_ns=end), old
