"""The field cases that are JSON: what the reader has to hand on for the right figures to come out."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.model import DeviceKind, HostKind, Trace
from analyzer.readers.kineto_json import read
from tests.readers.kineto_json.builder import names, reasons
from tests.shared import case_path, needs_shared

pytestmark = needs_shared


def load(name: str) -> Trace:
    (trace,) = read(case_path(name))
    return trace


def busy_us(trace: Trace) -> float:
    """Sum of durations; for cases without overlap."""
    return float(trace.device.duration_ns.sum()) / 1000


def linked(trace: Trace) -> int:
    """Device rows whose correlation id is that of a call."""
    calls = trace.process.host.correlation
    return int(np.isin(trace.device.correlation, calls[calls > 0]).sum())


@pytest.mark.parametrize(
    ("case", "device_rows", "busy", "linked_rows"),
    [
        ("B10", 2, 6.25, 0),
        ("B12", 2, 13, 2),
        ("B15", 3, 120, 3),
        ("B30", 4, 40, 4),
        ("B32", 11, 88, 11),
        ("B34", 4, 40, 1),
        ("B36", 10, 100, 10),
        ("B37", 15, 150, 15),
        ("B57", 6, 134, 6),
        ("B58", 1, 10, 1),
    ],
)
def test_counts_time_and_links(case: str, device_rows: int, busy: float, linked_rows: int) -> None:
    trace = load(f"{case}.json")
    assert (len(trace.device), busy_us(trace), linked(trace)) == (device_rows, busy, linked_rows)
    assert not trace.source.partial
    assert trace.source.quality == ()


def test_b01_a_cut_event_is_left_out_and_said_so() -> None:
    trace = load("B01.json")
    assert (len(trace.device), len(trace.process.host), busy_us(trace)) == (2, 1, 15)
    assert trace.source.partial
    (entry,) = trace.source.quality
    assert entry.reason == "truncated-file"
    assert "after 3 whole events (byte 529)" in entry.place


def test_b02_bad_bytes_in_names_are_replaced_and_counted() -> None:
    trace = load("B02.json")
    assert (len(trace.device), len(trace.process.host), busy_us(trace)) == (1, 2, 8)
    assert reasons(trace) == {"names-repaired": 2}
    assert all(name.encode() for name in trace.process.names)


def test_b03_unescaped_names_cost_no_kernel() -> None:
    trace = load("B03.json")
    assert (len(trace.device), busy_us(trace)) == (2, 12)
    (entry,) = trace.source.quality
    assert (entry.reason, entry.count, entry.place) == ("bad-event-repaired", 2, "line 2, 3")
    assert names(trace.process, trace.process.host) == [
        "torch\\cuda\\__init__.py(219): _lazy_init",
        'lib = Library("_ops", "IMPL")\n(1): <module>',
    ]


def test_b05_large_ids_and_numeric_strings() -> None:
    trace = load("B05.json")
    host = trace.process.host
    assert len(trace.process.threads) == 2
    mm = names(trace.process, host).index("aten::mm")
    assert (host.start_ns[mm], host.end_ns[mm] - host.start_ns[mm]) == (1_000_250, 30_500)
    assert (len(trace.device), busy_us(trace)) == (2, 20)


def test_b06_a_list_of_host_events_without_categories() -> None:
    trace = load("B06.json")
    assert trace.device_info is None
    assert trace.process.host.kind.tolist() == [HostKind.OP, HostKind.OP]


@pytest.mark.parametrize("name", ["B07.json", "B07b.json.gz"])
def test_b07_the_content_decides_about_gzip(name: str) -> None:
    trace = load(name)
    assert (len(trace.device), busy_us(trace), trace.source.partial) == (2, 30, False)


def test_b07c_a_cut_gzip_stream_is_salvaged() -> None:
    trace = load("B07c.json.gz")
    assert 127 <= len(trace.device) <= 130
    assert reasons(trace) == {"truncated-file": 1}
    assert trace.source.partial


def test_b08_epoch_decimals_keep_their_nanoseconds() -> None:
    device = load("B08.json").device
    assert (device.start_ns[1:] - device.end_ns[:-1]).tolist() == [0, 30]
    assert device.duration_ns.sum() == 9159
    assert device.end_ns.max() - device.start_ns.min() == 9189


def test_b12_links_do_not_depend_on_the_order_in_time() -> None:
    trace = load("B12.json")
    call = dict(zip(trace.process.host.correlation, trace.process.host.start_ns, strict=True))
    latency = [s - call[c] for c, s in zip(trace.device.correlation, trace.device.start_ns, strict=True)]
    assert latency == [-1500, 10_000]


def test_b13_overlaps_stay_as_recorded() -> None:
    trace = load("B13.json")
    assert trace.device.duration_ns.tolist() == [60_000, 42_000, 2_000_000_000, 20_000, 30_000]


@pytest.mark.parametrize(("name", "rank", "world"), [("B17.hostA", 0, 2), ("B18.rank3", 3, 4)])
def test_b17_b18_ranks_are_as_recorded(name: str, rank: int, world: int) -> None:
    trace = load(f"{name}.json")
    assert (trace.rank, trace.world_size) == (rank, world)


def test_b18_groups_tell_of_all_ranks() -> None:
    assert load("B18.rank0.json").collectives[0].group_ranks == (0, 1, 2, 3)


def test_b31_no_device_rows_are_not_captured_rather_than_zero() -> None:
    trace = load("B31.json")
    assert trace.device_info is None
    assert "kernel" not in trace.source.captured
    assert names(trace.process, trace.process.host).count("cudaGraphLaunch") == 3


def test_b36_metadata_stands_beside_the_names() -> None:
    trace = load("B36.json")
    described = {code: trace.collectives[code].op for code in trace.device.collective.tolist() if code >= 0}
    assert sorted(op or "" for op in described.values()) == ["all_to_allv", "allreduce"]


def test_b57_streams_of_64_bits() -> None:
    trace = load("B57.json")
    streams = {trace.process.lanes[lane].stream for lane in trace.device.lane.tolist()}
    assert streams == {94438473428992, 94438473500000, 3}
    assert trace.source.vendor == "rocm"
    assert set(trace.device.kind.tolist()) == {DeviceKind.KERNEL}  # kernel names tell the blit kernels
