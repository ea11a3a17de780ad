"""The step that the cross-rank timeline shows: which one, which ranks, and what lies on their lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import GlobalAccount, GlobalWindow
from analyzer.explain.windows import chosen_windows
from analyzer.model import IntArray
from analyzer.report.figures.lanes import Runs, dominant
from analyzer.report.figures.palette import GROUP_COLOURS, PATH_FILLS, Fill
from analyzer.report.figures.rank_pixels import partition, shared_out
from analyzer.report.figures.sheet import DPI
from analyzer.report.labels import PATH_GROUPS
from analyzer.tables import SegmentTable

PLOT_IN = 7.2
"""Width of the drawn step; exact enough to say what lies under one pixel."""
MOST_LANES = 16
MOST_LATE = 10
MOST_VISITED = 13
"""Lanes that late ranks, and these and the ranks on the path together, may take: the others need some too."""
WAITING = "waiting for a late rank"
UNSPLIT = "collective, waiting and transfer not told apart"
LOOKS: dict[str, Fill] = {
    **{name: Fill(colour) for name, colour in GROUP_COLOURS.items() if name != "collectives"},
    "collective, all ranks arrived": PATH_FILLS["collective.transfer"],
    WAITING: Fill("#F7E4EE", "/////"),
    UNSPLIT: PATH_FILLS["collective.unsplit"],
}
"""How a lane looks: a colour per group of the path; of collectives, waiting is told from transfer."""
BLANK = -1
_LOOK_OF_NAME = {
    **{name: group for group, names in PATH_GROUPS.items() for name in names},
    "collective.transfer": "collective, all ranks arrived",
    "collective.wait": WAITING,
    "collective.unsplit": UNSPLIT,
    "collective.host": UNSPLIT,
}
_LOOK_OF = np.array([list(LOOKS).index(_LOOK_OF_NAME[CATEGORY_NAMES[one]]) for one in Category], np.int64)


@dataclass(frozen=True)
class RankLane:
    """A rank's own path over the step, times in ns since its start.

    ``runs``: ``category`` is a position in LOOKS, BLANK where the rank has no step, ``lane`` the late rank
    that is waited for, -1 elsewhere. ``waited_ns`` rests on the segments, not on what is drawn of them.
    """

    rank: int
    late_calls: int
    runs: Runs
    waited_ns: int


@dataclass(frozen=True)
class RankStep:
    """One step of all ranks. ``path``: ``lane`` is a position in ``lanes``, beyond them a rank without a lane."""

    window: GlobalWindow
    phase_steps: int  # non-empty steps of its phase
    lanes: list[RankLane]
    path: Runs

    @property
    def span_ns(self) -> int:
        """Length of the step."""
        return self.window.end_ns - self.window.start_ns

    @property
    def pixel_ns(self) -> float:
        """Time under one pixel of the PNG."""
        return self.span_ns / (PLOT_IN * DPI)

    @property
    def hidden(self) -> int:
        """Ranks without a lane."""
        return len(self.window.windows) - len(self.lanes)

    @property
    def path_leaves(self) -> bool:
        """Whether the path runs over a rank without a lane."""
        return bool((self.path.lane >= len(self.lanes)).any())


def step_of(analysis: Analysis) -> RankStep | str:
    """The median step of the phase with the most time, or why there is none."""
    joint, table, path = analysis.diagnosis.global_, analysis.segment_table, analysis.global_segments
    if joint is None and len(analysis.diagnosis.ranks) < 2:
        return "one rank alone waits for no other"
    if joint is None:
        return "there is no path through all ranks"
    if table is None or path is None:
        return "the path segments are not part of this result"
    window, phase_steps = median_window(joint)
    if window is None:
        return "no step of all ranks has any time"
    rows = np.flatnonzero(path.window == window.index)
    if not len(rows):
        return "the path through all ranks has no segments in this result"
    ranks = chosen_ranks(window)
    lanes = [_lane(table, rank, window) for rank in ranks]
    lane = _lane_of(path.rank[rows].astype(np.int64), ranks)
    nothing = np.zeros(len(rows), np.int64)
    runs = dominant(path.start_ns[rows], path.end_ns[rows], nothing, lane, round(PLOT_IN * DPI))
    return RankStep(window, phase_steps, lanes, runs)


def median_window(joint: GlobalAccount) -> tuple[GlobalWindow | None, int]:
    """The step of median duration (lower of two) of the longest phase, and how many steps that phase has.

    Warm-up and outliers count only where a phase has nothing else.
    """
    phases: dict[str, list[GlobalWindow]] = {}
    for window in joint.windows:
        if not window.empty:
            phases.setdefault(window.phase, []).append(window)
    if not phases:
        return None, 0
    phase = min(phases, key=lambda name: (-sum(w.end_ns - w.start_ns for w in phases[name]), name))
    used = chosen_windows(phases[phase], phase).used
    ordered = sorted(used, key=lambda window: (window.end_ns - window.start_ns, window.index))
    return ordered[(len(ordered) - 1) // 2], len(phases[phase])


def chosen_ranks(window: GlobalWindow) -> list[int]:
    """At most MOST_LANES ranks in numeric order: late ones, the last, those on the path, then some evenly."""
    every = sorted(window.windows)
    if len(every) <= MOST_LANES:
        return every
    by_time = sorted(window.rank_ns, key=lambda rank: (-window.rank_ns[rank], rank))
    on_path = [rank for rank in by_time if window.rank_ns[rank]]
    told = list(dict.fromkeys([*window.late_ranks[:MOST_LATE], window.last_rank, *on_path]))[:MOST_VISITED]
    others = [rank for rank in every if rank not in told]
    n = MOST_LANES - len(told)
    return sorted([*told, *(others[(2 * at + 1) * len(others) // (2 * n)] for at in range(n))])


def _lane_of(rank: IntArray, ranks: Sequence[int]) -> IntArray:
    """(n,) position of each rank among ``ranks`` (sorted), their number where it is not one of them."""
    known = np.array(ranks, np.int64)
    at = np.minimum(np.searchsorted(known, rank), len(known) - 1)
    return np.where(known[at] == rank, at, len(known))


def _lane(table: SegmentTable, rank: int, window: GlobalWindow) -> RankLane:
    first, last = np.searchsorted(table.rank, [rank, rank + 1])
    start, end = table.start_ns[first:last], table.end_ns[first:last]
    mine = np.flatnonzero((start < window.end_ns) & (end > window.start_ns))
    row, since, until = partition(
        start[mine], end[mine], table.window[first + mine] - window.windows[rank],
        window.start_ns, window.end_ns,
    )  # fmt: skip
    category = np.append(table.category[first + mine].astype(np.int64), BLANK)[row]
    late = np.append(table.late_rank[first + mine].astype(np.int64), -1)[row]
    look = np.where(category == BLANK, BLANK, _LOOK_OF[category])
    runs = shared_out(since, until, look, late, round(PLOT_IN * DPI))
    waited = int((until - since)[category == Category.COLLECTIVE_WAIT].sum())
    return RankLane(rank, window.late_calls.get(rank, 0), runs, waited)
