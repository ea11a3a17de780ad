"""Progress as a callback: readers and stages call it, only the command line draws it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What a reader or a stage tells about how far it is."""

    def start(self, label: str, total: int | None = None) -> None:
        """A stage begins; ``total`` is in the stage's own unit (bytes, rows), None if unknown."""

    def advance(self, amount: int) -> None:
        """``amount`` more of the stage is done."""


class NoProgress:
    """The default: says nothing."""

    def start(self, label: str, total: int | None = None) -> None:
        """Ignored."""

    def advance(self, amount: int) -> None:
        """Ignored."""
