"""Writes a large Nsight Systems export, row by row: kernels, copies, API calls, NVTX ranges.

The tables and their columns are those of schema 3.25 (``fixtures.simulator.nsys_schema``). Some ranges are
named as torch's ``emit_nvtx`` names them, each text unique; the others come from ``StringIds``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.schedule import COPY_NAME, STREAMS, Op, Step, steps
from fixtures.simulator.nsys_schema import columns

_VM = 1 << 48
_PID = 4711
PROCESS = _VM | _PID << 24
_THREADS = (PROCESS | 4711, PROCESS | 4790)
_SYNC_IDS = 2**30
_PUSH_POP = 59
_LAYERS = tuple(f"layer {n}: {part}" for n in range(64) for part in ("attention", "mlp", "norm"))

_DEVICE = "start end deviceId contextId streamId correlationId globalPid "
_KERNEL = (
    "demangledName shortName mangledName launchType registersPerThread gridX gridY gridZ blockX blockY blockZ "
    "staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId "
    "tensorSizeMinusOneElements"
)
_COPY = "bytes copyKind srcKind dstKind"
_CALL = "start end eventClass globalTid correlationId nameId returnValue"
_RANGE = "start end eventType globalTid text textId domainId"

Row = tuple[int | str | None, ...]


def write(path: Path, kernels: int, ops_per_step: int = 4000) -> int:
    """An export of about ``kernels`` launches, as many device rows and half as many ranges; returns rows."""
    count = max(4, round(kernels / ops_per_step))
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    try:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        with database:
            return _fill(database, steps(count, ops_per_step), _Strings())
    finally:
        database.close()


class _Strings:
    """StringIds: ids in order of first use."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def __getitem__(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes) + 1)


class _Table:
    """One table, and an INSERT for the columns that get values; the others are NULL."""

    def __init__(self, database: sqlite3.Connection, name: str, filled: str) -> None:
        parts = [f"{column} {kind}{' NOT NULL' if strict else ''}" for column, kind, strict in columns(name)]
        database.execute(f"CREATE TABLE {name} ({', '.join(parts)})")
        marks = ", ".join("?" for _ in filled.split())
        self._insert = f"INSERT INTO {name} ({', '.join(filled.split())}) VALUES ({marks})"
        self._database = database
        self.rows = 0

    def extend(self, rows: Iterable[Row]) -> None:
        """Insert rows of the filled columns."""
        self.rows += self._database.executemany(self._insert, rows).rowcount


def _fill(database: sqlite3.Connection, every: Iterator[Step], strings: _Strings) -> int:
    kernels = _Table(database, "CUPTI_ACTIVITY_KIND_KERNEL", _DEVICE + _KERNEL)
    copies = _Table(database, "CUPTI_ACTIVITY_KIND_MEMCPY", _DEVICE + _COPY)
    calls = _Table(database, "CUPTI_ACTIVITY_KIND_RUNTIME", _CALL)
    ranges = _Table(database, "NVTX_EVENTS", _RANGE)
    last = 0
    for step in every:
        kernels.extend(_kernel(op, strings) for op in step.ops if op.name != COPY_NAME)
        copies.extend((*_device(op), 1 << 20, 1, 1, 2) for op in step.ops if op.name == COPY_NAME)
        calls.extend(_calls(step, strings))
        ranges.extend(_ranges(step, strings))
        last = step.end_ns
    _Table(database, "StringIds", "id value").extend((code, text) for text, code in strings.codes.items())
    _describe(database, last)
    return kernels.rows + copies.rows + calls.rows + ranges.rows


def _describe(database: sqlite3.Connection, last_ns: int) -> None:
    """What the file says of itself and of its streams."""
    _Table(database, "META_DATA_EXPORT", "name value").extend(
        [("EXPORT_SCHEMA_VERSION", "3.25.0"), ("EXPORT_PARAM_LAZY", "true")]
    )
    _Table(database, "ANALYSIS_DETAILS", "globalVid duration startTime stopTime").extend(
        [(_VM, last_ns + 1_000_000, 0, last_ns)]
    )
    _Table(
        database, "TARGET_INFO_CUDA_STREAM", "streamId hwId vmId processId contextId priority flag"
    ).extend((stream, 0, 0, _PID, 1, 0, 3 if stream == STREAMS[0] else 2) for stream in STREAMS)


def _device(op: Op) -> Row:
    return op.work_ns, op.work_end_ns, 0, 1, op.stream, op.index + 1, PROCESS


def _kernel(op: Op, strings: _Strings) -> Row:
    name, short = strings[op.name], strings[op.name.split("<")[0]]
    grid, block = (432 + op.index % 7, 1, 1), (128, 1, 1)
    return (*_device(op), name, short, name, 0, 64, *grid, *block, 1024, 16384, 0, 0, op.index, "")


def _calls(step: Step, strings: _Strings) -> Iterator[Row]:
    launch, copy = strings["cudaLaunchKernel_v7000"], strings["cudaMemcpyAsync_v3020"]
    for op in step.ops:
        name = copy if op.name == COPY_NAME else launch
        yield op.call_ns, op.call_end_ns, 0, _THREADS[op.thread], op.index + 1, name, 0
    wait = strings["cudaStreamSynchronize_v3020"]
    yield step.sync_ns, step.sync_end_ns, 0, _THREADS[0], _SYNC_IDS + step.index, wait, 0


def _ranges(step: Step, strings: _Strings) -> Iterator[Row]:
    yield step.start_ns, step.end_ns, _PUSH_POP, _THREADS[0], f"iteration {step.index}", None, 0
    for at, (first, second) in enumerate(zip(step.ops[::2], step.ops[1::2], strict=False)):
        start, thread = first.start_ns + 100, _THREADS[first.thread]
        if at % 4 == 3:
            text = f"aten::mm, seq = {first.index}, op_id = {first.index}"
            yield start, first.end_ns, _PUSH_POP, thread, text, None, 0
        else:
            end = second.end_ns if second.thread == first.thread else first.end_ns
            yield start, end, _PUSH_POP, thread, None, strings[_LAYERS[at % len(_LAYERS)]], 0
