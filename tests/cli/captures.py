"""A literal capture with two streams, three kernels and one copy, for the command line's tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzer.model import (
    Capture,
    DeviceInfo,
    DeviceKind,
    DeviceTable,
    Diagnostic,
    EventRecordTable,
    FlowTable,
    HostTable,
    Lane,
    ProcessTrace,
    QualityEntry,
    Source,
    SyncTable,
    Thread,
    Trace,
)

NAMES = ("gemm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "[CUDA memcpy DtoH]", "\x1b[31mred|[bold]x")


def _wide(*values: int) -> Any:
    return np.array(values, np.int64)


def _codes(*values: int) -> Any:
    return np.array(values, np.int32)


def _nothing(kind: type) -> Any:
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: np.zeros(0, np.int64) for name in names})


def device_table() -> DeviceTable:
    unknown = _wide(-1, -1, -1, -1)
    return DeviceTable(
        start_ns=_wide(0, 100, 200, 300),
        end_ns=_wide(90, 190, 290, 400),
        kind=np.array([DeviceKind.KERNEL, DeviceKind.KERNEL, DeviceKind.COPY, DeviceKind.KERNEL], np.int8),
        lane=_codes(0, 1, 0, 0),
        name=_codes(0, 1, 2, 3),
        correlation=_wide(1, 2, 3, 4),
        graph_exec=unknown,
        graph_node=unknown,
        grid=np.ones((4, 3), np.int32),
        block=np.ones((4, 3), np.int32),
        registers=_codes(-1, -1, -1, -1),
        shared_static=unknown,
        shared_dynamic=unknown,
        occupancy_pct=_codes(-1, -1, -1, -1),
        bytes=unknown,
        copy_kind=np.array([-1, -1, 2, -1], np.int8),
        src_memory=np.array([-1, -1, 2, -1], np.int8),
        dst_memory=np.array([-1, -1, 1, -1], np.int8),
        collective=_codes(-1, -1, -1, -1),
        position=_wide(0, 1, 2, 3),
    )


def capture(path: str = "decode.sqlite", partial: bool = False) -> Capture:
    source = Source(
        path=path,
        kind="nsys-sqlite",
        profiler_version="2024.5.1",
        partial=partial,
        captured=frozenset({"kernel", "copy", "call"}),
        diagnostics=(Diagnostic(2, "Some events were \x1b[1mlost"),),
        quality=(QualityEntry("unlinked", 1, 4, "One start is not explained."),),
    )
    process = ProcessTrace(
        pid="4711",
        name="python",
        names=NAMES,
        threads=(Thread("1"),),
        lanes=(Lane(0, 1, 7), Lane(0, 1, 13)),
        host=_nothing(HostTable),
        syncs=_nothing(SyncTable),
        event_records=_nothing(EventRecordTable),
        flows=_nothing(FlowTable),
    )
    info = DeviceInfo(index=0, name="NVIDIA H200", sm_count=132)
    return Capture(
        traces=(Trace(source, process, info, device_table()),), ranks=(0,), rank_basis="one device"
    )
