"""Device work of each phase by class, by size and by CUDA graph."""

from __future__ import annotations

import re

import numpy as np

from analyzer.arrays import group
from analyzer.diagnosis import ClassTime, GraphReplay, SmallKernels
from analyzer.explain.device.classes import RowClasses
from analyzer.explain.phase_windows import PhaseWindows, device_path, device_segments, sums
from analyzer.model import CodeArray, DeviceKind, IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import shape_of
from analyzer.reconstruct.work import Work
from analyzer.stats import mean_error

BELOW_NS = (2_000, 5_000, 10_000, 20_000, 50_000)
NAME_LENGTH = 40
PRIOR_WORK = "prior_work"
_ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)


def class_times(
    account: RankAccount, rank: int, phases: PhaseWindows, classes: RowClasses
) -> list[ClassTime]:
    """Time by class, longest first in each phase.

    Events and ``total_ns``: what the phase's steps launched. ``path_ns``: all work of the class on the
    paths of the phase's windows, whichever step launched it. Work from before the capture is no work of a
    step: it is a class of its own.
    """
    work, names = account.work, (*classes.names, PRIOR_WORK)
    width = len(names)
    count = len(phases.phases) * width
    code = np.where(work.prior, width - 1, classes.code)
    of_row = np.where(phases.of_row >= 0, phases.of_row * width + code, -1)
    events = sums(of_row, np.ones(len(work), np.int64), count)
    total = sums(of_row, work.end_ns - work.start_ns, count)
    phase, row, ns = device_path(phases)
    path = sums(phase * width + code[row], ns, count)
    errors = _path_errors(phases, code, width)
    table = [
        ClassTime(
            rank=rank,
            phase=phases.phases[at // width],
            class_=names[at % width],
            events=int(events[at]),
            total_ns=int(total[at]),
            path_ns=int(path[at]),
            path_error_ns=errors[at],
        )
        for at in np.flatnonzero((events > 0) | (path > 0)).tolist()
    ]
    order = {phase: at for at, phase in enumerate(phases.phases)}
    return sorted(table, key=lambda entry: (order[entry.phase], -entry.total_ns, entry.class_))


def _path_errors(phases: PhaseWindows, code: IntArray, width: int) -> list[float | None]:
    """By phase and class the standard error of the mean path time per window."""
    mine = device_segments(phases)
    of_class = code[phases.path.ref[mine]]
    result: list[float | None] = []
    for phase, count in enumerate(phases.windows.tolist()):
        windows = np.unique(phases.window_of_segment[phases.of_segment == phase])  # in order of time
        here = phases.of_segment[mine] == phase
        row = np.searchsorted(windows, phases.window_of_segment[mine[here]])
        each = sums(row * width + of_class[here], phases.segment_ns[mine[here]], len(windows) * width)
        for times in each.reshape(len(windows), width).T if len(windows) == count else [np.empty(0)] * width:
            result.append(mean_error(times.astype(np.float64)))
    return result


def small_kernels(account: RankAccount, rank: int, phases: PhaseWindows) -> list[SmallKernels]:
    """Kernels below each limit: counts and times of what the phase's steps launched, and path time."""
    work = account.work
    width, count = len(BELOW_NS) + 1, len(phases.phases)
    duration = work.end_ns - work.start_ns
    bucket = np.searchsorted(BELOW_NS, duration, side="right")
    kernels = work.kernels & ~work.prior
    of_row = np.where(kernels & (phases.of_row >= 0), phases.of_row * width + bucket, -1)
    number = sums(of_row, np.ones(len(work), np.int64), count * width).reshape(count, width)
    total = sums(of_row, duration, count * width).reshape(count, width)
    phase, row, ns = device_path(phases)
    on_path = np.where(kernels[row], phase * width + bucket[row], -1)
    path = sums(on_path, ns, count * width).reshape(count, width).cumsum(axis=1)
    below, below_ns = number.cumsum(axis=1), total.cumsum(axis=1)
    return [
        SmallKernels(
            rank=rank,
            phase=name,
            below_ns=limit,
            kernels_total=int(below[at, column]),
            of_kernels=int(below[at, -1]),
            total_ns=int(below_ns[at, column]),
            of_total_ns=int(below_ns[at, -1]),
            path_ns=int(path[at, column]),
        )
        for at, name in enumerate(phases.phases)
        if below[at, -1]
        for column, limit in enumerate(BELOW_NS)
    ]


def graph_replays(account: RankAccount, rank: int, phases: PhaseWindows) -> list[GraphReplay]:
    """Replays by graph, the most device time first in each phase.

    Replays, kernels and ``device_ns_total``: what the phase's steps launched. ``path_ns``: time of the graph's nodes
    on the paths of the phase's windows, whoever launched it.
    """
    work, replays = account.work, account.replays
    if not len(replays):
        return []
    nodes = np.flatnonzero(work.replay >= 0)
    graph, labels = _graphs(account, nodes)
    width = len(labels)
    count = len(phases.phases) * width
    of_replay = phases.of_call[replays.call]
    key = np.where(of_replay >= 0, of_replay * width + graph, -1)
    of_node = key[work.replay[nodes]]
    number = np.bincount(key[key >= 0], minlength=count)
    device_ns = sums(of_node, (work.end_ns - work.start_ns)[nodes], count)
    per_replay = _kernels_per_replay(work, nodes, graph, width)
    kernels = sums(of_node, work.kernels[nodes].astype(np.int64), count)
    steps = _replaying_steps(account, key, count)
    phase, row, ns = device_path(phases)
    replay = work.replay[row]
    path = sums(np.where(replay >= 0, phase * width + graph[np.maximum(replay, 0)], -1), ns, count)
    table = [
        GraphReplay(
            rank=rank,
            phase=phases.phases[at // width],
            graph=labels[at % width],
            replays=int(number[at]),
            kernels_per_replay=per_replay[at % width],
            kernels_total=None if per_replay[at % width] is None else int(kernels[at]),
            steps=len(steps[at]),
            shapes=_shapes(account, steps[at]),
            device_ns_total=int(device_ns[at]),
            path_ns=int(path[at]),
        )
        for at in np.flatnonzero((number > 0) | (path > 0)).tolist()
    ]
    order = {phase: at for at, phase in enumerate(phases.phases)}
    return sorted(table, key=lambda entry: (order[entry.phase], -entry.device_ns_total, entry.graph))


def _replaying_steps(account: RankAccount, key: IntArray, count: int) -> list[list[int]]:
    """Per key the steps that launch it, ascending; without steps all is the one window's."""
    owner = (
        np.zeros(len(account.calls), np.int64) if account.assignment is None else account.assignment.of_call
    )
    found: list[list[int]] = [[] for _ in range(count)]
    mine = key >= 0
    pairs, _ = group([key[mine], owner[account.replays.call[mine]]]) if mine.any() else ([], key)
    for at, step in pairs:
        found[at].append(step)
    return found


def _shapes(account: RankAccount, steps: list[int]) -> list[str]:
    """Batch shapes that the names of steps tell, small ones first."""
    name = {window.index: window.step for window in account.windows}
    known = {shape for step in steps if (shape := shape_of(name.get(step, ""))) is not None}
    return [str(shape) for shape in sorted(known, key=lambda shape: (shape.unit, shape.size))]


def _graphs(account: RankAccount, nodes: IntArray) -> tuple[IntArray, list[str]]:
    """(r,) graph of each replay and a label for each graph.

    By executable where the capture names it; else replays that bring the same names, each as often, are
    of one graph.
    """
    work, count = account.work, len(account.replays)
    executable = np.full(count, -1, np.int64)
    executable[work.replay[nodes]] = work.table.graph_exec[nodes]
    size = np.bincount(work.replay[nodes], minlength=count)
    content = np.zeros(count, np.int64)
    np.add.at(content, work.replay[nodes], _scattered(work.table.name[nodes]))
    unnamed = executable < 0
    groups, graph = group([executable, np.where(unnamed, size, 0), np.where(unnamed, content, 0)])
    first = np.full(len(groups), -1, np.int64)
    first[graph[::-1]] = np.arange(count)[::-1]
    starts = np.full(count, -1, np.int64)
    starts[work.replay[nodes[::-1]]] = nodes[::-1]
    seen: dict[str, int] = {}
    labels = [""] * len(groups)
    for at in np.argsort(first).tolist():  # equal labels are numbered in the order of their first replays
        known, number, _ = groups[at]
        label = f"executable {known}"
        if known < 0:
            ends = (int(starts[first[at]]), int(account.replays.last[first[at]]))
            names = dict.fromkeys(_short(account, row) for row in ends)
            label = f"{number} nodes: " + " ... ".join(names)
        seen[label] = seen.get(label, 0) + 1
        labels[at] = label if seen[label] == 1 else f"{label} ({seen[label]})"
    return graph, labels


def _scattered(codes: CodeArray) -> IntArray:
    """A 64-bit number for each name code: their sum over a replay tells what it holds (SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = (codes + 2).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def _kernels_per_replay(work: Work, nodes: IntArray, graph: IntArray, count: int) -> list[float | None]:
    """Mean kernels in a replay of each graph, None where replays were recorded as one row each."""
    of_node = graph[work.replay[nodes]]
    kernels = sums(of_node, work.kernels[nodes].astype(np.int64), count)
    whole = sums(of_node, (work.table.kind[nodes] == DeviceKind.GRAPH).astype(np.int64), count)
    number = np.bincount(graph, minlength=count)
    return [
        None if rows else kernel / replays
        for rows, kernel, replays in zip(whole.tolist(), kernels.tolist(), number.tolist(), strict=True)
    ]


def _short(account: RankAccount, row: int) -> str:
    code = int(account.work.table.name[row])
    name = account.trace.process.name_of(code)
    text = _ARGUMENTS.sub("", name) or name
    return text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"
