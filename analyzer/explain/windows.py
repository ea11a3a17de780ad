"""Windows and budgets as the result shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES, Category, Exposure
from analyzer.cuda_api import LAUNCHES, CallKind
from analyzer.diagnosis import Budget, GlobalWindow, Rank
from analyzer.diagnosis import Window as WindowResult
from analyzer.errors import InvariantError
from analyzer.model import DeviceKind, IntArray
from analyzer.reconstruct.critical_path import Path
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.windows import Window
from analyzer.reconstruct.work import BoolArray


def path_totals(path: Path) -> dict[str, int]:
    """Time per category in ns, every category present."""
    totals = np.zeros(len(Category), np.int64)
    np.add.at(totals, path.category, path.end_ns - path.start_ns)
    return {CATEGORY_NAMES[category]: int(totals[category]) for category in Category}


def window_results(account: RankAccount) -> list[WindowResult]:
    """Every window of one rank with its path, its exposure and its counts."""
    counts = _counts(account)
    overlaps: list[dict[str, int]] | list[None] = [None] * len(account.windows)
    if account.exposure is not None:
        overlaps = account.exposure.overlaps(
            np.array([window.start_ns for window in account.windows], np.int64),
            np.array([window.end_ns for window in account.windows], np.int64),
        )
    return [
        _window_result(account, window, path, overlap, counts)
        for window, path, overlap in zip(account.windows, account.paths, overlaps, strict=True)
    ]


def _window_result(
    account: RankAccount,
    window: Window,
    path: Path,
    overlap: dict[str, int] | None,
    counts: dict[str, list[int | None]],
) -> WindowResult:
    exposed = None
    if account.exposure is not None:
        by_label = account.exposure.window(window.start_ns, window.end_ns)
        exposed = {EXPOSURE_NAMES[label]: by_label[label] for label in Exposure}
    totals = path_totals(path)
    if sum(totals.values()) != window.end_ns - window.start_ns:
        raise InvariantError(f"path of window {window.index} does not sum to the window")
    return WindowResult(
        index=window.index,
        step=window.step,
        phase=window.phase,
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        host_start_ns=window.host_start_ns,
        host_end_ns=window.host_end_ns,
        warmup=bool(window.warmup_reasons),
        warmup_reasons=list(window.warmup_reasons),
        outlier=window.outlier,
        empty=window.empty,
        path_ns=totals,
        exposed_ns=exposed,
        inferred_ns=int((path.end_ns - path.start_ns)[path.inferred].sum()),
        overlap_ns=overlap,
        **{name: column[window.index] for name, column in counts.items()},
    )


def _counts(account: RankAccount) -> dict[str, list[int | None]]:
    """Work that each step launched; without steps everything belongs to the one window.

    None where such records were not captured, and for kernels inside a replay that is recorded as one row.
    Of a process with several devices only launches count whose work is recorded on this one.
    """
    n = len(account.windows)
    work, calls = account.work, account.calls
    of_row = np.zeros(len(work), np.int64)
    of_call = np.zeros(len(calls), np.int64)
    if account.assignment is not None:
        of_row, of_call = account.assignment.of_row, account.assignment.of_call
    mine = own_calls(account)
    launches = np.isin(calls.kind, list(LAUNCHES)) & mine
    masks = {
        "kernels": ("kernel", of_row, work.kernels),
        "kernels_in_graphs": ("kernel", of_row, work.kernels & (work.replay >= 0)),
        "launches": ("call", of_call, launches),
        "graph_replays": ("call", of_call, (calls.kind == CallKind.GRAPH_LAUNCH) & mine),
        "collectives": ("kernel", of_row, work.own_label == Category.COLLECTIVE_UNSPLIT),
        "copies": ("copy", of_row, work.own_label == Category.COPY),
    }
    captured = account.trace.source.captured
    counts: dict[str, list[int | None]] = {
        name: _per_window(owner[mask], n) if record in captured else [None] * n
        for name, (record, owner, mask) in masks.items()
    }
    whole = _per_window(of_row[work.table.kind == DeviceKind.GRAPH], n)
    counts["kernels_in_graphs"] = [
        None if hidden else known for known, hidden in zip(counts["kernels_in_graphs"], whole, strict=True)
    ]
    return counts


def _per_window(owner: IntArray, n: int) -> list[int | None]:
    """How many of each of ``n`` windows; -1 belongs to none."""
    return list(np.bincount(owner[owner >= 0], minlength=n)[:n].tolist())


def own_calls(account: RankAccount) -> BoolArray:
    """(m,) calls that can be this device's: of a process with several devices those with work recorded on it."""
    own = np.full(len(account.calls), account.sole_device)
    own[account.work.launch[account.work.linked]] = True
    return own


AnyWindow = TypeVar("AnyWindow", WindowResult, GlobalWindow)


@dataclass(frozen=True)
class Chosen(Generic[AnyWindow]):
    """The windows of a phase: those that its budget rests on, warm-up and outliers left out.

    ``note``: why the budget rests on windows of those kinds; then none is left out.
    """

    used: list[AnyWindow]
    warmup: list[AnyWindow]
    outliers: list[AnyWindow]
    note: str = ""


def chosen_windows(windows: Sequence[AnyWindow], phase: str) -> Chosen[AnyWindow]:
    """What a phase's budget rests on; all of its windows where none is ordinary."""
    mine = [window for window in windows if window.phase == phase and not window.empty]
    used = [window for window in mine if not window.left_out]
    if mine and not used:
        return Chosen(mine, [], [], _why_flagged(mine))
    outliers = [window for window in mine if window.outlier and not window.warmup]
    return Chosen(used, [window for window in mine if window.warmup], outliers)


def _why_flagged(windows: Sequence[WindowResult | GlobalWindow]) -> str:
    if all(window.warmup for window in windows):
        return "every window of this phase is flagged as warm-up; all are used"
    if len(windows) == 1:
        return "this step is an outlier"
    return "every window of this phase is flagged as warm-up or outlier; all are used"


def used_windows(rank: Rank, phase: str) -> list[WindowResult]:
    """Windows that a phase's budget of one rank rests on."""
    return chosen_windows(rank.windows, phase).used


def budgets(ranks: list[Rank]) -> list[Budget]:
    """One budget per phase and rank: integer totals over the windows used."""
    result = []
    for phase in phases_of(ranks):
        for rank in ranks:
            chosen = chosen_windows(rank.windows, phase)
            if chosen.used:
                result.append(_budget(phase, rank.rank, chosen))
    return result


def phases_of(ranks: list[Rank]) -> list[str]:
    """Phases with at least one non-empty window, the longest in total time first."""
    time: dict[str, int] = {}
    for rank in ranks:
        for window in rank.windows:
            if not window.empty:
                time[window.phase] = time.get(window.phase, 0) + window.end_ns - window.start_ns
    return sorted(time, key=lambda phase: (-time[phase], phase))


def _budget(phase: str, rank: int, chosen: Chosen[WindowResult]) -> Budget:
    windows = chosen.used
    exposed = [window.exposed_ns for window in windows if window.exposed_ns is not None]
    return Budget(
        phase=phase,
        scope="rank",
        rank=rank,
        windows=len(windows),
        windows_excluded=len(chosen.warmup) + len(chosen.outliers),
        outliers=len(chosen.outliers),
        outlier_ns_total=sum(window.end_ns - window.start_ns for window in chosen.outliers),
        step_ns_total=sum(window.end_ns - window.start_ns for window in windows),
        path_ns_total={name: sum(window.path_ns[name] for window in windows) for name in windows[0].path_ns},
        exposed_ns_total=(
            {name: sum(labels[name] for labels in exposed) for name in exposed[0]}
            if len(exposed) == len(windows)
            else None
        ),
        inferred_ns_total=sum(window.inferred_ns for window in windows),
        note=chosen.note,
    )
