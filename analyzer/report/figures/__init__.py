"""Figures of a diagnosis as SVG and PNG.

matplotlib is imported when the first figure is drawn, so that the command line starts without it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from analyzer.analysis import Analysis

FOLDER = "figures"
NAMES = (
    "budget_over_steps",
    "rank_timeline",
    "timeline",
    "exposed_time",
    "launch_and_queue",
    "kernels_on_path",
    "collective_price",
)
"""All figures of every diagnosis in reading order; each is a module of this package with a function ``draw``."""
OF_TOKENS = ("token_gaps",)
"""Those of a diagnosis with a token log; of others nothing is missed."""
SUFFIXES = (".svg", ".png")


@dataclass(frozen=True)
class Drawn:
    """One figure, ready to be written."""

    name: str
    title: str
    alt_text: str
    svg: bytes
    png: bytes


@dataclass(frozen=True)
class NotDrawn:
    """A figure without anything to show, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Figures:
    """What was drawn and what was not; together all that were asked for."""

    drawn: tuple[Drawn, ...] = ()
    not_drawn: tuple[NotDrawn, ...] = ()

    def files(self) -> dict[str, bytes]:
        """Content by file name."""
        return {
            f"{one.name}{suffix}": data
            for one in self.drawn
            for suffix, data in zip(SUFFIXES, (one.svg, one.png), strict=True)
        }


def file_names(names: Iterable[str] = NAMES) -> list[str]:
    """Every file name that a run can write into the folder of figures."""
    return [name + suffix for name in names for suffix in SUFFIXES]


class FigureLink(NamedTuple):
    """One written figure as a report links to it; the texts are plain text, not yet Markdown."""

    name: str
    title: str
    alt_text: str
    path: str


@contextmanager
def _only_errors_logged() -> Iterator[None]:
    """Matplotlib logs a warning where it may not keep a font list in the home directory: no news to a reader."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def figures(analysis: Analysis) -> Figures:
    """Draw every figure that the analysis has data for: the same bytes for the same analysis.

    Never an empty one: what is missing (a table that was not captured, or an analysis read back from
    JSON) stands in ``not_drawn``.
    """
    more = () if analysis.diagnosis.service is None else OF_TOKENS
    return draw_all(__name__, (*NAMES, *more), analysis)


def draw_all(package: str, names: Iterable[str], subject: object) -> Figures:
    """Draw with each module ``names`` of ``package``: its ``draw`` returns a sheet, or why there is none."""
    drawn: list[Drawn] = []
    not_drawn: list[NotDrawn] = []
    with _only_errors_logged():
        from analyzer.report.figures.sheet import drawing

        for name in names:
            module = importlib.import_module(f"{package}.{name}")
            with drawing():
                sheet = module.draw(subject)
                if isinstance(sheet, str):
                    not_drawn.append(NotDrawn(name, sheet))
                    continue
                sheet.finish()
                drawn.append(Drawn(name, sheet.title, sheet.alt_text, sheet.svg(), sheet.png()))
    return Figures(tuple(drawn), tuple(not_drawn))


def figure_links(written: Iterable[Drawn], folder: str = f"diagnosis/{FOLDER}") -> list[FigureLink]:
    """Where the written figures lie, relative to DIAGNOSIS.md."""
    return [FigureLink(one.name, one.title, one.alt_text, f"{folder}/{one.name}.svg") for one in written]
