"""Which processes of one capture are ranks, where no device work tells: literal calls of a launcher and its ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.model import Trace
from tests.readers.nsys_sqlite.builder import Export, gtid

LAUNCHER, FIRST, SECOND = 10, 11, 12
REASON = "process-without-rank"
NO_RANK = "process 10 is no rank: it"
LEFT_OUT = "what was recorded of it is left out"


def os_call(export: Export, pid: int, name: str, start: int, end: int) -> None:
    export.row("OSRT_API", start=start, end=end, eventClass=27, globalTid=gtid(pid), nameId=export.text(name))


def worker(export: Export, pid: int, start: int, end: int) -> None:
    """Half of its time is spent in calls."""
    middle = (start + end) // 2
    os_call(export, pid, "read", start, start + 1)
    os_call(export, pid, "poll", middle, end)


def launcher(
    export: Export, pid: int, start: int, end: int, *, waits: str = "waitpid", every: int = 100
) -> None:
    """Loads until 100, then looks every so often whether its children are there, as torchrun does."""
    os_call(export, pid, "read", start, start + 10)
    for at in range(start + 100, end, every):
        os_call(export, pid, "clock_nanosleep", at, at + 97)
        os_call(export, pid, waits, at + 98, at + 99)


def pids(traces: list[Trace]) -> list[str]:
    return [trace.process.pid for trace in traces]


def left_out(traces: list[Trace]) -> list[tuple[int, int | None, str]]:
    (source,) = {id(trace.source): trace.source for trace in traces}.values()
    return [(row.count, row.total, row.effect) for row in source.quality if row.reason == REASON]


def test_a_launcher_is_no_rank_and_is_counted(tmp_path: Path) -> None:
    export = Export()
    launcher(export, LAUNCHER, 0, 1_000)
    worker(export, FIRST, 110, 980)
    worker(export, SECOND, 120, 990)
    traces = export.read(tmp_path)
    assert pids(traces) == ["11", "12"]
    assert left_out(traces) == [
        (1, 3, f"{NO_RANK} waited for child processes while the others ran; {LEFT_OUT}")
    ]


@pytest.mark.parametrize("waits", ["wait", "wait3", "wait4", "waitid", "__waitpid"])
def test_one_rank_below_a_shell(waits: str, tmp_path: Path) -> None:
    export = Export()
    launcher(export, LAUNCHER, 0, 1_000, waits=waits)
    worker(export, FIRST, 110, 980)
    assert pids(export.read(tmp_path)) == ["11"]


def test_launchers_below_one_another(tmp_path: Path) -> None:
    export = Export()
    launcher(export, 9, 0, 2_000)
    launcher(export, LAUNCHER, 110, 1_900)
    worker(export, FIRST, 220, 1_800)
    traces = export.read(tmp_path)
    assert pids(traces) == ["11"]
    assert left_out(traces)[0][2].startswith("processes 9, 10 are no ranks: they waited for child processes")


def test_a_program_that_works_beside_a_helper_is_a_rank(tmp_path: Path) -> None:
    """It waits for its helper at the end, and worked, untraced, for most of the helper's life."""
    export = Export()
    os_call(export, FIRST, "read", 0, 10)
    os_call(export, FIRST, "waitpid", 900, 950)
    os_call(export, FIRST, "read", 990, 1_000)
    os_call(export, SECOND, "read", 100, 949)
    traces = export.read(tmp_path)
    assert pids(traces) == ["11", "12"]
    assert left_out(traces) == []


def test_a_program_whose_helper_ends_soon_is_a_rank(tmp_path: Path) -> None:
    """It stands still while the helper runs; most of its time comes after that."""
    export = Export()
    os_call(export, FIRST, "waitpid", 100, 200)
    worker(export, FIRST, 200, 1_000)
    worker(export, SECOND, 101, 199)
    assert pids(export.read(tmp_path)) == ["11", "12"]


def test_ranks_that_wait_for_children_are_all_kept(tmp_path: Path) -> None:
    export = Export()
    for pid in (FIRST, SECOND):
        worker(export, pid, 0, 1_000)
        os_call(export, pid, "waitpid", 1_000, 1_001)
    assert pids(export.read(tmp_path)) == ["11", "12"]


def test_a_process_that_waits_no_more_than_the_others_is_kept(tmp_path: Path) -> None:
    """What it waited for is unknown: a helper that stands still itself, like one that clears up in the end."""
    export = Export()
    launcher(export, FIRST, 0, 1_000)
    os_call(export, SECOND, "read", 110, 990)
    assert pids(export.read(tmp_path)) == ["11", "12"]


def test_steps_of_a_script_that_run_one_after_another_are_no_ranks_of_one_run(tmp_path: Path) -> None:
    export = Export()
    worker(export, 7, 0, 90)
    worker(export, FIRST, 100, 980)
    worker(export, SECOND, 110, 990)
    worker(export, 20, 990, 1_100)
    traces = export.read(tmp_path)
    assert pids(traces) == ["11", "12"]
    ((count, total, effect),) = left_out(traces)
    assert (count, total) == (2, 4)
    assert effect.startswith(
        "processes 7, 20 are no ranks: they ran before or after the one that ran longest"
    )


def test_a_process_without_ranges_beside_some_that_have_them_is_counted(tmp_path: Path) -> None:
    export = Export()
    launcher(export, LAUNCHER, 0, 1_000)
    export.nvtx("step 0", 200, 300, globalTid=gtid(FIRST))
    traces = export.read(tmp_path)
    assert pids(traces) == ["11"]
    why = "recorded neither API calls nor ranges, as others did"
    assert left_out(traces) == [(1, 2, f"{NO_RANK} {why}; {LEFT_OUT}")]


def test_a_process_that_launched_nothing_beside_device_work_is_counted(tmp_path: Path) -> None:
    export = Export()
    export.call("cudaLaunchKernel_v7000", 10, 20, correlation=5, globalTid=gtid(FIRST))
    export.kernel("k", 30, 40, pid=FIRST, correlationId=5)
    export.call("cudaGetDeviceCount_v3020", 1, 2, globalTid=gtid(LAUNCHER))
    traces = export.read(tmp_path)
    assert pids(traces) == ["11"]
    assert left_out(traces) == [(1, 2, f"{NO_RANK} launched nothing on a device, as others did; {LEFT_OUT}")]


def test_where_all_processes_are_ranks_nothing_is_counted(tmp_path: Path) -> None:
    export = Export()
    worker(export, FIRST, 0, 100)
    worker(export, SECOND, 0, 100)
    assert left_out(export.read(tmp_path)) == []
