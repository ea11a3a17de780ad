"""``kv-context``: how much of the step at the largest context is attention and cache time that grew with the context.

The share is the slope of the path time of attention and KV-cache kernels times the measured span of contexts, over the
step at the largest context. Its lower end takes the slope's lower end. Its upper end takes the slope's upper end over
the whole context down to 0, at most all path time of these kernels there, and adds what no class holds (unattributed
time, replays that were recorded as one row).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Hypothesis, Measured, Share, Verdict
from analyzer.explain.verdicts.catalogue import UNMEASURED
from analyzer.explain.verdicts.hypotheses import decide
from analyzer.sweep.cells import CellData
from analyzer.sweep.lines import attention_class
from analyzer.swept import Line

ID = "kv-context"
UNKNOWN = frozenset({CATEGORY_NAMES[Category.UNATTRIBUTED], CATEGORY_NAMES[Category.GRAPH_UNRESOLVED]})
UNDECLARED = (
    "cache initialization undeclared: what it held is not known, so no slope over context is evidence"
)
TWO = "two contexts establish no slope: capture a third, best well beyond these"
WHOLE_REPLAYS = (
    "replays were recorded as one row each: record what runs inside, nsys `--cuda-graph-trace=node`"
)
PER = 1_000
"""Tokens that a slope over context is per."""
_STRENGTH = {"supported": 3, "inconclusive": 2, "contradicted": 1, "unmeasured": 0}


def kv_context(
    phase: str, lines: Sequence[Line], cells: Mapping[str, CellData], thresholds: Mapping[str, float]
) -> Hypothesis:
    """The verdict over all lines along context: the strongest case speaks, lines of more contexts first."""
    along = [line for line in lines if line.axis == "context"]
    if not along:
        return _row(phase, "unmeasured", _how_to_measure())
    rows = [(_places(line) > 2, _of_line(phase, line, cells, thresholds)) for line in along]
    best = max(rows, key=lambda row: (row[0], _STRENGTH[row[1].verdict], _value(row[1])))
    return best[1]


def _value(row: Hypothesis) -> float:
    return row.share.value if row.share is not None else -math.inf


def _places(line: Line) -> int:
    return len({*line.places})


def _of_line(
    phase: str, line: Line, cells: Mapping[str, CellData], thresholds: Mapping[str, float]
) -> Hypothesis:
    mine = [cells[name] for name in line.cells]
    if line.attention is None:
        return _row(phase, "unmeasured", "no device work is on the path of these runs")
    if all(cell.replays_unresolved for cell in mine):
        return _row(phase, "unmeasured", WHOLE_REPLAYS)
    low, high = min(line.places), max(line.places)
    at_most = [cell for cell, place in zip(mine, line.places, strict=True) if place == high]
    step = sum(float(cell.rank_steps.mean()) for cell in at_most) / len(at_most)
    span = (high - low) / PER
    value = line.attention.value * span / step
    if line.attention.ci95 is None:
        return _row(phase, "inconclusive", f"attention and cache grow by {value:.1%} of the step; {TWO}")
    interval = (
        min(value, line.attention.ci95[0] * span / step),
        max(value, _upper(line.attention.ci95[1] * high / PER, at_most) / step),
    )
    verdict, note = _limited(line, decide(*interval, thresholds))
    where = f"between {low:,} and {high:,} tokens{'' if line.at is None else f' at batch {line.at:,}'}"
    row = _row(phase, verdict, f"{where}{f'; {note}' if note else ''}")
    return msgspec.structs.replace(
        row,
        rank=at_most[0].rank,
        share=Share(value=value, interval=interval),
        measured=Measured(
            name=f"growth of attention and KV-cache path time from {low:,} to {high:,} tokens of context",
            value=line.attention.value * span,
            unit="ns per step",
            kind="fit",
            rank=at_most[0].rank,
            windows=sum(len(cell.rank_steps) for cell in mine),
        ),
        gain_upper_bound_ns=max(0, math.ceil(min(interval[1], 1.0) * step)),
    )


def _upper(extrapolated_ns: float, at_most: Sequence[CellData]) -> float:
    """All that could have grown with the context, at the largest one (ns per step)."""
    ends = []
    for cell in at_most:
        attention = cell.class_mean(0, attention_class)
        error = 0.0 if attention.variance is None else 2 * math.sqrt(attention.variance)
        ends.append(min(max(extrapolated_ns, 0.0), attention.mean + error) + cell.rank_mean_ns(UNKNOWN))
    return max(ends)


def _limited(line: Line, verdict: Verdict) -> tuple[Verdict, str]:
    """What a verdict is worth where the cache is undeclared, or contexts are too few."""
    if line.cache_initialization is None:
        return "inconclusive", UNDECLARED
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
