"""Arithmetic on a few figures that needs no trace: the functions behind ``tracebound calc``.

Each returns a frozen result that carries its kind (budget, bound, model, fit or measurement) and what it
assumes. Times are nanoseconds, sizes bytes, bandwidths bytes/s, shares 0..1; units stand in names. What
cannot be is a ``UsageError`` that names the argument.

>>> from analyzer import calculators
>>> round(calculators.slot(16_600_000, 2790).slot_ns, 2)
5949.82
"""

from __future__ import annotations

from analyzer.calculators.changes import WhatIf, whatif
from analyzer.calculators.collectives import FIT_CONTEXT, AlphaBeta, Collective, alpha_beta, collective
from analyzer.calculators.decoding import Batching, Speculation, batching, expected_tokens, speculation
from analyzer.calculators.grids import Coverage, TheoreticalOccupancy, coverage, occupancy
from analyzer.calculators.launches import Slot, slot
from analyzer.calculators.memory import Floor, Intensity, Phase, floor, intensity, phase_floor_ns
from analyzer.calculators.result import Figure, Kind, Result
from analyzer.calculators.scaling import Amdahl, Scaling, amdahl, scaling

__all__ = [
    "FIT_CONTEXT",
    "AlphaBeta",
    "Amdahl",
    "Batching",
    "Collective",
    "Coverage",
    "Figure",
    "Floor",
    "Intensity",
    "Kind",
    "Phase",
    "Result",
    "Scaling",
    "Slot",
    "Speculation",
    "TheoreticalOccupancy",
    "WhatIf",
    "alpha_beta",
    "amdahl",
    "batching",
    "collective",
    "coverage",
    "expected_tokens",
    "floor",
    "intensity",
    "occupancy",
    "phase_floor_ns",
    "scaling",
    "slot",
    "speculation",
    "whatif",
]
