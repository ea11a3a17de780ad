"""From the mean step of A to that of B, one bar per category whose time differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from analyzer.apportion import largest_remainder
from analyzer.comparison.result import Comparison, PhasePair
from analyzer.report.comparison_figures.words import phase_text, subtitle, title, warnings
from analyzer.report.figures.marks import areas, number, plain_ticks
from analyzer.report.figures.palette import GROUP_COLOURS, Fill
from analyzer.report.figures.sheet import MARGIN_IN, SMALL_POINTS, WIDTH_IN, Entry, Sheet
from analyzer.report.figures.text import shown, width_in, wrapped
from analyzer.report.labels import CATEGORY_WORDS
from analyzer.report.numbers import MS_DECIMALS, NS_PER_MS, count, fixed, percent

SMALL_SHARE = Fraction(1, 200)
"""Of A's mean step: categories that differ by less are one bar."""
SMALL_OF_LARGEST = Fraction(1, 10)
"""Where no category differs by ``SMALL_SHARE``, those of at least this part of the largest have a bar."""
NS_DECIMALS = 6
COARSE_FROM_NS = 10_000
"""Where the largest difference reaches this, times are told in whole microseconds, as in the tables."""
VISIBLE_SHARE = Fraction(1, 25)
"""Of the whole axis: where the longest difference is shorter, the axis does not start at 0."""
HALF_BAR = 0.3
ROW_IN = 0.38
LABEL_IN = 3.1
TOLD = 4
"""Categories in the text for those who do not see the figure."""

MEAN = Fill("#444444")
FASTER = Fill(GROUP_COLOURS["copies"])
SLOWER = Fill(GROUP_COLOURS["collectives"], "//")


@dataclass(frozen=True)
class Bar:
    """One difference, drawn from ``start_ns`` to ``end_ns``; ``names``: the categories in it."""

    names: tuple[str, ...]
    start_ns: int
    end_ns: int

    @property
    def delta_ns(self) -> int:
        """Negative where B is faster."""
        return self.end_ns - self.start_ns

    @property
    def label(self) -> str:
        """The category as the report explains it."""
        if len(self.names) > 1:
            return f"others ({len(self.names)})"
        name = self.names[0]
        return f"{name}: {CATEGORY_WORDS[name]}" if name in CATEGORY_WORDS else shown(name, 60)


@dataclass(frozen=True)
class Row:
    """One line of the figure (ns on the axis)."""

    label: str
    value: str
    left_ns: int
    right_ns: int
    end_ns: int  # where the next row goes on
    fill: Fill


def draw(comparison: Comparison) -> Sheet | str:
    """Floating bars from A to B; a text says why there is nothing to draw."""
    if not comparison.pairs:
        return "no phase of A stands against one of B"
    pair = comparison.pairs[0]
    bars = bars_of(pair)
    if not bars:
        return "no category differs between the mean steps"
    rows = _rows(pair, bars)
    base_ns = baseline(pair, bars)
    change = _signed_percent(pair.step_delta_ns.mean, pair.a.mean)
    means = f"{rows[0].value.removesuffix(' ms')} → {rows[-1].value}"
    sheet = Sheet(
        title=title(comparison, f"mean step A → B: {means} ({change})"),
        subtitle=subtitle(comparison),
        data_in=0.55 + ROW_IN * len(rows),
        alt_text=_alt_text(comparison, bars, rows),
        note=_note(bars, base_ns),
    )
    ax = sheet.figure.subplots()
    _draw_rows(ax, rows, base_ns)
    used = {row.fill for row in rows if row.left_ns < row.right_ns}
    legend = {"mean step": MEAN, "B faster (-)": FASTER, "B slower (+)": SLOWER}
    sheet.legends = [("", [Entry(label, fill) for label, fill in legend.items() if fill in used])]
    return sheet


def bars_of(pair: PhasePair) -> list[Bar]:
    """Floating bars that lead from A's mean step to B's: the largest difference first, small ones pooled last."""
    changed = {name: ns for name, ns in pair.delta_ns.items() if ns}
    order = sorted(changed, key=lambda name: (-abs(changed[name]), name))
    small = [name for name in order if abs(changed[name]) < _limit(pair, changed)]
    groups = [(name,) for name in order if name not in small] + ([tuple(small)] if small else [])
    bars: list[Bar] = []
    level = pair.a.mean
    for names in groups:
        end = level + sum(changed[name] for name in names)
        bars.append(Bar(names, level, end))
        level = end
    return bars


def _limit(pair: PhasePair, changed: Mapping[str, int]) -> Fraction:
    """Differences below it are pooled (ns)."""
    limit = pair.a.mean * SMALL_SHARE
    largest = max(map(abs, changed.values()), default=0)
    return limit if largest >= limit else largest * SMALL_OF_LARGEST


def baseline(pair: PhasePair, bars: Sequence[Bar]) -> int:
    """Where the axis starts (ns): at 0, unless the differences would be too short to be seen."""
    levels = [pair.a.mean, *(bar.end_ns for bar in bars)]
    low, high = min(levels), max(levels)
    longest = max(abs(bar.delta_ns) for bar in bars)
    span = max(high - low, longest)
    if longest >= VISIBLE_SHARE * high:
        return 0
    coarse: int = 10 ** (len(str(span)) - 1)
    return max(0, (low - span // 3) // coarse * coarse)


def _rows(pair: PhasePair, bars: Sequence[Bar]) -> list[Row]:
    """A, the differences and B. Both sides are rounded as the report's table rounds them, so figures sum."""
    largest = max(map(abs, pair.delta_ns.values()))
    decimals = MS_DECIMALS if largest >= COARSE_FROM_NS else NS_DECIMALS
    # names in the table's order, in which it rounds
    names = list(dict.fromkeys(name for name in (*CATEGORY_WORDS, *pair.delta_ns) if name in pair.delta_ns))
    a, b = (_units(side, names, decimals) for side in (pair.a_ns, pair.b_ns))
    share_decimals = 1 if largest >= SMALL_SHARE * pair.a.mean else 2
    rows = [_mean_row(f"A: mean of {count(pair.a.n, 'step')}", pair.a.mean, fixed(sum(a.values()), decimals))]
    for bar in bars:
        units = sum(b[name] - a[name] for name in bar.names)
        share = _signed_percent(bar.delta_ns, pair.a.mean, share_decimals)
        value = f"{'+' if units > 0 else ''}{fixed(units, decimals)} ms ({share})"
        left, right = sorted((bar.start_ns, bar.end_ns))
        rows.append(Row(bar.label, value, left, right, bar.end_ns, FASTER if bar.delta_ns < 0 else SLOWER))
    text = fixed(sum(b.values()), decimals)
    return [*rows, _mean_row(f"B: mean of {count(pair.b.n, 'step')}", pair.b.mean, text)]


def _mean_row(label: str, mean_ns: int, text: str) -> Row:
    return Row(label, f"{text} ms", 0, mean_ns, mean_ns, MEAN)


def _units(side: Mapping[str, int], names: Sequence[str], decimals: int) -> dict[str, int]:
    scaled = [Fraction(side.get(name, 0) * 10**decimals, NS_PER_MS) for name in names]
    return dict(zip(names, largest_remainder(scaled), strict=True))


def _signed_percent(part: int, whole: int, decimals: int = 1) -> str:
    return ("+" if part > 0 and whole > 0 else "") + percent(part, whole, decimals)


def _draw_rows(ax: Axes, rows: Sequence[Row], base_ns: int) -> None:
    labels = [wrapped(row.label, SMALL_POINTS, LABEL_IN) for row in rows]
    base = base_ns / NS_PER_MS
    right = base + _axis_ms(
        rows, base_ns, max(width_in(line, SMALL_POINTS) for one in labels for line in one)
    )
    for y, row in enumerate(rows):
        low, high = max(row.left_ns, base_ns) / NS_PER_MS, row.right_ns / NS_PER_MS
        areas(
            ax,
            np.array([low]),
            np.array([high]),
            np.array([y - HALF_BAR]),
            np.array([y + HALF_BAR]),
            row.fill,
        )
        value = ax.text(high, y, f" {row.value}", fontsize=SMALL_POINTS, va="center")
        value.set_in_layout(False)
    _connect(ax, rows)
    ax.set_xlim(base, right)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_yticks(range(len(rows)), ["\n".join(lines) for lines in labels])
    ax.tick_params(axis="y", length=0)
    plain_ticks(ax, "x", 7)
    ax.set_xlabel("ms per step")
    if base_ns:
        _mark_cut(ax, len(rows) - 1, base, right)
        ax.set_xlabel(f"ms per step; the axis starts at {number(base)} ms, not at 0", fontweight="bold")


def _axis_ms(rows: Sequence[Row], base_ns: int, labels_in: float) -> float:
    """Length of the axis on which every value finds room right of its bar."""
    axis_in = WIDTH_IN - 2 * MARGIN_IN - labels_in - 0.2
    needed = (
        (row.right_ns - base_ns) / (1 - (width_in(f" {row.value}", SMALL_POINTS) + 0.1) / axis_in)
        for row in rows
    )
    return max(*needed, 1.0) / NS_PER_MS


def _connect(ax: Axes, rows: Sequence[Row]) -> None:
    """From the end of each bar down to the start of the next."""
    lines = [
        ((row.end_ns / NS_PER_MS, y + HALF_BAR), (row.end_ns / NS_PER_MS, y + 1 - HALF_BAR))
        for y, row in enumerate(rows[:-1])
    ]
    ax.add_collection(LineCollection(lines, colors="#000000", linewidths=0.8, zorder=3), autolim=False)


def _mark_cut(ax: Axes, last: int, base: float, right: float) -> None:
    """A slanted gap in the bars of both mean steps, which do not start where the axis does."""
    at, half, lean = base + 0.02 * (right - base), 0.004 * (right - base), 0.006 * (right - base)
    for y in (0, last):
        ends = np.array([y - HALF_BAR - 0.08, y + HALF_BAR + 0.08])
        slant = np.array([at + lean, at - lean])
        ax.fill_betweenx(ends, slant - half, slant + half, color="#FFFFFF", linewidth=0, zorder=4)
        for side in (-half, half):
            ax.plot(slant + side, ends, color="#000000", linewidth=0.8, zorder=5)


def _note(bars: Sequence[Bar], base_ns: int) -> str:
    notes = []
    pooled = next((bar.names for bar in bars if len(bar.names) > 1), ())
    if pooled:
        names = ", ".join(shown(name, 40) for name in pooled)
        notes.append(f"Others, the largest first: {names}; summed with their signs.")
    if base_ns:
        notes.append("The bars of the mean steps are cut at the gap: their lengths are not in proportion.")
    return " ".join(notes)


def _alt_text(comparison: Comparison, bars: Sequence[Bar], rows: Sequence[Row]) -> str:
    told = list(zip(bars, rows[1:-1], strict=True))[:TOLD]
    parts = [f"{_short(bar)} {row.value}" for bar, row in told]
    if len(bars) > TOLD:
        parts.append(count(len(bars) - TOLD, "more bar"))
    verdict = "".join(f"; {word}" for word in warnings(comparison))
    return (
        f"Waterfall from the mean step of A, {rows[0].value}, to that of B, {rows[-1].value},"
        f" {phase_text(comparison.pairs[0])}{verdict}. By what bound the step: {'; '.join(parts)}."
    )


def _short(bar: Bar) -> str:
    return shown(bar.names[0], 40) if len(bar.names) == 1 else bar.label
