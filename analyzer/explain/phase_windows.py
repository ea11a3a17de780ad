"""The windows that the budgets of one rank rest on, and which phase every row, call and segment belongs to.

All phases at once: figures are sums by code, one pass over the rows however many phases there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.categories import DEVICE_CATEGORIES
from analyzer.diagnosis import Rank
from analyzer.explain.windows import phases_of, used_windows
from analyzer.model import IntArray
from analyzer.reconstruct.critical_path import ON_DEVICE, Path, join_paths
from analyzer.reconstruct.rank import RankAccount


@dataclass(frozen=True)
class PhaseWindows:
    """Codes are positions in ``phases``, -1: in no window that a budget rests on."""

    phases: tuple[str, ...]  # the longest in total time first
    windows: IntArray  # (p,) how many each budget rests on
    step_ns: IntArray  # (p,) their total time
    of_row: IntArray  # (n,) phase of each row of Work, by the step that launched it
    of_call: IntArray  # (m,) the same for calls
    path: Path  # segments of these windows, in window order
    of_segment: IntArray  # (s,)
    window_of_segment: IntArray  # (s,) position of the window among the rank's

    @property
    def segment_ns(self) -> IntArray:
        """(s,) length of each segment."""
        return self.path.end_ns - self.path.start_ns


def phase_windows(account: RankAccount, rank: Rank) -> PhaseWindows:
    """Codes for the windows of ``account``, as ``rank`` shows them."""
    phases = phases_of([rank])
    code_of: dict[int, int] = {}
    counts, times = [], []
    for code, phase in enumerate(phases):
        used = used_windows(rank, phase)
        code_of.update({window.index: code for window in used})
        counts.append(len(used))
        times.append(sum(window.end_ns - window.start_ns for window in used))
    of_window = np.array([code_of.get(window.index, -1) for window in account.windows], np.int64)
    lengths = np.array([len(path) for path in account.paths], np.int64)
    window_of_segment = np.repeat(np.arange(len(lengths)), lengths)
    keep = of_window[window_of_segment] >= 0
    window_of_segment = window_of_segment[keep]
    path = join_paths([path for path, code in zip(account.paths, of_window, strict=True) if code >= 0])
    of_row, of_call = _launched(account, code_of)
    return PhaseWindows(
        phases=tuple(phases),
        windows=np.array(counts, np.int64),
        step_ns=np.array(times, np.int64),
        of_row=of_row,
        of_call=of_call,
        path=path,
        of_segment=of_window[window_of_segment],
        window_of_segment=window_of_segment,
    )


def _launched(account: RankAccount, code_of: dict[int, int]) -> tuple[IntArray, IntArray]:
    """Phase of rows and calls by the step that they belong to; without steps all are the one window's."""
    if account.assignment is None:
        code = code_of.get(0, -1)
        return np.full(len(account.work), code), np.full(len(account.calls), code)
    table = np.full(len(account.steps) + 1, -1, np.int64)  # the last entry serves step -1
    table[np.array(list(code_of), np.int64)] = list(code_of.values())
    return table[account.assignment.of_row], table[account.assignment.of_call]


def device_path(phases: PhaseWindows) -> tuple[IntArray, IntArray, IntArray]:
    """Path time of device work: phase, row of Work and ns of each segment in which work runs."""
    mine = device_segments(phases)
    return phases.of_segment[mine], phases.path.ref[mine], phases.segment_ns[mine]


def device_segments(phases: PhaseWindows) -> IntArray:
    """Positions of the segments in which device work runs: gaps before a row carry its number, too."""
    path = phases.path
    body = np.isin(path.category, list(DEVICE_CATEGORIES))
    return np.flatnonzero((path.side == ON_DEVICE) & (path.ref >= 0) & body)


def sums(codes: IntArray, values: IntArray, count: int) -> IntArray:
    """(count,) exact integer sums of values by code; codes below 0 count nowhere."""
    total = np.zeros(count, np.int64)
    keep = codes >= 0
    np.add.at(total, codes[keep], values[keep])
    return total
