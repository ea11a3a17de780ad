"""The path time that the CPU took, in the windows that budgets rest on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.explain.phase_windows import PhaseWindows
from analyzer.model import IntArray
from analyzer.reconstruct.critical_path import ON_HOST


@dataclass(frozen=True)
class HostSegments:
    """Path segments on the CPU, (s,) columns."""

    start_ns: IntArray
    length_ns: IntArray
    category: IntArray
    row: IntArray  # host row behind the segment, -1 none
    thread: IntArray
    phase: IntArray  # position in ``PhaseWindows.phases``
    window: IntArray  # position among the rank's windows

    def __len__(self) -> int:
        return len(self.start_ns)

    def of_phase(self, phase: int) -> HostSegments:
        """Those of one phase."""
        mine = np.flatnonzero(self.phase == phase)
        return HostSegments(
            self.start_ns[mine], self.length_ns[mine], self.category[mine], self.row[mine], self.thread[mine],
            self.phase[mine], self.window[mine],
        )  # fmt: skip


def host_segments(phases: PhaseWindows) -> HostSegments:
    """The segments of all phases in window order."""
    path = phases.path
    mine = np.flatnonzero(path.side == ON_HOST)
    return HostSegments(
        start_ns=path.start_ns[mine],
        length_ns=phases.segment_ns[mine],
        category=path.category[mine].astype(np.int64),
        row=path.ref[mine],
        thread=path.thread[mine],
        phase=phases.of_segment[mine],
        window=phases.window_of_segment[mine],
    )
