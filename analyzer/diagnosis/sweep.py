"""The sweep that a diagnosis was given: other runs, and what ties them to this one."""

from __future__ import annotations

from typing import Literal

import msgspec

Relation = Literal["cell", "equal pins", "undeclared pins", "other pins"]


class SweepUse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the verdict of a sweep holds for this capture.

    ``relation``: it is a cell of the sweep (``cell`` names it); or the sweep is of other runs whose pins are equal
    (``cell``: one at the same context, batch and cache initialization), are undeclared on one side (``pins`` names
    those), or differ in ``pins`` - then the sweep says nothing of this capture.
    """

    path: str
    phase: str
    relation: Relation
    cell: str | None
    pins: list[str]
