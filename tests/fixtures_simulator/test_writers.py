"""Both writers re-read with the standard library and compared with the run."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import BASE_TIME_NS, kineto_text, write_kineto
from fixtures.simulator.nsys_schema import TABLES, columns
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.program import (
    Cpu,
    EventRecord,
    Graph,
    GraphLaunch,
    Launch,
    Node,
    Pop,
    Program,
    Push,
    Rank,
    Signal,
    Step,
    Stream,
    StreamSync,
    StreamWait,
    Thread,
    WaitToken,
    single,
)
from fixtures.simulator.random_programs import random_program, random_recording
from fixtures.simulator.recording import CAPTURE_EPOCH_NS, Recording
from fixtures.simulator.run import Run, WorkKind
from tests.shared import SHARED

Row = dict[str, Any]


def kineto(run: Run, rank: int = 0, recording: Recording | None = None) -> Row:
    text = kineto_text(run, rank, recording or Recording()).decode()
    loaded: Row = json.loads(text, parse_float=Decimal)
    return loaded


def events(file: Row, *cats: str) -> list[Row]:
    return [event for event in file["traceEvents"] if event.get("cat") in cats and event["ph"] == "X"]


def absolute(file: Row, event: Row) -> tuple[int, int]:
    """(start, end) on the simulation's clock."""
    start = file["baseTimeNanoseconds"] + int(event["ts"] * 1000) - CAPTURE_EPOCH_NS
    return start, start + int(event["dur"] * 1000)


def table(path: Path, name: str) -> list[Row]:
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute(f"SELECT * FROM {name}")]
    database.close()
    return rows


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(random_program(11, "hard", 2))


def test_kineto_carries_every_nanosecond_of_the_run(run: Run) -> None:
    for rank in (0, 1):
        file = kineto(run, rank)
        assert file["baseTimeNanoseconds"] == BASE_TIME_NS
        assert (file["distributedInfo"]["rank"], file["distributedInfo"]["world_size"]) == (rank, 2)
        device = events(file, "kernel", "gpu_memcpy", "gpu_memset")
        assert Counter(
            (event["name"], event["tid"], event["args"]["correlation"], *absolute(file, event))
            for event in device
        ) == Counter(
            (work.name, work.stream, work.call.correlation, work.start_ns, work.end_ns)
            for work in run.works_of(rank)
        )
        calls = [call for call in run.calls if call.rank == rank]
        assert [
            (event["name"], event["tid"], event["args"]["correlation"], *absolute(file, event))
            for event in events(file, "cuda_runtime")
        ] == [
            (c.name, run.rank(rank).threads[c.thread].tid, c.correlation, c.start_ns, c.end_ns) for c in calls
        ]


def test_nsys_carries_every_nanosecond_of_the_run(run: Run, tmp_path: Path) -> None:
    for rank, path in enumerate(write_nsys(run, tmp_path)):
        (session,) = table(path, "TARGET_INFO_SESSION_START_TIME")
        zero = session["utcEpochNs"] - CAPTURE_EPOCH_NS
        kinds = {
            "CUPTI_ACTIVITY_KIND_KERNEL": (WorkKind.KERNEL, WorkKind.COLLECTIVE),
            "CUPTI_ACTIVITY_KIND_MEMCPY": (WorkKind.COPY,),
            "CUPTI_ACTIVITY_KIND_MEMSET": (WorkKind.MEMSET,),
        }
        for name, wanted in kinds.items():
            works = [work for work in run.works_of(rank) if work.kind in wanted]
            found = table(path, name) if works else []
            assert [
                (r["start"] + zero, r["end"] + zero, r["streamId"], r["correlationId"]) for r in found
            ] == [(work.start_ns, work.end_ns, work.stream, work.call.correlation) for work in works]
        strings = {row["id"]: row["value"] for row in table(path, "StringIds")}
        rows = table(path, "CUPTI_ACTIVITY_KIND_RUNTIME")
        calls = [call for call in run.calls if call.rank == rank]
        assert [
            (r["start"] + zero, r["end"] + zero, strings[r["nameId"]].rsplit("_v", 1)[0]) for r in rows
        ] == [(call.start_ns, call.end_ns, call.name) for call in calls]
        pid = run.rank(rank).pid
        assert {(row["globalTid"] >> 24) & 0xFFFFFF for row in rows} == {pid}


def test_all_ranks_in_one_export_keep_their_processes(run: Run, tmp_path: Path) -> None:
    (path,) = write_nsys(run, tmp_path, one_file=True)
    counts = Counter((row["globalPid"] >> 24) & 0xFFFFFF for row in table(path, "CUPTI_ACTIVITY_KIND_KERNEL"))
    kernels = [w for w in run.works if w.kind in (WorkKind.KERNEL, WorkKind.COLLECTIVE)]
    assert counts == Counter(run.rank(work.rank).pid for work in kernels)
    assert len(table(path, "PROCESSES")) == 2


def test_an_event_wait_resolves_to_its_record_in_both_formats(tmp_path: Path) -> None:
    run = simulate(
        single(Launch("a", 7), EventRecord("e", 7), StreamWait(20, "e"), Launch("b", 20), streams=(7, 20))
    )
    file = kineto(run)
    (wait,) = events(file, "cuda_sync")
    (record,) = [e for e in events(file, "cuda_runtime") if e["name"] == "cudaEventRecord"]
    assert wait["name"] == "Stream Wait Event" and wait["tid"] == 20
    assert wait["args"]["wait_on_stream"] == 7
    assert wait["args"]["wait_on_cuda_event_record_corr_id"] == record["args"]["correlation"]
    (path,) = write_nsys(run, tmp_path)
    (event,) = table(path, "CUPTI_ACTIVITY_KIND_CUDA_EVENT")
    (sync,) = table(path, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    assert (sync["syncType"], sync["streamId"], sync["deviceId"]) == (2, 20, 0)
    assert sync["eventSyncId"] == event["eventSyncId"] and event["streamId"] == 7
    assert event["correlationId"] == record["args"]["correlation"]


def test_ops_ranges_and_frames_nest_and_link() -> None:
    run = simulate(
        single(
            Step("ProfilerStep#4"),
            Push("forward", "frame"),
            Push("layer", "frame"),
            Push("aten::mm", "op"),
            Launch("gemm"),
            Pop(),
            Pop(),
            Cpu(5_000, "aten::add", "op"),
            Pop(),
            Pop(),
        )
    )
    file = kineto(run)
    outer, inner = events(file, "python_function")
    assert inner["args"]["Python parent id"] == outer["args"]["Python id"]
    assert outer["args"]["Python parent id"] is None
    (mm,) = [event for event in events(file, "cpu_op") if event["name"] == "aten::mm"]
    (call,) = events(file, "cuda_runtime")
    assert call["args"]["External id"] == mm["args"]["External id"]
    (step,) = events(file, "user_annotation")
    assert step["name"] == "ProfilerStep#4"


def test_graph_nodes_and_whole_graph_rows(tmp_path: Path) -> None:
    graph = Graph("g", (Node(Launch("x", 7, 9_000)), Node(Launch("y", 20, 9_000), (0,))))
    run = simulate(single(GraphLaunch(graph), GraphLaunch(graph), streams=(7, 20)))
    (nodes,) = write_nsys(run, tmp_path)
    rows = table(nodes, "CUPTI_ACTIVITY_KIND_KERNEL")
    assert [(row["graphNodeId"], row["correlationId"]) for row in rows] == [
        ((1 << 32) | 1, 1),
        ((1 << 32) | 2, 1),
        ((1 << 32) | 1, 2),
        ((1 << 32) | 2, 2),
    ]
    (whole,) = write_nsys(run, tmp_path, Recording(graphs="whole"))
    replays = table(whole, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    assert [(r["correlationId"], r["streamId"], r["end"] - r["start"]) for r in replays] == [
        (1, 7, 18_700),
        (2, 7, 18_700),
    ]
    with sqlite3.connect(whole) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    assert "CUPTI_ACTIVITY_KIND_KERNEL" not in names


def test_hand_overs_are_recorded_as_flows_or_os_waits(tmp_path: Path) -> None:
    first = Thread((Signal("a"), Cpu(50_000), Signal("b")), tid=11)
    second = Thread((Cpu(1_000), WaitToken("b", "flow"), Launch("k")), tid=12)
    third = Thread((WaitToken("b", "os"),), tid=13)
    run = simulate(Program((Rank(0, (first, second, third)),)))
    flows = [event for event in kineto(run)["traceEvents"] if event.get("cat") == "fwdbwd"]
    assert [(flow["ph"], flow["tid"]) for flow in flows] == [("s", 11), ("f", 12)]
    assert flows[1]["ts"] - flows[0]["ts"] == 9
    (path,) = write_nsys(run, tmp_path)
    (wait,) = table(path, "OSRT_API")
    assert (wait["globalTid"] & 0xFFFFFF, wait["eventClass"], wait["end"] - wait["start"]) == (13, 27, 59_000)


def test_collective_metadata_in_both_formats(tmp_path: Path) -> None:
    run = simulate(random_program(4, "exact", 2))
    file = kineto(run, 1)
    kernels = [e for e in events(file, "kernel") if "Collective name" in e["args"]]
    assert [e["args"]["Seq"] for e in kernels] == [
        w.meeting.sequence + 1 for w in run.works_of(1) if w.meeting and w.replay is None
    ]
    assert {e["args"]["Process Group Ranks"] for e in kernels} == {"[0, 1]"}
    ranges = [r for r in table(write_nsys(run, tmp_path)[1], "NVTX_EVENTS") if r["domainId"] == 1]
    payloads = [json.loads(row["jsonText"]) for row in ranges if row["eventType"] == 59]
    assert len(payloads) == len(kernels)
    assert {payload["NCCL communicator ID"] > 1 << 63 for payload in payloads} == {True}
    bare = kineto(run, 1, Recording(collective_metadata=False))
    assert not [e for e in events(bare, "kernel") if "Collective name" in e["args"]]


def test_clocks_are_distorted_as_asked() -> None:
    run = simulate(single(Cpu(1_000_000_000), Launch("a"), StreamSync()))
    recording = Recording(clock_offset_ns={0: 5_000}, drift_ppb={0: 1_000}, device_shift_ns={0: -40_000})
    file = kineto(run, 0, recording)
    launch = next(e for e in events(file, "cuda_runtime"))
    (kernel,) = events(file, "kernel")
    assert absolute(file, launch)[0] == 1_000_000_000 + 5_000 + 1_000
    assert absolute(file, kernel)[0] == 1_000_005_000 - 40_000 + 5_000 + 999


def test_rows_are_dropped_as_asked(run: Run) -> None:
    assert len(events(kineto(run), "cuda_sync")) > 0
    assert len(events(kineto(run, 0, Recording(sync_rows=False)), "cuda_sync")) == 0
    assert len(events(kineto(run, 0, Recording(range_rows=False)), "cpu_op", "python_function")) == 0
    lost = kineto(run, 0, Recording(drop_launches=0.5, seed=1))
    left = {event["args"]["correlation"] for event in events(lost, "cuda_runtime")}
    works = run.works_of(0)
    linked = sum(work.call.correlation in left for work in works)
    assert 0.3 * len(works) < linked < 0.7 * len(works)
    assert len(events(lost, "kernel")) == len(events(kineto(run), "kernel"))


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        run = simulate(random_program(7, "hard", 2))
        recording = random_recording(7, 2)
        paths = write_kineto(run, folder, recording, compress=True) + write_nsys(run, folder, recording)
        contents.append([path.read_bytes() for path in paths])
    assert all(one == two for one, two in zip(*contents, strict=True))
    assert gzip.decompress(contents[0][0]).startswith(b'{"schemaVersion":1')


@pytest.mark.skipif(not (SHARED / "formats").exists(), reason="the schema dumps (../shared) are not here")
def test_the_tables_are_those_of_real_exports() -> None:
    text = (SHARED / "formats" / "samples" / "nsys_schema_by_version.json").read_text()
    versions: dict[str, dict[str, list[Row]]] = json.loads(text)
    real = next(tables for name, tables in versions.items() if name.startswith("3.25.0"))
    for name in TABLES:
        if name in real:
            assert columns(name) == [(c["name"], c["type"], c["notnull"]) for c in real[name]], name
    assert len(set(TABLES) & set(real)) >= 16


def test_a_stream_flag_is_written(tmp_path: Path) -> None:
    rank = Rank(0, (Thread((Launch("a"),)),), (Stream(7, "null"), Stream(13, "blocking")))
    (path,) = write_nsys(simulate(Program((rank,))), tmp_path)
    assert [(r["streamId"], r["flag"]) for r in table(path, "TARGET_INFO_CUDA_STREAM")] == [(7, 3), (13, 1)]
