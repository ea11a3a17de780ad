"""The axis of rank counts, and error bars, as all figures of a scaling study draw them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import NullLocator

from analyzer.report.figures.palette import Fill
from analyzer.study.scaling_result import Interval, Scaling

MEASURED = Fill("#11378D")
FITTED = Fill("#D07C1F")
IDEAL = Fill("#444444")
CAP = 0.025
"""Half the width of an error bar's ends, as a share of a doubling."""


def rank_axis(ax: Axes, counts: Sequence[int]) -> None:
    """Rank counts on a binary logarithm, a tick at each that was measured."""
    ax.set_xscale("log", base=2)
    ax.set_xlim(counts[0] / 2**0.35, counts[-1] * 2**0.35)
    ax.set_xticks(list(counts), [f"{count:,}" for count in counts])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("ranks (logarithmic)")


def error_bars(ax: Axes, at: Sequence[float], ends: Sequence[Interval | None], fill: Fill) -> None:
    """95 % intervals as bars with caps, in data coordinates."""
    lines = []
    for x, interval in zip(at, ends, strict=True):
        if interval is None:
            continue
        left, right = x / 2**CAP, x * 2**CAP
        lines.append(((x, interval[0]), (x, interval[1])))
        lines += [((left, end), (right, end)) for end in interval]
    ax.add_collection(LineCollection(lines, colors=fill.colour, linewidths=1.1, zorder=4), autolim=False)


def subject(scaling: Scaling) -> str:
    """Whose steps these are."""
    used = [run for run in scaling.runs if run.used]
    alone = sum(run.rank is not None and run.ranks > 1 for run in used)
    whose = "all ranks together" if not alone else "the slowest rank where ranks are not aligned"
    left_out = len(scaling.runs) - len(used)
    rest = f"; {left_out} left out, unlike the others" if left_out else ""
    return f"{len(used)} runs{rest}; steps of {whose}; boundary: {', '.join(sorted({r.boundary for r in used}))}."
