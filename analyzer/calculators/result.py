"""What every calculator returns: named figures with unit and kind, and what they assume."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from analyzer.errors import UsageError

Kind = Literal["budget", "bound", "model", "fit", "measurement"]
Value = float | int | str | tuple[float, ...] | tuple[int, ...] | None


@dataclass(frozen=True)
class Figure:
    """One number of a result. ``unit`` is "" for counts, ratios and words; shares are 0..1."""

    name: str
    label: str
    value: Value
    unit: str
    kind: Kind


def figure(label: str, unit: str = "", *, kind: Kind | None = None) -> Any:
    """A dataclass field that is a figure; its kind is the result's own unless given."""
    return field(metadata={"label": label, "unit": unit, "kind": kind})


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base of the results. ``None`` in a figure: what it needs was not given.

    ``kind`` says what sort of number it is: a budget (time shared out), a bound (no better than this), a
    model (right if its assumptions hold), a fit (a line through given points), or a measurement.
    """

    calculator: ClassVar[str]
    kind: ClassVar[Kind]
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...] = ()

    def figures(self) -> tuple[Figure, ...]:
        """All figures in the order of declaration."""
        return tuple(
            Figure(
                item.name,
                item.metadata["label"],
                getattr(self, item.name),
                item.metadata["unit"],
                item.metadata["kind"] or self.kind,
            )
            for item in dataclasses.fields(self)
            if "label" in item.metadata
        )

    def __post_init__(self) -> None:
        for item in self.figures():
            if not all(math.isfinite(number) for number in _numbers(item.value)):
                raise UsageError(
                    self.calculator,
                    "",
                    f"{item.name} is too large to be a number",
                    "look for a wrong unit among the inputs",
                )


def _numbers(value: Value) -> Iterator[float]:
    if isinstance(value, tuple):
        yield from value
    elif isinstance(value, (int, float)):
        yield value
