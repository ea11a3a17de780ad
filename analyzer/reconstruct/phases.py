"""Phases: steps that may be averaged together, by kind of work and by batch shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from analyzer.arrays import unique_inverse
from analyzer.reconstruct.step_markers import BATCH, shape_of
from analyzer.reconstruct.windows import Assignment, Window
from analyzer.reconstruct.work import Work

SAME_WORK = 0.7
"""Two steps do the same kind of work when their kernels overlap (weighted Jaccard) at least this much."""
SHAPES_APART = 6
"""Up to this many batch shapes of one kind stand apart; more are banded by powers of two."""
NO_WORK = "no device work"
_COUNTER = re.compile(r"\d+")
_SHAPE = re.compile(r" (?:batch [\d-]+|[\d-]+ tokens)$")


def kind_of(phase: str) -> str:
    """The kind of work of a phase, without the batch shape that tells it from others of its kind."""
    return _SHAPE.sub("", phase)


def name_phases(windows: list[Window], assignment: Assignment | None, work: Work) -> list[str]:
    """Phase of each window: kind of work, and its batch shape where the step's name tells one."""
    kinds = _kinds(windows, assignment, work)
    return _with_shapes(windows, kinds)


def _with_shapes(windows: list[Window], kinds: list[str]) -> list[str]:
    """Each kind split by batch shape, if it has several; if it has many, by bands of powers of two."""
    shapes = [shape_of(window.step) for window in windows]
    exact: dict[tuple[str, str], set[int]] = {}
    for window, kind, shape in zip(windows, kinds, shapes, strict=True):
        if shape is not None and not window.empty:
            exact.setdefault((kind, shape.unit), set()).add(shape.size)
    named = []
    for kind, shape in zip(kinds, shapes, strict=True):
        sizes = exact.get((kind, shape.unit), ()) if shape is not None else ()
        if shape is None or len(sizes) < 2:
            named.append(kind)
            continue
        few = len(sizes) <= SHAPES_APART
        size = str(shape.size) if few else _band(shape.size)
        named.append(f"{kind} batch {size}" if shape.unit == BATCH else f"{kind} {size} tokens")
    return named


def _band(size: int) -> str:
    """``5-8`` for 5 to 8: the numbers above one power of two up to the next."""
    high = 1 << max(size - 1, 0).bit_length()
    low = high // 2 + 1
    return str(high) if low >= high else f"{low}-{high}"


def _kinds(windows: list[Window], assignment: Assignment | None, work: Work) -> list[str]:
    """Kind of work of each window: from its name, else from its kernels; windows without work apart.

    Steps whose names differ in words are grouped by name. Others are grouped by their kernels: the same
    kind of work is what agrees in the number of kernels by name, or in their time. The group that takes
    the most time is called "step", so that ranks agree on it; the others are numbered after it.
    """
    by_name = _phases_by_name(windows)
    if by_name is not None:
        return by_name
    groups: list[tuple[Counter[int], Counter[int]]] = []
    group_of: dict[int, int] = {}
    unnamed = [w for w in windows if not w.phase and not w.empty and assignment is not None]
    for window, kernels in zip(unnamed, _kernels(unnamed, assignment, work), strict=True):
        for at, known in enumerate(groups):
            if any(_similar(a, b) for a, b in zip(known, kernels, strict=True)):
                group_of[window.index] = at
                break
        else:
            group_of[window.index] = len(groups)
            groups.append(kernels)
    time: Counter[int] = Counter()
    for window in windows:
        if window.index in group_of:
            time[group_of[window.index]] += window.end_ns - window.start_ns
    order = sorted(range(len(groups)), key=lambda at: (-time[at], at))
    leading = order[0] if order else None
    phases = []
    for window in windows:
        if window.phase:
            phases.append(window.phase)
        elif window.index in group_of:
            at = group_of[window.index]
            phases.append("step" if at == leading else f"step kind {order.index(at) + 1}")
        else:
            phases.append(NO_WORK if window.empty else "step")
    return phases


def _phases_by_name(windows: list[Window]) -> list[str] | None:
    """Ranges that differ in more than their numbers are different phases; None where they do not."""
    if any(window.phase for window in windows):
        return None
    templates = [_COUNTER.sub("#", window.step) for window in windows]
    return templates if len(set(templates)) > 1 else None


def _kernels(
    windows: list[Window], assignment: Assignment | None, work: Work
) -> Iterator[tuple[Counter[int], Counter[int]]]:
    """Device work of each window by name: how often, and for how long (ns)."""
    if assignment is None or not windows:
        return
    rows = np.flatnonzero(assignment.of_row >= 0)
    name = work.table.name[rows].astype(np.int64) + 1  # -1 is a name, too
    width = int(name.max(initial=0)) + 1
    keys, at = unique_inverse(assignment.of_row[rows] * width + name)
    count = np.bincount(at, minlength=len(keys))
    time = np.zeros(len(keys), np.int64)
    np.add.at(time, at, work.end_ns[rows] - work.start_ns[rows])
    step, names = keys // width, keys % width - 1
    index = np.array([window.index for window in windows], np.int64)
    first, last = np.searchsorted(step, index, side="left"), np.searchsorted(step, index, side="right")
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        mine = names[low:high].tolist()
        yield (
            Counter(dict(zip(mine, count[low:high].tolist(), strict=True))),
            Counter(dict(zip(mine, time[low:high].tolist(), strict=True))),
        )


def _similar(a: Counter[int], b: Counter[int]) -> bool:
    # As (a & b).total() of (a | b).total(), without building either: steps are many, and often few alike.
    both = sum(min(a[name], b[name]) for name in a.keys() & b.keys())
    either = a.total() + b.total() - both
    return either == 0 or both >= SAME_WORK * either
