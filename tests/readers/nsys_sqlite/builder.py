"""Small nsys exports, written as literals."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from analyzer.model import Trace
from analyzer.readers.nsys_sqlite import read

PID = 1001
VM = 1 << 48


def gpid(pid: int = PID) -> int:
    return VM | pid << 24


def gtid(pid: int = PID, tid: int | None = None) -> int:
    return gpid(pid) | (pid if tid is None else tid)


class Export:
    """Rows by table; a table's columns are those that its rows use."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {"StringIds": []}
        self._ids: dict[str, int] = {}

    def text(self, value: str) -> int:
        if value not in self._ids:
            self._ids[value] = len(self._ids) + 1
            self.row("StringIds", id=self._ids[value], value=value)
        return self._ids[value]

    def row(self, table: str, **columns: Any) -> Export:
        self.tables.setdefault(table, []).append(columns)
        return self

    def kernel(self, name: str, start: int | None, end: int | None, **more: Any) -> Export:
        pid = more.pop("pid", PID)
        common = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 0, "globalPid": gpid(pid)}
        names = {"demangledName": self.text(name), "shortName": self.text(name)}
        return self.row("CUPTI_ACTIVITY_KIND_KERNEL", start=start, end=end, **{**common, **names, **more})

    def call(self, name: str, start: int, end: int | None, correlation: int = 0, **more: Any) -> Export:
        row = {"eventClass": 0, "globalTid": gtid(), "correlationId": correlation, "returnValue": 0, **more}
        return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, nameId=self.text(name), **row)

    def nvtx(self, text: str | None, start: int, end: int | None, kind: int = 59, **more: Any) -> Export:
        row = {"globalTid": gtid(), "endGlobalTid": None, "textId": None, "domainId": 0, **more}
        return self.row("NVTX_EVENTS", text=text, start=start, end=end, eventType=kind, **row)

    def sync(self, start: int, correlation: int, **more: Any) -> Export:
        row = {
            "deviceId": 0,
            "contextId": 1,
            "streamId": 7,
            "globalPid": gpid(),
            "syncType": 99,
            "eventId": 2**32 - 1,
        }
        both = {"start": start, "end": start + 1, "correlationId": correlation}
        return self.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **{**row, **both, **more})

    def record(self, correlation: int, event: int, **more: Any) -> Export:
        row = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": gpid(), "eventId": event}
        return self.row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", correlationId=correlation, **{**row, **more})

    def write(self, path: Path) -> Path:
        with sqlite3.connect(path) as connection:
            for table, rows in self.tables.items():
                columns = list(dict.fromkeys(column for row in rows for column in row)) or ["id", "value"]
                quoted = ", ".join(f'"{column}"' for column in columns)
                connection.execute(f'CREATE TABLE "{table}" ({quoted})')
                marks = ", ".join("?" * len(columns))
                values = [[row.get(column) for column in columns] for row in rows]
                connection.executemany(f'INSERT INTO "{table}" ({quoted}) VALUES ({marks})', values)
        connection.close()
        return path

    def read(self, folder: Path) -> list[Trace]:
        return read(self.write(folder / "export.sqlite"))


def device_names(trace: Trace) -> list[str]:
    return [trace.process.names[code] for code in trace.device.name]


def host_names(trace: Trace) -> list[str]:
    return [trace.process.names[code] for code in trace.process.host.name]


def reasons(trace: Trace) -> dict[str, int]:
    return {entry.reason: entry.count for entry in trace.source.quality}
