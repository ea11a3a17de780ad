from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analyzer.errors import TraceError
from analyzer.model import CopyKind, MemoryKind, StreamFlag
from tests.readers.nsys_sqlite.builder import PID, VM, Export, device_names, gpid, gtid, reasons

COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"


def test_rows_are_sorted_and_ties_keep_the_order_of_the_file(tmp_path: Path) -> None:
    export = Export().kernel("c", 20, 30).kernel("b", 10, 15).kernel("a", 10, 15).kernel("long", 10, 90)
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == ["b", "a", "long", "c"]
    assert trace.device.position.tolist() == [1, 2, 3, 0]


def test_every_column_of_a_kernel(tmp_path: Path) -> None:
    shape = {"gridX": 2**31 - 1, "gridY": 2, "gridZ": 3, "blockX": 64, "blockY": 4, "blockZ": 1}
    memory = {"registersPerThread": 255, "staticSharedMemory": 49152, "dynamicSharedMemory": 100}
    (trace,) = Export().kernel("k", 5, 9, correlationId=77, **shape, **memory).read(tmp_path)
    device = trace.device
    assert device.grid.tolist() == [[2**31 - 1, 2, 3]] and device.block.tolist() == [[64, 4, 1]]
    assert (device.registers[0], device.shared_static[0], device.shared_dynamic[0]) == (255, 49152, 100)
    assert (device.start_ns[0], device.end_ns[0], device.correlation[0]) == (5, 9, 77)
    assert (device.bytes[0], device.copy_kind[0], device.occupancy_pct[0], device.collective[0]) == (-1,) * 4
    assert (device.grid.dtype, device.kind.dtype, device.start_ns.dtype) == (np.int32, np.int8, np.int64)


def test_absent_columns_are_not_recorded_and_not_zero(tmp_path: Path) -> None:
    (trace,) = Export().kernel("k", 5, 9).read(tmp_path)
    device = trace.device
    assert device.grid.tolist() == [[-1, -1, -1]]
    assert (device.registers[0], device.shared_static[0], device.graph_node[0], device.graph_exec[0]) == (
        -1,
    ) * 4


def test_without_the_dynamic_part_shared_memory_is_unknown(tmp_path: Path) -> None:
    (trace,) = Export().kernel("k", 5, 9, staticSharedMemory=1024).read(tmp_path)
    assert (trace.device.shared_static[0], trace.device.shared_dynamic[0]) == (-1, -1)


def test_times_before_zero_and_beyond_32_bits(tmp_path: Path) -> None:
    (trace,) = Export().kernel("k", -1, 2**53 + 1).read(tmp_path)
    assert (trace.device.start_ns[0], trace.device.end_ns[0]) == (-1, 2**53 + 1)


def test_unusable_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    export = Export().kernel("a", None, 5).kernel("b", 5, None).kernel("c", 9, 7).kernel("d", 10, 12)
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == ["c", "d"]
    assert trace.device.duration_ns.tolist() == [0, 2]
    assert reasons(trace) == {"no-start": 1, "no-end": 1, "negative-duration": 1}


def test_names_fall_back_from_demangled_to_short_to_mangled(tmp_path: Path) -> None:
    export = Export()
    short, mangled = export.text("short"), export.text("_Zmangled")
    export.kernel("full", 0, 1, mangledName=mangled)
    export.kernel("x", 1, 2, demangledName=900, shortName=short, mangledName=mangled)
    export.kernel("x", 2, 3, demangledName=None, shortName=901, mangledName=mangled)
    export.kernel("x", 3, 4, demangledName=902, shortName=903, mangledName=None)
    export.kernel("x", 4, 5, demangledName=None, shortName=None, mangledName=None)
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == [
        "full",
        "short",
        "_Zmangled",
        "<string id 902 is missing>",
        "<kernel name not recorded>",
    ]
    assert reasons(trace) == {"full-name-missing": 2, "missing-string": 1}


def test_names_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    export.tables["StringIds"][0]["value"] = b"bad \xff name"
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == ["bad � name"]


def test_copies_with_and_without_memory_kinds(tmp_path: Path) -> None:
    export = Export()
    row = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": gpid(), "bytes": 8}
    for start, (kind, source, target) in enumerate([(1, 1, 2), (10, 2, 2), (1, None, None), (99, 0, 2)]):
        export.row(COPIES, start=start, end=start + 1, copyKind=kind, srcKind=source, dstKind=target, **row)
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == [
        "Memcpy HtoD (Pinned -> Device)",
        "Memcpy PtoP (Device -> Device)",
        "Memcpy HtoD",
        "Memcpy (Pageable -> Device)",
    ]
    assert trace.device.copy_kind.tolist() == [CopyKind.HTOD, CopyKind.PTOP, CopyKind.HTOD, CopyKind.UNKNOWN]
    assert trace.device.src_memory.tolist() == [MemoryKind.PINNED, MemoryKind.DEVICE, -1, MemoryKind.PAGEABLE]
    assert reasons(trace) == {"unknown-copy-kind": 1}


def test_sets_name_their_memory(tmp_path: Path) -> None:
    row = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": gpid(), "bytes": 8}
    export = Export()
    for start, kind in enumerate([2, None, 1]):
        export.row("CUPTI_ACTIVITY_KIND_MEMSET", start=start, end=start + 1, memKind=kind, **row)
    (trace,) = export.read(tmp_path)
    assert device_names(trace) == ["Memset (Device)", "Memset", "Memset (Pinned)"]


def test_lanes_tell_equal_stream_numbers_of_contexts_apart(tmp_path: Path) -> None:
    export = (
        Export().kernel("a", 0, 1, contextId=1).kernel("b", 1, 2, contextId=2).kernel("c", 2, 3, contextId=1)
    )
    stream = {"hwId": 0, "vmId": 1, "processId": PID, "priority": 0}
    export.row("TARGET_INFO_CUDA_STREAM", contextId=2, streamId=7, flag=2, **stream)
    export.row("TARGET_INFO_CUDA_STREAM", contextId=1, streamId=7, flag=1, **{**stream, "processId": PID + 1})
    null = {"hwId": 0, "vmId": 1, "processId": PID, "deviceId": 0, "contextId": 1}
    export.row("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=7, **null)
    (trace,) = export.read(tmp_path)
    assert trace.device.lane.tolist() == [0, 1, 0]
    assert [(lane.context, lane.flag) for lane in trace.process.lanes] == [
        (1, StreamFlag.NULL),
        (2, StreamFlag.NON_BLOCKING),
    ]


def test_rows_without_a_process_belong_to_the_only_one(tmp_path: Path) -> None:
    export = Export().kernel("a", 0, 1, globalPid=None).call("cudaLaunchKernel_v7000", 0, 1)
    (trace,) = export.read(tmp_path)
    assert (trace.process.pid, len(trace.device), reasons(trace)) == (str(PID), 1, {})


def test_rows_without_a_process_are_nobodys_among_several(tmp_path: Path) -> None:
    export = Export().kernel("a", 0, 1, globalPid=None).kernel("b", 0, 1, pid=1).kernel("c", 0, 1, pid=2)
    traces = export.read(tmp_path)
    assert [device_names(trace) for trace in traces if trace.process.pid in "12"] == [["b"], ["c"]]
    assert reasons(traces[0]) == {"no-process": 1}


def test_a_pid_that_two_machines_share_is_told_apart(tmp_path: Path) -> None:
    other = VM | 200 << 56 | PID << 24
    other -= 1 << 64  # as SQLite stores it: hardware ids from 128 on make it negative
    export = Export().kernel("a", 0, 1).kernel("b", 0, 1, globalPid=other)
    export.call("cudaLaunchKernel_v7000", 0, 1, globalTid=other | 5)
    traces = export.read(tmp_path)
    assert {trace.process.pid for trace in traces} == {str(gpid()), str(other)}
    assert [len(trace.process.host) for trace in traces if trace.process.pid == str(other)] == [1]


def test_ordinals_kept_as_reals_by_another_tool_are_read(tmp_path: Path) -> None:
    (trace,) = Export().kernel("a", 0, 1, streamId=7.0).kernel("b", 1, 2, streamId=None).read(tmp_path)
    assert [lane.stream for lane in trace.process.lanes] == [-1, 7]


@pytest.mark.parametrize("value", ["soon", b"\x00\x01", 1.5, 2.0**60])
def test_what_is_no_whole_number_is_refused_with_its_place(tmp_path: Path, value: object) -> None:
    export = Export().kernel("a", 0, 1).kernel("b", 1, 2)
    export.tables["CUPTI_ACTIVITY_KIND_KERNEL"][1]["start"] = value
    with pytest.raises(TraceError, match="table CUPTI_ACTIVITY_KIND_KERNEL, row 2, column start"):
        export.read(tmp_path)


def test_a_bad_value_far_down_is_refused_too(tmp_path: Path) -> None:
    export = Export()
    for start in range(70_000):  # beyond the first batch, whose types count for the rest
        export.kernel("k", start, start + 1)
    export.tables["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["end"] = "later"
    with pytest.raises(TraceError, match=r"row 70000, column end.*the file holds TEXT"):
        export.read(tmp_path)


def test_a_column_that_overflows_its_width_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"column registersPerThread.*does not fit in 32 bits"):
        Export().kernel("k", 0, 1, registersPerThread=2**40).read(tmp_path)


def test_no_trace_for_helpers_beside_device_work(tmp_path: Path) -> None:
    export = Export().kernel("a", 0, 1)
    export.call("cudaGetDeviceCount_v3020", 0, 1, globalTid=gtid(7))
    export.call("cuLaunchHostFunc", 0, 1, globalTid=gtid(8))
    export.call("cuLaunchKernelEx", 0, 1, globalTid=gtid(9))
    export.nvtx("range", 0, 1, globalTid=gtid(10))
    assert [(t.process.pid, t.device_info is None) for t in export.read(tmp_path)] == [
        ("9", True),
        (str(PID), False),
    ]


def test_everyone_with_calls_or_ranges_where_nobody_has_device_work(tmp_path: Path) -> None:
    export = (
        Export().call("cudaGetDeviceCount_v3020", 0, 1, globalTid=gtid(7)).nvtx("r", 0, 1, globalTid=gtid(8))
    )
    export.row("OSRT_API", start=0, end=1, eventClass=27, globalTid=gtid(9), nameId=export.text("poll"))
    traces = export.read(tmp_path)
    assert [(t.process.pid, len(t.device), t.device_info) for t in traces] == [("7", 0, None), ("8", 0, None)]
