"""Changes of device work: shorter kernels and copies, shorter gaps, no dependencies."""

from __future__ import annotations

import re

import numpy as np

from analyzer.errors import UsageError
from analyzer.model import IntArray
from analyzer.predict.changes import ByteFloor, Copies, Kernels, NoDependencies, SmallGrids, Turnaround
from analyzer.predict.draft import Draft
from analyzer.predict.edges import EdgeKind
from analyzer.predict.event_graph import Placed
from analyzer.predict.forward import NEVER


def apply(
    draft: Draft, change: Kernels | SmallGrids | Copies | ByteFloor | Turnaround | NoDependencies
) -> None:
    """Bring the change into the draft. Raises UsageError where no work fits or a figure is not recorded."""
    match change:
        case Kernels(pattern, factor):
            events = [_named(place, pattern) for place in draft.graph.ranks]
            _scale(
                draft, events, factor, f"kernel:{pattern.pattern}", "`tracebound inspect` lists the kernels"
            )
        case SmallGrids(factor):
            events = [place.rows(np.flatnonzero(place.graph.rows.small)) for place in draft.graph.ranks]
            _scale(draft, events, factor, "small-grids", "no kernel's grid is known to be small")
        case Copies(factor):
            events = [place.rows(np.flatnonzero(place.graph.rows.copies)) for place in draft.graph.ranks]
            _scale(draft, events, factor, "copies", "the capture holds no copy")
        case ByteFloor(pattern, nbytes):
            _to_byte_floor(draft, pattern, nbytes)
        case Turnaround(factor):
            _scale_gaps(draft, factor)
        case NoDependencies():
            _remove_dependencies(draft)


def _named(place: Placed, pattern: re.Pattern[str]) -> IntArray:
    """Events of the kernels of one rank whose name matches; collectives and copies are none."""
    rows = place.graph.rows
    fits = np.array([pattern.search(name) is not None for name in place.graph.names], bool)
    return place.rows(np.flatnonzero(rows.scalable & fits[rows.name]))


def _scale(draft: Draft, events: list[IntArray], factor: float, change: str, next_step: str) -> None:
    chosen = np.concatenate([np.empty(0, np.int64), *events])
    if not len(chosen):
        raise UsageError("--change", change, "fits no device work of the capture", next_step)
    draft.body_ns[chosen] = np.rint(draft.body_ns[chosen] * factor).astype(np.int64)


def _to_byte_floor(draft: Draft, pattern: re.Pattern[str], nbytes: float) -> None:
    found = 0
    for place in draft.graph.ranks:
        events = _named(place, pattern)
        found += len(events)
        if not len(events):
            continue
        bandwidth = place.graph.memory_bytes_per_s
        if bandwidth is None:
            raise UsageError(
                "--change", f"byte-floor:{pattern.pattern}",
                f"the memory bandwidth of rank {place.graph.rank}'s device is not recorded",
                "say how long the kernels would take: kernel:REGEX=FACTOR",
            )  # fmt: skip
        floor = round(nbytes / bandwidth * 1e9)
        below = int((draft.body_ns[events, 0] < floor).sum())
        if below:
            draft.notes.append(
                f"rank {place.graph.rank}: {below} of {len(events)} kernels take less than moving {nbytes:.3g} bytes "
                "takes: they keep their time"
            )
        draft.body_ns[events] = np.minimum(draft.body_ns[events], floor)
    if not found:
        raise UsageError(
            "--change", f"byte-floor:{pattern.pattern}", "fits no kernel of the capture",
            "`tracebound inspect` lists the kernels",
        )  # fmt: skip


def _scale_gaps(draft: Draft, factor: float) -> None:
    table = draft.edges
    queued = np.isin(table.kind, (EdgeKind.STREAM, EdgeKind.GRAPH, EdgeKind.REPLAYED)) & ~table.inferred
    rows = np.flatnonzero(queued)
    gaps = draft.lag_ns[rows]
    draft.set_lags(rows, np.where(gaps > 0, np.rint(gaps * factor).astype(np.int64), gaps))


def _remove_dependencies(draft: Draft) -> None:
    """Work then only waits for its own stream and its launch; work that nothing else explains keeps its wait.

    Calls that wait for a stream no longer wait for what that stream waited for.
    """
    table = draft.edges
    waits = np.isin(table.kind, (EdgeKind.EVENT, EdgeKind.UNSEEN)) | table.beyond
    others = np.bincount(table.target[~waits], minlength=len(draft.graph))
    gone = waits & (others[table.target] > 0)
    kept = int((waits & ~gone & table.binds).sum())
    draft.lag_ns[gone] = NEVER
    if kept:
        draft.notes.append(f"{kept} waits stay: nothing else tells when that work could have started")
    draft.notes.append("whether the work may run without these dependencies is not checked")
