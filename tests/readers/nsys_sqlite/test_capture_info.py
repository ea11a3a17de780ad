from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from analyzer.model import Trace
from analyzer.readers.nsys_sqlite import read
from tests.readers.nsys_sqlite.builder import PID, Export, gpid, gtid, reasons

GPU = {"vmId": 1 << 48, "name": "GPU", "smCount": 132, "memoryBandwidth": 10**12, "maxWarpsPerSm": 64}


def one(export: Export, folder: Path) -> Trace:
    (trace,) = export.read(folder)
    return trace


def kernel() -> Export:
    return Export().kernel("k", 0, 1)


def environment(*pairs: str) -> Export:
    export = kernel().row("META_DATA_CAPTURE", name="PROCESS_0:COMMAND", value="/usr/bin/serve")
    for pair in pairs:
        export.row("META_DATA_CAPTURE", name="PROCESS_0:ENVIRONMENT_VARIABLE", value=pair)
    return export


def test_ordinal_is_mapped_to_the_gpu_by_process(tmp_path: Path) -> None:
    export = kernel().kernel("k", 0, 1, deviceId=1)
    for cuda, gpu in ((0, 1), (1, 0)):
        export.row(
            "TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=cuda, pid=PID, uuid=None, numMultiprocessors=None
        )
        export.row("TARGET_INFO_CUDA_DEVICE", gpuId=9, cudaId=cuda, pid=5, uuid=None, numMultiprocessors=None)
        export.row("TARGET_INFO_GPU", id=gpu, uuid=f"uuid-{gpu}", **{**GPU, "name": f"GPU {gpu}"})
    infos = [trace.device_info for trace in export.read(tmp_path)]
    assert [(i.index, i.name, i.physical, i.sm_count) for i in infos if i] == [
        (0, "GPU 1", "uuid-1", 132),
        (1, "GPU 0", "uuid-0", 132),
    ]


def test_a_mapping_without_uuids_still_is_an_identity(tmp_path: Path) -> None:
    export = kernel().kernel("k", 0, 1, pid=2)
    for pid in (PID, 2):
        export.row("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=pid)
    assert {t.device_info.physical for t in export.read(tmp_path) if t.device_info} == {"gpu:3"}


def test_without_a_mapping_only_what_all_gpus_share_is_known(tmp_path: Path) -> None:
    export = kernel().row("TARGET_INFO_GPU", id=0, uuid="a", **GPU)
    export.row("TARGET_INFO_GPU", id=1, uuid="b", **{**GPU, "smCount": 78})
    info = one(export, tmp_path).device_info
    assert info is not None
    assert (info.name, info.sm_count, info.uuid, info.physical) == ("GPU", None, None, None)
    assert info.limits == (("maxWarpsPerSm", 64),)


def test_the_old_table_of_devices(tmp_path: Path) -> None:
    export = kernel().row(
        "TARGET_INFO_CUDA_GPU", pid=PID, deviceId=0, name="V100", numMultiprocessors=80,
        computeCapabilityMajor=7, computeCapabilityMinor=0, maxWarpsPerMultiprocessor=64,
        globalMemoryBandwidth=898048000000, globalMemorySize=16914055168,
    )  # fmt: skip
    info = one(export, tmp_path).device_info
    assert info is not None
    assert (info.name, info.sm_count, info.compute_capability) == ("V100", 80, (7, 0))
    assert (info.limits, info.physical) == ((("maxWarpsPerSm", 64),), None)


def test_settings_come_from_an_allow_list(tmp_path: Path) -> None:
    export = environment("CUDA_SKIP_SOME_API_CALLS=topsecret")
    for name, value in (
        ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"),
        ("CUDA_SKIP_SOME_API_CALLS", "true"),
        ("PROCESS_0:CUDA_SKIP_SOME_API_CALLS", "false"),
        ("PROCESS_0:ARGUMENT_1", "--hf-token=topsecret"),
        ("START_DELAY_MS", "value with spaces: topsecret"),
    ):
        export.row("META_DATA_CAPTURE", name=name, value=value)
    trace = one(export, tmp_path)
    assert trace.source.settings == (
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"),
        ("CUDA_SKIP_SOME_API_CALLS", "true"),
    )
    assert "topsecret" not in repr(trace)


@pytest.mark.parametrize(
    ("pairs", "rank", "size"),
    [
        (["RANK=3", "WORLD_SIZE=8", "OMPI_COMM_WORLD_RANK=5"], 3, 8),
        (["OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=6"], 5, 6),
        (["SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_STEP_ID=0"], 2, 4),
        (["SLURM_PROCID=0", "SLURM_NTASKS=4"], None, None),  # the batch script, not a task
        (["RANK=three", "WORLD_SIZE=8"], None, None),
        (["RANK=1;rm"], None, None),
        (["MY_RANK=1", "LOCAL_RANK=1"], None, None),
        ([], None, None),
    ],
)
def test_rank_from_the_environment(
    tmp_path: Path, pairs: list[str], rank: int | None, size: int | None
) -> None:
    trace = one(environment("HF_TOKEN=hf_secretsecret", *pairs), tmp_path)
    assert (trace.rank, trace.world_size) == (rank, size)
    assert "secretsecret" not in repr(trace)


@pytest.mark.parametrize("separator", ["\0", ";", "\n"])
def test_rank_from_the_targets_environment(tmp_path: Path, separator: str) -> None:
    text = separator.join(["SHELL=/bin/bash", "RANK=1", "WORLD_SIZE=2", "X=RANK=7"])
    trace = one(kernel().row("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value=text), tmp_path)
    assert (trace.rank, trace.world_size) == (1, 2)


def test_the_environment_is_nobodys_rank_among_several_processes(tmp_path: Path) -> None:
    traces = environment("RANK=3", "WORLD_SIZE=8").kernel("k", 0, 1, pid=2).read(tmp_path)
    assert [trace.rank for trace in traces] == [None, None]


def test_nccl_init_tells_the_rank_of_the_world(tmp_path: Path) -> None:
    export = environment("RANK=0", "WORLD_SIZE=1").kernel("k", 0, 1, pid=2)
    for pid, rank in ((PID, 1), (2, 0)):
        for size, number in ((4, rank + 2), (2, rank)):
            payload = {
                "NCCL communicator ID": 2**63 + 5,
                "No. of ranks": size,
                "Rank": number,
                "CUDA device": 0,
            }
            export.nvtx("ncclCommInitRank", 0, 1, globalTid=gtid(pid), jsonText=json.dumps(payload))
    assert [(t.process.pid, t.rank, t.world_size) for t in export.read(tmp_path)] == [
        ("2", 2, 4),
        (str(PID), 3, 4),
    ]


def test_nccl_ranks_of_one_process_by_device(tmp_path: Path) -> None:
    export = kernel().kernel("k", 0, 1, deviceId=1)
    for device in (0, 1):
        payload = {"No. of ranks": 2, "Rank": 1 - device, "CUDA device": device}
        export.nvtx("ncclCommInitAll", 0, 1, jsonText=json.dumps(payload))
    export.nvtx("ncclCommInitAll", 0, 1, jsonText='{"No. of ranks": broken')
    assert [trace.rank for trace in export.read(tmp_path)] == [1, 0]


def test_mpi_rank_by_thread_name(tmp_path: Path) -> None:
    trace = one(kernel().nvtx("MPI Rank 12", 0, None, 39), tmp_path)
    assert (trace.rank, trace.world_size) == (12, None)


@pytest.mark.parametrize(("name", "value"), [("TIME_SHIFT", "-500"), ("TIME_NORMALIZE", "true")])
def test_shifted_exports_have_no_wall_clock(tmp_path: Path, name: str, value: str) -> None:
    export = kernel().row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    export.row("META_DATA_EXPORT", name=f"EXPORT_PARAM_{name}", value=value)
    trace = one(export, tmp_path)
    assert trace.epoch_zero_ns is None
    assert reasons(trace) == {"shifted-times": 1}


def test_an_export_of_a_time_range_says_so(tmp_path: Path) -> None:
    export = kernel().row("META_DATA_EXPORT", name="EXPORT_PARAM_TIMES_TO_EXPORT", value="1s/2s")
    assert reasons(one(export, tmp_path)) == {"partial-export": 1}


def test_thread_names_beyond_sqlites_limit_of_variables(tmp_path: Path) -> None:
    export = kernel().nvtx("range", 0, 1, globalTid=gtid(tid=5))
    for number in range(40_000):
        export.row("ThreadNames", nameId=export.text(f"thread {number}"), globalTid=gtid(number, tid=5))
    (thread,) = one(export, tmp_path).process.threads
    assert thread.name == f"thread {PID}"


def test_wall_clock_versions_and_host(tmp_path: Path) -> None:
    export = kernel().row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000)
    export.row("META_DATA_EXPORT", name="EXPORT_PARAM_TIME_SHIFT", value="0")
    export.row("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2026.2.1.210")
    export.row("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.25.0")
    export.row("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node-7")
    trace = one(export, tmp_path)
    assert (trace.epoch_zero_ns, trace.hostname) == (1_700_000_000_000_000_000, "node-7")
    assert (trace.source.profiler_version, trace.source.schema_version) == ("2026.2.1.210", "3.25.0")
    assert reasons(trace) == {}


def test_messages_of_the_profiler_are_redacted_and_told_once(tmp_path: Path) -> None:
    export = kernel()
    for text in ("started with API_TOKEN=abcd1234", "started with API_TOKEN=abcd1234", "buffers lost"):
        export.row("DIAGNOSTIC_EVENT", timestamp=-5, severity=2, text=text)
    diagnostics = one(export, tmp_path).source.diagnostics
    assert [d.text for d in diagnostics] == ["started with API_TOKEN=[redacted]", "buffers lost"]


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("/opt/venv/bin/python --token hf_abc", "python"),
        ("VLLM::Worker_TP0", "VLLM::Worker_TP0"),
        (None, "main thread"),
    ],
)
def test_a_process_is_called_by_its_program(tmp_path: Path, recorded: str | None, name: str) -> None:
    export = kernel().row("PROCESSES", globalPid=gpid(), pid=PID, name=recorded)
    export.row("ThreadNames", nameId=export.text("main thread"), priority=10, globalTid=gtid())
    assert one(export, tmp_path).process.name == name


def test_gpu_metrics_by_gpu(tmp_path: Path) -> None:
    export = kernel().row("TARGET_INFO_CUDA_DEVICE", gpuId=2, cudaId=0, pid=PID)
    kind = 1 << 48 | 7 << 8
    for metric, name in ((5, "SM Active"), (6, "DRAM Read Throughput")):
        export.row("TARGET_INFO_GPU_METRICS", typeId=kind | 2, sourceId=1, metricId=metric, metricName=name)
    for time, gpu, metric, value in ((20, 2, 5, 50), (10, 2, 6, 7), (10, 1, 5, 99), (30, 2, 5, None)):
        export.row("GPU_METRICS", timestamp=time, typeId=kind | gpu, metricId=metric, value=value)
    trace = one(export, tmp_path)
    table = trace.metrics
    assert table is not None and "metrics" in trace.source.captured
    assert table.time_ns.tolist() == [10, 20] and table.value.tolist() == [7.0, 50.0]
    assert [trace.process.names[code] for code in table.metric] == ["DRAM Read Throughput", "SM Active"]
    assert reasons(trace) == {"bad-metric-sample": 1}


def test_gpu_metrics_of_2022_in_json(tmp_path: Path) -> None:
    export = kernel().row("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=PID)
    for raw, data in ((20, {"SM Active": "75"}), (-5, {"SM Active": "1"})):
        export.row("GENERIC_EVENTS", rawTimestamp=raw, timestamp=None, typeId=256, data=json.dumps(data))
    export.row("GENERIC_EVENTS", rawTimestamp=1, timestamp=None, typeId=256, data='{"SM Active": cut')
    export.row(
        "GENERIC_EVENTS", rawTimestamp=1, timestamp=None, typeId=257, data='{"ftrace": "sched_switch"}'
    )
    trace = one(export, tmp_path)
    assert trace.metrics is not None
    assert trace.metrics.time_ns.tolist() == [-5, 20] and trace.metrics.value.tolist() == [1.0, 75.0]
    assert reasons(trace) == {"bad-metric-sample": 1}


def test_empty_tables_of_an_export_with_all_tables_capture_nothing(tmp_path: Path) -> None:
    path = (
        kernel()
        .row("META_DATA_EXPORT", name="EXPORT_PARAM_LAZY", value="false")
        .write(tmp_path / "all.sqlite")
    )
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE OSRT_API (start, end, eventClass, globalTid, nameId)")
    connection.close()
    (trace,) = read(path)
    assert trace.source.captured == {"kernel"}
