"""Real exports of nsys 2020 to 2026: facts of the manifest, counts as SQL gives them, files left untouched."""

from __future__ import annotations

import csv
import hashlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.errors import TraceError
from analyzer.model import DeviceKind, HostKind, StreamFlag, Trace
from analyzer.readers.nsys_sqlite import looks_like, read
from tests.readers.nsys_sqlite.builder import host_names, reasons
from tests.shared import SHARED, needs_shared, trace_path

pytestmark = needs_shared

NOTHING_USABLE = "jacc/julia_nocuda.sqlite"


def manifest() -> list[tuple[str, int]]:
    """(file, number of kernels) of the exports."""
    path = SHARED / "traces" / "MANIFEST.tsv"
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        rows = [row for row in csv.reader(stream, delimiter="\t") if row[0].endswith(".sqlite")]
    return [(row[0], int(row[10].split()[0])) for row in rows if row[0] != NOTHING_USABLE]


def captures() -> list[str]:
    files = sorted((SHARED / "traces").glob("*/*.sqlite"))
    names = [f"{path.parent.name}/{path.name}" for path in files]
    return [name for name in names if name != NOTHING_USABLE]


def sql(name: str, query: str) -> Any:
    connection = sqlite3.connect(f"file:{trace_path(name)}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def count(name: str, table: str, where: str = "1") -> int:
    found = sql(name, f"SELECT count(*) FROM {table} WHERE {where}")
    return int(found[0][0]) if found else 0


def processes_of(traces: list[Trace]) -> list[Any]:
    return list({id(trace.process): trace.process for trace in traces}.values())


@pytest.mark.parametrize("name", captures())
def test_counts_equal_those_of_the_file(name: str) -> None:
    traces = read(trace_path(name))
    kinds = np.concatenate([trace.device.kind for trace in traces])
    tables = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
    for kind, table in zip(DeviceKind, tables, strict=True):
        assert (kinds == kind).sum() == count(name, f"CUPTI_ACTIVITY_KIND_{table}"), table
    busy = sum(int(trace.device.duration_ns.sum()) for trace in traces)
    sums = [
        sql(name, f"SELECT coalesce(sum(end - start), 0) FROM CUPTI_ACTIVITY_KIND_{table}")
        for table in tables
    ]
    assert busy == sum(rows[0][0] for rows in sums if rows)
    syncs = sum(len(process.syncs) for process in processes_of(traces))
    assert syncs == count(name, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")


@pytest.mark.parametrize(("name", "kernels"), manifest())
def test_kernels_are_as_many_as_the_manifest_says(name: str, kernels: int) -> None:
    assert (
        sum(int((trace.device.kind == DeviceKind.KERNEL).sum()) for trace in read(trace_path(name)))
        == kernels
    )


@pytest.mark.parametrize("name", captures())
def test_tables_keep_their_contracts(name: str) -> None:
    for trace in read(trace_path(name)):
        device, host = trace.device, trace.process.host
        assert np.array_equal(
            np.lexsort((device.position, device.end_ns, device.start_ns)), np.arange(len(device))
        )
        keys = (host.position, -host.end_ns, host.start_ns, host.thread)
        assert np.array_equal(np.lexsort(keys), np.arange(len(host)))
        assert (device.end_ns >= device.start_ns).all() and (host.end_ns >= host.start_ns).all()
        assert trace.device_info is not None
        lanes = [trace.process.lanes[code] for code in np.unique(device.lane)]
        assert {lane.device for lane in lanes} == {trace.device_info.index}
        assert device.name.min() >= 0 and device.name.max() < len(trace.process.names)
        assert host.thread.min() >= 0 and host.thread.max() < len(trace.process.threads)
        assert not any(re.search(r"_v\d{4,}$", text) for text in host_names(trace))


@pytest.mark.parametrize("name", captures())
def test_every_joined_kernel_begins_after_its_call(name: str) -> None:
    """All exports agree in this; a join across processes or by a wrong column would break it at once."""
    for trace in read(trace_path(name)):
        calls = trace.process.host.take(trace.process.host.kind == HostKind.CALL)
        started = dict(zip(calls.correlation.tolist(), calls.start_ns.tolist(), strict=True))
        pairs = zip(trace.device.correlation.tolist(), trace.device.start_ns.tolist(), strict=True)
        latencies = [start - started[correlation] for correlation, start in pairs if correlation in started]
        assert latencies and min(latencies) > 0


@pytest.mark.parametrize("name", [*captures(), NOTHING_USABLE])
def test_the_file_and_its_folder_stay_as_they_are(name: str, tmp_path: Path) -> None:
    path = tmp_path / "what? 50% #1 é.sqlite"
    path.write_bytes(trace_path(name).read_bytes())
    before = (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns)
    assert looks_like(path)
    try:
        read(path)
    except TraceError:
        assert name == NOTHING_USABLE
    assert (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_capture_without_events_says_so() -> None:
    with pytest.raises(TraceError, match="no device work, API calls, ranges or OS runtime calls"):
        read(trace_path(NOTHING_USABLE))


def test_graph_capture() -> None:
    (trace,) = read(trace_path("cs336-zx/gpt2_2.7B_cudagraph.sqlite"))
    assert host_names(trace).count("cudaGraphLaunch") == 10
    graphs = trace.device.take(trace.device.kind == DeviceKind.GRAPH)
    assert set(graphs.graph_exec.tolist()) == {5}
    assert {trace.process.names[code] for code in graphs.name} == {"CUDA graph 4 (exec 5)"}
    assert ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph") in trace.source.settings
    assert "graph-node" not in trace.source.captured


def test_two_processes_share_correlations_but_no_rows() -> None:
    first, second = read(trace_path("nsysai/mfu_2gpu_before.sqlite"))
    assert (first.process.pid, second.process.pid) == ("144", "145")
    assert len(set(first.device.correlation.tolist()) & set(second.device.correlation.tolist())) >= 70
    assert {lane.device for lane in second.process.lanes} == {1}
    assert first.device_info is not None and first.device_info.physical is None


def test_backtrace_duplicates_are_dropped() -> None:
    (trace,) = read(trace_path("pipit/saxpy-mpi-cuda_perlmutter0.sqlite"))
    calls = trace.process.host.take(trace.process.host.kind == HostKind.CALL)
    assert len(calls) == 57 == len(set(calls.correlation.tolist()))
    assert reasons(trace)["backtrace-duplicate"] == 38
    assert "os" not in trace.source.captured  # an empty table of an export with all tables
    assert trace.rank == 0 and trace.world_size is None
    assert "MPI" in {trace.process.names[code] for code in trace.process.host.domain if code >= 0}


def test_waits_of_an_old_capture_resolve_to_earlier_records() -> None:
    (trace,) = read(trace_path("alpa/jax_mem.sqlite"))
    process = trace.process
    calls = process.host.take(process.host.kind == HostKind.CALL)
    at = {
        c: (process.names[n], s)
        for c, n, s in zip(calls.correlation, calls.name, calls.start_ns, strict=True)
    }
    recorded = set(process.event_records.correlation.tolist())
    waits = [
        (int(sync), int(record))
        for sync, record in zip(process.syncs.correlation, process.syncs.record_correlation, strict=True)
        if at[sync][0] == "cuStreamWaitEvent"
    ]
    assert len(waits) == 33
    for sync, record in waits:
        assert record in recorded
        assert at[record][0] == "cuEventRecord" and at[record][1] < at[sync][1]
    assert process.syncs.polled.sum() == 1


def test_old_and_new_device_descriptions() -> None:
    (mock,) = read(trace_path("nsysai/mock.sqlite"))
    assert mock.device_info is not None
    assert (mock.device_info.name, mock.device_info.sm_count) == ("NVIDIA GeForce RTX 3080", 68)
    assert mock.device_info.physical == "554a6988-03dd-6206-3dd1-f43fb60a3ed0"
    assert mock.device_info.compute_capability == (8, 6)
    assert dict(mock.device_info.limits)["maxWarpsPerSm"] == 48
    (eight,) = read(trace_path("mirage/sm100_moe_b200.sqlite"))
    assert eight.device_info is not None  # eight like GPUs: figures are certain, identity is not
    assert (eight.device_info.name, eight.device_info.physical) == ("NVIDIA B200", None)


def test_null_streams_are_told_from_others() -> None:
    (trace,) = read(trace_path("alpa/nccl_init_nokernel.sqlite"))
    flags = {lane.stream: lane.flag for lane in trace.process.lanes}
    assert flags[7] == StreamFlag.NULL and flags[20] == StreamFlag.NON_BLOCKING


def test_a_full_launch_queue_is_named() -> None:
    for trace in read(trace_path("nsysai/h100_2gpu_1s.sqlite")):
        host = trace.process.host
        names = {trace.process.names[code] for code in host.name[host.kind == HostKind.OVERHEAD]}
        assert names == {"command buffer full"}


def test_nothing_of_the_environment_gets_in() -> None:
    """The environment of these captures is known: no value of it may be anywhere in the result."""
    for name in ("alpa/jax_mem.sqlite", "fuser/nvfuser_h200.sqlite"):
        text = repr(read(trace_path(name)))
        ((environment,),) = sql(
            name, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'DeviceEnvironment'"
        )
        pairs = [item.split("=", 1) for item in re.split("[\0;]", environment) if "=" in item]
        assert len(pairs) > 20
        leaked = {key for key, value in pairs if len(value) > 12 and value in text}
        assert leaked <= {"HOSTNAME"}  # the machine's name has a row of its own outside the environment
