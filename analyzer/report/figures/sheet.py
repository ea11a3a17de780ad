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
    """A figure under construction. ``legends``: (title, entries), side by side below the data."""

    title: str
    subtitle: str
    height_in: float
    alt_text: str
    note: str = ""
    legends: list[tuple[str, list[Entry]]] = field(default_factory=list)
    figure: Figure = field(init=False)

    def __post_init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH_IN, self.height_in))
        self.figure.set_dpi(DPI)
        FigureCanvasAgg(self.figure)

    def finish(self) -> None:
        """Put text and legends in place, lay the axes out between them, and fix that layout."""
        top = self._text_above()
        bottom = self._note_below()
        bottom += self._legends_below(bottom)
        height = self.height_in
        engine = ConstrainedLayoutEngine(
            rect=(
                MARGIN_IN / WIDTH_IN,
                bottom / height,
                1 - 2 * MARGIN_IN / WIDTH_IN,
                1 - (top + bottom) / height,
            ),
            w_pad=0.03,
            h_pad=0.04,
        )
        self.figure.set_layout_engine(engine)
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")

    def _text_above(self) -> float:
        used = MARGIN_IN
        for text, points, weight, colour in (
            (self.title, TITLE_POINTS, "bold", "#000000"),
            (self.subtitle, TEXT_POINTS, "normal", MUTED),
        ):
            # bold runs about a tenth wider than the widths that ``wrapped`` knows
            room = (WIDTH_IN - 2 * MARGIN_IN) * (0.88 if weight == "bold" else 1)
            for line in wrapped(text, points, room):
                self._line(line, 1 - used / self.height_in, points, weight=weight, color=colour, va="top")
                used += points * LINE_HEIGHT / POINTS_PER_INCH
        return used + 0.04

    def _note_below(self) -> float:
        used = MARGIN_IN
        for line in reversed(wrapped(self.note, SMALL_POINTS, WIDTH_IN - 2 * MARGIN_IN)):
            self._line(line, used / self.height_in, SMALL_POINTS, color=MUTED, va="bottom")
            used += SMALL_POINTS * LINE_HEIGHT / POINTS_PER_INCH
        return used

    def _line(self, text: str, y: float, points: float, **style: Any) -> None:
        self.figure.text(MARGIN_IN / WIDTH_IN, y, text, fontsize=points, ha="left", **style)

    def _legends_below(self, bottom_in: float) -> float:
        """Place the legends from ``bottom_in`` up, their titles on one line; the height they take, inches."""
        if not self.legends:
            return 0.0
        room = (WIDTH_IN - MARGIN_IN) / len(self.legends)
        made = [self._legend(title, entries, room - MARGIN_IN) for title, entries in self.legends]
        renderer = self.figure.canvas.get_renderer()  # type: ignore[attr-defined]
        height = max(float(one.get_window_extent(renderer).height) for one in made) / self.figure.dpi
        for at, one in enumerate(made):
            corner = ((MARGIN_IN + at * room) / WIDTH_IN, (bottom_in + height) / self.height_in)
            one.set_bbox_to_anchor(corner, transform=self.figure.transFigure)
        return height + 0.06

    def _legend(self, title: str, entries: Sequence[Entry], room_in: float) -> Legend:
        em = SMALL_POINTS / POINTS_PER_INCH
        widest = max(width_in(entry.label, SMALL_POINTS) for entry in entries)
        beside = (HANDLE_EM + HANDLE_PAD_EM) * em
        columns = int((room_in + COLUMN_SPACE_EM * em) / (widest + beside + COLUMN_SPACE_EM * em))
        legend = Legend(
            self.figure,
            [entry.handle() for entry in entries],
            [fitted(entry.label, SMALL_POINTS, room_in - beside) for entry in entries],
            title=title or None,
            alignment="left",
            loc="upper left",
            ncols=min(max(columns, 1), len(entries)),
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
