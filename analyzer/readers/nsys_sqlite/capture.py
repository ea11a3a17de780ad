"""How the capture was made: versions, settings, diagnostics, clock, the file's own word on the rank.

META_DATA_CAPTURE and TARGET_INFO_SYSTEM_ENV hold the full environment of the profiled program, credentials
included. They are queried for allow-listed names only, and only values of an expected form are taken.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import sqlalchemy as sa

from analyzer.model import Diagnostic
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.host import NVTX, NVTX_THREAD_NAME, nvtx_definitions
from analyzer.readers.nsys_sqlite.identifiers import pid_of
from analyzer.readers.nsys_sqlite.strings import Strings
from collectors.secrets import redact

EXPORT_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")

_SETTINGS = (
    "CUDA_GRAPH_TRACE_OPTIONS:MODE",
    "CUDA_GRAPH_TRACE_OPTIONS:TRACE_DEVICE_GRAPH_LAUNCH",
    "CUDA_SKIP_SOME_API_CALLS",
    "COLLECT_GPU_MEMORY_USAGE",
    "CUDA_FLUSH_PERIODICALLY",
    "CUDA_TRACE_SCOPE",
    "START_DELAY_MS",
    "RUN_DURATION_MS",
)
_EXPORT_SETTINGS = (
    "EXPORT_PARAM_INCLUDE_JSON",
    "EXPORT_PARAM_INCLUDE_BLOBS",
    "EXPORT_PARAM_TIME_NORMALIZE",
    "EXPORT_PARAM_TIME_SHIFT",
    "EXPORT_PARAM_LAZY",
    "EXPORT_PARAM_TIMES_TO_EXPORT",
)
_PLAIN_VALUE = re.compile(r"[\w.:,;/-]{0,60}")
_HOSTNAME = re.compile(r"[A-Za-z0-9._-]{1,253}")


def export_values(database: Database) -> dict[str, str]:
    """Version and export options, by name. Paths, user and host names are not among them."""
    wanted = ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", *_EXPORT_SETTINGS)
    values: dict[str, str] = {}
    for table in EXPORT_TABLES:
        for name, value in database.rows(table, ("name", "value"), sa.column("name").in_(wanted)):
            if value is not None and _PLAIN_VALUE.fullmatch(str(value)):
                values[name] = str(value)
    return values


def settings(database: Database, exported: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Capture and export settings of the allow-list. A process's own value gives way to the session's."""
    found: dict[str, str] = {}
    for wanted in _SETTINGS:
        name: sa.ColumnClause[Any] = sa.column("name")
        where = (name == wanted) | name.op("GLOB")(f"PROCESS_[0-9]*:{wanted}")
        for key, value in database.rows("META_DATA_CAPTURE", ("name", "value"), where):
            if value is not None and _PLAIN_VALUE.fullmatch(str(value)):
                if key == wanted:
                    found[wanted] = str(value)
                else:
                    found.setdefault(wanted, str(value))
    options = {key: exported[key] for key in _EXPORT_SETTINGS if key in exported}
    return tuple({**found, **options}.items())


def diagnostics(database: Database) -> tuple[Diagnostic, ...]:
    """The profiler's own messages, each text once, credentials removed."""
    rows = database.rows("DIAGNOSTIC_EVENT", ("severity", "text"))
    texts = {
        (severity if isinstance(severity, int) else 1, redact(str(text))): None
        for severity, text in rows
        if text is not None
    }
    return tuple(Diagnostic(severity, text) for severity, text in texts)


def epoch_zero_ns(database: Database) -> int | None:
    """Wall time of t = 0: checked to hold for event times as they are, also with a delayed start."""
    rows = database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    values = {row[0] for row in rows if isinstance(row[0], int) and row[0] > 0}
    return values.pop() if len(values) == 1 else None


def duration_ns(database: Database) -> int | None:
    """Length of the capture. ANALYSIS_DETAILS.startTime is on another axis and not read."""
    rows = database.rows("ANALYSIS_DETAILS", ("duration",))
    values = [row[0] for row in rows if isinstance(row[0], int) and row[0] > 0]
    return max(values, default=None)


def hostname(database: Database) -> str | None:
    """The machine that was profiled, where the file tells exactly one."""
    rows = database.rows("TARGET_INFO_SYSTEM_ENV", ("value",), sa.column("name") == "Hostname")
    names = {str(row[0]) for row in rows if row[0] is not None and _HOSTNAME.fullmatch(str(row[0]))}
    return names.pop() if len(names) == 1 else None


def process_names(database: Database) -> dict[int, str]:
    """Program names by globalPid: the last part of the path, without arguments."""
    rows = database.rows("PROCESSES", ("globalPid", "name"))
    return {process: _program(str(name)) for process, name in rows if process is not None and name}


def _program(text: str) -> str:
    words = text.split()
    return re.split(r"[/\\]", words[0])[-1] if words else ""


def pid_texts(processes: list[int]) -> dict[int, str]:
    """The pid as text by globalPid; the whole globalPid where two machines of the file share a pid."""
    pids = [pid_of(process) for process in processes]
    return {
        process: str(pid) if pids.count(pid) == 1 else str(process)
        for process, pid in zip(processes, pids, strict=True)
    }


def thread_names(database: Database, strings: Strings) -> dict[int, str]:
    """Names by globalTid: what the program said through NVTX, else what nsys found; credentials removed."""
    names: dict[int, str] = {}
    rows = [row for row in database.rows("ThreadNames", ("globalTid", "nameId")) if None not in row]
    texts = strings.texts(np.array([row[1] for row in rows], np.int64))
    names.update((row[0], text) for row, text in zip(rows, texts, strict=True) if text)
    table = database.table(NVTX)
    if table:
        names.update(
            (thread, text) for thread, _, text in nvtx_definitions(database, strings, table, NVTX_THREAD_NAME)
        )
    clean = {text: redact(text) for text in set(names.values())}
    return {thread: clean[text] for thread, text in names.items()}


def has_collective_payload(database: Database) -> bool:
    """Whether NVTX rows carry NCCL's payload as JSON."""
    table = database.table(NVTX)
    if table is None or not database.has(table, "jsonText"):
        return False
    return bool(database.rows(table, ("jsonText",), sa.column("jsonText").like('%"Message size%'), limit=1))
