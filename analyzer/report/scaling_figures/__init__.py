"""Figures of a scaling study as SVG and PNG.

matplotlib is imported when the first figure is drawn, so that the command line starts without it.
"""

from __future__ import annotations

from analyzer.report.figures import Figures, draw_all
from analyzer.study.scaling_result import Scaling

NAMES = ("step_time", "categories", "efficiency")
"""All figures in reading order; each is a module of this package with a function ``draw``."""


def figures(scaling: Scaling) -> Figures:
    """Draw every figure that has something to show: the same bytes for the same study."""
    return draw_all(__name__, NAMES, scaling)
