"""A plausible schedule for large traces: steps of launches on two threads, work on three streams.

One step: the main thread submits the forward half, a second thread the backward half, and the main
thread waits for the compute stream at its end. Every second step is launch-bound, the others queue up.
All times are integer nanoseconds. Nothing is random, so a size names a file exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAIN, BACKWARD = 0, 1
COMPUTE, COPY, COMM = 7, 20, 24
STREAMS = (COMPUTE, COPY, COMM)

KERNELS = (
    *(f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_{m}x{n}>(Params)" for m in (64, 128, 256)
      for n in (32, 64, 128, 256)),
    *(f"void at::native::vectorized_elementwise_kernel<{n}, at::native::CUDAFunctor_add>(int)" for n in range(8)),
    *(f"triton_poi_fused_add_mul_{n}" for n in range(24)),
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)",
    "void layer_norm_kernel<float, float>(int, float, float const*)",
)  # fmt: skip
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY_NAME = "Memcpy HtoD (Pinned -> Device)"

_HOST_NS = 9_000
_CALL_NS = 4_000
_LATENCY_NS = 6_000
_GAP_NS = 900
_START_NS = 5_000_000


@dataclass(frozen=True)
class Op:
    """One framework operator: host span, the launch inside it and the device work it brings."""

    index: int
    thread: int
    start_ns: int
    end_ns: int
    call_ns: int
    call_end_ns: int
    stream: int
    name: str
    work_ns: int
    work_end_ns: int


@dataclass(frozen=True)
class Step:
    """One step: its ops in submission order and the wait that ends it."""

    index: int
    start_ns: int
    end_ns: int
    sync_ns: int
    sync_end_ns: int
    ops: tuple[Op, ...]


@dataclass
class _State:
    host_ns: int = _START_NS
    op: int = 0
    free_ns: dict[int, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))


def steps(count: int, ops_per_step: int) -> Iterator[Step]:
    """``count`` steps of ``ops_per_step`` ops each, one at a time (nothing is kept)."""
    state = _State()
    for index in range(count):
        start = state.host_ns
        ops = tuple(_op(state, at, ops_per_step, slow=index % 2 == 1) for at in range(ops_per_step))
        sync = state.host_ns + 2_000
        returned = max(sync + 1_000, state.free_ns[COMPUTE] + 5_000)
        state.host_ns = returned + 10_000
        yield Step(index, start, returned + 4_000, sync, returned, ops)


def _op(state: _State, at: int, ops_per_step: int, *, slow: bool) -> Op:
    index, start = state.op, state.host_ns
    call = start + 3_000
    returned = call + _CALL_NS
    if at % 32 == 31:
        stream, name, length = COMM, COLLECTIVE, 40_000
    elif at % 16 == 15:
        stream, name, length = COPY, COPY_NAME, 8_000
    else:
        stream, name, length = COMPUTE, KERNELS[at % len(KERNELS)], 11_000 if slow else 3_000
    begin = max(call + _LATENCY_NS, state.free_ns[stream] + _GAP_NS)
    state.free_ns[stream] = begin + length
    state.host_ns = start + _HOST_NS
    state.op += 1
    thread = BACKWARD if 2 * at >= ops_per_step else MAIN
    return Op(
        index, thread, start, start + _HOST_NS - 500, call, returned, stream, name, begin, begin + length
    )
