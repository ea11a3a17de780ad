"""The steps as the client sees them: from the receipt of the step before to that of the step's last token.

Like the windows of the device boundary they tile the time, ``R_k = max(R_(k-1), last receipt of step k)``. The path of
a window goes back from ``R_k`` along the way of the token that came last, to the completion of its step, and from there
along the path of the device boundary to ``R_(k-1)``. Where the client was still waiting for the step before while the
device worked on this one, ``R_(k-1)`` cuts that work off: what overlaps is in no window twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Budget, ClientWindow
from analyzer.errors import InvariantError
from analyzer.explain.service.assign import NO_STEP
from analyzer.explain.service.device_path import DevicePath
from analyzer.explain.service.gaps import BUFFERING, DEVICE, OUTPUT, TRANSPORT, UNSPLIT, split
from analyzer.explain.service.placed import Placed
from analyzer.model import IntArray
from analyzer.tokens import ABSENT

SCOPE = "client"
_OF_PART = {
    OUTPUT: Category.SERVICE_OUTPUT,
    TRANSPORT: Category.SERVICE_TRANSPORT,
    BUFFERING: Category.SERVICE_BUFFERING,
    UNSPLIT: Category.UNATTRIBUTED,
}
_NOT_WORK = {
    Category.HOST_OUTPUT,
    Category.HOST_WAIT,
    Category.HOST_UNTRACED,
    Category.UNATTRIBUTED,
    *_OF_PART.values(),
}
_WORK = np.array([category not in _NOT_WORK for category in Category])
"""Recorded work on the device's path that no output processing is part of, nor a wait for it."""


@dataclass(frozen=True)
class _Last:
    """The token of a step that the client had last: which log, which row, when; and how many tokens."""

    log: int
    row: int
    receipt_ns: int
    tokens: int


def client_windows(path: DevicePath, logs: Sequence[Placed]) -> list[ClientWindow]:
    """One window per step with a token that was received, from the second of them on."""
    last = _last_tokens(logs)
    result = []
    before: int | None = None
    for step in sorted(last):
        token = last[step]
        if before is not None:
            result.append(_window(path, step, token, logs[token.log], before))
        before = token.receipt_ns if before is None else max(before, token.receipt_ns)
    return result


def _last_tokens(logs: Sequence[Placed]) -> dict[int, _Last]:
    """By position of the window."""
    found: dict[int, _Last] = {}
    for number, placed in enumerate(logs):
        rows = np.flatnonzero((placed.step != NO_STEP) & (placed.way.receipt_ns != ABSENT))
        rows = rows[np.argsort(placed.way.receipt_ns[rows], kind="stable")]
        for row, step in zip(rows.tolist(), placed.step[rows].tolist(), strict=True):
            receipt = int(placed.way.receipt_ns[row])
            known = found.get(step)
            count = 1 if known is None else known.tokens + 1
            if known is not None and known.receipt_ns > receipt:
                found[step] = _Last(known.log, known.row, known.receipt_ns, count)
            else:
                found[step] = _Last(number, row, receipt, count)
    return found


def _window(path: DevicePath, step: int, token: _Last, placed: Placed, begin_ns: int) -> ClientWindow:
    window = path.windows[step]
    end_ns = max(token.receipt_ns, begin_ns)
    parts = split(placed.way, np.array([token.row]), np.array([begin_ns]))[0]
    after = int(parts.sum() - parts[DEVICE])
    totals, inferred = path.totals(begin_ns, end_ns - after)
    totals[Category.UNATTRIBUTED] += int(parts[DEVICE]) - int(totals.sum())
    for part, category in _OF_PART.items():
        totals[category] += int(parts[part])
    if int(totals.sum()) != end_ns - begin_ns:
        raise InvariantError(f"path of client window {window.index} does not sum to the window")
    under, _ = path.totals(end_ns - after, end_ns)
    return ClientWindow(
        index=window.index,
        step=window.step,
        phase=window.phase,
        start_ns=begin_ns,
        end_ns=end_ns,
        tokens=token.tokens,
        warmup=window.warmup,
        outlier=window.outlier,
        path_ns={CATEGORY_NAMES[category]: int(totals[category]) for category in Category},
        inferred_ns=inferred,
        after_device_ns=after,
        unsplit_ns=int(parts[UNSPLIT]),
        under_later_steps_ns=int(under[_WORK].sum()),
        recorded_work_ns=int(path.totals(begin_ns, end_ns)[0][_WORK].sum()),
    )


def client_budgets(path: DevicePath, windows: Sequence[ClientWindow]) -> list[Budget]:
    """One budget per phase, the phase with the most time first: integer totals over the windows used."""
    budgets = []
    passed_over = _passed_over(path, windows)
    for phase in {window.phase: None for window in windows}:
        used, note = used_windows(windows, phase)
        mine = [window for window in windows if window.phase == phase]
        outliers = [] if note else [window for window in mine if window.outlier and not window.warmup]
        budgets.append(
            Budget(
                phase=phase,
                scope=SCOPE,
                rank=path.rank,
                windows=len(used),
                windows_excluded=len(mine) - len(used),
                outliers=len(outliers),
                outlier_ns_total=sum(window.end_ns - window.start_ns for window in outliers),
                step_ns_total=sum(window.end_ns - window.start_ns for window in used),
                path_ns_total={
                    name: sum(window.path_ns[name] for window in used) for name in used[0].path_ns
                },
                exposed_ns_total=None,
                inferred_ns_total=sum(window.inferred_ns for window in used),
                note="; ".join(filter(None, (note, _longer(used, passed_over)))),
            )
        )
    return sorted(budgets, key=lambda budget: (-budget.step_ns_total, budget.phase))


def _passed_over(path: DevicePath, windows: Sequence[ClientWindow]) -> dict[int, int]:
    """By index of a window how many steps without a received token lie between it and the window before."""
    at = {window.index: position for position, window in enumerate(path.windows)}
    return {two.index: at[two.index] - at[one.index] - 1 for one, two in pairwise(windows)}


def _longer(used: Sequence[ClientWindow], passed_over: Mapping[int, int]) -> str:
    """Windows that are longer than a step's, for tokens of the steps before were not logged, or are none."""
    steps = [passed_over.get(window.index, 0) for window in used]
    if not any(steps):
        return ""
    return (
        f"{sum(one > 0 for one in steps)} of {len(used)} windows at the client reach over {sum(steps)} steps of which"
        " no token was received: the mean is not that of one step of the device"
    )


def used_windows(windows: Sequence[ClientWindow], phase: str) -> tuple[list[ClientWindow], str]:
    """Client windows that a phase's budget rests on, and why flagged ones are among them.

    A step whose tokens came with those of a step before has a window of no length: it counts, for the step took place.
    """
    mine = [window for window in windows if window.phase == phase]
    used = [window for window in mine if not window.left_out]
    if used:
        return used, ""
    return mine, "every window of this phase is flagged as warm-up or outlier; all are used"


def column(windows: Sequence[ClientWindow], names: Iterator[str] | Sequence[str]) -> IntArray:
    """(w,) ns of the path in categories ``names``."""
    wanted = list(names)
    return np.array([sum(window.path_ns[name] for name in wanted) for window in windows], np.int64)
