"""Small trace texts, written as literally as a test can read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.model import HostTable, ProcessTrace, Trace
from analyzer.progress import NoProgress
from analyzer.readers.kineto_json import read
from analyzer.readers.kineto_json.blocks import EventBlocks
from analyzer.readers.kineto_json.events import Event
from analyzer.readers.kineto_json.source import ByteStream

Json = dict[str, Any]


def kernel(name: str, ts: Any, dur: Any, correlation: int = 0, **args: Any) -> Json:
    """A kernel on device 0, stream 7, unless ``args`` say otherwise."""
    args = {"device": 0, "context": 1, "stream": 7, "correlation": correlation, **args}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def call(name: str, ts: Any, dur: Any, correlation: int = 0, tid: Any = 100) -> Json:
    args = {"correlation": correlation}
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": name,
        "pid": 100,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def host(category: str, name: str, ts: Any, dur: Any, tid: Any = 100, pid: Any = 100, **args: Any) -> Json:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def text_of(events: list[Json], **top: Any) -> str:
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": events})


def traces(tmp_path: Path, text: str | bytes, **options: Any) -> list[Trace]:
    path = tmp_path / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)


def one(tmp_path: Path, text: str | bytes, **options: Any) -> Trace:
    (trace,) = traces(tmp_path, text, **options)
    return trace


def reasons(trace: Trace) -> dict[str, int]:
    return {entry.reason: entry.count for entry in trace.source.quality}


def blocks_of(path: Path, text: bytes, block_bytes: int = 1 << 20) -> tuple[EventBlocks, list[Event]]:
    path.write_bytes(text)
    with ByteStream(path, NoProgress()) as stream:
        blocks = EventBlocks(stream, block_bytes)
        events = [event for block in blocks for event in block.events]
    return blocks, events


def names(process: ProcessTrace, table: HostTable | Any) -> list[str]:
    return [process.names[code] for code in table.name.tolist()]


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(np.asarray(getattr(table, column)).tolist() for column in columns), strict=True))
