"""What bounds the mean step at each rank count, stacked, as a share of the axis in ms."""

from __future__ import annotations

import numpy as np

from analyzer.report.figures.marks import areas, label_inside, plain_ticks, seams
from analyzer.report.figures.palette import PATH_FILLS, SMALLER
from analyzer.report.figures.sheet import WIDTH_IN, Entry, Sheet
from analyzer.report.numbers import NS_PER_MS
from analyzer.report.scaling_figures.axis import subject
from analyzer.report.scaling_words import ms, of_ranks
from analyzer.study.scaling_result import Scaling

SMALL_SHARE = 0.01
SEEN_FROM = 0.003
"""Parts of the highest bar from which the smaller parts together are seen."""
HALF_BAR = 0.36
LABELLED_FROM = 0.06
"""Parts of the highest bar from which a part bears its time."""


def draw(scaling: Scaling) -> Sheet | str:
    """One bar per rank count; a text says why there is nothing to draw."""
    if not scaling.categories:
        return scaling.fit_because or "no category has any time"
    counts = sorted(scaling.categories[0].mean_ns)
    parts = {one.category: np.array([one.mean_ns[n] for n in counts]) for one in scaling.categories}
    whole = sum(parts.values(), np.zeros(len(counts)))
    large = [name for name in PATH_FILLS if name in parts and (parts[name] >= SMALL_SHARE * whole).any()]
    growing = [one.category for one in scaling.categories if one.behaviour == "grows"]
    sheet = Sheet(
        title=_title(growing),
        subtitle=f"Mean step by what bounded it; {subject(scaling)}",
        data_in=3.6,
        alt_text=_alt_text(scaling, counts, large),
        note="Bars stand at equal distances: the axis is not in proportion to the ranks.",
    )
    ax = sheet.figure.subplots()
    x, floor = np.arange(len(counts), dtype=np.float64), np.zeros(len(counts))
    rest = whole - sum((parts[name] for name in large), np.zeros(len(counts)))
    stacks = [(name, parts[name], PATH_FILLS[name]) for name in large] + [("", rest, SMALLER)]
    room = 0.8 * WIDTH_IN / max(3, len(counts)) * 2 * HALF_BAR
    for _, height, fill in stacks:
        some = height > 1e-6 * whole
        low, high = floor / NS_PER_MS, (floor + height) / NS_PER_MS
        areas(ax, x[some] - HALF_BAR, x[some] + HALF_BAR, low[some], high[some], fill)
        seams(
            ax,
            [
                ((x[at] - HALF_BAR, high[at]), (x[at] + HALF_BAR, high[at]))
                for at in np.flatnonzero(some).tolist()
            ],
            0.6,
        )
        for at in np.flatnonzero(height >= LABELLED_FROM * whole.max()).tolist():
            middle = float(low[at] + high[at]) / 2
            text = f"{ms(float(height[at]))} ms"
            label_inside(ax, text, x[at] - HALF_BAR, x[at] + HALF_BAR, middle, fill, room)
        floor = floor + height
    for at, total in enumerate(whole):
        ax.text(
            x[at], total / NS_PER_MS, f"{ms(float(total))} ms", ha="center", va="bottom", fontweight="bold"
        )
    middle, reach = (len(counts) - 1) / 2, max(len(counts), 3) / 2 + 0.2
    ax.set_xlim(middle - reach, middle + reach)
    ax.set_ylim(0, 1.1 * float(whole.max()) / NS_PER_MS)
    ax.set_xticks(list(x), [of_ranks(count) for count in counts])
    plain_ticks(ax, "y", 6)
    ax.set_ylabel("ms per step")
    entries = [Entry(name, PATH_FILLS[name]) for name in large]
    if (rest >= SEEN_FROM * whole.max()).any():
        entries.append(Entry("smaller parts", SMALLER))
    sheet.legends = [("", entries)]
    return sheet


def _title(growing: list[str]) -> str:
    if not growing:
        return "What bounds the step, by rank count"
    return f"What bounds the step, by rank count; grows with the ranks: {', '.join(growing)}"


def _alt_text(scaling: Scaling, counts: list[int], large: list[str]) -> str:
    bars = []
    for count in counts:
        told = [
            f"{one.category} {ms(one.mean_ns[count])} ms"
            for one in scaling.categories
            if one.category in large and one.mean_ns[count] > 0
        ]
        bars.append(f"{of_ranks(count)}: {', '.join(told)}")
    return f"Stacked mean step. {'; '.join(bars)}."
