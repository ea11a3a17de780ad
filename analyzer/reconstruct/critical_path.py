"""The critical path of a window: a chain of binding predecessors that partitions it exactly.

The walk goes backwards from the window's end. On the device it chases the bindings that
``reconstruct.bindings`` decided; on the host it asks which came last: a call that the device held, a
hand-over or a join. See docs/algorithm.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.categories import Binding, Category
from analyzer.errors import InvariantError
from analyzer.intervals import Intervals, intersect, subtract
from analyzer.model import IntArray, SmallArray
from analyzer.reconstruct.bindings import Bindings
from analyzer.reconstruct.blocking import HeldCalls
from analyzer.reconstruct.handovers import Transitions
from analyzer.reconstruct.host_account import HostAccount
from analyzer.reconstruct.work import NO_TIME, Calls, Work

ON_DEVICE = 0
ON_HOST = 1


@dataclass(frozen=True)
class Path:
    """Segments of one window in time order, (n,) columns. ``ref`` indexes Work or the host table."""

    start_ns: IntArray
    end_ns: IntArray
    category: SmallArray
    binding: SmallArray
    inferred: npt.NDArray[np.bool_]
    side: SmallArray  # ON_DEVICE: ref is a row of Work; ON_HOST: ref is a host row (-1 none)
    ref: IntArray
    thread: IntArray  # host thread, -1 on the device

    def __len__(self) -> int:
        return len(self.start_ns)

    def check(self, start_ns: int, end_ns: int) -> None:
        """Raise InvariantError unless the segments partition ``[start_ns, end_ns)``."""
        if start_ns == end_ns and not len(self):
            return
        edges = np.append(self.start_ns, end_ns)
        gapless = np.array_equal(self.end_ns, edges[1:]) and edges[0] == start_ns
        if not gapless or np.any(self.end_ns <= self.start_ns):
            raise InvariantError(f"path does not partition [{start_ns}, {end_ns})")


@dataclass(frozen=True)
class Chain:
    """A stretch of a path: from ``high_ns`` back to row ``reached`` (-1: to none) at ``at_ns``."""

    path: Path
    high_ns: int
    reached: int
    merged: int  # the earlier chain that goes on from there, -1 none
    at_ns: int


@dataclass(frozen=True)
class _Left:
    """Where a walk left off: at a row to stop at, where another chain goes on, or (neither) at its low."""

    at_ns: int
    row: int = -1
    chain: int = -1


@dataclass
class Memory:
    """Where earlier chains have been, so that no stretch is walked twice. Chains are numbered as they begin."""

    stops: npt.NDArray[np.bool_]  # (n,) rows at which every chain leaves off
    _chain: int = -1
    _rows: dict[tuple[int, int], int] = field(default_factory=dict)
    _threads: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Start the next chain."""
        self._chain += 1

    def at_row(self, row: int, instant: int) -> int:
        """The earlier chain that came to this row at this instant, -1 none; it is remembered from now on."""
        known = self._rows.setdefault((row, instant), self._chain)
        return -1 if known == self._chain else known

    def on_thread(self, thread: int, instant: int, since: int) -> tuple[int, int] | None:
        """Chain and instant of the latest earlier visit to a thread after ``since`` and up to ``instant``."""
        instants, chains = self._threads.setdefault(thread, ([], []))
        at = bisect_right(instants, instant)
        known = None
        if at and instants[at - 1] > since and chains[at - 1] != self._chain:
            known = chains[at - 1], instants[at - 1]
        instants.insert(at, instant)
        chains.insert(at, self._chain)
        return known


_DTYPES = {"category": np.int8, "binding": np.int8, "inferred": np.bool_, "side": np.int8}


def join_paths(paths: Sequence[Path]) -> Path:
    """The segments of several windows as one table: with many windows, one pass instead of many."""
    return Path(
        **{
            column.name: np.concatenate(
                [np.empty(0, _DTYPES.get(column.name, np.int64)), *(getattr(p, column.name) for p in paths)]
            )
            for column in fields(Path)
        }
    )


@dataclass
class _Draft:
    """Segments as the walk finds them, latest first."""

    low: int
    rows: list[tuple[int, int, int, int, bool, int, int, int]] = field(default_factory=list)

    def add(
        self,
        start: int,
        end: int,
        category: int,  # Category
        binding: int,  # Binding
        *,
        inferred: bool = False,
        side: int = ON_DEVICE,
        ref: int = -1,
        thread: int = -1,
    ) -> None:
        start = max(start, self.low)
        if end > start:
            self.rows.append((start, end, category, binding, inferred, side, ref, thread))


def _view(column: npt.NDArray[Any]) -> memoryview[int]:
    return np.ascontiguousarray(column).data


@dataclass
class Walker:
    """Walks the windows of one rank."""

    work: Work
    calls: Calls
    bindings: Bindings
    held: HeldCalls
    transitions: Transitions
    account: HostAccount
    profiler: Intervals
    turnaround_ns: int
    loops_cut: int = 0

    def __post_init__(self) -> None:
        # Memory views: the chase reads single elements, where numpy scalars are several times slower and
        # lists would hold an object for each.
        work, bindings = self.work, self.bindings
        self._start, self._end = _view(work.start_ns), _view(work.end_ns)
        self._label, self._launch = _view(work.label), _view(work.launch)
        self._kind, self._pred = _view(bindings.kind), _view(bindings.predecessor)
        self._inferred, self._high = _view(bindings.inferred), _view(bindings.latency_high_ns)
        self._held_by_thread = {
            int(thread): np.flatnonzero(self.held.thread == thread) for thread in np.unique(self.held.thread)
        }
        self._held_ends = {thread: self.held.end_ns[rows] for thread, rows in self._held_by_thread.items()}

    def walk(self, low: int, high: int, *, row: int | None = None, thread: int = -1) -> Path:
        """Path of the window ``[low, high)`` that ends on device row ``row``, or on host ``thread``."""
        draft = _Draft(low)
        self._descend(draft, row, thread, high)
        path = self._finish(draft)
        path.check(low, high)
        return path

    def chain(self, low: int, high: int, row: int | None, memory: Memory, *, thread: int = -1) -> Chain:
        """Path that ends with device row ``row``, or on host ``thread``, as far back as no earlier chain has been.

        It leaves off at a row of ``memory.stops``, where an earlier chain went the same way, or at ``low``. Of
        a row of ``stops`` itself, what led to it: its own body, from ``high_ns`` on, is left out.
        """
        draft = _Draft(low)
        memory.begin()
        if row is None or not memory.stops[row]:
            left = self._descend(draft, row, thread, high, memory)
        else:
            before, thread, instant = self._device(draft, row, high)
            if draft.rows and draft.rows[0][3] == Binding.WORK and draft.rows[0][6] == row:
                high = draft.rows.pop(0)[0]
            left = self._descend(draft, before, thread, instant, memory)
        at = min(left.at_ns, high)
        path = self._finish(draft)
        path.check(at, high)
        return Chain(path, high, left.row, left.chain, at)

    def _descend(
        self, draft: _Draft, row: int | None, thread: int, instant: int, memory: Memory | None = None
    ) -> _Left:
        """Walk down to the draft's low, or to where ``memory`` says that an earlier walk knows the rest."""
        seen: set[int] = set()
        visited: set[tuple[int, int]] = set()
        while instant > draft.low:
            if row is None and thread < 0:  # nothing tells what came before
                draft.add(draft.low, instant, Category.UNATTRIBUTED, Binding.MISSING)
                break
            if row is None:
                if memory is not None:
                    since = max(self._decided(thread, instant, visited), draft.low)
                    known = memory.on_thread(thread, instant, since)
                    if known is not None:
                        chain, at = known
                        draft.add(
                            at, instant, Category.HOST_UNTRACED, Binding.HOST, side=ON_HOST, thread=thread
                        )
                        return _Left(at, chain=chain)
                row, thread, instant = self._host(draft, thread, instant, visited)
                continue
            if memory is not None:
                if memory.stops[row]:
                    return _Left(instant, row=row)
                chain_of_row = memory.at_row(row, instant)
                if chain_of_row >= 0:
                    return _Left(instant, chain=chain_of_row)
            if row in seen:
                self.loops_cut += 1
                draft.add(draft.low, instant, Category.UNATTRIBUTED, Binding.MISSING)
                break
            seen.add(row)
            row, thread, instant = self._device(draft, row, instant)
        return _Left(draft.low)

    def _decided(self, thread: int, instant: int, visited: set[tuple[int, int]]) -> int:
        """Down to where a stretch on the host reaches: what last decided that the thread could go on."""
        held = self._last_held(thread, instant)
        returned = int(self.held.end_ns[held]) if held >= 0 else NO_TIME
        change = self.transitions.last(thread, instant)
        if change is None or (change.from_ns >= instant and (change.other, instant) in visited):
            return returned
        return max(returned, change.at_ns)

    def _device(self, draft: _Draft, row: int, instant: int) -> tuple[int | None, int, int]:
        """Body of ``row`` and the gap before it; where the walk goes on."""
        kind, pred = self._kind[row], self._pred[row]
        begin = min(self._start[row], instant)
        label = self._label[row]
        if pred < 0:
            draft.add(begin, instant, label, Binding.WORK, ref=row)
            if kind == Binding.SUBMISSION:
                return self._submission(draft, row, begin)
            return None, -1, begin
        done = min(self._end[pred], instant)
        body = max(begin, done)
        draft.add(body, instant, label, Binding.WORK, ref=row)
        if done < begin:
            self._gap(draft, row, kind, done, begin)
        return pred, -1, done

    def _gap(self, draft: _Draft, row: int, kind: int, done: int, begin: int) -> None:
        inferred = bool(self._inferred[row])
        if kind in (Binding.STREAM, Binding.GRAPH):
            category = Category.GAP_DISPATCH
        elif kind == Binding.MISSING:
            category = Category.GAP_DISPATCH if begin - done <= self.turnaround_ns else Category.UNATTRIBUTED
        else:
            category = Category.GAP_DEPENDENCY
        draft.add(done, begin, category, kind, inferred=inferred, ref=row)

    def _submission(self, draft: _Draft, row: int, begin: int) -> tuple[int | None, int, int]:
        """The wait from the launch call to the work's start; the walk goes on in the launching thread."""
        call = self._launch[row]
        called = min(int(self.calls.start_ns[call]), begin)
        explained = min(called + self._high[row], begin)
        if explained < begin:
            self._beyond_latency(draft, row, call, explained, begin)
        draft.add(called, explained, Category.LAUNCH_LATENCY, Binding.SUBMISSION, ref=row)
        return None, int(self.calls.thread[call]), called

    def _beyond_latency(self, draft: _Draft, row: int, call: int, low: int, high: int) -> None:
        """What submission cannot explain: recorded overhead, the call itself, then an unseen wait."""
        pieces: list[tuple[int, int, Category, bool]] = []
        whole = (np.array([low]), np.array([high]))
        overhead = intersect(whole, self.profiler)
        rest = subtract(whole, overhead)
        returned = np.array([min(max(int(self.calls.end_ns[call]), low), high)])
        running = intersect(rest, (np.array([low]), returned))
        waiting = intersect(rest, (returned, np.array([high])))
        for intervals, category, inferred in (
            (overhead, Category.PROFILER, False),
            (running, Category.HOST_API, False),
            (waiting, Category.GAP_DEPENDENCY, True),
        ):
            pieces += [
                (start, end, category, inferred)
                for start, end in zip(intervals[0].tolist(), intervals[1].tolist(), strict=True)
            ]
        for start, end, category, inferred in sorted(pieces, reverse=True):
            if category == Category.HOST_API:
                draft.add(
                    start,
                    end,
                    category,
                    Binding.SUBMISSION,
                    side=ON_HOST,
                    ref=int(self.calls.row[call]),
                    thread=int(self.calls.thread[call]),
                )
            else:
                draft.add(start, end, category, Binding.UNSEEN, inferred=inferred, ref=row)

    def _host(
        self, draft: _Draft, thread: int, instant: int, visited: set[tuple[int, int]]
    ) -> tuple[int | None, int, int]:
        """CPU time on ``thread`` down to what decided that it could go on."""
        visited.add((thread, instant))
        held = self._last_held(thread, instant)
        returned = int(self.held.end_ns[held]) if held >= 0 else draft.low
        change = self.transitions.last(thread, instant)
        if (
            change is not None
            and change.at_ns > returned
            and change.at_ns > draft.low
            and not (change.from_ns >= instant and (change.other, instant) in visited)
        ):
            draft.add(
                change.at_ns, instant, Category.HOST_UNTRACED, Binding.HOST, side=ON_HOST, thread=thread
            )
            waited = Category.HOST_WAIT if change.binding == Binding.HANDOVER else Category.HOST_UNTRACED
            resumed = min(change.from_ns, change.at_ns)
            draft.add(
                resumed,
                change.at_ns,
                waited,
                change.binding,
                inferred=change.inferred,
                side=ON_HOST,
                thread=thread,
            )
            return None, change.other, resumed
        draft.add(returned, instant, Category.HOST_UNTRACED, Binding.HOST, side=ON_HOST, thread=thread)
        if held < 0 or returned <= draft.low:
            return None, thread, draft.low
        row = int(self.held.work[held])
        finished = min(self._end[row], returned)
        draft.add(
            finished,
            returned,
            Category.HOST_SYNC_RETURN,
            Binding.SYNC,
            inferred=bool(self.held.doubtful[held]),
            side=ON_HOST,
            ref=int(self.calls.row[self.held.call[held]]),
            thread=thread,
        )
        return row, thread, finished

    def _last_held(self, thread: int, instant: int) -> int:
        rows = self._held_by_thread.get(thread)
        if rows is None:
            return -1
        at = int(np.searchsorted(self._held_ends[thread], instant, side="right")) - 1
        return int(rows[at]) if at >= 0 else -1

    def _finish(self, draft: _Draft) -> Path:
        """Time order, and host stretches split by what the thread was doing."""
        parts: list[tuple[npt.NDArray[np.int64], ...]] = []
        plain: list[tuple[int, int, int, int, bool, int, int, int]] = []

        def flush() -> None:
            if plain:
                parts.append(tuple(np.array(column, np.int64) for column in zip(*plain, strict=True)))
                plain.clear()

        for segment in reversed(draft.rows):
            start, end, category, binding, inferred, side, _, thread = segment
            if category != Category.HOST_UNTRACED:
                plain.append(segment)
                continue
            flush()
            starts, ends, categories, rows = self.account.thread(thread).pieces(start, end)
            n = len(starts)
            bound, on, of = (np.full(n, value, np.int64) for value in (binding, side, thread))
            # Whichever thread the walk chose: overhead that the profiler recorded is no inference.
            doubt = np.where(categories == Category.PROFILER, 0, int(inferred))
            parts.append((starts, ends, categories.astype(np.int64), bound, doubt, on, rows, of))
        flush()
        columns = (
            [np.concatenate(column) for column in zip(*parts, strict=True)]
            if parts
            else [np.empty(0, np.int64) for _ in range(8)]
        )
        return Path(
            start_ns=columns[0],
            end_ns=columns[1],
            category=columns[2].astype(np.int8),
            binding=columns[3].astype(np.int8),
            inferred=columns[4].astype(bool),
            side=columns[5].astype(np.int8),
            ref=columns[6],
            thread=columns[7],
        )
