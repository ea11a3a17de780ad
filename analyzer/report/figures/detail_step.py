"""The step that the timeline shows, with its path segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.analysis import Analysis
from analyzer.diagnosis import Detail
from analyzer.model import IntArray
from analyzer.report.figures.lanes import path_lanes
from analyzer.report.figures.sheet import DPI
from analyzer.tables import DetailTable, SegmentTable

PLOT_IN = 8.2
"""Width of the drawn step; exact enough to say what lies under one pixel."""


@dataclass(frozen=True)
class Step:
    """The step that is drawn and its path segments."""

    about: Detail
    events: DetailTable
    table: SegmentTable
    path: IntArray  # rows of the table
    path_lane: IntArray  # (n,) lane of each, -1 none
    start_ns: int
    end_ns: int

    @property
    def pixel_ns(self) -> float:
        """Time under one pixel of the PNG."""
        return (self.end_ns - self.start_ns) / (PLOT_IN * DPI)


def step_of(analysis: Analysis) -> Step | None:
    """The detail step, None where its events or segments are not part of the result."""
    about, events, table = analysis.diagnosis.detail, analysis.detail, analysis.segment_table
    if about is None or events is None or table is None:
        return None
    path = np.flatnonzero((table.rank == about.rank) & (table.window == about.window))
    if not len(path) or table.end_ns[path].max() == table.start_ns[path].min():
        return None
    lanes = path_lanes(table, path, events.lanes)
    return Step(
        about, events, table, path, lanes, int(table.start_ns[path].min()), int(table.end_ns[path].max())
    )
