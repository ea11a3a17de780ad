"""Whether steps were replayed, by phase and batch shape: which shapes a graph serves, and which fall back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.cuda_api import CallKind
from analyzer.diagnosis import Rank, ShapeReplays, Window
from analyzer.explain.windows import chosen_windows, own_calls, phases_of
from analyzer.model import DeviceKind
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import Shape, shape_of


def shape_replays(account: RankAccount, rank: Rank) -> list[ShapeReplays]:
    """Rows by phase, the longest in total time first, and by shape, the smallest first; steps without a shape last.

    Empty where no device work or no call was recorded, and where there are no steps.
    """
    if account.assignment is None or not len(account.work) or not len(account.calls):
        return []
    hidden = _hidden_replays(account)
    rows = []
    for phase in phases_of([rank]):
        by_shape: dict[Shape | None, list[Window]] = {}
        chosen = chosen_windows(rank.windows, phase)
        for window in (*chosen.used, *chosen.outliers):
            by_shape.setdefault(shape_of(window.step), []).append(window)
        for shape in sorted(by_shape, key=lambda one: (one is None, one and (one.unit, one.size))):
            aside = {window.index for window in chosen.outliers}
            rows.append(_row(rank.rank, phase, shape, by_shape[shape], hidden, aside))
    return rows


def _hidden_replays(account: RankAccount) -> set[int]:
    """Steps with replays whose kernels were not recorded: as one row each, or not at all."""
    assert account.assignment is not None
    of_call, of_row = account.assignment.of_call, account.assignment.of_row
    whole = set(of_row[account.work.table.kind == DeviceKind.GRAPH].tolist())
    launched = np.flatnonzero((account.calls.kind == CallKind.GRAPH_LAUNCH) & own_calls(account))
    lost = np.setdiff1d(launched, account.replays.call)
    return whole | set(of_call[lost].tolist())


def _row(
    rank: int,
    phase: str,
    shape: Shape | None,
    windows: Sequence[Window],
    hidden: set[int],
    outliers: set[int],
) -> ShapeReplays:
    """``hidden``, ``outliers``: steps."""
    eager = [window for window in windows if window.kernels and not window.graph_replays]
    known = not any(window.index in hidden for window in windows)
    return ShapeReplays(
        rank=rank,
        phase=phase,
        shape=None if shape is None else str(shape),
        steps=len(windows),
        outlier_steps=sum(window.index in outliers for window in windows),
        step_ns_total=_time(windows),
        kernels_total=_sum([window.kernels for window in windows]),
        kernels_in_graphs_total=_sum([window.kernels_in_graphs for window in windows]) if known else None,
        replayed_steps=sum(bool(window.graph_replays) for window in windows),
        eager_steps=len(eager),
        eager_outlier_steps=sum(window.index in outliers for window in eager),
        eager_ns_total=_time(eager),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where one of them was not captured."""
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def _time(windows: Sequence[Window]) -> int:
    return sum(window.end_ns - window.start_ns for window in windows)
