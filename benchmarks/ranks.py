"""Writes the torch.profiler traces of many tensor-parallel ranks that decode together, one file each.

Per step and rank: 20 layers of seven kernels and two all-reduces, a copy of the tokens to the host that ends the
step, and vLLM's annotation around it. Every kernel costs the host more than it runs. All-reduces carry torch's
metadata; each rank's starts when its host has come so far, all end within 3 us. One rank dispatches slower
than the others. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.kineto import BASE_NS, flow, span, write_events
from benchmarks.schedule import COLLECTIVE, KERNELS

EVENTS_PER_STEP = 988
"""7 * 20 kernels of 5 events, 40 all-reduces of 7, and 8 for the step."""
STEP = "execute_context_0(0)_generation_8(8)"
LAYERS, BEFORE, BETWEEN = 20, 4, 3
"""Layers, and how many kernels come before a layer's first and between its two all-reduces."""
STREAM = 7

_CALL_NS, _LAUNCH_NS, _TURNAROUND_NS, _RETURN_NS = 4_000, 5_000, 1_100, 6_000
_TRANSFER_NS = 14_000
_ELEMENTS = 8 * 4_096
_OPERATORS = ("aten::mm", "vllm::unified_attention", "vllm::silu_and_mul", "vllm::fused_add_rms_norm")

Times = npt.NDArray[np.int64]
"""(ranks,) ns."""


@dataclass(frozen=True)
class Launch:
    """One launch of all ranks. ``kernel``: its number in the step, -1 for the all-reduce."""

    kernel: int
    host_ns: Times
    call_ns: Times
    start_ns: Times
    end_ns: Times


@dataclass(frozen=True)
class Step:
    """One step of all ranks, with the copy that ends it."""

    start_ns: Times
    end_ns: Times
    copy: Launch
    launches: tuple[Launch, ...]


@dataclass
class _State:
    """Clocks of all ranks: each host, and when each device is free."""

    ranks: int
    late: int
    host_ns: Times
    free_ns: Times
    count: int = field(default=0)

    def noise(self, below: int) -> Times:
        """Something between 0 and ``below`` ns, another one for each launch and rank."""
        self.count += 1
        return (np.arange(self.ranks) * 7_919 + self.count * 104_729) % below

    def launch(self, kernel: int, duration_ns: int) -> Launch:
        """Dispatch, launch, run; an all-reduce runs until all have come and 14 us longer."""
        host = self.host_ns
        dispatch = 24_000 + self.noise(4_000)
        dispatch[self.late] += 2_500
        call = host + dispatch
        start = np.maximum(call + _LAUNCH_NS, self.free_ns + _TURNAROUND_NS)
        begin, spread = (start.max(), 3_000) if kernel < 0 else (start, 200)
        end = begin + duration_ns + self.noise(spread)
        self.host_ns, self.free_ns = call + _CALL_NS, end
        return Launch(kernel, host, call, start, end)


def late_rank(ranks: int) -> int:
    """The rank that dispatches slower than the others."""
    return ranks // 2 + 1 if ranks > 2 else ranks - 1


def steps(ranks: int, count: int) -> Iterator[Step]:
    """``count`` steps, one at a time."""
    state = _State(ranks, late_rank(ranks), np.full(ranks, 5_000_000), np.zeros(ranks, np.int64))
    for _ in range(count):
        start = state.host_ns
        state.host_ns = start + 250_000 + state.noise(20_000)
        launches = []
        for place in range(LAYERS * (BEFORE + BETWEEN)):
            launches.append(state.launch(place, 3_000 + 1_700 * (place % 7)))
            if place % (BEFORE + BETWEEN) in (BEFORE - 1, BEFORE + BETWEEN - 1):
                launches.append(state.launch(-1, _TRANSFER_NS))
        copy = state.launch(LAYERS * (BEFORE + BETWEEN), 1_500)
        state.host_ns = state.free_ns + _RETURN_NS
        end = state.host_ns + 2_000
        state.host_ns = end + 150_000 + state.noise(30_000)
        yield Step(start, end, copy, tuple(launches))


def write(folder: Path, ranks: int, events: int = 20_000) -> int:
    """Write ``rank<N>.pt.trace.json`` of about ``events`` events each; returns how many in all."""
    every = list(steps(ranks, max(3, round(events / EVENTS_PER_STEP))))
    return sum(
        write_events(folder / f"rank{rank}.pt.trace.json", _events(every, rank, ranks), _head(rank, ranks))
        for rank in range(ranks)
    )


def _head(rank: int, ranks: int) -> dict[str, object]:
    group = {"pg_name": "2", "pg_desc": "tp", "pg_size": ranks, "ranks": list(range(ranks))}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": rank % 8, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
        "distributedInfo": {
            "backend": "nccl", "rank": rank, "world_size": ranks, "pg_count": 1, "pg_config": [group],
        },
        "baseTimeNanoseconds": BASE_NS,
        "displayTimeUnit": "ms",
    }  # fmt: skip


def _events(every: list[Step], rank: int, ranks: int) -> Iterator[str]:
    pid, number, sequence = 4_000 + rank, 1, 1
    members = f"[{', '.join(map(str, range(ranks)))}]"
    for step in every:
        yield span(
            "user_annotation", STEP, pid, pid, step.start_ns[rank], step.end_ns[rank],
            f'"External id": {number}, "Record function id": 0, "Ev Idx": {number}',
        )  # fmt: skip
        first = step.launches[0].call_ns[rank]
        yield span(
            "user_annotation", "gpu_model_runner: preprocess", pid, pid,
            step.start_ns[rank] + 2_000, first - 2_000, f'"External id": {number}',
        )  # fmt: skip
        for launch in step.launches:
            if launch.kernel < 0:
                yield from _all_reduce(launch, rank, number, _meta(ranks, members, rank, sequence))
                sequence += 1
            else:
                yield from _kernel(launch, rank, number)
            number += 1
        yield from _copy(step.copy, rank, number, int(step.end_ns[rank]))
        number += 1


def _meta(ranks: int, members: str, rank: int, sequence: int) -> str:
    return (
        f'"Collective name": "allreduce", "In msg nelems": {_ELEMENTS}, "Out msg nelems": {_ELEMENTS}, '
        f'"Group size": {ranks}, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", '
        f'"Process Group Name": "2", "Process Group Description": "tp", "Process Group Ranks": "{members}", '
        f'"Rank": {rank}, "Seq": {sequence}'
    )


def _all_reduce(launch: Launch, rank: int, number: int, meta: str) -> Iterator[str]:
    """The operator, torch's record and annotation, the launch and the kernel."""
    pid, call = 4_000 + rank, int(launch.call_ns[rank])
    outer = f'"External id": {number}, "Record function id": 0, "Ev Idx": {number}'
    yield span("cpu_op", "vllm::all_reduce", pid, pid, int(launch.host_ns[rank]) + 500, call + 4_500, outer)
    yield span("cpu_op", "record_param_comms", pid, pid, call - 3_000, call + 4_300, f"{outer}, {meta}")
    yield span("user_annotation", "nccl:all_reduce", pid, pid, call - 2_000, call + 4_200, outer)
    yield from _launched(
        launch, rank, number, "cudaLaunchKernelExC", COLLECTIVE, f'"grid": [24, 1, 1], {meta}'
    )


def _kernel(launch: Launch, rank: int, number: int) -> Iterator[str]:
    pid, operator = 4_000 + rank, _OPERATORS[launch.kernel % len(_OPERATORS)]
    outer = f'"External id": {number}, "Record function id": 0, "Ev Idx": {number}'
    host, call = int(launch.host_ns[rank]), int(launch.call_ns[rank])
    yield span("cpu_op", operator, pid, pid, host + 500, call + _CALL_NS + 300, outer)
    grid = f'"grid": [{32 + launch.kernel % 7}, 1, 1]'
    name = KERNELS[launch.kernel % len(KERNELS)]
    yield from _launched(launch, rank, number, "cudaLaunchKernel", name, grid)


def _launched(
    launch: Launch, rank: int, number: int, call_name: str, name: str, arguments: str
) -> Iterator[str]:
    """The launch call, its kernel, and the arrow between them."""
    pid, device, call = 4_000 + rank, rank % 8, int(launch.call_ns[rank])
    start, end = int(launch.start_ns[rank]), int(launch.end_ns[rank])
    link = f'"External id": {number}, "correlation": {number}'
    yield span("cuda_runtime", call_name, pid, pid, call, call + _CALL_NS, f'"cbid": 211, {link}')
    yield flow("s", number, "ac2g", pid, pid, call)
    yield span(
        "kernel", name, device, STREAM, start, end,
        f'{link}, "device": {device}, "context": 1, "stream": {STREAM}, "queued": 0, "block": [256, 1, 1], '
        f'"registers per thread": 64, "shared memory": 16384, {arguments}',
    )  # fmt: skip
    yield flow("f", number, "ac2g", device, STREAM, start)


def _copy(launch: Launch, rank: int, number: int, end: int) -> Iterator[str]:
    """The tokens' way to the host, for which the call waits."""
    pid, device, call = 4_000 + rank, rank % 8, int(launch.call_ns[rank])
    link = f'"External id": {number}, "correlation": {number}'
    returned = end - 2_000
    outer = f'"External id": {number}, "Record function id": 0, "Ev Idx": {number}'
    yield span("cpu_op", "aten::to", pid, pid, int(launch.host_ns[rank]) + 300, returned + 500, outer)
    yield span("cpu_op", "aten::copy_", pid, pid, int(launch.host_ns[rank]) + 600, returned + 200, outer)
    yield span("cuda_runtime", "cudaMemcpyAsync", pid, pid, call, returned, f'"cbid": 41, {link}')
    yield flow("s", number, "ac2g", pid, pid, call)
    yield span(
        "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", device, STREAM,
        int(launch.start_ns[rank]), int(launch.end_ns[rank]),
        f'{link}, "device": {device}, "context": 1, "stream": {STREAM}, "bytes": 64',
    )  # fmt: skip
    yield flow("f", number, "ac2g", device, STREAM, int(launch.start_ns[rank]))
