"""What one run brings to a comparison, read off its diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from analyzer.apportion import largest_remainder
from analyzer.comparison.level import Level
from analyzer.comparison.result import Replayed
from analyzer.diagnosis import Budget, Diagnosis, GlobalWindow, StepWork, Window
from analyzer.explain.windows import chosen_windows, used_windows

WorkKey = tuple[object, ...]


@dataclass(frozen=True)
class Amount:
    """Work of one key in a mean step: calls and summed durations (ns)."""

    calls: Fraction
    ns: Fraction


def budget_of(diagnosis: Diagnosis, phase: str, rank: int | None) -> Budget | None:
    """The budget of a phase on a rank, of all ranks together for None; None where there is none."""
    for budget in diagnosis.budget:
        if (budget.phase, budget.rank) == (phase, rank):
            return budget
    return None


def step_times_of(diagnosis: Diagnosis, budget: Budget) -> list[int]:
    """Times of the steps that a budget rests on (ns), in order of time."""
    windows: Sequence[Window | GlobalWindow]
    if budget.rank is None:
        joint = [] if diagnosis.global_ is None else diagnosis.global_.windows
        windows = chosen_windows(joint, budget.phase).used
    else:
        rank = next(rank for rank in diagnosis.ranks if rank.rank == budget.rank)
        windows = used_windows(rank, budget.phase)
    return [window.end_ns - window.start_ns for window in windows]


def mean_ns(budget: Budget) -> dict[str, int]:
    """The mean step by category in whole ns; the parts sum to the rounded mean step."""
    names = list(budget.path_ns_total)
    parts = largest_remainder([Fraction(budget.path_ns_total[name], budget.windows) for name in names])
    return dict(zip(names, parts, strict=True))


def step_work_of(diagnosis: Diagnosis, phase: str, rank: int) -> list[StepWork]:
    """The work that the steps of a phase launched on one rank."""
    return [row for row in diagnosis.step_work if (row.phase, row.rank) == (phase, rank)]


def amounts(rows: Sequence[StepWork], windows: int, level: Level) -> dict[WorkKey, Amount]:
    """Work per mean step by what both sides record of it."""
    result: dict[WorkKey, Amount] = {}
    for row in rows:
        key = work_key(row, level)
        held = result.get(key, Amount(Fraction(0), Fraction(0)))
        result[key] = Amount(
            held.calls + Fraction(row.calls_total, windows), held.ns + Fraction(row.total_ns, windows)
        )
    return result


def work_key(row: StepWork, level: Level) -> WorkKey:
    """Kind, name and what else sets work apart at this level."""
    if row.kind == "collective":
        if not level.told:
            return (row.kind, row.kernel_operation or row.kernel or row.name)
        return (row.kind, row.name, *((row.bytes, row.dtype, row.group_size) if level.sized else ()))
    if row.kind == "kernel":
        return (row.kind, row.name, *((row.grid, row.block) if level.shaped else ()))
    return (row.kind, row.name, *((row.bytes,) if level.counted else ()))


def replayed(rows: Sequence[StepWork]) -> Replayed:
    """Kernels (collectives among them) inside replays, of all."""
    kernels = [row for row in rows if row.kind in ("kernel", "collective")]
    number, inside = sum(row.calls_total for row in kernels), sum(row.calls_in_graphs for row in kernels)
    whole = sum(row.calls_total for row in rows if row.kind == "graph")
    return Replayed(
        kernels=number,
        in_graphs=inside,
        whole_replays=whole,
        share=None if whole or not number else inside / number,
    )
