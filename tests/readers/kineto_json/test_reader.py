import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import TraceError
from analyzer.model import CopyKind, DeviceKind, HostKind, MemoryKind
from analyzer.readers.kineto_json import looks_like
from tests.readers.kineto_json.builder import call, host, kernel, names, one, reasons, rows, text_of, traces


def test_every_old_category_name_has_its_kind(tmp_path: Path) -> None:
    categories = ["Operator", "cpu_op", "Runtime", "cuda_driver", "user_annotation", "python_function"]
    events = [host(category, f"h{i}", i, 1) for i, category in enumerate(categories)]
    events += [
        dict(kernel(f"d{i}", i, 1), cat=cat) for i, cat in enumerate(["Kernel", "Memcpy", "gpu_memset"])
    ]
    events += [host("overhead", "Buffer Flush", 9, 1, pid=-1, tid=0), host("gpu_user_annotation", "x", 1, 1)]
    trace = one(tmp_path, text_of(events))
    kinds = [
        HostKind.OVERHEAD,
        HostKind.OP,
        HostKind.OP,
        HostKind.CALL,
        HostKind.CALL,
        HostKind.RANGE,
        HostKind.FRAME,
    ]
    assert trace.process.host.kind.tolist() == kinds
    assert trace.process.host.thread.tolist() == [-1, 0, 0, 0, 0, 0, 0]
    assert trace.device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.COPY, DeviceKind.SET]
    assert [thread.tid for thread in trace.process.threads] == ["100"]


def test_threads_are_told_apart_whatever_their_ids_are(tmp_path: Path) -> None:
    ids: list[Any] = [7, 7 + 2**32, 7 + 2**64, -7, "7", "worker", 7.0, None]
    events = [host("cpu_op", "op", i, 1, tid=tid) for i, tid in enumerate(ids)]
    events.append(host("python_function", "unknown thread", 9, 1, pid=0, tid=0))
    events.append({"ph": "M", "name": "thread_name", "pid": 100, "tid": "7", "args": {"name": "main"}})
    process = one(tmp_path, text_of(events)).process
    assert [t.tid for t in process.threads] == [
        "7",
        "4294967303",
        "18446744073709551623",
        "-7",
        "worker",
        "?",
        "0/0",
    ]
    assert process.threads[0].name == "main"
    assert process.pid == "100"


def test_hosts_are_ordered_by_thread_start_and_longest_first(tmp_path: Path) -> None:
    events = [
        host("cpu_op", "inner", 5, 1),
        host("cpu_op", "outer", 5, 9),
        host("cpu_op", "early", 1, 1, tid=5),
    ]
    process = one(tmp_path, text_of(events)).process
    assert names(process, process.host) == ["outer", "inner", "early"]
    assert process.host.position.tolist() == [1, 0, 2]


def test_device_work_is_ordered_by_start_end_and_position(tmp_path: Path) -> None:
    events = [kernel("c", 2, 1), kernel("b", 1, 3), kernel("a", 1, 2), kernel("d", 2, 1)]
    trace = one(tmp_path, text_of(events))
    assert names(trace.process, trace.device) == ["a", "b", "c", "d"]


def test_kernel_arguments(tmp_path: Path) -> None:
    args = {
        "grid": [4, 5, 6],
        "block": [128, 1, 1],
        "registers per thread": 32,
        "shared memory": 4096,
        "est. achieved occupancy %": 47,
        "graph id": 3,
        "graph node id": (3 << 32) | 9,
    }
    trace = one(tmp_path, text_of([kernel("k", 1, 1, 12, **args), kernel("plain", 2, 1)]))
    device = trace.device
    assert device.grid.tolist() == [[4, 5, 6], [-1, -1, -1]]
    assert device.block.tolist() == [[128, 1, 1], [-1, -1, -1]]
    columns = ("correlation", "registers", "shared_static", "shared_dynamic", "occupancy_pct", "graph_exec")
    assert rows(device, *columns) == [(12, 32, 4096, -1, 47, 3), (0, -1, -1, -1, -1, -1)]
    assert device.graph_node.tolist() == [(3 << 32) | 9, -1]
    assert "graph-node" in trace.source.captured


def test_arguments_of_unexpected_types_are_not_recorded_and_harm_no_other(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"grid": {"x": 1}, "registers per thread": [1], "shared memory": "12"}
    events = [
        kernel("odd", 1, 1, 5, **odd),
        kernel("short", 2, 1, 2**63, grid=[1, 2]),
        kernel("k", 3, 1, 7, grid=[1, 1, 1]),
    ]
    device = one(tmp_path, text_of(events)).device
    assert rows(device, "correlation", "registers", "shared_static") == [
        (5, -1, 12),
        (0, -1, -1),
        (7, -1, -1),
    ]
    assert device.grid.tolist() == [[-1, -1, -1], [-1, -1, -1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("name", "kind", "source", "target"),
    [
        ("Memcpy HtoD (Pinned -> Device)", CopyKind.HTOD, MemoryKind.PINNED, MemoryKind.DEVICE),
        ("Memcpy DtoH (Device -> Pageable)", CopyKind.DTOH, MemoryKind.DEVICE, MemoryKind.PAGEABLE),
        ("Memcpy PtoP (Device -> Device)", CopyKind.PTOP, MemoryKind.DEVICE, MemoryKind.DEVICE),
        ("Memcpy HtoD (Host -> Device)", CopyKind.HTOD, -1, MemoryKind.DEVICE),
        ("CopyHostToDevice", CopyKind.HTOD, -1, -1),
        ("CopyDeviceToDevice", CopyKind.DTOD, -1, -1),
        ("something else", CopyKind.UNKNOWN, -1, -1),
    ],
)
def test_copies_by_name(tmp_path: Path, name: str, kind: int, source: int, target: int) -> None:
    event = dict(kernel(name, 1, 1, bytes=8), cat="gpu_memcpy")
    device = one(tmp_path, text_of([event])).device
    assert rows(device, "copy_kind", "src_memory", "dst_memory", "bytes") == [(kind, source, target, 8)]


def test_a_copy_kind_given_as_an_argument_fills_in(tmp_path: Path) -> None:
    device = one(tmp_path, text_of([dict(kernel("x", 1, 1, kind="DtoH"), cat="gpu_memcpy")])).device
    assert device.copy_kind.tolist() == [CopyKind.DTOH]


def test_lanes_keep_all_bits_and_old_stream_names(tmp_path: Path) -> None:
    old = {
        "ph": "X",
        "cat": "Kernel",
        "name": "k",
        "pid": 0,
        "tid": "stream 7",
        "ts": 1,
        "dur": 1,
        "args": {},
    }
    events = [kernel("a", 1, 1, stream=2**64 - 5), kernel("b", 2, 1, stream=5), old]
    peer = {"inDevice": 0, "inContext": 1, "stream": 5, "toDevice": 1}
    events.append(dict(kernel("Memcpy PtoP", 3, 1), cat="gpu_memcpy", args=peer))
    lanes = [(x.device, x.context, x.stream) for x in one(tmp_path, text_of(events)).process.lanes]
    assert lanes == [(0, 1, 2**64 - 5), (0, 1, 5), (0, -1, 7)]


def test_call_names_lose_their_version(tmp_path: Path) -> None:
    events = [call("cudaLaunchKernel_v7000", 1, 1, 1), call("cudaLaunchKernel_ptsz_v7000", 2, 1, 2)]
    events += [call("cudaLaunchKernel", 3, 1, 3), host("cpu_op", "my_op_v2", 4, 1)]
    process = one(tmp_path, text_of(events)).process
    expected = ["cudaLaunchKernel", "cudaLaunchKernel_ptsz", "cudaLaunchKernel", "my_op_v2"]
    assert names(process, process.host) == expected


def test_two_devices_are_two_traces_of_one_process(tmp_path: Path) -> None:
    properties = [
        {"id": i, "name": f"gpu{i}", "numSms": 10 + i, "computeMajor": 9, "computeMinor": 0} for i in range(4)
    ]
    events = [kernel("a", 1, 1, device=3), kernel("b", 2, 1, device=1), kernel("c", 3, 1, device=3)]
    first, second = traces(tmp_path, text_of(events, deviceProperties=properties))
    assert first.process is second.process
    assert [t.device_info.name for t in (first, second) if t.device_info] == ["gpu1", "gpu3"]
    assert names(first.process, first.device) == ["b"]
    assert names(second.process, second.device) == ["a", "c"]


@pytest.mark.parametrize(("device", "name"), [(2, "MI300X"), (9, "MI300X")])
def test_rocm_numbers_its_devices_after_the_cpus(tmp_path: Path, device: int, name: str) -> None:
    properties = [{"id": i, "name": "MI300X", "numSms": 304} for i in range(8)]
    text = text_of([kernel("k", 1, 1, device=device)], deviceProperties=properties, roctracer_version=4.1)
    trace = one(tmp_path, text)
    assert trace.device_info is not None
    assert (trace.device_info.index, trace.device_info.name) == (device, name)
    assert trace.source.vendor == "rocm"


def test_unlike_devices_whose_numbers_do_not_match_stay_undescribed(tmp_path: Path) -> None:
    properties = [{"id": 0, "name": "big"}, {"id": 1, "name": "small"}]
    trace = one(tmp_path, text_of([kernel("k", 1, 1, device=5)], deviceProperties=properties))
    assert trace.device_info is not None
    assert trace.device_info.name is None


def sync(kind: str, correlation: int, **args: Any) -> dict[str, Any]:
    args = {"cuda_sync_kind": kind, "correlation": correlation, "device": 0, "context": 1, **args}
    return {"ph": "X", "cat": "cuda_sync", "name": kind, "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": args}


def test_synchronisations(tmp_path: Path) -> None:
    events = [
        kernel("k", 1, 1, 1),
        call("cudaEventQuery", 1, 1, 11),
        call("cudaEventSynchronize", 2, 1, 12),
        sync("Event Sync", 11, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5, stream=-1),
        sync("Event Sync", 12, wait_on_stream=-1, wait_on_cuda_event_record_corr_id=-1),
        sync("Stream Sync", 13, stream=7),
        sync("Context Sync", 14, stream=4294967295),
        sync("Stream Wait Event", 15, stream=20, wait_on_stream=7, wait_on_cuda_event_record_corr_id=5),
        {**sync("Stream Sync", 16), "tid": 1000007},
        {**sync("", 9, stream=20), "cat": "cuda_event"},
    ]
    process = one(tmp_path, text_of(events)).process
    stream = {i: lane.stream for i, lane in enumerate(process.lanes)} | {-1: None}
    table = [(c, stream[lane], r, p) for c, lane, r, p in rows(
        process.syncs, "correlation", "lane", "record_correlation", "polled"
    )]  # fmt: skip
    assert table == [
        (11, 7, 5, True),
        (12, None, 0, False),
        (13, 7, 0, False),
        (14, None, 0, False),
        (15, 20, 5, False),
        (16, 7, 0, False),
    ]
    assert [(c, stream[lane]) for c, lane in rows(process.event_records, "correlation", "lane")] == [
        (5, 7),
        (9, 20),
    ]


def flow(phase: str, number: Any, ts: float, tid: int, category: str = "fwdbwd") -> dict[str, Any]:
    return {"ph": phase, "id": number, "pid": 100, "tid": tid, "ts": ts, "cat": category, "name": category}


def test_flows_join_forward_to_backward_by_exact_id(tmp_path: Path) -> None:
    big = 2**53
    events = [host("cpu_op", "op", 0, 1)]
    events += [
        flow("s", big, 1, 1),
        flow("s", big + 1, 2, 1),
        flow("f", big + 1, 10, 2),
        flow("f", big, 20.5, 2),
    ]
    events += [
        flow("s", 1, 3, 1),
        flow("f", 9, 3, 1),
        flow("s", 4, 5, 1, "ac2g"),
        flow("s", 5, 5, 1, "async"),
    ]
    events += [flow("f", 7, 40, 2, "forward_backward"), flow("s", 7, 30, 1, "forward_backward")]
    events += [flow("s", 7, 50, 1), flow("f", 7, 60, 2)]
    trace = one(tmp_path, text_of(events))
    assert [(a, b) for a, b in rows(trace.process.flows, "from_ns", "to_ns")] == [
        (2000, 10000),
        (1000, 20500),
        (30000, 40000),
        (50000, 60000),
    ]
    assert {trace.process.threads[i].tid for i in trace.process.flows.to_thread.tolist()} == {"2"}
    assert reasons(trace) == {"flow-unpaired": 2}


COMM = {
    "Collective name": "allreduce",
    "dtype": "BFloat16",
    "In msg nelems": 8,
    "Out msg nelems": 16,
    "Group size": 2,
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
    "Seq": 4,
    "Comms Id": 184467440737095516150001,
}


def test_collective_metadata_of_kernels_is_shared_between_equal_ones(tmp_path: Path) -> None:
    events = [kernel("ncclDevKernel", i, 1, i, **COMM) for i in (1, 2)] + [kernel("gemm", 9, 1)]
    trace = one(tmp_path, text_of(events))
    (info,) = trace.collectives
    assert trace.device.collective.tolist() == [0, 0, -1]
    assert (info.op, info.dtype, info.in_elements, info.out_elements) == ("allreduce", "BFloat16", 8, 16)
    assert (info.group, info.group_description, info.group_size) == ("0", "default_pg", 2)
    assert (info.group_ranks, info.sequence, info.src_rank) == ((0, 1), 4, None)


def test_kernels_without_metadata_take_it_from_the_op_around_their_launch(tmp_path: Path) -> None:
    events = [
        host("cpu_op", "record_param_comms", 10, 10, **COMM),
        call("cudaLaunchKernelExC", 12, 1, 1),
        call("cudaLaunchKernelExC", 13, 1, 2, tid=101),
        call("cudaLaunchKernelExC", 20, 1, 3),
        call("cudaLaunchKernel", 14, 1, 4),
        *(kernel("ncclDevKernel_Generic", 30 + i, 1, i) for i in (1, 2, 3)),
        kernel("copy_for_the_collective", 40, 1, 4),
    ]
    trace = one(tmp_path, text_of(events, baseTimeNanoseconds=10**18))
    assert trace.device.collective.tolist() == [0, -1, -1, -1]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ("[0, 2]", (0, 2)),
        ([1, 3], (1, 3)),
        ("[4, 6, ...]", (4, 6, 8, 10)),
        ("", None),
        ("[]", None),
        (None, None),
    ],
)
def test_ranks_of_a_group(tmp_path: Path, ranks: Any, expected: tuple[int, ...] | None) -> None:
    args = {
        **COMM,
        "Process Group Ranks": ranks,
        "Group size": 4,
        "Global rank start": 4,
        "Global rank stride": 2,
    }
    (info,) = one(tmp_path, text_of([kernel("nccl", 1, 1, 1, **args)])).collectives
    assert info.group_ranks == expected


def test_base_time_is_added_before_anything_is_compared(tmp_path: Path) -> None:
    trace = one(
        tmp_path, text_of([kernel("k", 5.25, 1), host("cpu_op", "op", 2, 1)], baseTimeNanoseconds=10**18)
    )
    assert trace.epoch_zero_ns == 10**18 + 2000
    assert trace.device.start_ns.tolist() == [3250]
    assert trace.process.host.start_ns.tolist() == [0]


def test_relative_times_without_a_base_stay_as_they_are(tmp_path: Path) -> None:
    trace = one(tmp_path, text_of([kernel("k", 5.25, 1)], displayTimeUnit="ns"))
    assert trace.epoch_zero_ns is None
    assert trace.device.start_ns.tolist() == [5250]


def test_rows_without_epoch_time_in_an_epoch_file_are_left_out(tmp_path: Path) -> None:
    trace = one(tmp_path, text_of([kernel("k", 1695835542515301, 1), kernel("zero", 0, 1)]))
    assert trace.epoch_zero_ns == 1695835542515301000
    assert trace.device.start_ns.tolist() == [0]
    assert reasons(trace) == {"time-outside-epoch": 1}


def test_unusable_times_are_counted_one_by_one(tmp_path: Path) -> None:
    events = [kernel("negative", 5, -1), kernel("text", "x", 1), kernel("no end", 1, None), kernel("k", 7, 1)]
    events += [{**kernel("begin", 9, 1), "ph": "B"}, kernel("beyond int64", 9, 9 * 10**15)]
    del (missing := kernel("no start", 1, 1))["ts"]
    trace = one(tmp_path, text_of([*events, missing]))
    assert rows(trace.device, "start_ns", "end_ns") == [(5000, 5000), (7000, 8000)]
    assert reasons(trace) == {"negative-duration": 1, "unusable-event": 5}


def test_user_metadata_stays_out(tmp_path: Path) -> None:
    secret = {"HF_TOKEN": "hf_sesame", "api": {"key": "sesame"}, "with_stack": 1, "cupti_version": 26}
    trace = one(tmp_path, text_of([kernel("k", 1, 1)], **secret, WARNING=["lost records"]))
    assert "sesame" not in repr(trace.source)
    assert trace.source.settings == (("with_stack", "1"), ("cupti_version", "26"))
    assert trace.source.profiler_version == "torch.profiler, CUPTI 26"
    assert [(d.severity, d.text) for d in trace.source.diagnostics] == [(2, "lost records")]


def test_categories_of_no_known_meaning_are_counted(tmp_path: Path) -> None:
    trace = one(tmp_path, text_of([kernel("k", 1, 1), host("hpu_op", "x", 1, 1), host("hpu_op", "y", 1, 1)]))
    assert [(e.reason, e.count, e.place) for e in trace.source.quality] == [("unknown-category", 2, "hpu_op")]


def test_a_file_without_device_work_is_one_trace_without_a_device(tmp_path: Path) -> None:
    trace = one(tmp_path, text_of([call("cudaGraphLaunch", 1, 1, 1)], host_name="node7"))
    assert trace.device_info is None
    assert len(trace.device) == 0
    assert trace.device.grid.shape == (0, 3)
    assert trace.source.captured == {"call"}
    assert trace.hostname == "node7"


ASCEND = [
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 1,
        "tid": 1,
        "ts": "1727592872422811.759",
        "dur": 1,
    },
    {
        "ph": "s",
        "cat": "HostToDevice",
        "name": "HostToDevice",
        "id": 1,
        "pid": 1,
        "tid": 1,
        "ts": "1727592872422812.0",
    },
    {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "Ascend Hardware"}},
]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (json.dumps(ASCEND).encode(), "Ascend"),
        (b"", "an empty file"),
        (b"  \n", "a file of blanks"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (pickle.dumps({"traceEvents": []}), "a Python pickle"),
        (b'{"weights": {"a": 1}}', "no list of events"),
        (b'{"traceEvents": null}', "no list of events"),
        (b'{"traceEvents": {"a": 1}}', "no list of events"),
        (b'{"schemaVersion": 1, "dist', "before its first event"),
        (b"[1, 2, 3]", "0 events"),
        (b"[]", "0 events"),
        (b'[{"ph": "X", "cat": "v8", "name": "x", "ts": 1, "dur": 1}]', r"v8 \(1\)"),
        (b'{"traceEvents": [{"ph": "B", "name": "x", "ts": 1}]}', "1 events"),
        (b"\x1f\x8bnot really", "gzip"),
    ],
)
def test_what_is_no_trace_is_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words) as caught:
        one(tmp_path, content)
    assert str(tmp_path / "trace.json") in str(caught.value)
    assert caught.value.hint


def test_a_folder_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    from analyzer.readers.kineto_json import read

    for path in (tmp_path, tmp_path / "absent.json"):
        with pytest.raises(TraceError, match="cannot be read"):
            read(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"schemaVersion": 1}', True),
        (b'\n[ {"name": "x", "ph": "X"}]', True),
        (b'[{"a": 1}]', False),
        (b'{"format": "tracebound.diagnosis"}', False),
        (b"text", False),
        (b"", False),
    ],
)
def test_sniffing(tmp_path: Path, content: bytes, expected: bool) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert looks_like(path) is expected
