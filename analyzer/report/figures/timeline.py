"""The detail step: what ran on threads and streams, and the path through it."""

from __future__ import annotations

import numpy as np

from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.model import IntArray
from analyzer.report.figures.detail_step import Step, step_of
from analyzer.report.figures.lane_bars import CALL_FILLS, KIND_WORDS, NESTED_FILLS, draw_lanes
from analyzer.report.figures.lanes import STRIP, LaneRows, arrange
from analyzer.report.figures.marks import plain_ticks, scale_of
from analyzer.report.figures.palette import FAMILY_COLOURS, PATH_FILLS, Fill
from analyzer.report.figures.path_marks import draw_jumps, draw_path
from analyzer.report.figures.sheet import SMALL_POINTS, Entry, Sheet
from analyzer.report.figures.text import boundary_text, fitted, shown
from analyzer.report.numbers import count, ms

LANE_TEXT_IN = 1.35
ROW_IN = 0.155


def draw(analysis: Analysis) -> Sheet | str:
    """Lanes of the detail step under its path; a text says why there is nothing to draw."""
    step = step_of(analysis)
    if step is None:
        return "the events of one step are not part of this result"
    lane_ns = np.zeros(len(step.events.lanes) + 1, np.int64)  # the last place takes what has no lane
    np.add.at(lane_ns, step.path_lane, (step.table.end_ns - step.table.start_ns)[step.path])
    lanes, hidden = arrange(step.events, lane_ns[:-1].tolist())
    bottom = lanes[-1].bottom if lanes else STRIP
    per, unit = scale_of(step.end_ns - step.start_ns)
    about = step.about
    sheet = Sheet(
        title=f"Rank {about.rank}, {shown(about.step, 60)}: threads, streams and the critical path",
        subtitle=f"{ms(step.end_ns - step.start_ns)} ms, {shown(about.why, 90)};"
        f" {count(len(step.events), 'event')}; boundary: "
        f"{boundary_text(analysis.diagnosis)}.",
        data_in=0.5 + ROW_IN * bottom,
        alt_text=_alt_text(step, lane_ns),
    )
    ax = sheet.figure.subplots()
    ax.set_xlim(0, (step.end_ns - step.start_ns) / per)
    ax.set_ylim(bottom + 0.2, -0.2)
    ax.spines["left"].set_visible(False)
    host, device = draw_lanes(ax, step, lanes, per)
    categories = draw_path(ax, step, lanes, per)
    jumps = draw_jumps(ax, step, lanes, per)
    ticks = [(STRIP / 2, "critical path")] + [((row.top + row.bottom) / 2, _lane_text(row)) for row in lanes]
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"time since the start of the step, {unit}")
    plain_ticks(ax, "x", 12)
    sheet.note = _note(step, lanes, hidden, categories)
    sheet.legends = _legends(categories, jumps, host, device)
    return sheet


def _legends(
    categories: set[str], jumps: int, host: set[int], device: set[str]
) -> list[tuple[str, list[Entry]]]:
    path = [Entry(name, PATH_FILLS[name]) for name in PATH_FILLS if name in categories]
    if jumps:
        path.append(Entry("the path changes lanes", Fill("#000000"), width=0.8))
    fills = NESTED_FILLS | CALL_FILLS
    legends = [
        ("Critical path (top, and below each lane's bars)", path),
        ("CPU", [Entry(word, fills[kind]) for kind, word in KIND_WORDS.items() if kind in host]),
        ("Device work", [Entry(one, Fill(FAMILY_COLOURS[one])) for one in FAMILY_COLOURS if one in device]),
    ]
    return [(title, entries) for title, entries in legends if entries]


def _lane_text(row: LaneRows) -> str:
    text = shown(row.text, 40)
    device, blank, stream = text.partition(" stream ")
    if blank and row.levels == 0:
        return f"{device}\nstream {fitted(stream, SMALL_POINTS, 0.8)}"
    head, _, name = text.partition(" (")
    parts = [head, f"({name}"] if name else [head]
    return "\n".join(fitted(part, SMALL_POINTS, LANE_TEXT_IN) for part in parts)


def _note(step: Step, lanes: list[LaneRows], hidden: int, categories: set[str]) -> str:
    notes = ["Bars narrower than a pixel are drawn one pixel wide."]
    unseen = [CATEGORY_NAMES[Category(code)] for code in np.unique(step.table.category[step.path]).tolist()]
    unseen = [name for name in unseen if name not in categories]
    if unseen:
        notes.append(f"On the path, but nowhere the most of a pixel: {', '.join(unseen)}.")
    if hidden:
        notes.append(f"{count(hidden, 'lane')} with less path time and work not drawn.")
    deeper = max((row.deeper for row in lanes), default=0)
    if deeper:
        notes.append(f"Up to {count(deeper, 'deeper nesting level')} not drawn.")
    if step.about.left_out:
        notes.append(f"{count(step.about.left_out, 'short event')} left out of the table.")
    return " ".join(notes)


def _alt_text(step: Step, lane_ns: IntArray) -> str:
    """In words; of numbers only those that diagnosis.json has too."""
    span = step.end_ns - step.start_ns
    lanes = step.events.lanes
    order = np.argsort(-lane_ns[:-1], kind="stable")[:3].tolist()
    places = ", then ".join(shown(lanes[lane], 40) for lane in order if lane_ns[lane])
    return (
        f"Timeline of {shown(step.about.step, 50)} on rank {step.about.rank}, {ms(span)} ms: threads, then streams."
        f" Most of the critical path runs on {places or 'no recorded lane'}."
    )
