"""Which cells of a grid are unlike the others: pins in which they differ from most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from analyzer.explain.swept_context import PLACED_BY
from analyzer.sweep.cells import CellData
from analyzer.swept import Unlike

SAME_ON_A_LINE = (
    "model", "weights", "precision", "runtime", "hardware", "topology", "ranks", "timing_boundary",
)  # fmt: skip
"""Pins that change the step by themselves and never follow from the context or the batch, as input and flags may."""


def mixed(cells: Sequence[CellData]) -> list[str]:
    """Pins of SAME_ON_A_LINE of which cells declare several values: where no value is that of most, none is marked."""
    return [pin for pin in SAME_ON_A_LINE if len({cell.pins[pin] for cell in cells if pin in cell.pins}) > 1]


def unlike(cells: Sequence[CellData]) -> list[list[Unlike]]:
    """Per cell the pins whose value is not that of most cells that declare it. Where a cell lies is no such pin."""
    most = _most(cells)
    return [
        [
            Unlike(pin=pin, value=cell.pins[pin], most=value)
            for pin, value in most.items()
            if value is not None and cell.pins.get(pin, value) != value
        ]
        for cell in cells
    ]


def varying(cells: Sequence[CellData]) -> list[str]:
    """Pins of which no value is that of most cells: they may vary with the place on the grid, and no cell is marked."""
    return [pin for pin, value in _most(cells).items() if value is None]


def undeclared(cells: Sequence[CellData]) -> list[str]:
    """Pins that at least one cell does not declare, beyond where it lies."""
    names = {name for cell in cells for name in cell.given.diagnosis.undeclared if name not in cell.pins}
    return sorted(names - {*PLACED_BY})


def _most(cells: Sequence[CellData]) -> Mapping[str, str | None]:
    """The value of more than half of the cells that declare a pin, None where none is."""
    result: dict[str, str | None] = {}
    for pin in sorted({pin for cell in cells for pin in cell.pins} - {*PLACED_BY}):
        values = Counter(cell.pins[pin] for cell in cells if pin in cell.pins)
        value, number = values.most_common(1)[0]
        result[pin] = value if 2 * number > values.total() else None
    return result
