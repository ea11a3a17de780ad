"""Host records of the whole file: API calls, NVTX ranges, OS runtime calls, recorded overhead.

Event classes and NVTX types are the exporter's (ENUM_NSYS_EVENT_CLASS, ENUM_NSYS_EVENT_TYPE), checked on
exports from 2020 to 2026; overhead types are CUPTI's (ENUM_CUPTI_OVERHEAD_TYPE).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from analyzer.arrays import group, unique_inverse
from analyzer.model import CodeArray, HostKind, IntArray, SmallArray
from analyzer.readers.nsys_sqlite.bulk import NO_TIME, Column, Database
from analyzer.readers.nsys_sqlite.identifiers import NO_PROCESS, global_pid_of
from analyzer.readers.nsys_sqlite.ledger import Ledger, ordered_ends, usable_rows
from analyzer.readers.nsys_sqlite.strings import Strings

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
OS_CALLS = "OSRT_API"
OVERHEADS = ("CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD")

_BACKTRACE_COPY = 67  # a second row of a call, made with --cudabacktrace
_OS_CALL = 27  # 31 and 32 mark where tracing of a thread began and ended
_NVTX_KINDS = {
    59: HostKind.RANGE,
    60: HostKind.SPAN,
    34: HostKind.MARK,
    70: HostKind.RANGE,  # the same two, imported from an .nvtxt file
    71: HostKind.SPAN,
}
NVTX_THREAD_NAME = 39
NVTX_DOMAIN = 75
_OVERHEAD_NAMES = {
    2: "driver compiler",
    3: "buffer flush",
    4: "instrumentation",
    5: "resource management",
    6: "runtime triggered module loading",
    7: "lazy function loading",
    8: "command buffer full",
}

_VERSION_SUFFIX = re.compile(r"_v\d{4,}$")
_CUPTI_PREFIX = re.compile(r"^CUPTI:?\s+", re.IGNORECASE)

Fields = dict[str, npt.NDArray[Any]]
Mask = npt.NDArray[np.bool_]

_TIMES = (Column("start", missing=NO_TIME), Column("end", missing=NO_TIME), Column("globalTid"))


@dataclass(frozen=True)
class HostRows:
    """Host records of all processes in file order. All columns (n,); ids are the file's own (int64)."""

    start_ns: IntArray
    end_ns: IntArray
    kind: SmallArray
    name: CodeArray
    thread: IntArray  # globalTid, NO_PROCESS where not recorded
    end_thread: IntArray  # globalTid, NO_PROCESS: the same thread
    process: IntArray  # globalPid
    correlation: IntArray
    result: IntArray
    domain: CodeArray

    def __len__(self) -> int:
        return len(self.start_ns)


_DTYPES: dict[str, type[np.signedinteger[Any]]] = {
    "start": np.int64,
    "end": np.int64,
    "kind": np.int8,
    "name": np.int32,
    "globalTid": np.int64,
    "endGlobalTid": np.int64,
    "correlationId": np.int64,
    "returnValue": np.int64,
    "domain": np.int32,
}
_MISSING = {"correlationId": 0}


def api_name(text: str) -> str:
    """``cudaLaunchKernel_ptsz_v7000`` → ``cudaLaunchKernel_ptsz``; a real ``_v2`` stays."""
    return _VERSION_SUFFIX.sub("", text)


def read_host_rows(
    database: Database, strings: Strings, ledger: Ledger, capture_end_ns: int | None
) -> HostRows:
    """All host records of the export; those still open at its end are closed there and counted."""
    parts = [
        _calls(database, strings, ledger),
        _nvtx(database, strings, ledger),
        _os_calls(database, strings, ledger),
        *(_overhead(database, table, strings, ledger) for table in OVERHEADS),
    ]
    fields = _joined([part for part in parts if part is not None])
    fields["end"] = _closed(fields, ledger, capture_end_ns)
    return HostRows(
        start_ns=fields["start"],
        end_ns=fields["end"],
        kind=fields["kind"],
        name=fields["name"],
        thread=fields["globalTid"],
        end_thread=fields["endGlobalTid"],
        process=global_pid_of(fields["globalTid"]),
        correlation=fields["correlationId"],
        result=fields["returnValue"],
        domain=fields["domain"],
    )


def _joined(parts: list[Fields]) -> Fields:
    result: Fields = {}
    for name, dtype in _DTYPES.items():
        pieces = [np.empty(0, dtype)]
        for part in parts:
            piece = part.pop(name, None)
            rows = len(part["rows"])
            pieces.append(np.full(rows, _MISSING.get(name, -1), dtype) if piece is None else piece)
        result[name] = np.concatenate(pieces) if len(pieces) != 2 else pieces[1].astype(dtype, copy=False)
    return result


def _closed(fields: Fields, ledger: Ledger, capture_end_ns: int | None) -> IntArray:
    """Ends, with missing ones set to the end of the capture (the duration, else the last end of all)."""
    starts, ends = fields["start"], fields["end"]
    unfinished = ends == NO_TIME
    last = int(max(starts.max(initial=0), ends.max(initial=0), capture_end_ns or 0))
    exported_open = np.zeros(len(ends), np.bool_)
    if capture_end_ns is not None:  # nsys itself closes ranges that were never popped this way
        exported_open = (fields["kind"] == HostKind.RANGE) & (ends == capture_end_ns)
    ledger.add(
        "open-range",
        int((unfinished | exported_open).sum()),
        "Ranges and calls that were still open count up to the end of the capture.",
        "host records",
        len(ends),
    )
    return np.where(unfinished, np.int64(last), ends) if unfinished.any() else ends


def _finish(fields: Fields, keep: Mask, ledger: Ledger, place: str) -> Fields:
    """The rows of ``keep`` that have a start; ends repaired, but missing ones left for later."""
    keep &= usable_rows(fields["start"], None, ledger, place)
    if not keep.all():
        fields = {name: values[keep] for name, values in fields.items()}
    starts, ends = fields["start"], fields["end"]
    missing = ends == NO_TIME
    fields["end"] = (
        ordered_ends(starts, np.where(missing, starts, ends), ledger, place) if len(ends) else ends
    )
    fields["end"][missing] = NO_TIME
    fields["rows"] = np.empty(len(ends), np.bool_)
    return fields


def _with_thread(fields: Fields, ledger: Ledger, place: str) -> Mask:
    known: Mask = fields["globalTid"] != NO_PROCESS
    ledger.add(
        "no-thread",
        int((~known).sum()),
        "Host records without a thread belong to no process and are left out.",
        place,
        len(known),
    )
    return known


def _calls(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    if not database.has(CALLS, "start", "nameId"):
        return None
    columns = (
        *_TIMES,
        Column("eventClass"),
        Column("correlationId", missing=0),
        Column("nameId"),
        Column("returnValue"),
    )
    fields: Fields = database.integers(CALLS, columns)
    copies = fields.pop("eventClass") == _BACKTRACE_COPY
    ledger.add(
        "backtrace-duplicate",
        int(copies.sum()),
        "Second rows of calls, made for their backtraces, are dropped; no call is lost.",
        CALLS,
        len(copies),
    )
    fields = _finish(fields, ~copies & _with_thread(fields, ledger, CALLS), ledger, CALLS)
    fields["name"] = strings.codes(fields.pop("nameId"), CALLS, api_name)
    fields["kind"] = np.full(len(fields["start"]), HostKind.CALL, np.int8)
    return fields


def _nvtx(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    table = database.table(NVTX)
    if table is None or not database.has(table, "start", "eventType"):
        return None
    columns = (*_TIMES, Column("eventType"), Column("endGlobalTid"), Column("textId"), Column("domainId"))
    fields: Fields = database.integers(table, columns)
    types = fields.pop("eventType")
    unique, inverse = unique_inverse(types)
    fields["kind"] = np.array([_NVTX_KINDS.get(int(kind), -1) for kind in unique], np.int8)[inverse]
    keep = fields["kind"] >= 0
    if "text" in database.tables[table]:
        fields["text"] = strings.codes_of_texts(database.texts(table, "text"))
    keep &= _with_thread(fields, ledger, table)
    fields = _finish(fields, keep, ledger, table)
    names = strings.codes(fields.pop("textId"), table)
    text = fields.pop("text", names)
    fields["name"] = np.where(text >= 0, text, names)
    fields["end"] = np.where(fields["kind"] == HostKind.MARK, fields["start"], fields["end"])
    same = fields["endGlobalTid"] == fields["globalTid"]
    fields["endGlobalTid"] = np.where(same, NO_PROCESS, fields["endGlobalTid"])
    fields["domain"] = _domains(database, table, strings, fields)
    return fields


def _domains(database: Database, table: str, strings: Strings, fields: Fields) -> CodeArray:
    """(n,) name codes of the domains, which are numbered per process; -1 for the default domain."""
    named = _domain_names(database, strings, table)
    keys, codes = group([global_pid_of(fields["globalTid"]), fields.pop("domainId")])
    lookup = np.full(len(keys), -1, np.int32)
    for position, (process, domain) in enumerate(keys):
        if domain > 0:
            name = named.get((process, domain)) or f"<NVTX domain {domain}>"
            lookup[position] = strings.intern(name)
    return lookup[codes]


def _domain_names(database: Database, strings: Strings, table: str) -> dict[tuple[int, int], str]:
    """Names by (globalPid, domain), from the rows that created them."""
    return {
        (int(global_pid_of(np.array([thread], np.int64))[0]), domain): text
        for thread, domain, text in nvtx_definitions(database, strings, table, NVTX_DOMAIN)
    }


def nvtx_definitions(
    database: Database, strings: Strings, table: str, event_type: int
) -> list[tuple[int, int, str]]:
    """(globalTid, domainId, text) of the NVTX rows that define something, texts in ``text`` or StringIds."""
    if not database.has(table, "eventType", "globalTid"):
        return []
    rows = database.rows(
        table, ("globalTid", "domainId", "text", "textId"), sa.column("eventType") == event_type
    )
    registered = strings.texts(np.array([-1 if row[3] is None else row[3] for row in rows], np.int64))
    texts = [(row[0], row[1] or 0, row[2] or name) for row, name in zip(rows, registered, strict=True)]
    return [(thread, domain, text) for thread, domain, text in texts if text and thread is not None]


def _os_calls(database: Database, strings: Strings, ledger: Ledger) -> Fields | None:
    if not database.has(OS_CALLS, "start", "nameId"):
        return None
    columns = (*_TIMES, Column("eventClass", missing=_OS_CALL), Column("nameId"), Column("returnValue"))
    fields: Fields = database.integers(OS_CALLS, columns)
    keep = fields.pop("eventClass") == _OS_CALL
    fields = _finish(fields, keep & _with_thread(fields, ledger, OS_CALLS), ledger, OS_CALLS)
    fields["name"] = strings.codes(fields.pop("nameId"), OS_CALLS)
    fields["kind"] = np.full(len(fields["start"]), HostKind.OS, np.int8)
    return fields


def _overhead(database: Database, table: str, strings: Strings, ledger: Ledger) -> Fields | None:
    if not database.has(table, "start", "end"):
        return None
    fields: Fields = database.integers(table, (*_TIMES, Column("nameId"), Column("overheadType")))
    fields = _finish(fields, _with_thread(fields, ledger, table), ledger, table)
    kinds, inverse = unique_inverse(fields.pop("overheadType"))
    by_kind = [strings.intern(_OVERHEAD_NAMES.get(int(kind), "unknown overhead")) for kind in kinds]
    names = strings.codes(fields.pop("nameId"), table, overhead_name)
    fields["name"] = np.where(names >= 0, names, np.array(by_kind, np.int32)[inverse])
    fields["kind"] = np.full(len(inverse), HostKind.OVERHEAD, np.int8)
    return fields


def overhead_name(text: str) -> str:
    """One spelling over versions: ``CUPTI: Buffer flush`` and ``Command Buffer Full`` in small letters."""
    name = _CUPTI_PREFIX.sub("", text)
    name = name if name.startswith(("CUDA", "NVTX", "OS ", "OpenGL")) else name.lower()
    return "unknown overhead" if name == "unknown" else name
