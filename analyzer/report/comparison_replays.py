"""Graph replays of both runs as tables: by phase, by batch shape, by executable graph."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.comparison.result import Comparison, GraphUse, PhasePair, ShapeUse
from analyzer.report.escape import cell
from analyzer.report.numbers import count, int_ranges, ms, percent, share
from analyzer.report.tables import table

SHAPES_SHOWN = 30
GRAPHS_SHOWN = 20
_RAN = {
    "eager": "fell back to eager",
    "some steps eager": "some steps fell back to eager",
    "partly": "replayed in part",
    "replayed": "replayed",
    "no replay": "launched one by one",
}


def by_phase(pairs: Iterable[PhasePair]) -> str:
    """Kernels inside replays, of all, per phase and side."""
    heads: dict[tuple[str, str], PhasePair] = {}
    for pair in pairs:
        heads.setdefault((pair.phase_a, pair.phase_b), pair)
    rows = [
        [cell(pair.phase_b, 40), _share(pair, first=True), _share(pair, first=False)]
        for pair in heads.values()
    ]
    return table(["Phase", "A: kernels inside replays", "B: kernels inside replays"], rows, left=(0, 1, 2))


def _share(pair: PhasePair, *, first: bool) -> str:
    found = pair.replayed_a if first else pair.replayed_b
    if found.whole_replays:
        return f"{count(found.whole_replays, 'replay')} recorded as one row each, {found.kernels:,} kernels beside them"
    if not found.kernels:
        return "no kernel was recorded"
    return f"{found.in_graphs:,} of {found.kernels:,} ({percent(found.in_graphs, found.kernels)})"


def by_shape(comparison: Comparison) -> str:
    """Steps of every batch shape; "" where no name tells one and nothing fell back."""
    uses = [("A", use) for use in comparison.a.shapes] + [("B", use) for use in comparison.b.shapes]
    if not any(use.shape is not None or use.ran not in ("replayed", "no replay") for _, use in uses):
        return ""
    rows = [
        [
            side,
            cell(use.phase, 40),
            "not told" if use.shape is None else cell(use.shape, 30),
            f"{use.steps:,}",
            ms(use.step_ns),
            "not recorded" if use.share is None else share(use.share),
            _ran(use),
        ]
        for side, use in uses[:SHAPES_SHOWN]
    ]
    header = [
        "Side",
        "Phase",
        "Batch shape",
        "Steps",
        "Mean step, ms",
        "Kernels in replays",
        "How its steps ran",
    ]
    return table(header, rows, left=(0, 1, 2, 6)) + _rest(len(uses), SHAPES_SHOWN)


def _ran(use: ShapeUse) -> str:
    text = _RAN[use.ran]
    if use.ran == "some steps eager":
        assert use.eager_step_ns is not None
        text = f"{use.eager_steps:,} fell back to eager ({ms(use.eager_step_ns)} ms each)"
    return text


def by_graph(comparison: Comparison) -> str:
    """Every executable graph of both sides; "" where none was replayed."""
    uses = [("A", use) for use in comparison.a.graphs] + [("B", use) for use in comparison.b.graphs]
    if not uses:
        return ""
    rows = [
        [
            side,
            cell(use.phase, 40),
            cell(use.graph, 60),
            int_ranges(use.ranks),
            _shapes(use),
            f"{use.replays:,}",
            "not recorded" if use.kernels_per_replay is None else f"{use.kernels_per_replay:,.1f}",
            "not recorded" if use.share is None else share(use.share),
        ]
        for side, use in uses[:GRAPHS_SHOWN]
    ]
    header = [
        "Side", "Phase", "Executable graph", "Ranks", "Batch shapes", "Replays", "Kernels per replay",
        "Share of the phase's kernels",
    ]  # fmt: skip
    return table(header, rows, left=(0, 1, 2, 3, 4)) + _rest(len(uses), GRAPHS_SHOWN)


def _shapes(use: GraphUse) -> str:
    if not use.shapes:
        return "not told"
    text = ", ".join(use.shapes[:4])
    return cell(text if len(use.shapes) <= 4 else f"{text} and {len(use.shapes) - 4} more", 80)


def _rest(number: int, shown: int) -> str:
    return f"\n\n{count(number - shown, 'more row')} in the JSON." if number > shown else ""
