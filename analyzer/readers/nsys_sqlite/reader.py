"""Reads one export: one ``Trace`` per process and device that has work in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from analyzer.errors import TraceError
from analyzer.model import HostKind, IntArray, Source, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.readers.nsys_sqlite import activities, capture, host, metrics, sync
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.devices import Streams, read_devices, read_streams
from analyzer.readers.nsys_sqlite.identifiers import NO_PROCESS
from analyzer.readers.nsys_sqlite.ledger import Ledger
from analyzer.readers.nsys_sqlite.payloads import read_payloads
from analyzer.readers.nsys_sqlite.processes import DeviceSplit
from analyzer.readers.nsys_sqlite.schema import is_nsys_table
from analyzer.readers.nsys_sqlite.strings import Strings
from analyzer.readers.nsys_sqlite.traces import Content, make_traces

_BULK_TABLES = (
    activities.KERNELS,
    activities.COPIES,
    activities.SETS,
    activities.GRAPHS,
    host.CALLS,
    host.NVTX,
    host.OS_CALLS,
    *host.OVERHEADS,
    sync.SYNCS,
    sync.RECORDS,
    "StringIds",
)

# Record class → tables of which one has to be there. graph-node, metrics, ... follow from contents.
_PLACES = {
    "kernel": (activities.KERNELS,),
    "copy": (activities.COPIES,),
    "set": (activities.SETS,),
    "graph": (activities.GRAPHS,),
    "call": (host.CALLS,),
    "sync": (sync.SYNCS,),
    "event-record": (sync.RECORDS,),
    "nvtx": (host.NVTX,),
    "os": (host.OS_CALLS,),
    "overhead": host.OVERHEADS,
}


def read(path: Path, progress: Progress = NoProgress()) -> list[Trace]:  # noqa: B008
    """All ranks of an export, sorted by (pid, device). The file and its folder are left as they are.

    Device work decides: a trace for each (process, device) that has some. A process that only launched
    (its device work was not recorded) gives one trace without a device; so does each process with API
    calls or ranges where nobody has device work, and each with OS runtime calls where nobody has those, unless
    it only started the others. The ledger counts the processes that get none. Raises ``TraceError`` for a
    file that is no complete export, is locked or damaged, or holds nothing to analyse.
    """
    with Database(path, progress) as database:
        _refuse_foreign(database)
        tables = [database.table(name) for name in _BULK_TABLES]
        progress.start(f"reading {path.name}", sum(database.row_estimate(name) for name in tables if name))
        content = _read_content(database, path)
        traces = make_traces(database, content)
    if not traces:
        raise _nothing_usable(database)
    return traces


def _refuse_foreign(database: Database) -> None:
    if not any(is_nsys_table(name) for name in database.tables):
        raise TraceError(
            str(database.path),
            "",
            "this SQLite database is not an Nsight Systems export: it has none of its tables",
            "give the file that `nsys export --type sqlite` wrote",
        )


def has_event_table(database: Database) -> bool:
    """Whether any table that holds events is there; not so in an export that was cut short."""
    return any(database.table(name) for name in _BULK_TABLES if name != "StringIds")


def _nothing_usable(database: Database) -> TraceError:
    names = {database.table(name) for name in _BULK_TABLES} - {None, "StringIds"}
    if not has_event_table(database):
        return TraceError(
            str(database.path),
            "",
            f"the export has {len(database.tables)} tables but no event table: it was cut short, "
            "as happens when an older nsys exports a newer report",
            "export again with the nsys version that recorded the report, or a newer one: "
            "nsys export --type sqlite --force-overwrite true -o OUT.sqlite REPORT.nsys-rep",
        )
    return TraceError(
        str(database.path),
        ", ".join(sorted(name for name in names if name)),
        "the capture holds no device work, API calls, ranges or OS runtime calls",
        "record again with `nsys profile --trace=cuda,nvtx,osrt` and check that the program used the GPU",
    )


def _read_content(database: Database, path: Path) -> Content:
    ledger = Ledger()
    strings = Strings(database, ledger)
    exported = capture.export_values(database)
    duration = capture.duration_ns(database)
    device_rows = activities.read_device_rows(database, strings, ledger)
    host_rows = host.read_host_rows(database, strings, ledger, duration)
    default = _default_process(host_rows.process, device_rows.process)
    device_rows = replace(device_rows, process=_with_process(device_rows.process, default, ledger))
    syncs, records = sync.read_sync_rows(database, strings, host_rows, default, ledger)
    payloads = read_payloads(database, strings, device_rows, host_rows, ledger)
    device_rows = replace(device_rows, table=replace(device_rows.table, collective=payloads.code))
    counters = metrics.read_metrics(database, strings, ledger)
    streams = read_streams(database)
    _check_export(exported, ledger)
    split = DeviceSplit.of(device_rows)
    source = Source(
        path=str(path),
        kind="nsys-sqlite",
        profiler_version=exported.get("EXPORT_PRODUCT_VERSION"),
        schema_version=exported.get("EXPORT_SCHEMA_VERSION"),
        vendor="cuda" if len(device_rows.process) or np.any(host_rows.kind == HostKind.CALL) else "none",
        captured=_captured(database, exported, device_rows, streams),
        settings=capture.settings(database, exported),
        diagnostics=capture.diagnostics(database),
        quality=ledger.entries,
        capture_duration_ns=duration,
    )
    return Content(
        strings=strings,
        device=split,
        host=host_rows,
        syncs=syncs,
        records=records,
        metrics=counters,
        collectives=payloads.infos,
        devices=read_devices(database),
        streams=streams,
        source=source,
        epoch_zero_ns=None if _is_shifted(exported) else capture.epoch_zero_ns(database),
    )


def _default_process(host_processes: IntArray, device_processes: IntArray) -> int:
    """Whom rows without a process belong to: the only process of the file, else nobody."""
    known = set(np.unique(host_processes).tolist()) | set(np.unique(device_processes).tolist())
    known.discard(NO_PROCESS)
    return known.pop() if len(known) == 1 else NO_PROCESS


def _with_process(processes: IntArray, default: int, ledger: Ledger) -> IntArray:
    missing = processes == NO_PROCESS
    if default == NO_PROCESS:
        ledger.add(
            "no-process",
            int(missing.sum()),
            "Device work without a process cannot be joined to the calls that launched it.",
            "device work",
            len(processes),
        )
        return processes
    return np.where(missing, np.int64(default), processes)


def _check_export(exported: dict[str, str], ledger: Ledger) -> None:
    ledger.add(
        "partial-export",
        int(bool(exported.get("EXPORT_PARAM_TIMES_TO_EXPORT"))),
        "Only a part of the capture was exported (--times): calls and work at its ends lack their partners.",
        "META_DATA_EXPORT",
    )
    if _is_shifted(exported):
        ledger.add(
            "shifted-times",
            1,
            "The export moved its times to another axis (--ts-shift or --ts-normalize): they are "
            "consistent within the file, but cannot be placed on the wall clock.",
            "META_DATA_EXPORT",
        )


def _is_shifted(exported: dict[str, str]) -> bool:
    shift = exported.get("EXPORT_PARAM_TIME_SHIFT", "0")
    return exported.get("EXPORT_PARAM_TIME_NORMALIZE", "false").lower() == "true" or shift not in ("", "0")


def _captured(
    database: Database, exported: dict[str, str], rows: activities.DeviceRows, streams: Streams
) -> frozenset[str]:
    """Record classes with a place in the file; of an export with all tables only those with rows."""
    every_table = exported.get("EXPORT_PARAM_LAZY", "true").lower() == "false" or database.has("DX12_API")

    def has_place(table: str | None) -> bool:
        return table is not None and (not every_table or database.row_estimate(table) > 0)

    found = {
        name for name, tables in _PLACES.items() if any(has_place(database.table(table)) for table in tables)
    }
    if np.any(rows.table.graph_node >= 0):
        found.add("graph-node")
    if any(flag > 0 for flag in streams.flags.values()):
        found.add("stream-flags")
    if metrics.has_metrics(database):
        found.add("metrics")
    if capture.has_collective_payload(database):
        found.add("collective-metadata")
    return frozenset(found)
