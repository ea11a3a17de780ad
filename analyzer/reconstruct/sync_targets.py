"""Which device work a stream, an event or the whole device had pending at an instant.

One index over the work of a rank by (lane, submission time); everything that asks "what had been put on
this stream before then, and when did it end" asks here.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzer.cuda_api import CallKind
from analyzer.model import IntArray, ProcessTrace, StreamFlag
from analyzer.reconstruct.replays import Replays
from analyzer.reconstruct.work import Calls, Work


@dataclass(frozen=True)
class _LaneIndex:
    """Rows of one lane by submission: times, and the latest-ending row among the first i+1."""

    submitted_ns: IntArray
    latest: IntArray  # row index


@dataclass(frozen=True)
class SyncTargets:
    """Answers about pending work, vectorized over calls."""

    work: Work
    calls: Calls
    process: ProcessTrace
    replays: Replays | None = None

    @cached_property
    def _lanes(self) -> dict[int, _LaneIndex]:
        return {lane: self._index(rows) for lane, rows in self.work.lanes.items()}

    @cached_property
    def _replayed(self) -> dict[int, _LaneIndex]:
        """By launch stream: the last node of each replay, wherever it ran. The stream is given the whole replay."""
        if self.replays is None or not len(self.replays):
            return {}
        last, lane = self.replays.last, self.replays.lane
        return {int(value): self._index(last[lane == value]) for value in np.unique(lane)}

    def _index(self, rows: IntArray) -> _LaneIndex:
        order = rows[np.argsort(self.work.submitted_ns[rows], kind="stable")]
        ends = self.work.end_ns[order]
        best = np.maximum.accumulate(ends)
        position = np.where(ends == best, np.arange(len(order)), 0)
        latest = order[np.maximum.accumulate(position)]
        return _LaneIndex(self.work.submitted_ns[order], latest)

    @cached_property
    def _awaited(self) -> dict[int, _LaneIndex]:
        """By stream: its waits for events in order of time, with the work that ends last of what they wait for.

        A wait is part of what its stream was given, also without any kernel after it: events that are
        recorded on the stream and waits for it cover what it waits for.
        """
        waits = np.flatnonzero((self.calls.kind == CallKind.STREAM_WAIT) & (self.calls.result <= 0))
        waits = waits[np.argsort(self.calls.start_ns[waits], kind="stable")]
        lanes, records = self.sync_row(waits)
        ids, record_lanes, recorded_ns = self._records
        if not len(ids):
            return {}
        at = np.minimum(np.searchsorted(ids, records), len(ids) - 1)
        known = np.flatnonzero((lanes >= 0) & (records != 0) & (ids[at] == records))
        at, waits, lanes = at[known], waits[known], lanes[known]
        source = np.full(len(waits), -1, np.int64)
        covers = {int(lane): self.covered_lanes(int(lane)) for lane in np.unique(record_lanes[at])}
        for lane, covered in covers.items():
            here = np.flatnonzero(record_lanes[at] == lane)
            source[here] = self._submitted(covered, recorded_ns[at[here]])
        times: dict[int, list[int]] = {}
        rows: dict[int, list[int]] = {}
        ends = self.work.end_ns
        for call, lane, record, row in zip(
            self.calls.start_ns[waits].tolist(), lanes.tolist(), at.tolist(), source.tolist(), strict=True
        ):
            for before in covers[int(record_lanes[record])]:  # waits behind which the event was recorded
                place = bisect_left(times.get(before, []), int(recorded_ns[record])) - 1
                if place >= 0:
                    row = _later(ends, row, rows[before][place])
            mine = rows.setdefault(lane, [])
            times.setdefault(lane, []).append(call)
            mine.append(_later(ends, row, mine[-1]) if mine else row)
        return {
            lane: _LaneIndex(np.array(times[lane], np.int64), np.array(rows[lane], np.int64)) for lane in rows
        }

    @property
    def lanes(self) -> list[int]:
        """Lanes of this rank that have work."""
        return sorted(self._lanes)

    def last_on_lane(self, lane: int, before_ns: IntArray) -> IntArray:
        """(m,) row of the latest-ending work submitted to ``lane`` before each instant, -1 none."""
        return _latest(self._lanes.get(lane), before_ns)

    def last_on(self, lanes: list[int], before_ns: IntArray) -> IntArray:
        """The same over several lanes together, with replays and with what their pending waits wait for."""
        best = self._submitted(lanes, before_ns)
        for lane in lanes:
            best = self.later(best, _latest(self._awaited.get(lane), before_ns))
        return best

    def _submitted(self, lanes: list[int], before_ns: IntArray) -> IntArray:
        """(m,) row of the latest-ending work, replays included, that the lanes were given."""
        best = np.full(len(before_ns), -1, np.int64)
        for lane in lanes:
            best = self.later(best, self.last_on_lane(lane, before_ns))
            best = self.later(best, _latest(self._replayed.get(lane), before_ns))
        return best

    def later(self, a: IntArray, b: IntArray) -> IntArray:
        """Of two arrays of rows (-1 none) the one that ends later, element by element.

        On a tie the later in the total order.
        """
        end = self.work.end_ns
        if not len(end):
            return a
        end_a = np.where(a >= 0, end[a], np.iinfo(np.int64).min)
        end_b = np.where(b >= 0, end[b], np.iinfo(np.int64).min)
        return np.where((end_b > end_a) | ((end_b == end_a) & (b > a)), b, a)

    def covered_lanes(self, lane: int) -> list[int]:
        """Lanes that a wait for ``lane`` waits for: the legacy default stream covers the blocking ones."""
        key = self.process.lanes[lane]
        if key.flag != StreamFlag.NULL:
            return [lane]
        return [
            other
            for other in self.lanes
            if self.process.lanes[other].context == key.context
            and self.process.lanes[other].device == key.device
            and self.process.lanes[other].flag in (StreamFlag.BLOCKING, StreamFlag.NULL)
        ]

    @cached_property
    def _records(self) -> tuple[IntArray, IntArray, IntArray]:
        """Event records by correlation: ids (sorted), lane, start of the record call."""
        table = self.process.event_records
        call = self.calls.find(table.correlation)
        known = np.flatnonzero((call >= 0) & (table.lane >= 0) & (table.correlation != 0))
        order = known[np.argsort(table.correlation[known], kind="stable")]
        return table.correlation[order], table.lane[order].astype(np.int64), self.calls.start_ns[call[order]]

    def before_record(self, record_correlation: IntArray) -> IntArray:
        """(m,) row that an event waits for: the last work on the recording stream before the record."""
        ids, lanes, starts = self._records
        found = np.full(len(record_correlation), -1, np.int64)
        if not len(ids):
            return found
        at = np.minimum(np.searchsorted(ids, record_correlation), len(ids) - 1)
        hit = np.flatnonzero((ids[at] == record_correlation) & (record_correlation != 0))
        for lane in np.unique(lanes[at[hit]]):
            here = hit[lanes[at[hit]] == lane]
            found[here] = self.last_on(self.covered_lanes(int(lane)), starts[at[here]])
        return found

    def parts_before_record(self, record_correlation: IntArray) -> list[IntArray]:
        """Arrays of rows (m,), -1 none: all that an event may have waited for; ``before_record`` says what it did.

        By covered stream its last work, its last replay, and what its pending waits wait for.
        """
        ids, lanes, starts = self._records
        if not len(ids):
            return []
        at = np.minimum(np.searchsorted(ids, record_correlation), len(ids) - 1)
        hit = (ids[at] == record_correlation) & (record_correlation != 0)
        parts: list[IntArray] = []
        for lane in np.unique(lanes[at[hit]]).tolist():
            here = np.flatnonzero(hit & (lanes[at] == lane))
            for latest, _ in self._parts(lane, starts[at[here]]):
                parts.append(_spread(len(at), here, latest))
        return parts

    def _parts(self, lane: int, before_ns: IntArray) -> list[tuple[IntArray, bool]]:
        """Arrays of rows (m,), -1 none: what ``last_on`` the covered lanes is the last of.

        And whether it is another stream's, which only a wait for an event puts there.
        """
        indices = ((self._lanes, False), (self._replayed, False), (self._awaited, True))
        return [
            (_latest(index.get(covered), before_ns), beyond)
            for covered in self.covered_lanes(lane)
            for index, beyond in indices
        ]

    @cached_property
    def _syncs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Recorded synchronization rows by correlation: ids (sorted), lane, record correlation."""
        table = self.process.syncs
        order = np.argsort(table.correlation, kind="stable")
        order = order[table.correlation[order] != 0]
        ids, first = np.unique(table.correlation[order], return_index=True)
        rows = order[first]
        return ids, table.lane[rows].astype(np.int64), table.record_correlation[rows]

    def sync_row(self, call: IntArray) -> tuple[IntArray, IntArray]:
        """Lane and record correlation that the capture recorded for each call; -1 and 0 unknown."""
        ids, lanes, records = self._syncs
        lane, record = np.full(len(call), -1, np.int64), np.zeros(len(call), np.int64)
        if len(ids):
            correlation = self.calls.correlation[call]
            at = np.minimum(np.searchsorted(ids, correlation), len(ids) - 1)
            hit = (ids[at] == correlation) & (correlation != 0)
            lane[hit], record[hit] = lanes[at[hit]], records[at[hit]]
        return lane, record

    def certain(self, call: IntArray, *, sole_device: bool) -> IntArray:
        """(m,) row that each synchronizing call certainly waits for; -1 unknown or nothing pending.

        Certain: a stream synchronization whose stream is recorded, an event synchronization whose
        record is, a device synchronization of a process that drives one device. Work counts as
        submitted before the call only if its launch had returned (its start, for unlinked work).
        """
        target = np.full(len(call), -1, np.int64)
        lane, record = self.sync_row(call)
        kind, start = self.calls.kind[call], self.calls.start_ns[call]
        streams = (kind == CallKind.STREAM_SYNC) & (lane >= 0)
        for value in np.unique(lane[streams]):
            here = np.flatnonzero(streams & (lane == value))
            target[here] = self.last_on(self.covered_lanes(int(value)), start[here])
        events = np.flatnonzero((kind == CallKind.EVENT_SYNC) & (record != 0))
        target[events] = self.before_record(record[events])
        if sole_device:
            device = np.flatnonzero(kind == CallKind.DEVICE_SYNC)
            target[device] = self.last_on(self.lanes, start[device])
        return target

    def parts(self, call: IntArray) -> list[tuple[IntArray, bool]]:
        """Arrays of rows (m,), -1 none: all that a wait for a recorded stream or event may wait for.

        And whether it is another stream's, which only a wait for an event puts there. ``certain`` says which of it
        was the last.
        """
        lane, record = self.sync_row(call)
        kind, before = self.calls.kind[call], self.calls.start_ns[call].copy()
        streams = (kind == CallKind.STREAM_SYNC) & (lane >= 0)
        waited = np.where(streams, lane, -1)
        ids, lanes, starts = self._records
        if len(ids):
            at = np.minimum(np.searchsorted(ids, record), len(ids) - 1)
            events = (kind == CallKind.EVENT_SYNC) & (ids[at] == record) & (record != 0)
            waited[events], before[events] = lanes[at[events]], starts[at[events]]
        found = []
        for value in np.unique(waited[waited >= 0]).tolist():
            here = np.flatnonzero(waited == value)
            found += [
                (_spread(len(call), here, latest), beyond)
                for latest, beyond in self._parts(value, before[here])
            ]
        return found

    def is_known(self, call: IntArray, *, sole_device: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(m,) bool: the capture tells what each call waits for (even if that is nothing)."""
        lane, record = self.sync_row(call)
        kind = self.calls.kind[call]
        ids, _, _ = self._records
        return np.asarray(
            ((kind == CallKind.STREAM_SYNC) & (lane >= 0))
            | ((kind == CallKind.EVENT_SYNC) & np.isin(record, ids) & (record != 0))
            | ((kind == CallKind.DEVICE_SYNC) & sole_device)
        )


def _latest(index: _LaneIndex | None, before_ns: IntArray) -> IntArray:
    """(m,) latest-ending row of an index before each instant, -1 none."""
    if index is None or not len(index.latest):
        return np.full(len(before_ns), -1, np.int64)
    at = np.searchsorted(index.submitted_ns, before_ns, side="left") - 1
    return np.where(at >= 0, index.latest[np.maximum(at, 0)], -1)


def _spread(n: int, here: IntArray, rows: IntArray) -> IntArray:
    """(n,) rows at their places, -1 elsewhere."""
    found: IntArray = np.full(n, -1, np.int64)
    found[here] = rows
    return found


def _later(end_ns: IntArray, a: int, b: int) -> int:
    """Of two rows (-1 none) the one that ends later; on a tie the later in the total order."""
    if min(a, b) < 0:
        return max(a, b)
    return max(a, b, key=lambda row: (end_ns[row], row))
