"""Several runs of one program at other contexts and batch sizes: what the step time does with each."""

from __future__ import annotations

from analyzer.sweep.cells import Given
from analyzer.sweep.runs import sweep

__all__ = ["Given", "sweep"]
