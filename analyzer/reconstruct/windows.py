"""Windows: which stretch of time each step is answerable for, its phase and whether it is warm-up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from analyzer.cuda_api import DEVICE_ALLOCATION, CallKind, base_name
from analyzer.model import HostKind, IntArray, ProcessTrace
from analyzer.reconstruct.outliers import SLOW_START, judge
from analyzer.reconstruct.step_markers import phase_of
from analyzer.reconstruct.steps import StepRanges
from analyzer.reconstruct.work import Calls, Work

WHOLE = "whole capture"


@dataclass(frozen=True)
class Window:
    """One window of one rank; ``row`` is the device event that ends it, or ``thread`` the host thread."""

    index: int
    step: str
    phase: str
    start_ns: int
    end_ns: int
    host_start_ns: int | None
    host_end_ns: int | None
    row: int | None
    thread: int
    empty: bool
    warmup_reasons: tuple[str, ...] = ()
    outlier: bool = False  # lies far outside its group, and not because the loop was warming up


@dataclass(frozen=True)
class Assignment:
    """Which step launched what: step ordinal of every call and every device row, -1 none."""

    of_call: IntArray
    of_row: IntArray


def assign(steps: StepRanges, calls: Calls, work: Work) -> Assignment:
    """A launch belongs to the range with the latest start not after it, until the next range starts.

    The last range reaches to its start plus the longest distance between starts; a single range to
    the end of the capture. Launches before the first range belong to no step.
    """
    of_call = np.searchsorted(steps.start_ns, calls.start_ns, side="right") - 1
    if len(steps) > 1:
        reach = int(steps.start_ns[-1] + np.diff(steps.start_ns).max())
        of_call = np.where(calls.start_ns >= max(reach, int(steps.end_ns[-1])), -1, of_call)
    of_row = np.full(len(work), -1, np.int64)
    linked = work.linked
    of_row[linked] = of_call[work.launch[linked]]
    return Assignment(of_call, of_row)


def device_windows(steps: StepRanges, assignment: Assignment, work: Work) -> list[Window]:
    """Windows at the device boundary: ``[D_{k-1}, D_k)``, the first from its range's host start."""
    windows: list[Window] = []
    last_end, last_row = _last_completions(len(steps), assignment, work)
    previous = int(steps.start_ns[0])
    for k in range(len(steps)):
        end = max(previous, last_end[k])
        windows.append(
            Window(
                index=k,
                step=steps.names[k],
                phase=phase_of(steps.names[k]) or "",
                start_ns=previous,
                end_ns=end,
                host_start_ns=int(steps.start_ns[k]),
                host_end_ns=int(steps.end_ns[k]),
                row=last_row[k] if end > previous else None,
                thread=-1,
                empty=end == previous,
            )
        )
        previous = end
    return windows


def _last_completions(count: int, assignment: Assignment, work: Work) -> tuple[list[int], list[int]]:
    """Per step the completion of its last device work and the row (last in total order on a tie)."""
    floor = np.iinfo(np.int64).min
    ends, rows = [int(floor)] * count, [-1] * count
    mine = np.flatnonzero(assignment.of_row >= 0)
    order = mine[np.lexsort((mine, work.end_ns[mine], assignment.of_row[mine]))]
    steps = assignment.of_row[order]
    for at in np.flatnonzero(np.diff(steps, append=-1)).tolist():
        ends[int(steps[at])] = int(work.end_ns[order[at]])
        rows[int(steps[at])] = int(order[at])
    return ends, rows


def whole_window(work: Work) -> list[Window]:
    """Without steps: first launch or device event to last completion, as one window."""
    if not len(work):
        return []
    end = int(work.end_ns.max())
    row = int(np.flatnonzero(work.end_ns == end)[-1])
    start = int(work.start_ns[0])
    launches = work.launch_ns[work.linked]
    if len(launches):
        start = min(start, int(launches.min()))
    return [Window(0, WHOLE, WHOLE, start, end, None, None, row, -1, empty=end == start)]


def host_windows(steps: StepRanges, process: ProcessTrace) -> list[Window]:
    """Windows at the host boundary: each step range on its own thread; without steps the busiest thread."""
    host = process.host
    if len(steps):
        return [
            Window(
                index=k,
                step=steps.names[k],
                phase=phase_of(steps.names[k]) or "",
                start_ns=int(steps.start_ns[k]),
                end_ns=int(steps.end_ns[k]),
                host_start_ns=int(steps.start_ns[k]),
                host_end_ns=int(steps.end_ns[k]),
                row=None,
                thread=int(steps.thread[k]),
                empty=bool(steps.end_ns[k] <= steps.start_ns[k]),
            )
            for k in range(len(steps))
        ]
    rows = np.flatnonzero(
        (host.thread >= 0) & (host.kind != HostKind.OVERHEAD) & (host.kind != HostKind.MARK)
    )
    if not len(rows):
        return []
    threads = np.unique(host.thread[rows])
    spans = {
        int(thread): (int(host.start_ns[mine].min()), int(host.end_ns[mine].max()), len(mine))
        for thread in threads
        for mine in [rows[host.thread[rows] == thread]]
    }
    thread = max(spans, key=lambda t: (spans[t][2], -t))
    start, end, _ = spans[thread]
    return [Window(0, WHOLE, WHOLE, start, end, start, end, None, thread, empty=end == start)]


def flagged(
    windows: list[Window], phases: list[str], steps: StepRanges, calls: Calls, process: ProcessTrace
) -> list[Window]:
    """The windows with their phases, why they are warm-up, and which are outliers.

    Being first is by itself no reason.
    """
    reasons: list[list[str]] = [[] for _ in windows]
    if len(steps):
        _by_one_time_calls(reasons, windows, steps, calls, process)
    full = [at for at, window in enumerate(windows) if not window.empty]
    judged = judge(
        np.array([windows[at].end_ns - windows[at].start_ns for at in full], np.int64),
        [phases[at] for at in full],
        [bool(reasons[at]) for at in full],
    )
    for place in np.flatnonzero(judged.slow_start).tolist():
        reasons[full[place]].append(SLOW_START)
    outliers = {full[place] for place in np.flatnonzero(judged.outlier).tolist()}
    return [
        replace(window, phase=phase, warmup_reasons=tuple(items), outlier=at in outliers and not items)
        for at, (window, phase, items) in enumerate(zip(windows, phases, reasons, strict=True))
    ]


def _by_one_time_calls(
    reasons: list[list[str]], windows: list[Window], steps: StepRanges, calls: Calls, process: ProcessTrace
) -> None:
    names = process.host.name[calls.row]
    kinds = {
        "loads device code": calls.kind == CallKind.MODULE_LOAD,
        "captures or instantiates a graph": calls.kind == CallKind.GRAPH_BUILD,
        "allocates device memory": np.isin(
            names,
            [
                code
                for code in np.unique(names).tolist()
                if code >= 0 and DEVICE_ALLOCATION.match(base_name(process.names[code]))
            ],
        ),
    }
    step_of = np.searchsorted(steps.start_ns, calls.start_ns, side="right") - 1
    for reason, mask in kinds.items():
        hit = set(step_of[mask & (calls.start_ns < steps.end_ns[np.maximum(step_of, 0)])].tolist())
        for window in windows:
            if window.index in hit:
                reasons[window.index].append(reason)
