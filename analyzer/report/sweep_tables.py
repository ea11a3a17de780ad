"""The tables of SWEEP.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analyzer.apportion import largest_remainder
from analyzer.report.escape import cell, prose
from analyzer.report.labels import CATEGORY_WORDS
from analyzer.report.numbers import count, fixed, ms
from analyzer.report.tables import table
from analyzer.swept import Batching, Cell, Estimated, Line, Sweep

CELLS_SHOWN = 60
COLUMNS_SHOWN = 8
CLASSES_SHOWN = 12
US_DECIMALS = 3


@dataclass(frozen=True)
class LineView:
    """One line of the grid as the template shows it; all texts are safe."""

    title: str
    statement: str
    categories: str
    classes_intro: str
    classes: str
    pieces: str


def place(value: int | None, axis: str) -> str:
    """``batch 8``, ``8,192 tokens of context``, or that it is undeclared."""
    if value is None:
        return f"{axis} undeclared"
    return f"batch {value:,}" if axis == "batch" else f"{value:,} tokens of context"


def grid_table(sweep: Sweep) -> str:
    """One row per cell."""
    header = [
        "", "Run", "Context", "Batch", "Cache", "Steps", "Mean step, ms", "95 % of its steps, ms", "Tokens/s",
        "Tokens/s per stream", "Placed by",
    ]  # fmt: skip
    rows = [
        [
            f"{'✻' if one.unlike else ''}{'' if one.fitted else '−'}",
            cell(one.name, 50),
            _number(one.context.value),
            _number(one.batch.value),
            "**undeclared**" if one.cache_initialization is None else cell(one.cache_initialization, 24),
            f"{one.steps:,}",
            _ms(one.step_ns.value),
            _interval_ms(one.step_ns),
            _rate(one.tokens_per_s),
            _rate(one.tokens_per_s_per_stream),
            _sources(one),
        ]
        for one in sweep.cells[:CELLS_SHOWN]
    ]
    text = table(header, rows, left=(0, 1, 4, 10))
    if any(not one.fitted for one in sweep.cells):
        text += "\n\n− is in no fit."
    more = len(sweep.cells) - CELLS_SHOWN
    return f"{text}\n\n{count(more, 'more cell')} in `sweep/cells.csv`." if more > 0 else text


def _number(value: int | None) -> str:
    return "undeclared" if value is None else f"{value:,}"


def _sources(one: Cell) -> str:
    return ", ".join(dict.fromkeys([one.context.source, one.batch.source, one.cache_source]))


def marks_table(sweep: Sweep) -> str:
    """What marks each marked cell; "" without any."""
    rows = [
        [cell(one.name, 50), cell(pin.pin), cell(pin.value, 60), cell(pin.most, 60)]
        for one in sweep.cells
        for pin in one.unlike
    ]
    return (
        table(["Run", "Pin", "Here", "In most cells"], rows[:CELLS_SHOWN], left=(0, 1, 2, 3)) if rows else ""
    )


def line_view(line: Line, title: str) -> LineView:
    """One line with its categories, classes and pieces."""
    unit = line.unit.replace("ns", "µs", 1)
    return LineView(
        title=title,
        statement=prose(line.statement, limit=900),
        categories=_slopes(line.categories, line.slope, unit, "What bounds the step", CATEGORY_WORDS),
        classes_intro=(
            "By kernel class, on the own path of the slowest rank, whose step has a slope of"
            f" {_us(line.rank_slope.value)} {unit}{_interval_us(line.rank_slope)}. Work off the path is not in it:"
        ),
        classes=_classes(line, unit),
        pieces="" if len(line.pieces) < 2 else _pieces(line, unit),
    )


def _slopes(
    parts: Mapping[str, Estimated], whole: Estimated, unit: str, head: str, words: Mapping[str, str]
) -> str:
    """Slopes of the parts, rounded so that what is shown sums."""
    names = [name for name, part in parts.items() if part.value or (part.ci95 and any(part.ci95))]
    shown = largest_remainder([Fraction(parts[name].value) for name in names])
    rows = [
        [cell(name), words.get(name, ""), _signed(ns), _ends(parts[name])]
        for name, ns in zip(names, shown, strict=True)
    ]
    rows.append(["**step**", "", _signed(sum(shown)), _ends(whole)])
    return table([head, "In words", f"Slope, {unit}", "95 % interval"], rows, left=(0, 1))


def _classes(line: Line, unit: str) -> str:
    if not line.classes:
        return ""
    names = sorted(line.classes, key=lambda name: (-abs(line.classes[name].value), name))
    rows = [
        [cell(name), _us(line.classes[name].value), _ends(line.classes[name])]
        for name in names[:CLASSES_SHOWN]
    ]
    if line.attention is not None:
        rows.append(["**attention and KV cache**", _us(line.attention.value), _ends(line.attention)])
    text = table(["Kernel class", f"Slope, {unit}", "95 % interval"], rows)
    more = len(names) - CLASSES_SHOWN
    return f"{text}\n\n{count(more, 'more class', 'more classes')} in the JSON." if more > 0 else text


def slope_text(line: Line) -> str:
    """The slope of the step with its interval."""
    unit = line.unit.replace("ns", "µs", 1)
    return f"{_us(line.slope.value)} {unit}" + ("" if line.slope.ci95 is None else f" ({_ends(line.slope)})")


def _pieces(line: Line, unit: str) -> str:
    rows = [[f"{one.low:,}", f"{one.high:,}", _us(one.slope.value), _ends(one.slope)] for one in line.pieces]
    return table(["From", "To", f"Slope, {unit}", "95 % interval"], rows, left=())


def batch_table(one: Batching) -> str:
    """Step time, rates and marginal cost by batch."""
    experts = any(point.expert_union is not None for point in one.points)
    header = [
        "Batch", "Runs", "Mean step, ms", "95 % interval, ms", "Tokens/s", "95 % interval", "Tokens/s per stream",
        "Per added sequence, µs", "95 % interval, µs", *(["Experts read (model)"] if experts else []),
    ]  # fmt: skip
    rows = [
        [
            f"{point.batch:,}",
            str(len(point.cells)),
            _ms(point.step_ns.value),
            _interval_ms(point.step_ns),
            _rate(point.tokens_per_s.value),
            _ends(point.tokens_per_s, _rate),
            _rate(point.tokens_per_s_per_stream.value),
            "-" if point.marginal_ns is None else _us(point.marginal_ns.value),
            "-" if point.marginal_ns is None else _ends(point.marginal_ns),
            *(["-" if point.expert_union is None else f"{point.expert_union:,.1f}"] if experts else []),
        ]
        for point in one.points
    ]
    return table(header, rows, left=())


def category_table(sweep: Sweep) -> str:
    """The mean step of each cell by category; the parts sum to what is shown."""
    cells = sweep.cells[:COLUMNS_SHOWN]
    names = [name for name in cells[0].mean_ns if any(one.mean_ns.get(name) for one in cells)]
    shown = [_shown_us(one, names) for one in cells]
    rows = [[name, *(fixed(column[at], US_DECIMALS) for column in shown)] for at, name in enumerate(names)]
    rows.append(["**mean step**", *(fixed(sum(column), US_DECIMALS) for column in shown)])
    header = ["What bounds the step (columns: context × batch)", *(_short(one) for one in cells)]
    text = table(header, rows)
    more = len(sweep.cells) - COLUMNS_SHOWN
    return f"{text}\n\n{count(more, 'more cell')} in `sweep/cells.csv`." if more > 0 else text


def _short(one: Cell) -> str:
    return f"{_number(one.context.value)} × {_number(one.batch.value)}{' ✻' if one.unlike else ''}"


def _shown_us(one: Cell, names: Sequence[str]) -> list[int]:
    return largest_remainder([Fraction(one.mean_ns.get(name, 0.0)) / 1_000 for name in names])


def _signed(ns: int) -> str:
    return f"{'+' if ns > 0 else ''}{fixed(ns, US_DECIMALS)}"


def _us(ns: float) -> str:
    return _signed(round(ns))


def _ms(ns: float) -> str:
    return ms(round(ns))


def _interval_ms(found: Estimated) -> str:
    return "too few steps" if found.ci95 is None else f"{_ms(found.ci95[0])} to {_ms(found.ci95[1])}"


def _interval_us(found: Estimated) -> str:
    return "" if found.ci95 is None else f" ({_ends(found)})"


def _ends(found: Estimated, shown: object = None) -> str:
    if found.ci95 is None:
        return "none"
    tell = shown if callable(shown) else _us
    return f"{tell(found.ci95[0])} to {tell(found.ci95[1])}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
