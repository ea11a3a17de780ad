"""Captures with records taken out, as if they had not been recorded."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from tests.captures.results import files_of
from tests.shared import trace_path

SYNC, RANGES, EVENTS = "sync", "ranges", "events"

NSYS_TABLES = {
    SYNC: ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",),
    RANGES: ("NVTX_EVENTS",),
    EVENTS: ("CUPTI_ACTIVITY_KIND_CUDA_EVENT",),
}


class _Event(msgspec.Struct):
    cat: str = ""
    name: str | int | float = ""


def _is_sync(event: _Event) -> bool:
    return event.cat == "cuda_sync"


def _is_range(event: _Event) -> bool:
    return "user_annotation" in event.cat


def _is_event(event: _Event) -> bool:
    return str(event.name).startswith(("cudaEventRecord", "hipEventRecord", "Event Record"))


JSON_EVENTS: dict[str, Callable[[_Event], bool]] = {SYNC: _is_sync, RANGES: _is_range, EVENTS: _is_event}


def without(name: str, what: str, folder: Path, *, drop: bool = False) -> tuple[list[Path], int]:
    """Copies of a capture's files without such records, and how many were taken out.

    ``drop``: without the tables too, as if their collection had been off.
    """
    paths, removed = [], 0
    for file in files_of(name):
        path = folder / Path(file).name
        if path.suffix == ".sqlite":
            removed += _from_database(trace_path(file), path, what, drop)
        else:
            removed += _from_json(trace_path(file), path, what)
        paths.append(path)
    return paths, removed


def _from_database(source: Path, path: Path, what: str, drop: bool) -> int:
    shutil.copyfile(source, path)
    removed = 0
    with closing(sqlite3.connect(path)) as file:
        tables = {table for (table,) in file.execute("select name from sqlite_master where type = 'table'")}
        for table in NSYS_TABLES[what]:
            if table in tables:
                removed += file.execute(f"delete from {table}").rowcount
                if drop:
                    file.execute(f"drop table {table}")
        file.commit()
    return removed


def _from_json(source: Path, path: Path, what: str) -> int:
    """The other events keep their bytes: numbers written as decimals stay exact."""
    data = source.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    top = msgspec.json.decode(data, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
    events = top if isinstance(top, list) else msgspec.json.decode(top["traceEvents"], type=list[msgspec.Raw])
    taken = JSON_EVENTS[what]
    kept = [raw for raw in events if not taken(msgspec.json.decode(raw, type=_Event))]
    body = msgspec.json.encode(kept)
    path.write_bytes(
        body if isinstance(top, list) else msgspec.json.encode({**top, "traceEvents": msgspec.Raw(body)})
    )
    return len(events) - len(kept)
