"""Synchronization records and event records of the whole file, and which record a wait depends on.

``syncType`` changed its meaning between versions and ``deviceId`` is 0 in every synchronization row of every
export seen, so neither is read: the joined call's name decides the kind, the context the device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.arrays import group
from analyzer.model import HostKind, IntArray
from analyzer.readers.nsys_sqlite.bulk import NO_TIME, Column, Database
from analyzer.readers.nsys_sqlite.host import HostRows
from analyzer.readers.nsys_sqlite.identifiers import NO_PROCESS, NOT_APPLICABLE_32
from analyzer.readers.nsys_sqlite.ledger import Ledger
from analyzer.readers.nsys_sqlite.strings import Strings

SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RECORDS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"

_QUERY = re.compile(r"^(cuda|cu|hip)(Event|Stream)Query(_ptsz)?$")
_STREAM_WAIT = re.compile(r"^(cuda|cu|hip)StreamWaitEvent")
_CORRELATIONS = 2**32  # correlation ids are 32-bit

_KEYS = (
    Column("globalPid"),
    Column("contextId"),
    Column("streamId", missing=NOT_APPLICABLE_32),
    Column("correlationId", missing=0),
    Column("eventId", missing=NOT_APPLICABLE_32),
    Column("eventSyncId", missing=NOT_APPLICABLE_32),
)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SyncRows:
    """Synchronization rows in file order, columns (n,). ``stream`` is -1 where none is named."""

    process: IntArray
    context: IntArray
    stream: IntArray
    correlation: IntArray
    record_correlation: IntArray
    polled: Mask


@dataclass(frozen=True)
class RecordRows:
    """Event-record calls in file order, columns (n,)."""

    process: IntArray
    device: IntArray
    context: IntArray
    stream: IntArray
    correlation: IntArray


class CallIndex:
    """Finds API calls by (process, correlation), which is unique per process only."""

    def __init__(self, host: HostRows) -> None:
        calls = np.flatnonzero((host.kind == HostKind.CALL) & (host.correlation > 0))
        self._processes = np.unique(host.process[calls])
        keys = self._key(host.process[calls], host.correlation[calls])
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[order], calls[order]

    def find(self, process: IntArray, correlation: IntArray) -> IntArray:
        """(n,) rows of ``host``, the first in file order, or -1."""
        if not len(self._keys):
            return np.full(len(process), -1, np.int64)
        wanted = self._key(process, correlation)
        positions = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where((self._keys[positions] == wanted) & (wanted >= 0), self._rows[positions], -1)

    def _key(self, process: IntArray, correlation: IntArray) -> IntArray:
        codes = np.searchsorted(self._processes, process)
        codes = np.minimum(codes, max(len(self._processes) - 1, 0))
        valid = (correlation > 0) & (correlation < _CORRELATIONS)
        if len(self._processes):
            valid &= self._processes[codes] == process
        return np.where(valid, codes * _CORRELATIONS + correlation, -1)


def read_sync_rows(
    database: Database, strings: Strings, host: HostRows, default_process: int, ledger: Ledger
) -> tuple[SyncRows, RecordRows]:
    """Both tables, waits resolved to event records; ``default_process`` stands in for a missing process."""
    calls = CallIndex(host)
    records = _fetch(database, RECORDS, (*_KEYS, Column("deviceId")), default_process)
    syncs = _fetch(database, SYNCS, (*_KEYS, Column("start", missing=NO_TIME)), default_process)
    record_calls = calls.find(records["globalPid"], records["correlationId"])
    records["time"] = _at(host.start_ns, record_calls, NO_TIME)
    names = _at(host.name, calls.find(syncs["globalPid"], syncs["correlationId"]), -1)
    resolved = resolve_records(syncs, records)
    _count_unresolved(strings, names, resolved, ledger)
    return (
        SyncRows(
            process=syncs["globalPid"],
            context=syncs["contextId"],
            stream=np.where(syncs["streamId"] == NOT_APPLICABLE_32, -1, syncs["streamId"]),
            correlation=syncs["correlationId"],
            record_correlation=resolved,
            polled=_named(strings, names, _QUERY),
        ),
        RecordRows(
            process=records["globalPid"],
            device=records["deviceId"],
            context=records["contextId"],
            stream=np.where(records["streamId"] == NOT_APPLICABLE_32, -1, records["streamId"]),
            correlation=records["correlationId"],
        ),
    )


def _at(values: npt.NDArray[np.signedinteger[Any]], rows: IntArray, missing: int) -> IntArray:
    """(n,) ``values[rows]``, ``missing`` where the row is -1."""
    extended = np.append(values.astype(np.int64, copy=False), np.int64(missing))
    return extended[rows]


def _fetch(
    database: Database, table: str, columns: tuple[Column, ...], default_process: int
) -> dict[str, IntArray]:
    if not database.has(table, "correlationId"):
        return {column.name: np.empty(0, np.int64) for column in columns}
    fields = database.integers(table, columns)
    process = fields["globalPid"]
    fields["globalPid"] = np.where(process == NO_PROCESS, np.int64(default_process), process)
    return fields


def resolve_records(syncs: dict[str, IntArray], records: dict[str, IntArray]) -> IntArray:
    """(n,) correlation of the event-record call each synchronization row depends on, 0 where unknown.

    With an ``eventSyncId`` the record with that id; without one the latest record of the same event (process,
    context, event id) whose call began before. An id whose record is not in the file stays unresolved:
    an older record of the same event would be the wrong one.
    """
    result = np.zeros(len(syncs["globalPid"]), np.int64)
    is_event = _valid(syncs["eventId"])
    exact = is_event & _valid(syncs["eventSyncId"]) & (syncs["eventSyncId"] > 0)
    with_id = _valid(records["eventSyncId"]) & (records["eventSyncId"] > 0)
    timed = records["time"] != NO_TIME
    event = ("globalPid", "contextId", "eventId")
    for rows, candidates, keys in (
        (exact, with_id, (*event, "eventSyncId")),
        (is_event & ~exact, timed, event),
    ):
        wanted, offered = np.flatnonzero(rows), np.flatnonzero(candidates)
        if not len(wanted) or not len(offered):
            continue
        found = _latest_before(
            [np.concatenate([records[key][offered], syncs[key][wanted]]) for key in keys],
            np.concatenate([records["time"][offered], syncs["start"][wanted]]),
            len(offered),
        )
        hit = found >= 0
        result[wanted[hit]] = records["correlationId"][offered[found[hit]]]
    return result


def _valid(ids: IntArray) -> Mask:
    valid: Mask = (ids != NOT_APPLICABLE_32) & (ids >= 0)
    return valid


def _latest_before(keys: list[IntArray], times: IntArray, offered: int) -> IntArray:
    """For each row from ``offered`` on: the latest earlier row of its group below ``offered``, or -1."""
    _, codes = group(keys)
    is_offer = np.arange(len(codes)) < offered
    # At one instant the asking row sorts first: a record has to precede strictly.
    order = np.lexsort((is_offer, times, codes))
    latest = np.maximum.accumulate(np.where(is_offer[order], np.arange(len(order)), -1))
    candidate = np.where(latest >= 0, order[latest], -1)
    same_group = (candidate >= 0) & (codes[candidate] == codes[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.where(same_group, candidate, -1)
    return found[offered:]


def _named(strings: Strings, names: IntArray, pattern: re.Pattern[str]) -> Mask:
    """(n,) bool: whether the call's name matches."""
    table = strings.table()
    unique, inverse = np.unique(names, return_inverse=True)
    matches = [code >= 0 and pattern.search(table[code]) is not None for code in unique.tolist()]
    return np.array(matches, np.bool_)[inverse] if len(names) else np.zeros(0, np.bool_)


def _count_unresolved(strings: Strings, names: IntArray, resolved: IntArray, ledger: Ledger) -> None:
    waits = _named(strings, names, _STREAM_WAIT)
    ledger.add(
        "unresolved-stream-wait",
        int((waits & (resolved == 0)).sum()),
        "It is not recorded which work these stream waits waited for; no dependency is assumed.",
        SYNCS,
        int(waits.sum()),
    )
    ledger.add(
        "sync-without-call",
        int((names < 0).sum()),
        "Synchronization records without their API call are kept, but cannot be placed on a thread.",
        SYNCS,
        len(names),
    )
