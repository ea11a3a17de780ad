"""A figure with title, subtitle, note and legends outside of the data, and its SVG and PNG.

Nothing here touches pyplot or keeps settings behind: ``drawing`` starts from matplotlib's own defaults,
whatever the user's matplotlibrc says, so that the same input gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analyzer.report.figures.palette import Fill
from analyzer.report.figures.text import FAMILY, POINTS_PER_INCH, fitted, width_in, wrapped

WIDTH_IN = 10.0
DPI = 144
TITLE_POINTS = 11.0
TEXT_POINTS = 8.5
SMALL_POINTS = 8.0
MARGIN_IN = 0.12
POSITION_DIGITS = 6
LINE_HEIGHT = 1.35
HANDLE_EM = 2.2
HANDLE_PAD_EM = 0.8
COLUMN_SPACE_EM = 1.4
MUTED = "#444444"
_SALT = "tracebound"
_SETTINGS: dict[Any, Any] = {
    "font.family": [FAMILY],
    "font.size": TEXT_POINTS,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT_POINTS,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "xtick.labelsize": SMALL_POINTS,
    "ytick.labelsize": SMALL_POINTS,
    "legend.fontsize": SMALL_POINTS,
    "legend.title_fontsize": SMALL_POINTS,
    "hatch.linewidth": 0.7,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": _SALT,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib's defaults and our settings; what was set before comes back."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


@dataclass(frozen=True)
class Entry:
    """One legend entry: an area, or a line of ``width`` points."""

    label: str
    fill: Fill
    width: float | None = None
    dashes: Literal["-", "--"] = "-"

    def handle(self) -> Patch | Line2D:
        """What matplotlib shows in front of the label."""
        if self.width is not None:
            return Line2D([], [], color=self.fill.colour, linewidth=self.width, linestyle=self.dashes)
        return Patch(
            facecolor=self.fill.colour, hatch=self.fill.hatch * 2, edgecolor=self.fill.ink, linewidth=0
        )


@dataclass
class Sheet:
    """A figure under construction. ``legends``: (title, entries), side by side below the data.

    ``data_in`` is the height of all axes with their labels; text and legends come on top of it.
    """

    title: str
    subtitle: str
    data_in: float
    alt_text: str
    note: str = ""
    legends: list[tuple[str, list[Entry]]] = field(default_factory=list)
    figure: Figure = field(init=False)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH_IN, self.data_in), dpi=DPI)
        FigureCanvasAgg(self.figure)

    def finish(self) -> None:
        """Put text and legends around the data, lay the axes out between them, and fix that layout."""
        room = WIDTH_IN - 2 * MARGIN_IN
        # bold runs about a tenth wider than the widths that ``wrapped`` knows
        title = wrapped(self.title, TITLE_POINTS, 0.88 * room)
        subtitle = wrapped(self.subtitle, TEXT_POINTS, room)
        note = wrapped(self.note, SMALL_POINTS, room)
        legends, legend_in = self._legends()
        top = MARGIN_IN + len(title) * _line_in(TITLE_POINTS) + len(subtitle) * _line_in(TEXT_POINTS) + 0.04
        bottom = MARGIN_IN + len(note) * _line_in(SMALL_POINTS)
        height = top + self.data_in + legend_in + bottom
        self.figure.set_size_inches(WIDTH_IN, height)
        self._lines(title, height - MARGIN_IN, height, TITLE_POINTS, "#000000", weight="bold")
        self._lines(
            subtitle, height - MARGIN_IN - len(title) * _line_in(TITLE_POINTS), height, TEXT_POINTS, MUTED
        )
        self._lines(note, bottom, height, SMALL_POINTS, MUTED)
        for left_in, legend in legends:
            corner = (left_in / WIDTH_IN, (bottom + legend_in - 0.04) / height)
            legend.set_bbox_to_anchor(corner, transform=self.figure.transFigure)
        below = (bottom + legend_in) / height
        engine = ConstrainedLayoutEngine(
            rect=(MARGIN_IN / WIDTH_IN, below, room / WIDTH_IN, self.data_in / height), w_pad=0.03, h_pad=0.04
        )
        self.figure.set_layout_engine(engine)
        engine.execute(self.figure)
        self.figure.set_layout_engine("none")
        for ax in self.figure.axes:
            # the solver's last digit differs from run to run, and ids in the SVG are made from all digits
            x, y, width, tall = (round(edge, POSITION_DIGITS) for edge in ax.get_position().bounds)
            ax.set_position((x, y, width, tall))

    def _lines(
        self, lines: list[str], top_in: float, height_in: float, points: float, colour: str, **style: Any
    ) -> None:
        for at, line in enumerate(lines):
            y = (top_in - at * _line_in(points)) / height_in
            self.figure.text(
                MARGIN_IN / WIDTH_IN, y, line, fontsize=points, color=colour, ha="left", va="top", **style
            )

    def _legends(self) -> tuple[list[tuple[float, Legend]], float]:
        """Each legend with its left edge, and the height of the tallest, inches; wider where there is more."""
        if not self.legends:
            return [], 0.0
        room = WIDTH_IN - MARGIN_IN
        weights = [max(3, len(entries)) for _, entries in self.legends]
        renderer = self.figure.canvas.get_renderer()  # type: ignore[attr-defined]
        placed, left, height = [], MARGIN_IN, 0.0
        for (title, entries), weight in zip(self.legends, weights, strict=True):
            width = room * weight / sum(weights)
            legend = self._legend(title, entries, width - MARGIN_IN)
            placed.append((left, legend))
            height = max(height, float(legend.get_window_extent(renderer).height) / self.figure.dpi)
            left += width
        return placed, height + 0.12  # the last handles reach below the box that is reported

    def _legend(self, title: str, entries: Sequence[Entry], room_in: float) -> Legend:
        beside = (HANDLE_EM + HANDLE_PAD_EM) * SMALL_POINTS / POINTS_PER_INCH
        labels = [fitted(entry.label, SMALL_POINTS, room_in - beside) for entry in entries]
        legend = Legend(
            self.figure,
            [entry.handle() for entry in entries],
            labels,
            title=title or None,
            alignment="left",
            loc="upper left",
            ncols=_columns(labels, room_in),
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=HANDLE_EM,
            handletextpad=HANDLE_PAD_EM,
            handleheight=1.1,
            columnspacing=COLUMN_SPACE_EM,
            labelspacing=0.35,
        )
        self.figure.legends.append(legend)
        legend.set_in_layout(False)
        return legend

    def png(self) -> bytes:
        """The figure at 144 dpi, without anything about when and by what it was made."""
        target = io.BytesIO()
        self.figure.set_dpi(DPI)
        # the canvas itself, since ``savefig`` would first draw everything once for a layout that stands
        FigureCanvasAgg(self.figure).print_png(  # type: ignore[no-untyped-call]
            target, metadata={"Software": None}
        )
        return target.getvalue()

    def svg(self) -> bytes:
        """The figure as SVG with text as outlines; dense parts are raster images inside."""
        target = io.BytesIO()
        self.figure.set_dpi(DPI)
        about = {"Title": self.title, "Description": self.alt_text, "Date": None, "Creator": None}
        FigureCanvasSVG(self.figure).print_svg(target, metadata=about)  # type: ignore[no-untyped-call]
        return target.getvalue()


def _line_in(points: float) -> float:
    return points * LINE_HEIGHT / POINTS_PER_INCH


def _columns(labels: Sequence[str], room_in: float) -> int:
    """The most columns that fit, filled column by column as matplotlib does."""
    em = SMALL_POINTS / POINTS_PER_INCH
    widths = [width_in(label, SMALL_POINTS) + (HANDLE_EM + HANDLE_PAD_EM) * em for label in labels]
    for columns in range(len(labels), 1, -1):
        parts = np.array_split(np.array(widths), columns)
        if sum(float(part.max()) for part in parts) + (columns - 1) * COLUMN_SPACE_EM * em <= room_in:
            return columns
    return 1
