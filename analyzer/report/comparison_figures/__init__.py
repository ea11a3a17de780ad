"""Figures of a comparison of two runs as SVG and PNG.

matplotlib is imported when the first figure is drawn, so that the command line starts without it.
"""

from __future__ import annotations

from analyzer.comparison.result import Comparison
from analyzer.report.figures import Figures, draw_all

NAMES = ("waterfall", "step_times")
"""All figures in reading order; each is a module of this package with a function ``draw``."""


def figures(comparison: Comparison) -> Figures:
    """Draw every figure that has something to show: the same bytes for the same comparison."""
    return draw_all(__name__, NAMES, comparison)
