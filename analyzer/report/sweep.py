"""SWEEP.md: the grid, what the step time does along each of its axes, and what two points cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyzer.report.escape import cell, code, prose, visible
from analyzer.report.labels import BOUNDARY_WORDS
from analyzer.report.markdown import environment
from analyzer.report.numbers import count, share
from analyzer.report.sweep_tables import (
    LineView,
    batch_table,
    category_table,
    grid_table,
    line_view,
    marks_table,
    place,
    slope_text,
)
from analyzer.report.tables import table
from analyzer.swept import Batching, Line, Sweep

if TYPE_CHECKING:
    from analyzer.report.figures import FigureLink, NotDrawn

TEMPLATE = "SWEEP.md.jinja"
NAMES_SHOWN = 6
UNPLACED_SHOWN = 8
SHORT = {
    "grows": "grows",
    "shrinks": "shrinks",
    "not told": "neither growth nor its absence is shown",
    "no growth seen": "no growth seen beyond the interval's upper end, between these places",
    "two points": "two points: neither a slope nor constancy is established",
    "no interval": "too few steps for an interval",
}
"""What may be said of a line, in short."""


def render_sweep(sweep: Sweep, figures: Sequence[FigureLink] = (), not_drawn: Sequence[NotDrawn] = ()) -> str:
    """The report as Markdown: the same text for the same sweep."""
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(sweep.tracebound_version),
            shout=prose(cache_warning(sweep), limit=1_200),
            answer=[prose(line, limit=900) for line in _answer(sweep)],
            answer_table=_answer_table(sweep),
            cautions=[prose(line) for line in _cautions(sweep)],
            grid_intro=_grid_intro(sweep),
            grid=grid_table(sweep),
            marks=marks_table(sweep),
            figures=[(prose(link.title), prose(link.alt_text), link.path) for link in figures],
            sections=_sections(sweep),
            batching_intro=_batching_intro(sweep),
            batching=[
                {"title": _batching_title(one), "statement": prose(one.statement), "table": batch_table(one)}
                for one in sweep.batching
            ],
            kv=_kv(sweep),
            categories=category_table(sweep),
            undeclared=", ".join(prose(name) for name in sweep.undeclared) or "nothing",
            not_known=[prose(line) for line in _not_known(sweep)],
            not_drawn=[(code(one.name), prose(one.why)) for one in not_drawn],
        )
    )


def cache_warning(sweep: Sweep) -> str:
    """What must be shouted where nobody says how the caches came to hold their context; "" where all do."""
    cells = sweep.cache_undeclared
    if not cells:
        return ""
    which = f"all {len(cells)} cells" if len(cells) == len(sweep.cells) else f"{_names(cells)}"
    return (
        f"CACHE INITIALIZATION UNDECLARED of {which}. A cache filled by running the prefix, one filled with made-up"
        " tokens, and a position moved by seeking are three different measurements. No slope over context of these"
        " cells is evidence, and kv-context over them is at best inconclusive. Declare it: column cache_initialization"
        " of the grid, or the pin of the run (real-prefix, synthetic, seek, or in your words)"
    )


def terminal_lines(sweep: Sweep) -> list[str]:
    """The answer in a line per line of the grid, for a terminal."""
    found = [
        f"{_line_title(line)}: {slope_text(line)}; {SHORT[line.finding]}{_label(line)}"
        for line in sweep.lines
    ]
    return [visible(line, 400) for line in (*found, *_answer(sweep))]


def _answer(sweep: Sweep) -> list[str]:
    """What is not in the table of lines."""
    row = sweep.kv_context
    value = "" if row.share is None else f", {_share(sweep)} of the step at the largest context"
    lines = [f"kv-context: {row.verdict}{value}: {row.verdict_note}."]
    lines += [f"Aggregate rate, {_batching_title(one)}: {one.statement}" for one in sweep.batching]
    if not sweep.lines:
        lines.append(
            "No line: no two cells lie at two contexts, or two batch sizes, with all else that is declared equal."
        )
    return lines


def _answer_table(sweep: Sweep) -> str:
    """Every line of the grid with its slope, and what may be said of it."""
    header = ["Over", "At", "Cache", "Places", "Slope of the step", "What may be said"]
    rows = [
        [
            line.axis,
            place(line.at, "batch" if line.axis == "context" else "context"),
            "**UNDECLARED**" if line.cache_initialization is None else cell(line.cache_initialization, 24),
            ", ".join(f"{one:,}" for one in sorted({*line.places})),
            slope_text(line),
            f"**{SHORT[line.finding]}**{_limits(line)}",
        ]
        for line in sweep.lines
    ]
    return table(header, rows, left=(0, 1, 2, 3, 5)) if rows else ""


def _limits(line: Line) -> str:
    text = "; no line describes it" if line.described is False else ""
    return text + ("; no evidence: CACHE INITIALIZATION UNDECLARED" if _label(line) else "")


def _label(line: Line) -> str:
    if line.axis == "context" and line.cache_initialization is None:
        return " [CACHE INITIALIZATION UNDECLARED]"
    return ""


def _share(sweep: Sweep) -> str:
    found = sweep.kv_context.share
    assert found is not None
    low, high = found.interval
    return f"{share(found.value)} ({share(low)} to {share(high)})"


def _cautions(sweep: Sweep) -> list[str]:
    marked = [one.name for one in sweep.cells if one.unlike]
    out = [one.name for one in sweep.cells if not one.fitted]
    lines = []
    if marked:
        kept = "they are fitted all the same, as asked" if not {*marked} & {*out} else "left out of every fit"
        lines.append(f"{count(len(marked), 'cell')} marked ✻ of other pins ({_names(marked)}): {kept}.")
    if sweep.undeclared:
        lines.append(f"Undeclared in at least one cell, and so not compared: {', '.join(sweep.undeclared)}.")
    if sweep.varying:
        lines.append(
            f"Differs from cell to cell, so that no cell can be marked for it: {', '.join(sweep.varying)}. What that"
            " does to the step time is in every slope."
        )
    if any(not line.between_runs for line in sweep.lines):
        lines.append(
            "A line of two runs shows no scatter between runs: its interval is that of the steps of these two captures."
        )
    lines += sweep.unplaced[:UNPLACED_SHOWN]
    if len(sweep.unplaced) > UNPLACED_SHOWN:
        lines.append(f"{count(len(sweep.unplaced) - UNPLACED_SHOWN, 'more place')} undeclared, in the JSON.")
    return [*lines, *sweep.notes]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name, 60) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def _grid_intro(sweep: Sweep) -> str:
    scope = (
        "the path through all ranks" if sweep.cells[0].scope == "global" else "the slowest rank's own path"
    )
    boundary = ", ".join(
        BOUNDARY_WORDS.get(part, part).partition(":")[0] for part in sweep.boundary.split(", ")
    )
    return (
        f"Phase {code(sweep.phase, 40)}, {scope}; boundary: {boundary}. Mean steps, measured; each interval is that of"
        " the cell's own steps. Tokens per second take one token per sequence and step."
    )


def _sections(sweep: Sweep) -> list[dict[str, object]]:
    titles = {"context": "Step time over context", "batch": "Step time over batch"}
    intro = (
        "A fit through the means of runs. The slopes of the categories sum to that of the step."
        " Intervals are 95 %; with three runs or more they hold the scatter between runs."
    )
    found: list[dict[str, object]] = []
    for axis, title in titles.items():
        views: list[LineView] = [
            line_view(line, code_title(line)) for line in sweep.lines if line.axis == axis
        ]
        if views:
            found.append({"title": title, "intro": intro, "lines": views})
    return found


def code_title(line: Line) -> str:
    """A line's title as Markdown."""
    return prose(_line_title(line))


def _line_title(line: Line) -> str:
    other = "batch" if line.axis == "context" else "context"
    at = place(line.at, other)
    return f"Over {line.axis}, {at}, {_cache(line.cache_initialization)}"


def _cache(cache: str | None) -> str:
    return "cache initialization undeclared" if cache is None else f"cache {visible(cache, 40)}"


def _batching_title(one: Batching) -> str:
    return f"{place(one.context, 'context')}, {_cache(one.cache_initialization)}"


def _batching_intro(sweep: Sweep) -> str:
    text = (
        "Measured at each batch size: the step time is not taken as fixed. The marginal cost is that of each sequence"
        " added since the row above. Rates take one token per sequence and step."
    )
    if sweep.experts is not None:
        experts, chosen = sweep.experts
        text += (
            f" Experts read per layer and step of {experts:,} with {chosen:,} per token are a **model** (uniform,"
            " independent routing; real routing mostly touches fewer), not a measurement."
        )
    return text


def _kv(sweep: Sweep) -> str:
    row = sweep.kv_context
    parts = [f"**{row.verdict[:1].upper()}{row.verdict[1:]}**: {prose(row.verdict_note)}."]
    if row.share is not None and row.measured is not None:
        parts.append(
            f"Share of the step at the largest context: {_share(sweep)}, a fit ({cell(row.measured.name, 120)}, on rank"
            f" {row.rank}). The lower end counts growth over the measured contexts; the upper end all that could have"
            " grown from no context at all, at most all path time of these kernels, what no class holds, and what"
            " kernels of no known class grew. Supported from"
            f" {share(sweep.thresholds['supported_share'])}, contradicted up to"
            f" {share(sweep.thresholds['contradicted_share'])}."
        )
        parts.append(
            f"Change: {prose(row.intervention)}. Disproof: {prose(row.disproof)}. {_sentence(row.undo)}"
        )
        parts.append(
            "`tracebound diagnose TRACE... --sweep sweep/sweep.json` takes this verdict into DIAGNOSIS.md."
        )
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return prose(text[:1].upper() + text[1:]) + "."


def _not_known(sweep: Sweep) -> list[str]:
    lines = ["What recording itself costs: all steps were timed while a profiler ran."]
    two = [line for line in sweep.lines if line.finding == "two points"]
    if two:
        lines.append(
            f"How the step time grows along {count(len(two), 'line')} of two points: neither a slope nor constancy."
        )
    repeats = any(len({*line.places}) < len(line.places) for line in sweep.lines)
    if not repeats:
        lines.append(
            "How much two runs of one cell differ: no cell was repeated. Residuals stand for it where there are three"
            " runs or more."
        )
    return lines
