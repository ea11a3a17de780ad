"""Literal tables for figures: one decode step of 10 ms on two threads and two streams, and variations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text

from analyzer.analysis import Analysis
from analyzer.categories import Binding, Category
from analyzer.diagnosis import Detail, Diagnosis
from analyzer.explain.segments import join_tables
from analyzer.report.figures.sheet import Sheet
from analyzer.tables import NO_EVENT, DetailKind, DetailTable, QueueTable, SegmentTable
from tests.report import builder
from tests.report.builder import MS
from tests.report.figures import rank_tables
from tests.report.price_builder import fit, named, no_fit

MAIN, OTHER, COMPUTE, COMM = range(4)
LANES = ("thread 11 (decode-main)", "thread 12", "device 0 stream 7", "device 0 stream 20")

# kind, lane, depth, start and end in ms, name, class
EVENTS = (
    (DetailKind.RANGE, MAIN, 0, 19.0, 27.0, "decode step", None),
    (DetailKind.OP, MAIN, 1, 20.5, 22.0, "aten::linear", None),
    (DetailKind.LAUNCH, MAIN, 2, 21.0, 21.2, "cudaLaunchKernel", None),
    (DetailKind.OP, MAIN, 1, 23.0, 24.0, "aten::softmax", None),
    (DetailKind.LAUNCH, MAIN, 2, 23.1, 23.2, "cudaLaunchKernel", None),
    (DetailKind.HELD, MAIN, 1, 26.0, 30.0, "cudaStreamSynchronize", None),
    (DetailKind.API, OTHER, 0, 22.0, 22.5, "cudaMemcpyAsync", None),
    (DetailKind.KERNEL, COMPUTE, 0, 22.0, 25.0, "gemm_kernel", "gemm"),
    (DetailKind.KERNEL, COMPUTE, 0, 25.0, 26.0, "softmax_kernel", "softmax"),
    (DetailKind.COLLECTIVE, COMM, 0, 26.0, 30.0, "ncclDevKernel_AllReduce", "collective"),
)
# category, lane, start and end in ms, name
PATH = (
    (Category.HOST_FRAMEWORK, MAIN, 20.0, 21.0, "aten::linear"),
    (Category.LAUNCH_LATENCY, MAIN, 21.0, 22.0, "cudaLaunchKernel"),
    (Category.KERNEL, COMPUTE, 22.0, 25.0, "gemm_kernel"),
    (Category.KERNEL, COMPUTE, 25.0, 26.0, "softmax_kernel"),
    (Category.COLLECTIVE_UNSPLIT, COMM, 26.0, 30.0, "ncclDevKernel_AllReduce"),
)
DETAIL = Detail(
    rank=0,
    window=2,
    step="decode 2",
    phase="decode",
    why="the median step of phase decode",
    events=len(EVENTS),
    left_out=0,
)

# the same step together with a rank 1 that comes last, as rows of rank_tables
JOINT = rank_tables.account(
    rank_tables.window(
        2, ranks_visited=[1, 0], late_ranks=[1], late_calls={1: 1}, waited_ns=3 * MS, windows={0: 2, 1: 0}
    )
)
RANK_ONE = (
    (1, 0, 20 * MS, 29 * MS, Category.KERNEL, -1),
    (1, 0, 29 * MS, 30 * MS, Category.COLLECTIVE_TRANSFER, -1),
)
JOINT_PATH = (
    (1, 2, 20 * MS, 29 * MS, Category.KERNEL, -1),
    (0, 2, 29 * MS, 30 * MS, Category.COLLECTIVE_TRANSFER, -1),
)


def detail_table(events: tuple[Any, ...] = EVENTS, lanes: tuple[str, ...] = LANES) -> DetailTable:
    names = tuple(dict.fromkeys([e[5] for e in events] + [e[6] for e in events if e[6]]))
    rows = sorted(events, key=lambda e: (e[1], e[3], -e[4]))
    return DetailTable(
        kind=np.array([e[0] for e in rows], np.int8),
        lane=np.array([e[1] for e in rows], np.int32),
        depth=np.array([e[2] for e in rows], np.int16),
        start_ns=np.array([round(e[3] * MS) for e in rows], np.int64),
        end_ns=np.array([round(e[4] * MS) for e in rows], np.int64),
        name=np.array([names.index(e[5]) for e in rows], np.int32),
        class_=np.array([names.index(e[6]) if e[6] else -1 for e in rows], np.int32),
        lanes=lanes,
        device_lanes=2,
        names=names,
    )


def segment_table(
    path: tuple[Any, ...] = PATH, window: int = 2, lanes: tuple[str, ...] = LANES
) -> SegmentTable:
    names = tuple(dict.fromkeys(p[4] for p in path))
    n = len(path)
    return SegmentTable(
        rank=np.zeros(n, np.int32),
        window=np.full(n, window, np.int32),
        start_ns=np.array([round(p[2] * MS) for p in path], np.int64),
        end_ns=np.array([round(p[3] * MS) for p in path], np.int64),
        category=np.array([p[0] for p in path], np.int8),
        binding=np.full(n, Binding.WORK, np.int8),
        inferred=np.zeros(n, bool),
        name=np.array([names.index(p[4]) for p in path], np.int32),
        place=np.array([p[1] for p in path], np.int32),
        correlation=np.zeros(n, np.int64),
        event_start_ns=np.full(n, NO_EVENT, np.int64),
        late_rank=np.full(n, -1, np.int32),
        names=names,
        places=lanes,
    )


def queue_table(bins: int = 100, rank: int = 0) -> QueueTable:
    """From 0 to 50 ms; no launch in every third bin."""
    edges = np.arange(bins + 1, dtype=np.int64) * 50 * MS // max(bins, 1)
    at = np.arange(bins, dtype=np.int64)
    none = at % 3 == 2
    return QueueTable(
        rank=np.full(bins, rank, np.int32),
        start_ns=edges[:-1],
        end_ns=edges[1:],
        depth_low=at % 7,
        depth_high=at % 7 + 3,
        launches=np.where(none, 0, 4),
        latency_low_ns=np.where(none, -1, 4_000),
        latency_median_ns=np.where(none, -1, 9_000 + 1_000 * at),
        latency_high_ns=np.where(none, -1, 5_000_000),
    )


def analysis(diagnosis: Diagnosis | None = None, **changes: Any) -> Analysis:
    """Everything a figure can be drawn from."""
    path = rank_tables.global_table(JOINT_PATH)
    whole = diagnosis or builder.diagnosis(detail=DETAIL, global_=JOINT, alpha_beta=[fit(), no_fit()])
    table = join_tables([segment_table(), rank_tables.segment_table(RANK_ONE)])
    return replace(Analysis(whole, table, queue_table(), detail_table(), path), **changes)


def hostile(text: str) -> Analysis:
    """``text`` wherever the figures show a name."""
    small = builder.hostile(text)
    detail = Detail(rank=0, window=0, step=text, phase=text, why=text, events=10, left_out=3)
    ranks = [builder.rank(windows=[builder.window(0, phase=text, step=text)])]
    diagnosis = builder.diagnosis(
        detail=detail,
        ranks=ranks,
        budget=[builder.budget(text, windows=1)],
        kernels=small.kernels,
        alpha_beta=[fit(**named(text))] * 3,
    )
    lanes = (f"thread 1 ({text})", f"{text} 2", f"device {text} stream {text}", f"{text} 4")
    events = tuple((*e[:5], text, text if e[6] else None) for e in EVENTS)
    path = tuple((*p[:4], f"{text}{at}") for at, p in enumerate(PATH))
    return Analysis(diagnosis, segment_table(path, 0, lanes), queue_table(), detail_table(events, lanes))


@dataclass(frozen=True)
class Placed:
    """A text as it was drawn, in pixels."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    points: float

    def overlaps(self, other: Placed, slack: float = 1.0) -> bool:
        return (
            self.left < other.right - slack
            and other.left < self.right - slack
            and self.bottom < other.top - slack
            and other.bottom < self.top - slack
        )


def placed_texts(sheet: Sheet) -> list[Placed]:
    """Every text that a reader sees."""
    figure = sheet.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    texts = list(figure.texts)
    for legend in figure.legends:
        texts += [*legend.get_texts(), legend.get_title()]
    for ax in figure.axes:
        texts += _axes_texts(ax)
    result = []
    for text in texts:
        if text.get_visible() and text.get_text().strip():
            box = Text.get_window_extent(text, renderer)
            result.append(Placed(text.get_text(), box.x0, box.y0, box.x1, box.y1, text.get_fontsize()))
    return result


def _axes_texts(ax: Axes) -> Iterator[Text]:
    yield from (ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label)  # type: ignore[attr-defined]
    yield from ax.texts
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = axis.get_major_ticks()
        yield from (
            tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()
        )


def layout_problems(sheet: Sheet) -> list[str]:
    """Texts that overlap, are cut off by the edge, or are too small to read."""
    texts = placed_texts(sheet)
    width, height = sheet.figure.bbox.width, sheet.figure.bbox.height
    problems = [f"too small: {one.text!r}" for one in texts if one.points < 8]
    problems += [
        f"cut off: {one.text!r}"
        for one in texts
        if one.left < -0.5 or one.bottom < -0.5 or one.right > width + 0.5 or one.top > height + 0.5
    ]
    pairs = ((a, b) for a, b in combinations(texts, 2) if a.overlaps(b))
    return problems + [f"overlap: {a.text!r} and {b.text!r}" for a, b in pairs]
