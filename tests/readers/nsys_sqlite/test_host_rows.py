from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.model import HostKind, Trace
from analyzer.readers.nsys_sqlite.host import api_name, overhead_name
from tests.readers.nsys_sqlite.builder import PID, Export, gtid, host_names, reasons


def rows(trace: Trace) -> list[tuple[str, str, int, int]]:
    host = trace.process.host
    kinds = [HostKind(kind).name for kind in host.kind]
    return list(zip(host_names(trace), kinds, host.start_ns.tolist(), host.end_ns.tolist(), strict=True))


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
        ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2"),
        ("cudaGraphLaunch_v10000", "cudaGraphLaunch"),
    ],
)
def test_version_suffixes(recorded: str, name: str) -> None:
    assert api_name(recorded) == name


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("Command Buffer Full", "command buffer full"),
        ("CUPTI: Buffer flush", "buffer flush"),
        ("CUPTI Buffer flush", "buffer flush"),
        ("CUDA profiling initialization", "CUDA profiling initialization"),
        ("Unknown", "unknown overhead"),
    ],
)
def test_overhead_names(recorded: str, name: str) -> None:
    assert overhead_name(recorded) == name


def test_order_by_thread_then_start_then_longest(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    export.nvtx("other thread", 0, 9, globalTid=gtid(tid=5000))
    export.nvtx("inner", 10, 20).nvtx("outer", 10, 90).nvtx("first", 5, 6)
    (trace,) = export.read(tmp_path)
    assert host_names(trace) == ["first", "outer", "inner", "other thread"]
    assert [thread.tid for thread in trace.process.threads] == [str(PID), "5000"]


def test_kinds_of_nvtx_rows(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    export.nvtx("push/pop", 1, 2).nvtx("start/end", 3, 4, 60, endGlobalTid=gtid(tid=77)).nvtx(
        "mark", 5, None, 34
    )
    export.nvtx("a category", 6, None, 33).nvtx("main", 7, None, 39).nvtx("destroyed", 8, None, 76)
    export.nvtx("same thread", 9, 10, 60, endGlobalTid=gtid()).nvtx("on 77", 11, 12, globalTid=gtid(tid=77))
    (trace,) = export.read(tmp_path)
    assert rows(trace) == [
        ("on 77", "RANGE", 11, 12),
        ("push/pop", "RANGE", 1, 2),
        ("start/end", "SPAN", 3, 4),
        ("mark", "MARK", 5, 5),
        ("same thread", "SPAN", 9, 10),
    ]
    ended_on = [
        trace.process.threads[code].tid if code >= 0 else None for code in trace.process.host.end_thread
    ]
    assert ended_on == [None, None, "77", None, None]
    assert trace.process.threads[1].name == "main"


def test_names_from_text_else_from_the_string_table(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    export.nvtx(None, 1, 2, textId=export.text("registered")).nvtx("", 3, 4).nvtx(None, 5, 6)
    export.nvtx("aten::add, seq = 12, op_id = 345", 7, 8, textId=export.text("not this"))
    (trace,) = export.read(tmp_path)
    names = [trace.process.names[code] if code >= 0 else None for code in trace.process.host.name]
    assert names == ["registered", "", None, "aten::add, seq = 12, op_id = 345"]


def test_text_that_begins_after_a_batch_of_nothing(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    code = export.text("registered")
    for start in range(70_000):
        export.nvtx(None, start, start + 1, textId=code)
    export.nvtx("late text \U0001f680", 80_000, 80_001)
    (trace,) = export.read(tmp_path)
    assert host_names(trace)[-2:] == ["registered", "late text \U0001f680"]


def test_domains_belong_to_their_process(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1).kernel("k", 0, 1, pid=2)
    export.nvtx("NCCL", 0, None, 75, domainId=1).nvtx("MPI", 0, None, 75, domainId=1, globalTid=gtid(2))
    export.nvtx("a", 1, 2, domainId=1).nvtx("b", 1, 2, domainId=1, globalTid=gtid(2)).nvtx(
        "c", 3, 4, domainId=9
    )
    export.nvtx("d", 5, 6)
    second, first = export.read(tmp_path)
    domains = [
        [t.process.names[code] if code >= 0 else None for code in t.process.host.domain]
        for t in (first, second)
    ]
    assert domains == [["NCCL", "<NVTX domain 9>", None], ["MPI"]]


def test_open_ranges_end_with_the_capture(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    export.nvtx("null end", 10, None).nvtx("closed by nsys", 20, 1000).nvtx("whole", 30, 40)
    export.row("ANALYSIS_DETAILS", globalVid=1 << 48, duration=1000, startTime=7, stopTime=1007)
    (trace,) = export.read(tmp_path)
    assert [end for _, _, _, end in rows(trace)] == [1000, 1000, 40]
    assert reasons(trace) == {"open-range": 2}
    assert trace.source.capture_duration_ns == 1000


def test_open_ranges_without_a_duration_end_with_the_last_record(tmp_path: Path) -> None:
    (trace,) = Export().kernel("k", 0, 1).nvtx("open", 10, None).call("cudaFree_v3020", 50, 70).read(tmp_path)
    assert {name: end for name, _, _, end in rows(trace)} == {"open": 70, "cudaFree": 70}


def test_backtrace_rows_are_no_second_call(tmp_path: Path) -> None:
    export = Export().kernel("k", 5, 9, correlationId=3)
    export.call("cudaLaunchKernel_v7000", 0, 2, 3).call("cudaLaunchKernel", 0, 3, 3, eventClass=67)
    (trace,) = export.read(tmp_path)
    assert rows(trace) == [("cudaLaunchKernel", "CALL", 0, 2)]
    assert reasons(trace) == {"backtrace-duplicate": 1}


def test_results_of_calls(tmp_path: Path) -> None:
    export = Export().kernel("k", 5, 9).call("cudaLaunchKernel_v7000", 0, 2, 3, returnValue=700)
    (trace,) = export.read(tmp_path)
    assert (trace.process.host.result.tolist(), trace.process.host.correlation.tolist()) == ([700], [3])


def test_os_calls_without_the_markers_of_the_tracer(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    for start, kind, level in ((1, 27, 0), (2, 27, 1), (3, 31, None), (4, 32, None)):
        export.row(
            "OSRT_API", start=start, end=start + 1, eventClass=kind, globalTid=gtid(), nameId=export.text("poll"),
            nestingLevel=level, returnValue=0,
        )  # fmt: skip
    (trace,) = export.read(tmp_path)
    assert rows(trace) == [("poll", "OS", 1, 2), ("poll", "OS", 2, 3)]
    assert "os" in trace.source.captured


def test_overhead_named_by_text_else_by_type(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1)
    row = {"globalTid": gtid(), "eventClass": 103}
    table = "CUPTI_ACTIVITY_KIND_OVERHEAD"
    export.row(table, start=1, end=2, overheadType=8, nameId=export.text("Command Buffer Full"), **row)
    export.row(table, start=3, end=4, overheadType=3, nameId=None, **row)
    export.row(
        "PROFILER_OVERHEAD", start=5, end=6, globalTid=gtid(), nameId=export.text("CUPTI: Buffer flush")
    )
    (trace,) = export.read(tmp_path)
    assert rows(trace) == [
        ("command buffer full", "OVERHEAD", 1, 2),
        ("buffer flush", "OVERHEAD", 3, 4),
        ("buffer flush", "OVERHEAD", 5, 6),
    ]


def test_host_rows_without_a_thread_are_counted(tmp_path: Path) -> None:
    export = Export().kernel("k", 0, 1).nvtx("lost", 1, 2, globalTid=None).nvtx("kept", 3, 4)
    (trace,) = export.read(tmp_path)
    assert host_names(trace) == ["kept"]
    assert reasons(trace) == {"no-thread": 1}
