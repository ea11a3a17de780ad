"""Figures of a sweep as SVG and PNG.

matplotlib is imported when the first figure is drawn, so that the command line starts without it.
"""

from __future__ import annotations

from analyzer.report.figures import Figures, draw_all
from analyzer.swept import Sweep

NAMES = ("step_over_context", "step_over_batch", "rates")
"""All figures in reading order; each is a module of this package with a function ``draw``."""


def figures(sweep: Sweep) -> Figures:
    """Draw every figure that has something to show: the same bytes for the same sweep."""
    return draw_all(__name__, NAMES, sweep)
