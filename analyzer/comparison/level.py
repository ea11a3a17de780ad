"""How finely two captures can be compared: by what both of them record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analyzer.diagnosis import StepWork

Rows = Sequence[StepWork]


@dataclass(frozen=True)
class Level:
    """What both sides record.

    ``sized`` collectives (bytes, type, group), ``told`` ones (their operation, which is not only what the kernel's name
    tells), ``shaped`` kernels (grid, block), ``counted`` bytes of copies.
    """

    sized: bool
    shaped: bool
    counted: bool
    told: bool = True

    def words(self) -> str:
        """By what work is compared, and what is not recorded on both sides."""
        return ", ".join(
            (
                "kernels by name, grid and block"
                if self.shaped
                else "kernels by name alone (grids are not recorded on both sides)",
                "copies by direction and bytes"
                if self.counted
                else "copies by direction alone (bytes are not recorded on both sides)",
                self._collectives(),
            )
        )

    def _collectives(self) -> str:
        if not self.told:
            return "collectives by what their kernels' names tell (operations are not recorded on both sides)"
        if not self.sized:
            return "collectives by operation alone (sizes are not recorded on both sides)"
        return "collectives by operation, type, bytes and group"


def level_of(rows: Iterable[StepWork], others: Iterable[StepWork]) -> Level:
    """The finest level at which both sides can be told apart."""
    a, b = list(rows), list(others)
    return Level(
        sized=_sized(a) and _sized(b),
        shaped=_shaped(a) and _shaped(b),
        counted=_counted(a) and _counted(b),
        told=_told(a) and _told(b),
    )


def _sized(rows: Rows) -> bool:
    return all(row.bytes is not None for row in rows if row.kind == "collective")


def _shaped(rows: Rows) -> bool:
    return all(row.grid is not None and row.block is not None for row in rows if row.kind == "kernel")


def _counted(rows: Rows) -> bool:
    return all(row.bytes is not None for row in rows if row.kind in ("copy", "set"))


def _told(rows: Rows) -> bool:
    """Point-to-point kernels carry many operations, and generic ones any: their names tell too little."""
    return not any(
        row.kind == "collective"
        and row.bytes is None
        and row.dtype is None
        and (row.kernel_operation == POINT_TO_POINT == row.name or row.name == row.kernel)
        for row in rows
    )


POINT_TO_POINT = "send_recv"
"""NCCL's one kernel of sends and receives, of which all-to-alls and exchanges are made."""
