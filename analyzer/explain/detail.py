"""The events of one step, for a reader who wants to look at it: the median step of the longest phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.arrays import distinct
from analyzer.categories import Category
from analyzer.cuda_api import SUBMISSIONS
from analyzer.diagnosis import Detail, Rank
from analyzer.diagnosis import Window as WindowResult
from analyzer.explain.device.classes import RowClasses
from analyzer.explain.segments import place_of_lane, place_of_thread
from analyzer.explain.windows import phases_of, used_windows
from analyzer.model import NO_NAME, HostKind, IntArray
from analyzer.reconstruct.critical_path import ON_HOST
from analyzer.reconstruct.host_account import NESTING_KINDS, NOT_PROFILER
from analyzer.reconstruct.rank import RankAccount
from analyzer.tables import DetailKind, DetailTable

MOST_EVENTS = 20_000
"""A timeline with more cannot be read; the shortest host records go first."""
_OF_LABEL = {
    Category.KERNEL: DetailKind.KERNEL,
    Category.COLLECTIVE_UNSPLIT: DetailKind.COLLECTIVE,
    Category.COPY: DetailKind.COPY,
    Category.GRAPH_UNRESOLVED: DetailKind.GRAPH,
    Category.PRIOR_WORK: DetailKind.PRIOR,
}
_OF_HOST = {
    HostKind.CALL: DetailKind.API,
    HostKind.OP: DetailKind.OP,
    HostKind.RANGE: DetailKind.RANGE,
    HostKind.FRAME: DetailKind.FRAME,
    HostKind.OS: DetailKind.OS,
    HostKind.OVERHEAD: DetailKind.PROFILER,
}
_KEPT_FIRST = (DetailKind.LAUNCH, DetailKind.HELD, DetailKind.API, DetailKind.PROFILER)
"""Host records that are dropped only after all ops, ranges, frames and OS calls."""


@dataclass(frozen=True)
class _Events:
    """Events under selection, (e,) columns; ``place`` is a thread or a lane of the process."""

    kind: IntArray
    place: IntArray
    start_ns: IntArray
    end_ns: IntArray
    name: IntArray  # code in the process's names
    class_: IntArray  # code in the classes, -1 none

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: npt.NDArray[np.generic]) -> _Events:
        return _Events(
            self.kind[index], self.place[index], self.start_ns[index], self.end_ns[index], self.name[index],
            self.class_[index],
        )  # fmt: skip


def detail_window(rank: Rank) -> WindowResult | None:
    """The window with the median duration (lower of two) among those that the longest phase's budget uses."""
    for phase in phases_of([rank]):
        used = used_windows(rank, phase)
        ordered = sorted(used, key=lambda window: (window.end_ns - window.start_ns, window.index))
        return ordered[(len(ordered) - 1) // 2]
    return None


def detail_step(
    account: RankAccount, rank: Rank, classes: RowClasses, step_index: str | None
) -> tuple[Detail, DetailTable] | None:
    """Everything that touches the detail step, None where no step has any time.

    Device work on all streams; host records on the threads that launched that work, waited, or lie on the
    step's path, and profiler overhead that no thread owns. Marks and start/end ranges are left out.
    """
    chosen = detail_window(rank)
    if chosen is None:
        return None
    at = next(i for i, window in enumerate(account.windows) if window.index == chosen.index)
    device = _device_events(account, chosen, classes)
    threads = _threads(account, at)
    host = _host_events(account, chosen, threads)
    room = MOST_EVENTS
    kept_device = _longest(device, np.zeros(len(device), np.int64), room)
    tier = (~np.isin(host.kind, _KEPT_FIRST)).astype(np.int64)
    kept_host = _longest(host, tier, room - len(kept_device))
    table = _table(account, kept_host, kept_device, threads, classes)
    why = f"the median step of phase {chosen.phase}"
    if step_index is not None:
        why = f"the step chosen by --step-index {step_index}"
    detail = Detail(
        rank=rank.rank,
        window=chosen.index,
        step=chosen.step,
        phase=chosen.phase,
        why=why,
        events=len(table),
        left_out=len(device) + len(host) - len(table),
    )
    return detail, table


def _touching(start_ns: IntArray, end_ns: IntArray, window: WindowResult) -> npt.NDArray[np.bool_]:
    """Events with time in the window; empty ones that lie in it."""
    touches = (start_ns < window.end_ns) & (end_ns > window.start_ns)
    return np.asarray(touches | ((start_ns == end_ns) & (start_ns == window.start_ns)), bool)


def _device_events(account: RankAccount, window: WindowResult, classes: RowClasses) -> _Events:
    work = account.work
    rows = np.flatnonzero(_touching(work.start_ns, work.end_ns, window))
    kind = np.array([_OF_LABEL.get(label, DetailKind.KERNEL) for label in Category], np.int64)
    return _Events(
        kind=kind[work.label[rows]],
        place=work.lane[rows].astype(np.int64),
        start_ns=work.start_ns[rows],
        end_ns=work.end_ns[rows],
        name=work.table.name[rows].astype(np.int64),
        class_=classes.code[rows],
    )


def _threads(account: RankAccount, at: int) -> list[int]:
    """Threads of interest, those with the most time on the step's path first; -1 (no thread) last."""
    window, path = account.windows[at], account.paths[at]
    work, calls, held = account.work, account.calls, account.held
    rows = np.flatnonzero(work.linked & (work.start_ns < window.end_ns) & (work.end_ns > window.start_ns))
    waits = (held.end_ns > window.start_ns) & (calls.start_ns[held.call] < window.end_ns)
    on_host = (path.side == ON_HOST) & (path.thread >= 0)
    on_path = path.thread[on_host]
    time = np.zeros(len(account.trace.process.threads), np.int64)
    np.add.at(time, on_path, (path.end_ns - path.start_ns)[on_host])
    threads = distinct(
        np.concatenate((calls.thread[work.launch[rows]].astype(np.int64), held.thread[waits], on_path))
    )
    return [*sorted(threads[threads >= 0].tolist(), key=lambda thread: (-time[thread], thread)), -1]


def _host_events(account: RankAccount, window: WindowResult, threads: list[int]) -> _Events:
    host, held = account.trace.process.host, account.held
    parts = []
    for thread in threads:
        rows = account.account.rows_of(thread)
        mine = _touching(host.start_ns[rows], host.end_ns[rows], window)
        parts.append(rows[mine & np.isin(host.kind[rows], NESTING_KINDS)])
    rows = np.concatenate(parts)
    kinds = np.array([_OF_HOST.get(kind, DetailKind.API) for kind in HostKind], np.int64)
    kind = kinds[host.kind[rows]]
    kind[np.isin(rows, account.calls.row[np.isin(account.calls.kind, list(SUBMISSIONS))])] = DetailKind.LAUNCH
    kind[np.isin(rows, account.calls.row[held.call])] = DetailKind.HELD
    overhead = np.flatnonzero(kind == DetailKind.PROFILER)
    names = account.trace.process.names
    code = host.name[rows[overhead]]
    own = [
        c for c in distinct(code.astype(np.int64)).tolist() if c < 0 or names[c].lower() not in NOT_PROFILER
    ]
    kind[overhead[~np.isin(code, own)]] = DetailKind.API
    return _Events(
        kind=kind,
        place=host.thread[rows].astype(np.int64),
        start_ns=host.start_ns[rows],
        end_ns=host.end_ns[rows],
        name=host.name[rows].astype(np.int64),
        class_=np.full(len(rows), -1, np.int64),
    )


def _longest(events: _Events, tier: IntArray, room: int) -> _Events:
    """The events that fit: by tier, the longest of each first; in their old order."""
    if len(events) <= room:
        return events
    order = np.lexsort((np.arange(len(events)), events.start_ns - events.end_ns, tier))
    return events.take(np.sort(order[:room]))


def _table(
    account: RankAccount, host: _Events, device: _Events, threads: list[int], classes: RowClasses
) -> DetailTable:
    process = account.trace.process
    present = set(host.place.tolist())
    thread_texts = [place_of_thread(process, thread) for thread in threads if thread in present]
    streams = sorted(set(device.place.tolist()), key=lambda lane: (process.lanes[lane].device,
                     process.lanes[lane].context, process.lanes[lane].stream))  # fmt: skip
    stream_texts = [place_of_lane(process, lane) for lane in streams]
    thread_lanes, stream_lanes = list(dict.fromkeys(thread_texts)), list(dict.fromkeys(stream_texts))
    of_thread = {thread: thread_lanes.index(place_of_thread(process, thread)) for thread in present}
    of_stream = {
        lane: len(thread_lanes) + stream_lanes.index(text)
        for lane, text in zip(streams, stream_texts, strict=True)
    }
    lane = np.array(
        [of_thread[place] for place in host.place.tolist()]
        + [of_stream[place] for place in device.place.tolist()],
        np.int64,
    )
    start = np.concatenate((host.start_ns, device.start_ns))
    end = np.concatenate((host.end_ns, device.end_ns))
    kind = np.concatenate((host.kind, device.kind))
    texts: dict[str, int] = {}
    name = _codes(np.concatenate((host.name, device.name)), process.names, texts, NO_NAME)
    class_ = _codes(np.concatenate((host.class_, device.class_)), classes.names, texts, None)
    order = np.lexsort((-end, start, lane))
    depth = _depths(lane[order], start[order], end[order], len(thread_lanes))
    return DetailTable(
        kind=kind[order].astype(np.int8),
        lane=lane[order].astype(np.int32),
        depth=depth,
        start_ns=start[order],
        end_ns=end[order],
        name=name[order],
        class_=class_[order],
        lanes=(*thread_lanes, *stream_lanes),
        device_lanes=len(stream_lanes),
        names=tuple(texts),
    )


def _codes(
    codes: IntArray, names: Iterable[str], texts: dict[str, int], nothing: str | None
) -> npt.NDArray[np.int32]:
    """Codes into ``names`` as codes into ``texts``; -1 stays or stands for ``nothing``."""
    known = list(names)
    values, inverse = np.unique(codes, return_inverse=True)
    new = []
    for value in values.tolist():
        text = known[value] if value >= 0 else nothing
        new.append(-1 if text is None else texts.setdefault(text, len(texts)))
    return np.array(new, np.int32)[inverse] if len(codes) else np.empty(0, np.int32)


def _depths(lane: IntArray, start: IntArray, end: IntArray, host_lanes: int) -> npt.NDArray[np.int16]:
    """How many events of its thread are open at each event's start; 0 on streams."""
    depth = np.zeros(len(lane), np.int16)
    open_ends: list[int] = []
    current = -1
    rows = zip(lane.tolist(), start.tolist(), end.tolist(), strict=True)
    for at, (place, begin, finish) in enumerate(rows):
        if place >= host_lanes:
            break  # streams come last
        if place != current:
            open_ends, current = [], place
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        depth[at] = len(open_ends)
        open_ends.append(finish)
    return depth
