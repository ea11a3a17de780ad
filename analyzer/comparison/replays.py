"""What one run replayed: by graph, by batch shape, and which shapes fell back to launching one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from analyzer.apportion import round_half_up
from analyzer.comparison.result import GraphUse, Ran, ShapeUse
from analyzer.comparison.sides import step_work_of
from analyzer.diagnosis import Diagnosis, GraphReplay, ShapeReplays

PART = 0.5
"""Of the largest share of kernels inside replays of any shape of the run; below it a shape is replayed in part."""


def graph_uses(diagnosis: Diagnosis, ranks: Sequence[int]) -> list[GraphUse]:
    """Graphs by phase, as the diagnosis lists them; equal ones of several ranks are one row."""
    found: dict[tuple[str, str, float | None], list[GraphReplay]] = {}
    for row in diagnosis.graph_replays:
        if row.rank in ranks and row.replays:
            found.setdefault((row.phase, row.graph, row.kernels_per_replay), []).append(row)
    return [_graph_use(diagnosis, rows) for rows in found.values()]


def _graph_use(diagnosis: Diagnosis, rows: Sequence[GraphReplay]) -> GraphUse:
    first, ranks = rows[0], [row.rank for row in rows]
    kernels = [row.kernels_total for row in rows]
    inside = sum(number for number in kernels if number is not None) if None not in kernels else None
    every = sum(
        work.calls_total
        for rank in ranks
        for work in step_work_of(diagnosis, first.phase, rank)
        if work.kind in ("kernel", "collective")
    )
    return GraphUse(
        phase=first.phase,
        graph=first.graph,
        ranks=ranks,
        shapes=list(dict.fromkeys(shape for row in rows for shape in row.shapes)),
        replays=sum(row.replays for row in rows),
        kernels_per_replay=first.kernels_per_replay,
        share=inside / every if inside is not None and every else None,
    )


def shape_uses(diagnosis: Diagnosis, ranks: Sequence[int]) -> list[ShapeUse]:
    """Shapes by phase, as the diagnosis lists them, each over the ranks given."""
    found: dict[tuple[str, str | None], list[ShapeReplays]] = {}
    for row in diagnosis.shape_replays:
        if row.rank in ranks:
            found.setdefault((row.phase, row.shape), []).append(row)
    shares = [share for rows in found.values() if (share := _share(rows)) is not None]
    replays = any(row.replayed_steps for rows in found.values() for row in rows)
    most = max(shares, default=None)
    return [_shape_use(rows, replays=replays, most=most) for rows in found.values()]


def _mean(total_ns: int, steps: int) -> Fraction:
    return Fraction(total_ns, max(steps, 1))


def _share(rows: Iterable[ShapeReplays]) -> float | None:
    inside, every = 0, 0
    for row in rows:
        if row.kernels_in_graphs_total is None or row.kernels_total is None:
            return None
        inside, every = inside + row.kernels_in_graphs_total, every + row.kernels_total
    return inside / every if every else None


def _shape_use(rows: Sequence[ShapeReplays], *, replays: bool, most: float | None) -> ShapeUse:
    most_steps = max(rows, key=lambda row: row.steps)  # of ranks that recorded fewer the rest is missing
    steps, eager = sum(row.steps for row in rows), sum(row.eager_steps for row in rows)
    rest = steps - eager
    time, eager_time = sum(row.step_ns_total for row in rows), sum(row.eager_ns_total for row in rows)
    share = _share(rows)
    part = share is not None and most is not None and share < PART * most
    ran: Ran
    if not replays:
        ran = "no replay"
    elif eager:
        ran = "eager" if eager == steps else "some steps eager"
    else:
        ran = "partly" if part else "replayed"
    return ShapeUse(
        phase=rows[0].phase,
        shape=rows[0].shape,
        ran=ran,
        steps=most_steps.steps,
        eager_steps=max(row.eager_steps for row in rows),
        eager_outlier_steps=max(row.eager_outlier_steps for row in rows),
        step_ns=round_half_up(_mean(time, steps)),
        eager_step_ns=round_half_up(_mean(eager_time, eager)) if eager else None,
        other_step_ns=round_half_up(_mean(time - eager_time, rest)) if rest else None,
        share=share,
    )


def fallback_notes(side: str, shapes: Sequence[ShapeUse]) -> list[str]:
    """Sentences about the shapes of one side that fell back to launching one by one, wholly or in part."""
    return [
        f"{side}, {place(use)}: {_told(use)}" for use in shapes if use.ran not in ("replayed", "no replay")
    ]


def place(use: ShapeUse) -> str:
    """Phase and shape of a row in words; the phase may name the shape already."""
    named = use.shape is None or use.phase.endswith(f" {use.shape}")
    return f"phase {use.phase!r}" + ("" if named else f", {use.shape}")


def _told(use: ShapeUse) -> str:
    if use.ran == "partly":
        share = f"{100 * (use.share or 0):.1f} % of the kernels"
        return f"only {share} ran inside replays, less than half of what other shapes of the run reach."
    whole = "all" if use.eager_steps == use.steps else f"{use.eager_steps:,} of"
    text = (
        f"{whole} {use.steps:,} steps fell back to eager, replaying no graph ({_ms(use.eager_step_ns)} each"
    )
    if use.other_step_ns is not None:
        text += f", those with a replay {_ms(use.other_step_ns)}"
    text += ")"
    if use.eager_outlier_steps:
        text += f"; the budget leaves {use.eager_outlier_steps:,} of them out as outliers"
    return f"{text}."


def _ms(ns: int | None) -> str:
    return "no time" if ns is None else f"{ns / 1e6:,.3f} ms"
