"""The CSV tables beside a diagnosis: one header, one record per line, "not captured" is an empty field.

Texts keep their full length; characters that would break a line or steer a terminal are spelled out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from analyzer import frames
from analyzer.analysis import Analysis
from analyzer.arrays import group
from analyzer.categories import BINDING_NAMES, CATEGORY_NAMES
from analyzer.diagnosis import Diagnosis
from analyzer.report.escape import visible
from analyzer.tables import NO_EVENT, SegmentTable

CHUNK_ROWS = 100_000


@lru_cache(maxsize=4096)
def _text(value: str) -> str:
    return visible(value)


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _fields(rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    return ([_field(value) for value in row] for row in rows)


def _quoted(text: str) -> str:
    """One field as ``csv`` would write it."""
    shown = visible(text)
    return '"' + shown.replace('"', '""') + '"' if set(shown) & set(',"') else shown


def _segment_lines(table: SegmentTable) -> Iterator[str]:
    """Lines of segments.csv. There can be millions: what they share is made into text only once."""
    categories, bindings = list(CATEGORY_NAMES.values()), list(BINDING_NAMES.values())
    # the last entry serves the code -1
    names = [*map(_quoted, table.names), ""]
    places = [*map(_quoted, table.places), ""]
    flags = ("false", "true")
    for start in range(0, len(table), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        windows, window_of = group([table.rank[part], table.window[part]])
        heads = [f"{rank},{window}," for rank, window in windows]
        kinds, kind_of = group(
            [table.category[part], table.binding[part], table.inferred[part].view(np.int8), table.name[part],
             table.place[part]]
        )  # fmt: skip
        tails = [
            f",{categories[category]},{bindings[binding]},{flags[inferred]},{names[name]},{places[place]},"
            for category, binding, inferred, name, place in kinds
        ]
        spans = zip(window_of.tolist(), table.start_ns[part].tolist(), table.end_ns[part].tolist(),
                    kind_of.tolist(), table.correlation[part].tolist(), table.event_start_ns[part].tolist(),
                    table.late_rank[part].tolist(), strict=True)  # fmt: skip
        for window, begin, end, kind, correlation, started, late in spans:
            event = (
                f"{correlation or ''},{started if started != NO_EVENT else ''},{late if late >= 0 else ''}"
            )
            yield f"{heads[window]}{begin},{end}{tails[kind]}{event}\n"


def _segments(path: Path, analysis: Analysis) -> None:
    _write_segments(path, analysis.segment_table)


def _global_path(path: Path, analysis: Analysis) -> None:
    _write_segments(path, analysis.global_segments)


def _write_segments(path: Path, table: SegmentTable | None) -> None:
    _write(path, frames.SEGMENT_COLUMNS, ())
    if table is not None:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.writelines(_segment_lines(table))


def _of(columns: Sequence[str], rows: Callable[[Any], Iterable[Sequence[Any]]]) -> Table:
    def write(path: Path, analysis: Analysis) -> None:
        _write(path, columns, _fields(rows(analysis.diagnosis)))

    return write


def _structs(columns: Sequence[str], rows: Callable[[Diagnosis], Iterable[msgspec.Struct]]) -> Table:
    return _of(columns, lambda diagnosis: frames.struct_rows(rows(diagnosis)))


def _queue(path: Path, analysis: Analysis) -> None:
    _write(path, frames.QUEUE_COLUMNS, frames.queue_rows(analysis.queue))


def _detail(path: Path, analysis: Analysis) -> None:
    rows = frames.detail_rows(analysis.diagnosis, analysis.detail)
    _write(path, frames.DETAIL_COLUMNS, _fields(rows))


def _tokens(path: Path, analysis: Analysis) -> None:
    _write(path, frames.TOKEN_COLUMNS, _fields(frames.token_rows(analysis.tokens)))


Table = Callable[[Path, Analysis], None]

TABLES: dict[str, Table] = {
    "budget.csv": _of(frames.BUDGET_COLUMNS, frames.budget_rows),
    "windows.csv": _of(frames.WINDOW_COLUMNS, frames.window_rows),
    "segments.csv": _segments,
    "kernels.csv": _of(frames.KERNEL_COLUMNS, frames.kernel_rows),
    "collectives.csv": _structs(frames.COLLECTIVE_COLUMNS, lambda d: d.collectives),
    "collective_costs.csv": _structs(frames.COLLECTIVE_COST_COLUMNS, lambda d: d.collective_costs),
    "collective_sizes.csv": _of(frames.COLLECTIVE_SIZE_COLUMNS, frames.collective_size_rows),
    "late_ranks.csv": _structs(frames.LATE_RANK_COLUMNS, lambda d: d.late_ranks),
    "global_windows.csv": _structs(
        frames.GLOBAL_WINDOW_COLUMNS, lambda d: d.global_.windows if d.global_ is not None else ()
    ),
    "global_path.csv": _global_path,
    "host_time.csv": _of(frames.HOST_COLUMNS, frames.host_rows),
    "hypotheses.csv": _of(frames.HYPOTHESIS_COLUMNS, frames.hypothesis_rows),
    "launches.csv": _structs(frames.LAUNCH_COLUMNS, lambda d: d.launch_bill),
    "ranges.csv": _structs(frames.RANGE_COLUMNS, lambda d: d.ranges),
    "graph_replays.csv": _structs(frames.GRAPH_REPLAY_COLUMNS, lambda d: d.graph_replays),
    "shape_replays.csv": _structs(frames.SHAPE_REPLAY_COLUMNS, lambda d: d.shape_replays),
    "small_kernels.csv": _structs(frames.SMALL_KERNEL_COLUMNS, lambda d: d.small_kernels),
    "classes.csv": _structs(frames.CLASS_COLUMNS, lambda d: d.classes),
    "kernel_shapes.csv": _structs(frames.KERNEL_SHAPE_COLUMNS, lambda d: d.kernel_shapes),
    "host_rollups.csv": _structs(frames.HOST_ROLLUP_COLUMNS, lambda d: d.host_rollups),
    "queue.csv": _queue,
    "detail_step.csv": _detail,
    "service.csv": _tokens,
    "client_windows.csv": _of(frames.CLIENT_WINDOW_COLUMNS, frames.client_window_rows),
}
"""File name and writer of every table."""

CONTENTS = {
    "budget.csv": "the step budget of every phase and rank, in total nanoseconds",
    "windows.csv": "every step of every rank",
    "segments.csv": "every segment of every critical path: the raw timing behind each figure",
    "kernels.csv": "all device work by name",
    "collectives.csv": "collectives by group and kind: waiting, transfer, late ranks",
    "collective_costs.csv": "what each kind of collective costs a phase: on the path, and as calls x duration",
    "collective_sizes.csv": "transfers of collectives by size, with what the fit says and what contention adds",
    "late_ranks.csv": "ranks that others waited for: how often, by how much, because of what",
    "global_windows.csv": "every step of all ranks together",
    "global_path.csv": "every segment of the path through all ranks: `rank` is where it lies, `window` a global one",
    "host_time.csv": "what the CPU did on the path: the longest records of each phase and rank",
    "hypotheses.csv": "every candidate explanation",
    "launches.csv": "what submitting the work of each phase costs: launches, API time, latency, slot budget",
    "ranges.csv": "device work and launch times by the range that launched it",
    "graph_replays.csv": "replays of each CUDA graph",
    "shape_replays.csv": "steps of each batch shape: replayed, or launched one by one",
    "small_kernels.csv": "kernels below 2, 5, 10, 20 and 50 µs",
    "classes.csv": "device work by class",
    "kernel_shapes.csv": "kernels by launch shape, with grid coverage and theoretical occupancy",
    "host_rollups.csv": "path time on the CPU by CUDA call, OS call, op, range, Python frame and thread",
    "queue.csv": "queue depth and launch latency over time",
    "detail_step.csv": "every event of the step that the timeline shows",
    "service.csv": "every token of the token logs: its way to the client, and the gap before it in parts",
    "client_windows.csv": "every step at the client: from receipt to receipt",
}
"""What each table holds, in a few words."""
