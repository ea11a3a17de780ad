"""Writes a large torch.profiler trace, event by event.

Per op: Python frames, nested ``cpu_op``s, the runtime call, the device event and the two ends of the
``ac2g`` flow; per step: an annotation on the host and on the device, a synchronization, forward-backward
flows. Field order and arguments are those of torch 2.x.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.schedule import COLLECTIVE, COPY_NAME, MAIN, STREAMS, Op, Step, steps

PID = 4711
TIDS = (4711, 4790)
BASE_NS = 1_790_857_026_000_000_000
EVENTS_PER_OP = 8.25
"""Events that one op brings on average, see ``_op``."""
_WRITE_EVENTS = 4096
_FRAMES = tuple(f"torch/nn/modules/module.py({line}): _call_impl" for line in range(1500, 1900))

_HEAD: dict[str, object] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
    "with_stack": 1,
    "baseTimeNanoseconds": BASE_NS,
    "displayTimeUnit": "ms",
}


def write(path: Path, events: int, ops_per_step: int = 480) -> int:
    """Write a trace of about ``events`` events; returns how many."""
    count = max(4, round(events / (ops_per_step * EVENTS_PER_OP)))
    return write_events(path, _events(count, ops_per_step))


def write_kernels(path: Path, kernels: int) -> int:
    """Write the plainest trace: one op, one launch, one flow and one kernel each, no step markers."""
    return write_events(path, _plain(kernels))


def write_events(path: Path, events: Iterator[str], head: dict[str, object] = _HEAD) -> int:
    """Write a file of these events, each as its text; returns how many."""
    written, waiting = 0, []
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        for event in events:
            waiting.append(event)
            if len(waiting) == _WRITE_EVENTS:
                file.write((",\n" if written else "") + ",\n".join(waiting))
                written += len(waiting)
                waiting = []
        file.write((",\n" if written and waiting else "") + ",\n".join(waiting))
        file.write("\n]}\n")
    return written + len(waiting)


def us(ns: int) -> str:
    """Nanoseconds as the profiler prints microseconds."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def span(category: str, name: str, pid: int, tid: int, start: int, end: int, arguments: str) -> str:
    """One complete event; ``arguments`` is the inside of its JSON object. Times are ns."""
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid}, '
        f'"ts": {us(start)}, "dur": {us(end - start)}, "args": {{{arguments}}}}}'
    )


def flow(phase: str, number: int, kind: str, pid: int, tid: int, at: int) -> str:
    """One end of an arrow, phase ``s`` or ``f``, at an instant in ns."""
    end = ', "bp": "e"' if phase == "f" else ""
    return (
        f'{{"ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {us(at)}, '
        f'"cat": "{kind}", "name": "{kind}"{end}}}'
    )


def _labels() -> Iterator[str]:
    for pid, name in ((PID, "python"), (0, "python")):
        yield (
            f'{{"name": "process_name", "ph": "M", "ts": 0.000, "pid": {pid}, "tid": 0, '
            f'"args": {{"name": "{name}"}}}}'
        )
    for tid in TIDS:
        yield (
            f'{{"name": "thread_name", "ph": "M", "ts": 0.000, "pid": {PID}, "tid": {tid}, '
            f'"args": {{"name": "thread {tid} (python)"}}}}'
        )


def _events(count: int, ops_per_step: int) -> Iterator[str]:
    yield from _labels()
    for step in steps(count, ops_per_step):
        yield from _step(step)


def _step(step: Step) -> Iterator[str]:
    name = f"ProfilerStep#{step.index}"
    tid = TIDS[MAIN]
    number = (step.ops[-1].index + 2) * 4  # correlation ids of ops are multiples of four plus one
    yield span("user_annotation", name, PID, tid, step.start_ns, step.end_ns, f'"External id": {number}')
    yield span(
        "python_function", "train.py(120): train_step", PID, tid, step.start_ns + 100, step.end_ns - 100,
        f'"Python id": {number}, "Python parent id": null',
    )  # fmt: skip
    for op in step.ops:
        yield from _op(op)
    yield span(
        "cuda_runtime", "cudaStreamSynchronize", PID, tid, step.sync_ns, step.sync_end_ns,
        f'"cbid": 131, "correlation": {number}',
    )  # fmt: skip
    yield span(
        "gpu_user_annotation", name, 0, STREAMS[0], step.ops[0].work_ns, step.ops[-1].work_end_ns,
        f'"External id": {number}',
    )  # fmt: skip


def _op(op: Op) -> Iterator[str]:
    tid, number = TIDS[op.thread], 4 * op.index + 1
    frame = _FRAMES[op.index % len(_FRAMES)]
    outer, inner = ("aten::linear", "aten::addmm") if op.index % 3 else ("aten::add_", "aten::copy_")
    shape = f'"External id": {number}, "Record function id": {op.index}, "Ev Idx": {op.index}'
    yield span(
        "python_function", frame, PID, tid, op.start_ns + 200, op.end_ns - 200,
        f'"Python id": {op.index}, "Python parent id": 1, "Python module id": {op.index % 97}',
    )  # fmt: skip
    yield span(
        "python_function", "torch/nn/functional.py(2100): linear", PID, tid, op.start_ns + 300, op.end_ns - 300,
        f'"Python id": {op.index}, "Python parent id": {op.index}',
    )  # fmt: skip
    yield span("cpu_op", outer, PID, tid, op.start_ns + 400, op.end_ns - 400, shape)
    yield span("cpu_op", inner, PID, tid, op.start_ns + 900, op.end_ns - 600, shape)
    launched = "cudaMemcpyAsync" if op.name == COPY_NAME else "cudaLaunchKernel"
    yield span(
        "cuda_runtime", launched, PID, tid, op.call_ns, op.call_end_ns,
        f'"External id": {number}, "cbid": 211, "correlation": {number}',
    )  # fmt: skip
    yield flow("s", number, "ac2g", PID, tid, op.call_ns)
    yield _device(op, number)
    yield flow("f", number, "ac2g", 0, op.stream, op.work_ns)
    if op.index % 8 == 0:
        yield flow("s", number, "fwdbwd", PID, TIDS[0], op.start_ns + 400)
        yield flow("f", number, "fwdbwd", PID, TIDS[1], op.start_ns + 450)


def _device(op: Op, number: int) -> str:
    common = (
        f'"External id": {number}, "device": 0, "context": 1, "stream": {op.stream}, "correlation": {number}'
    )
    if op.name == COPY_NAME:
        arguments = f'{common}, "bytes": 1048576, "memory bandwidth (GB/s)": 24.5'
        return span("gpu_memcpy", op.name, 0, op.stream, op.work_ns, op.work_end_ns, arguments)
    grid = 1 if op.name == COLLECTIVE else 432 + op.index % 7
    arguments = (
        f'{common}, "queued": 0, "registers per thread": 64, "shared memory": 16384, '
        f'"blocks per SM": 4.0, "warps per SM": 16.0, "grid": [{grid}, 1, 1], "block": [128, 1, 1], '
        '"est. achieved occupancy %": 25'
    )
    return span("kernel", op.name, 0, op.stream, op.work_ns, op.work_end_ns, arguments)


def _plain(kernels: int) -> Iterator[str]:
    yield from _labels()
    for i in range(kernels):
        t, number, tid = 20_000 * i, i + 1, TIDS[MAIN]
        yield span("cpu_op", "aten::mm", PID, tid, t, t + 8_000, f'"External id": {number}')
        yield span(
            "cuda_runtime", "cudaLaunchKernel", PID, tid, t + 2_000, t + 6_000,
            f'"External id": {number}, "correlation": {number}',
        )  # fmt: skip
        yield flow("s", number, "ac2g", PID, tid, t + 2_000)
        yield flow("f", number, "ac2g", 0, 7, t + 10_000)
        yield span(
            "kernel", f"gemm_{i % 50}", 0, 7, t + 10_000, t + 15_000,
            f'"External id": {number}, "device": 0, "stream": 7, "correlation": {number}',
        )  # fmt: skip
