"""The one record on the CPU that a reader looks at first, per phase."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.diagnosis import Budget, GlobalAccount, HostRollup, LookFirst
from analyzer.explain.focus import leading_budgets, shown_rank
from analyzer.explain.host.rollups import NOTHING, OTHER
from analyzer.reconstruct.step_markers import PROFILER_STEP, find_marker

PREFERENCE = ("frame", "range", "op", "call", "os", "thread")
"""Kinds of record from the most telling to the least: a place in somebody's code comes first."""
ENOUGH = 0.25
"""A kind is passed over where its longest record holds less than this share of what the longest record of
any kind but a thread holds: a loop that surrounds everything is long and tells little."""


LEAST = 0.1
"""A record that holds less than this share of the path time on the CPU is no place to start: then the thread
is named, since most of its time has no record."""


def look_first(
    host_rollups: Sequence[HostRollup], budgets: Sequence[Budget], joint: GlobalAccount | None = None
) -> list[LookFirst]:
    """One per phase whose path runs through the CPU, for the rank that the phase's budget is shown of.

    The longest record of the most telling kind that holds enough; a thread only where no record does.
    Ranges that engines put around whole steps never count.
    """
    result = []
    for budget in leading_budgets(budgets):
        rank = shown_rank(budget, joint)
        rows = [row for row in host_rollups if row.phase == budget.phase and row.rank == rank]
        total = sum(row.path_ns for row in rows if row.by == "thread")
        chosen = _choose([row for row in rows if _tells(row)], total)
        if chosen is not None:
            result.append(_struct(chosen, total))
    return result


def _tells(row: HostRollup) -> bool:
    marker = PROFILER_STEP.match(row.name) or find_marker(row.name)
    whole_step = row.by in ("range", "op") and marker is not None
    return row.name not in (NOTHING, OTHER) and not whole_step


def _choose(rows: Sequence[HostRollup], total_ns: int) -> HostRollup | None:
    longest = max((row.path_ns for row in rows if row.by != "thread"), default=0)
    least = max(ENOUGH * longest, LEAST * total_ns)
    for kind in PREFERENCE:
        best = max((row for row in rows if row.by == kind), key=lambda row: row.path_ns, default=None)
        if best is not None and (kind == "thread" or best.path_ns >= least):
            return best
    return None


def _struct(row: HostRollup, total_ns: int) -> LookFirst:
    percent = round(100 * row.path_ns / total_ns)
    where = f"{percent} % of the CPU's time on the path, in {row.windows_with} of {row.windows} steps"
    kind = {"call": "CUDA call", "os": "OS call", "frame": "Python frame"}.get(row.by, row.by)
    why = f"no other {kind} holds more: {where}"
    if row.by == "thread":
        why = (
            f"no call, op, frame or range inside the step holds a tenth of the CPU's time; this thread holds {where}; "
            "ranges around parts of the step would name what it does there"
        )
    return LookFirst(
        rank=row.rank,
        phase=row.phase,
        name=row.name,
        by=row.by,
        category=row.category,
        path_ns=row.path_ns,
        per_step_ns=row.path_ns // row.windows,
        segments_per_step=row.segments / row.windows,
        share_of_host=row.path_ns / total_ns,
        windows_with=row.windows_with,
        why=why,
    )
