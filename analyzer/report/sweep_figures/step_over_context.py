"""Mean step time over context: one panel per batch, each cell a stack of what bounds it."""

from __future__ import annotations

from analyzer.report.figures.sheet import Sheet
from analyzer.report.sweep_figures.step_lines import draw_axis
from analyzer.swept import Sweep


def draw(sweep: Sweep) -> Sheet | str:
    """Every line over context; a text says why there is none."""
    return draw_axis(sweep, "context")
