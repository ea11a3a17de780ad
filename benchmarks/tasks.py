"""One measured task in a process of its own: ``python -m benchmarks.tasks NAME FILE`` prints its cost as JSON.

Imports are done before the clock starts, so that a figure is the work on the file; CPU time includes that of worker
processes. Peak memory is that of the whole process (VmHWM), interpreter and libraries included.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.memory import peak_bytes

Task = Callable[[Path], object]


class TypedEvent(msgspec.Struct, gc=False):
    """The fields that the reader needs of each event."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    id: msgspec.Raw = msgspec.Raw(b"{}")
    args: msgspec.Raw = msgspec.Raw(b"{}")


class TypedFile(msgspec.Struct):
    """A trace as far as its events go."""

    events: list[TypedEvent] = msgspec.field(name="traceEvents")


NSYS_COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId streamId correlationId globalPid graphNodeId "
    "demangledName shortName mangledName gridX gridY gridZ blockX blockY blockZ registersPerThread "
    "staticSharedMemory dynamicSharedMemory",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId correlationId globalPid graphNodeId "
    "bytes copyKind srcKind dstKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid eventClass correlationId nameId returnValue",
    "NVTX_EVENTS": "start end globalTid eventType endGlobalTid textId domainId text",
}
"""The columns that the reader fetches from the generated export."""


def _json_load() -> Task:
    def run(path: Path) -> object:
        with path.open("rb") as file:
            return json.load(file)

    return run


def _typed_parse() -> Task:
    """One typed decode of the whole file, nothing else done."""
    decoder = msgspec.json.Decoder(TypedFile)
    return lambda path: decoder.decode(path.read_bytes())


def _sql_aggregate() -> Task:
    def run(path: Path) -> object:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return [
                database.execute(
                    f"SELECT {', '.join(_aggregate(column) for column in columns.split())} FROM {table}"
                ).fetchone()
                for table, columns in NSYS_COLUMNS.items()
            ]

    return run


def _aggregate(column: str) -> str:
    # total() adds as double: sums of times and ids do not fit into 64 bits
    return f'sum(length("{column}"))' if column == "text" else f'total("{column}")'


def _read() -> Task:
    from analyzer import pipeline

    return pipeline.read


def _diagnose(*options: str) -> Task:
    """The command itself, report included."""
    from analyzer import cli, pipeline
    from analyzer.report import cautions, findings, outputs

    del pipeline, cautions, findings, outputs  # the command imports them late; that is no work on the file

    def run(path: Path) -> object:
        with tempfile.TemporaryDirectory() as folder:
            try:
                cli.main(["diagnose", str(path), "-o", folder, "--quiet", *options])
            except SystemExit as ending:
                if ending.code:
                    raise
        return None

    return run


def _step_work(path: Path) -> Callable[[], object]:
    """What diagnose keeps for comparisons: each phase's work and its order. Reconstruction is done before."""
    from analyzer import pipeline
    from analyzer.explain.device.step_sequence import step_sequences
    from analyzer.explain.device.step_work import step_work
    from analyzer.explain.phase_windows import phase_windows
    from analyzer.reconstruct.rank import RankOptions, reconstruct_rank

    capture = pipeline.read(path)
    (rank,) = pipeline.analyze(capture).diagnosis.ranks
    account = reconstruct_rank(capture.traces[0], RankOptions(), sole_device=True)
    phases = phase_windows(account, rank)
    return lambda: step_sequences(account, 0, phases, step_work(account, 0, phases))


def _compare(path: Path) -> Callable[[], object]:
    """Two diagnoses held against each other: the capture's, and the same with another kernel in place of one."""
    from analyzer import pipeline
    from analyzer.comparison.runs import compare

    a = pipeline.analyze(pipeline.read(path)).diagnosis
    renamed = next(row.name for row in a.step_work if row.kind == "kernel")
    work = [
        msgspec.structs.replace(row, name="another") if row.name == renamed else row for row in a.step_work
    ]
    b = msgspec.structs.replace(a, step_work=work)
    return lambda: compare(a, b)


PREPARED: dict[str, Callable[[Path], Callable[[], object]]] = {
    "step work": _step_work,
    "compare": _compare,
}
"""Tasks whose input is made before the clock starts."""

TASKS: dict[str, Callable[[], Task]] = {
    "json.load": _json_load,
    "msgspec typed parse": _typed_parse,
    "SQL aggregate": _sql_aggregate,
    "read": _read,
    "diagnose": _diagnose,
    "diagnose ranks": partial(_diagnose, "--no-figures"),
    "diagnose ranks, 2 jobs": partial(_diagnose, "--no-figures", "--jobs", "2"),
}


def _cpu_s() -> float:
    """CPU time of this process and of the workers that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main(name: str, path: Path) -> None:
    """Run one task and print what it cost."""
    task = partial(TASKS[name](), path) if name in TASKS else PREPARED[name](path)
    wall, cpu = time.perf_counter(), _cpu_s()
    result = task()
    cost = {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": _cpu_s() - cpu,
        "peak_bytes": peak_bytes(),
    }
    del result  # held until here: freeing it is no part of the task
    print(json.dumps(cost))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
