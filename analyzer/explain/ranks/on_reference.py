"""One rank's results as the joint answer shows them: collectives split, all times on the reference clock.

A rank's own times keep their distances: they move by its offset. Only what leads through several ranks
follows the drift, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar

import msgspec
import numpy as np

from analyzer.across.clocks import ClockMap
from analyzer.across.joint import Joint
from analyzer.across.split import split_segments
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Clock, DeviceSpan, Evidence, Rank, Window
from analyzer.explain.rank_report import RankReport
from analyzer.explain.verdicts.hypotheses import FIRST_LINE, RankEvidence
from analyzer.model import IntArray
from analyzer.tables import DetailTable, QueueTable, SegmentTable

Table = TypeVar("Table", SegmentTable, QueueTable, DetailTable)


def on_reference(report: RankReport, joint: Joint) -> RankReport:
    """The report with waiting told from transfer where that can be done, on the reference rank's clock."""
    rank = report.rank.rank
    clock = joint.alignment.maps.get(rank)
    segments, old = split_segments(report.segments, report.arrival, joint.waits[rank])
    shift = 0 if clock is None else clock.offset_ns
    windows = _windows(report.rank.windows, segments, shift)
    detail = report.detail
    if detail is not None and shift:
        detail = detail[0], _moved(detail[1], shift)
    return replace(
        report,
        rank=_rank(report.rank, windows, clock, shift),
        segments=_moved(segments, shift),
        arrival=report.arrival[old],
        evidence={phase: _evidence(evidence, old, shift) for phase, evidence in report.evidence.items()},
        queue=_moved(report.queue, shift),
        detail=detail,
    )


def _moved(table: Table, shift: int) -> Table:
    if not shift:
        return table
    times = ("start_ns", "end_ns")
    return replace(
        table, **{f.name: getattr(table, f.name) + shift for f in fields(table) if f.name in times}
    )


def _windows(windows: list[Window], segments: SegmentTable, shift: int) -> list[Window]:
    """Windows with the path time of split collectives, moved."""
    totals = _collective_totals(segments, windows)
    result = []
    for at, window in enumerate(windows):
        path = dict(window.path_ns)
        path.update({CATEGORY_NAMES[c]: int(totals[at, k]) for k, c in enumerate(_COLLECTIVE)})
        result.append(
            msgspec.structs.replace(
                window,
                path_ns=path,
                start_ns=window.start_ns + shift,
                end_ns=window.end_ns + shift,
                host_start_ns=None if window.host_start_ns is None else window.host_start_ns + shift,
                host_end_ns=None if window.host_end_ns is None else window.host_end_ns + shift,
            )
        )
    return result


_COLLECTIVE = (Category.COLLECTIVE_TRANSFER, Category.COLLECTIVE_WAIT, Category.COLLECTIVE_UNSPLIT)


def _collective_totals(segments: SegmentTable, windows: list[Window]) -> IntArray:
    """(w, 3) ns of each window by the kinds of collective time."""
    at = {window.index: position for position, window in enumerate(windows)}
    totals = np.zeros((len(windows), len(_COLLECTIVE)), np.int64)
    for column, category in enumerate(_COLLECTIVE):
        rows = np.flatnonzero(segments.category == category)
        owner = np.array([at[index] for index in segments.window[rows].tolist()], np.int64)
        np.add.at(totals[:, column], owner, (segments.end_ns - segments.start_ns)[rows])
    return totals


def _rank(rank: Rank, windows: list[Window], clock: ClockMap | None, shift: int) -> Rank:
    span = rank.device_span
    if span is not None and shift:
        span = DeviceSpan(
            start_ns=span.start_ns + shift,
            end_ns=span.end_ns + shift,
            busy_ns=span.busy_ns,
            idle_ns=span.idle_ns,
        )
    constants = rank.constants
    if clock is not None:
        constants = msgspec.structs.replace(constants, uncertainty_ns=clock.uncertainty_ns)
    return msgspec.structs.replace(
        rank,
        windows=windows,
        device_span=span,
        constants=constants,
        clock=_clock(rank.clock, clock),
    )


def _clock(clock: Clock, found: ClockMap | None) -> Clock:
    if found is None:
        return clock
    return msgspec.structs.replace(
        clock,
        offset_ns=found.offset_ns,
        drift_ppb=found.drift_ppb,
        epoch_ns=found.epoch_ns + found.offset_ns,
        interval_ns=found.interval_ns,
        uncertainty_ns=found.uncertainty_ns,
        reference_rank=found.reference,
        compared_with=found.parent,
        shared_calls=found.shared_calls,
    )


def _evidence(evidence: RankEvidence, old: IntArray, shift: int) -> RankEvidence:
    """Lines of the segments before the split as lines after it."""

    def moved(row: Evidence) -> Evidence:
        line = int(np.searchsorted(old, row.line - FIRST_LINE)) + FIRST_LINE
        return msgspec.structs.replace(
            row, line=line, start_ns=row.start_ns + shift, end_ns=row.end_ns + shift
        )

    lists: Mapping[str, list[Evidence]] = {
        name: [moved(row) for row in rows] for name, rows in evidence.evidence.items()
    }
    return replace(evidence, evidence=lists)
