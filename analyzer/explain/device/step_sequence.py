"""The order of a step's work, of the steps of each phase the one that most of them share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.arrays import unique_inverse
from analyzer.diagnosis import SequenceSection, StepSequence
from analyzer.explain.device.loops import fold
from analyzer.explain.device.step_work import CountedWork
from analyzer.explain.phase_windows import PhaseWindows
from analyzer.model import IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.windows import Window

MOST_WORKS = 8_192
"""Works of a sequence that are held: aligning two of them takes memory and time in proportion to their product."""


class _Steps(NamedTuple):
    """Works by phase and step, in the order of their submission: (n,) columns and (s,) steps."""

    row: IntArray  # (n,)
    of_table: IntArray  # (n,)
    first: IntArray  # (s,) of each step in the columns
    length: IntArray  # (s,)
    phase: IntArray  # (s,)
    step: IntArray  # (s,) window


def step_sequences(
    account: RankAccount, rank: int, phases: PhaseWindows, counted: CountedWork
) -> list[StepSequence]:
    """One sequence per phase whose steps launched work."""
    if not len(counted.row):
        return []
    steps = _steps(account, phases, counted)
    order = _fingerprints(steps)
    window = {one.index: one for one in account.windows}
    result = []
    for code, phase in enumerate(phases.phases):
        mine = np.flatnonzero(steps.phase == code)
        if not len(mine):
            continue
        alike = _most_common(steps, order, mine, window)
        work, ns = _columns(account, steps, alike)
        offset = next(at for at, row in enumerate(counted.table) if row.phase == phase)
        chosen = window[int(steps.step[alike[0]])]
        result.append(
            StepSequence(
                rank=rank,
                phase=phase,
                window=chosen.index,
                step=chosen.step,
                steps=int(phases.windows[code]),
                steps_alike=len(alike),
                length=int(steps.length[alike[0]]),
                recorded=len(work),
                sections=_sections(work - offset, ns),
            )
        )
    return result


def _steps(account: RankAccount, phases: PhaseWindows, counted: CountedWork) -> _Steps:
    """By submission, nodes of one replay by start; work without a launch record by its own start."""
    work, row = account.work, counted.row
    owner = np.zeros(len(work), np.int64) if account.assignment is None else account.assignment.of_row
    phase, step = phases.of_row[row], owner[row]
    order = np.lexsort((row, work.submitted_ns[row], step, phase))  # rows are in order of their starts
    phase, step = phase[order], step[order]
    new = np.flatnonzero((np.diff(phase, prepend=-1) != 0) | (np.diff(step, prepend=-1) != 0))
    return _Steps(
        row=row[order],
        of_table=counted.of_table[order],
        first=new,
        length=np.diff(new, append=len(order)),
        phase=phase[new],
        step=step[new],
    )


def _fingerprints(steps: _Steps) -> IntArray:
    """(s,) a number for each step that tells its works and their order (polynomial of mixed codes, modulo 2**64)."""
    place = np.arange(len(steps.row)) - np.repeat(steps.first, steps.length)
    with np.errstate(over="ignore"):
        mixed = (steps.of_table + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) + place.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
        return np.add.reduceat(mixed, steps.first).astype(np.int64)


def _most_common(steps: _Steps, prints: IntArray, mine: IntArray, window: dict[int, Window]) -> IntArray:
    """The steps that share the most common sequence; of equally common ones that of the step nearest the median."""
    distinct, inverse = unique_inverse(prints[mine])
    number = np.bincount(inverse, minlength=len(distinct))
    lengths = np.array([_length(window, int(step)) for step in steps.step[mine]])
    candidates = np.flatnonzero(number[inverse] == number.max())
    middle = np.sort(lengths)[(len(lengths) - 1) // 2]
    nearest = int(candidates[int(np.argmin(np.abs(lengths[candidates] - middle)))])
    return mine[np.flatnonzero(inverse == int(inverse[nearest]))]


def _length(window: dict[int, Window], step: int) -> int:
    return window[step].end_ns - window[step].start_ns


def _columns(account: RankAccount, steps: _Steps, alike: IntArray) -> tuple[IntArray, IntArray]:
    """Works of the first places, and their durations summed over the steps alike (ns)."""
    count = min(int(steps.length[alike[0]]), MOST_WORKS)
    first = int(steps.first[alike[0]])
    ns = np.zeros(count, np.int64)
    for at in steps.first[alike].tolist():
        rows = steps.row[at : at + count]
        ns += account.work.end_ns[rows] - account.work.start_ns[rows]
    return steps.of_table[first : first + count], ns


def _sections(work: IntArray, ns: IntArray) -> list[SequenceSection]:
    return [
        SequenceSection(
            repeats=loop.repeats,
            work=work[loop.start : loop.start + loop.length].tolist(),
            ns=ns[loop.start : loop.start + loop.length * loop.repeats]
            .reshape(loop.repeats, loop.length)
            .sum(axis=0)
            .tolist(),
        )
        for loop in fold(work)
    ]
