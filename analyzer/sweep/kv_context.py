"""``kv-context``: how much of a step is attention and cache time that grew with the context.

The share is the slope of the path time of attention and KV-cache kernels times the span from the smallest context to
the cell's, over the cell's own step; the sweep's verdict is that of the largest context. Its lower end takes the
slope's lower end. Its upper end takes the slope's upper end over the whole context down to 0, at most all path time of
these kernels there, and adds what no class holds (unattributed time, replays that were recorded as one row) and what
kernels of no known class ("other") grew by the same reckoning: they may be attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Hypothesis, Measured, Share, Verdict
from analyzer.explain.swept_context import ID
from analyzer.explain.verdicts.catalogue import UNMEASURED
from analyzer.explain.verdicts.hypotheses import decide
from analyzer.rules import OTHER
from analyzer.sweep.cells import CellData
from analyzer.sweep.lines import attention_class
from analyzer.sweep.pins import mixed
from analyzer.swept import Line

UNKNOWN = frozenset({CATEGORY_NAMES[Category.UNATTRIBUTED], CATEGORY_NAMES[Category.GRAPH_UNRESOLVED]})
UNDECLARED = (
    "cache initialization undeclared: what it held is not known, so no slope over context is evidence"
)
TWO = "two contexts establish no slope: capture a third, best well beyond these"
WHOLE_REPLAYS = (
    "replays were recorded as one row each: record what runs inside, nsys `--cuda-graph-trace=node`"
)
UNKNOWN_KERNELS = (
    "kernels of no known class grow, and may be attention: name them in a file of rules, `--rules FILE`"
)
PER = 1_000
"""Tokens that a slope over context is per."""
_STRENGTH = {"supported": 3, "inconclusive": 2, "contradicted": 1, "unmeasured": 0}


def kv_rows(
    phase: str, lines: Sequence[Line], cells: Mapping[str, CellData], thresholds: Mapping[str, float]
) -> tuple[Hypothesis, dict[str, Hypothesis]]:
    """The verdict of the sweep, and that of each cell on a line along context for its own step.

    The sweep's is that of the cells at the largest context of a line: the strongest case, lines of more contexts first.
    """
    along = [line for line in lines if line.axis == "context"]
    by_cell: dict[str, Hypothesis] = {}
    leading: list[tuple[bool, int, float, Hypothesis]] = []
    for line in along:
        for name, place in zip(line.cells, line.places, strict=True):
            row = by_cell[name] = _of_cell(phase, line, cells, cells[name], place, thresholds)
            if place == max(line.places):
                value = row.share.value if row.share is not None else -math.inf
                leading.append((_places(line) > 2, _STRENGTH[row.verdict], value, row))
    if not leading:
        why = "no two cells lie at two contexts at one batch and cache initialization"
        return _row(phase, "unmeasured", f"{why}: {_how_to_measure()}"), {}
    return max(leading, key=lambda case: case[:3])[3], by_cell


def _places(line: Line) -> int:
    return len({*line.places})


def _of_cell(
    phase: str,
    line: Line,
    cells: Mapping[str, CellData],
    cell: CellData,
    place: int,
    thresholds: Mapping[str, float],
) -> Hypothesis:
    """What grew up to one cell's context, as a share of its step."""
    if line.attention is None:
        return _row(phase, "unmeasured", "no device work is on the path of these runs")
    if all(cells[name].replays_unresolved for name in line.cells):
        return _row(phase, "unmeasured", WHOLE_REPLAYS)
    step, low = float(cell.rank_steps.mean()), min(line.places)
    grown = line.attention.value * (place - low) / PER
    if line.attention.ci95 is None:
        return _row(
            phase, "inconclusive", f"attention and cache grow by {grown / step:.1%} of the step; {TWO}"
        )
    least, most = (end * (place - low) / PER for end in line.attention.ci95)
    unknown = _unknown(line, cell, place, low)
    upper = max(grown, _upper(max(most, line.attention.ci95[1] * place / PER), cell)) + unknown
    interval = (min(least, grown) / step, upper / step)
    verdict, note = _limited(line, decide(*interval, thresholds), mixed([cells[name] for name in line.cells]))
    if not note and unknown > thresholds["contradicted_share"] * step:
        note = UNKNOWN_KERNELS
    batch = "" if line.at is None else f" and batch {line.at:,}"
    where = f"at {place:,} tokens{batch}, of contexts from {low:,} to {max(line.places):,}"
    return msgspec.structs.replace(
        _row(phase, verdict, f"{where}{f'; {note}' if note else ''}"),
        rank=cell.rank,
        share=Share(value=grown / step, interval=interval),
        measured=Measured(
            name=f"growth of attention and KV-cache path time from {low:,} to {place:,} tokens of context",
            value=float(round(grown)),
            unit="ns per step",
            kind="fit",
            rank=cell.rank,
            windows=len(cell.rank_steps),
        ),
        gain_upper_bound_ns=max(0, math.ceil(min(upper, step))),
    )


def _upper(extrapolated_ns: float, cell: CellData) -> float:
    """All of attention that could have grown with the context, at one cell, and what no class holds (ns per step)."""
    return _at_most(extrapolated_ns, cell, attention_class) + cell.rank_mean_ns(UNKNOWN)


def _unknown(line: Line, cell: CellData, place: int, low: int) -> float:
    """What kernels of no known class may have grown by, at one cell (ns per step)."""
    slope = line.classes.get(OTHER)
    if slope is None:
        return 0.0
    steepest = slope.value if slope.ci95 is None else slope.ci95[1]
    return _at_most(max(steepest * (place - low), steepest * place) / PER, cell, lambda name: name == OTHER)


def _at_most(extrapolated_ns: float, cell: CellData, chosen: Callable[[str], bool]) -> float:
    """Growth of classes, from 0 to all of their path time at a cell."""
    held = cell.class_mean(0, chosen)
    error = 0.0 if held.variance is None else 2 * math.sqrt(held.variance)
    return min(max(extrapolated_ns, 0.0), held.mean + error)


def _limited(line: Line, verdict: Verdict, differing: Sequence[str]) -> tuple[Verdict, str]:
    """What a verdict is worth where the cache is undeclared, contexts are too few, or cells differ in other pins."""
    if line.cache_initialization is None:
        return "inconclusive", UNDECLARED
    if differing:
        return "inconclusive", f"cells of this line differ in {', '.join(differing)}: that may be what grows"
    if _places(line) < 3:
        return "inconclusive", TWO
    if line.described is False:
        return verdict, "a line does not describe the step time; see the slopes piece by piece"
    return verdict, ""


def _how_to_measure() -> str:
    return next(entry.how_to_measure for entry in UNMEASURED if entry.id == ID)


def _row(phase: str, verdict: Verdict, note: str) -> Hypothesis:
    """The hypothesis in the catalogue's words, without a figure."""
    entry = next(entry for entry in UNMEASURED if entry.id == ID)
    return Hypothesis(
        id=ID,
        phase=phase,
        scope="rank",
        rank=None,
        claim=entry.claim,
        verdict=verdict,
        verdict_note=note,
        share=None,
        overlaps_with=["kernel-bound"],
        measured=None,
        gain_upper_bound_ns=None,
        intervention=entry.intervention,
        predicted_step_ns=None,
        disproof=entry.disproof,
        undo=entry.undo,
        discriminating_check=entry.discriminating_check,
        evidence=[],
    )
