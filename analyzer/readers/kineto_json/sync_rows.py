"""``cuda_sync`` and ``cuda_event`` rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.readers.interning import Interner
from analyzer.readers.kineto_json.categories import Role
from analyzer.readers.kineto_json.device_rows import wide_int
from analyzer.readers.kineto_json.events import Event, Number, SyncArgs, as_int

# Since 2026-04 "Stream Sync" rows are drawn on a row of their own, tid = stream + this.
_SYNC_ROW_OFFSET = 1_000_000
_NO_STREAM = (-1, 2**32 - 1)  # CUPTI_SYNCHRONIZATION_INVALID_VALUE, signed and unsigned


@dataclass
class SyncRows:
    """Synchronisations and event records, row by row (they are few beside calls and kernels)."""

    correlation: list[int] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    record: list[int] = field(default_factory=list)
    records: dict[int, int] = field(default_factory=dict)
    """Correlation id of an event-record call -> lane it recorded on."""

    def add(
        self,
        role: Role,
        events: list[Event],
        args: list[SyncArgs],
        lanes: Interner[tuple[int, int, int]],
    ) -> None:
        """Take the rows of one block."""
        for event, a in zip(events, args, strict=True):
            place = wide_int(event.pid if a.device is None else a.device), wide_int(a.context)
            correlation = max(as_int(a.correlation, 0), 0)
            own = _lane(place, _own_stream(event, a), lanes)
            if role == Role.EVENT_RECORD:
                if correlation and own >= 0:
                    self.records[correlation] = own
                continue
            waited = _lane(place, a.wait_stream, lanes)
            record = max(as_int(a.record, 0), 0)
            if record and waited >= 0:
                self.records.setdefault(record, waited)
            self.correlation.append(correlation)
            self.lane.append(waited if str(a.kind or event.name) == "Event Sync" else own)
            self.record.append(record)


def _own_stream(event: Event, args: SyncArgs) -> Number:
    if args.stream is not None:
        return args.stream
    row = wide_int(event.tid)
    return row - _SYNC_ROW_OFFSET if _SYNC_ROW_OFFSET <= row < 2 * _SYNC_ROW_OFFSET else row


def _lane(place: tuple[int, int], stream: Number, lanes: Interner[tuple[int, int, int]]) -> int:
    number = wide_int(stream)
    return -1 if number in _NO_STREAM else lanes[(*place, number)]
