"""Real captures against the standard library's decoder: every row, to the nanosecond."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.errors import TraceError
from analyzer.model import DeviceKind, HostKind, Trace
from analyzer.readers.kineto_json import looks_like, read
from tests.shared import SHARED, needs_shared, trace_path

pytestmark = needs_shared

CAPTURES = sorted(
    str(path.relative_to(SHARED))
    for folder in ("traces/*/*.json.gz", "formats/samples/*.json.gz")
    for path in SHARED.glob(folder)
    if "ascend" not in path.name
)
KINDS: dict[str, HostKind | DeviceKind] = {
    "cpu_op": HostKind.OP,
    "operator": HostKind.OP,
    "user_annotation": HostKind.RANGE,
    "cuda_runtime": HostKind.CALL,
    "cuda_driver": HostKind.CALL,
    "runtime": HostKind.CALL,
    "python_function": HostKind.FRAME,
    "overhead": HostKind.OVERHEAD,
    "kernel": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.COPY,
    "memcpy": DeviceKind.COPY,
    "gpu_memset": DeviceKind.SET,
    "memset": DeviceKind.SET,
}


def reference(path: Path) -> tuple[Counter[Any], Counter[str]]:
    """(kind, name, start, end) of every row in epoch ns, and the number of events by category."""
    with gzip.open(path, "rt") as file:
        loaded = json.load(file, parse_float=Decimal)
    events = loaded["traceEvents"] if isinstance(loaded, dict) else loaded
    base = loaded.get("baseTimeNanoseconds", 0) if isinstance(loaded, dict) else 0
    found: Counter[Any] = Counter()
    categories: Counter[str] = Counter()
    for event in events:
        category = str(event.get("cat")).lower()
        categories[f"{category} {event['ph']}"] += 1
        if category in KINDS:
            start = int(event["ts"] * 1000)
            end = start + int(event["dur"] * 1000)
            found[type(KINDS[category]), int(KINDS[category]), event["name"], start + base, end + base] += 1
    return found, categories


@pytest.mark.parametrize("name", CAPTURES)
def test_every_row_is_that_of_the_standard_library(name: str) -> None:
    path = SHARED / name
    traces = read(path)
    process, zero = traces[0].process, traces[0].epoch_zero_ns or 0
    found: Counter[Any] = Counter()
    tables: list[tuple[type, Any]] = [(HostKind, process.host), *((DeviceKind, t.device) for t in traces)]
    for enum, table in tables:
        columns = (table.kind, table.name, table.start_ns, table.end_ns)
        for kind, code, start, end in zip(*(column.tolist() for column in columns), strict=True):
            found[enum, kind, process.names[code], start + zero, end + zero] += 1
    expected, categories = reference(path)
    assert found == expected
    assert len(process.flows) == categories["fwdbwd s"]
    assert len(process.syncs) == categories["cuda_sync X"]
    assert_ordered(traces)
    assert looks_like(path)
    assert not traces[0].source.partial
    assert [entry.place for entry in traces[0].source.quality] == (
        ["critical_path"] if "overlaid" in name else []
    )


def assert_ordered(traces: list[Trace]) -> None:
    """Tables are in their documented order, and the first row of the file is at zero."""
    host = traces[0].process.host
    order = np.lexsort((host.position, -host.end_ns, host.start_ns, host.thread))
    assert order.tolist() == list(range(len(host)))
    starts = [host.start_ns.min()]
    for trace in traces:
        device = trace.device
        order = np.lexsort((device.position, device.end_ns, device.start_ns))
        assert order.tolist() == list(range(len(device)))
        starts += [device.start_ns.min()] if len(device) else []
    assert min(starts) == 0


def test_gpu_linked_by_correlation() -> None:
    (trace,) = read(trace_path("hta-nccl-meta/nccl_data.json.gz"))
    calls = trace.process.host.correlation
    assert np.isin(trace.device.correlation, calls[calls > 0]).all()
    (info,) = {
        trace.collectives[code].group_ranks for code in trace.device.collective[trace.device.collective >= 0]
    }
    assert info == (0, 1)


def test_recorded_waits_of_a_real_capture() -> None:
    (trace,) = read(trace_path("hta-cp/alexnet.json.gz"))
    process = trace.process
    resolved = process.syncs.record_correlation > 0
    assert resolved.sum() == 20
    records = dict(zip(process.event_records.correlation, process.event_records.lane, strict=True))
    named = {
        process.names[process.host.name[row]]
        for row in np.flatnonzero(np.isin(process.host.correlation, list(records)))
    }
    assert named == {"cudaEventRecord"}
    lanes = [process.lanes[lane] for lane in records.values()]
    assert {(lane.device, lane.context) for lane in lanes} == {(0, 1)}


@pytest.mark.parametrize(
    ("name", "index", "gpu"),
    [
        ("tracelens-qwen/h100_qwen1.5_0.5b.json.gz", 0, "NVIDIA H100 80GB HBM3"),
        ("tracelens-qwen/mi300_qwen1.5_0.5b.json.gz", 2, "AMD Instinct MI300X VF"),
        ("tracelens-sglang/sglang_qwen3_8b_decode.json.gz", 9, "AMD Instinct MI300X"),
        ("tracelens-vllm/vllm_piecewise.json.gz", 2, None),
        ("odd/gpu_metrics_expected.json.gz", 0, "Tesla V100-DGXS-32GB"),
    ],
)
def test_devices(name: str, index: int, gpu: str | None) -> None:
    (trace,) = read(trace_path(name))
    assert trace.device_info is not None
    assert (trace.device_info.index, trace.device_info.name) == (index, gpu)
    assert trace.source.vendor == ("cuda" if name.startswith(("odd", "tracelens-qwen/h")) else "rocm")


@pytest.mark.parametrize(
    ("name", "era"),
    [
        ("traces/kineto-tb/resnet50_nw4.pt.trace.json.gz", "torch 1.8"),
        ("traces/hta-diff/trace_diff_test.json.gz", "torch 1.9 to 1.13"),
        ("traces/hta-cp/alexnet.json.gz", "torch 2.0 to 2.3"),
        ("traces/hta-nccl-meta/nccl_data.json.gz", "torch 2.4 or later"),
        ("traces/odd/cpu_only_gloo_rank34.pt.trace.json.gz", "torch 2.6 or later"),
        ("formats/samples/torch2.13_cpu_plain.json.gz", "torch 2.11 or later"),
    ],
)
def test_eras(name: str, era: str) -> None:
    assert dict(read(SHARED / name)[0].source.settings)["era"] == era


def test_ascend_is_refused_by_name() -> None:
    with pytest.raises(TraceError, match="Ascend"):
        read(trace_path("ascend/ascend_level0_rank0_trace_view.json.gz"))
