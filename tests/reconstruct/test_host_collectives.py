"""Collectives on the CPU: the backend's thread records them, the thread that called waits without a record."""

from __future__ import annotations

import pytest

from tests.builders import Row, Schedule, analysis_of, path_of, schedule


def calls_gloo(ran: tuple[int, int], resumes: int, *, call: str = "c10d::allreduce_") -> Schedule:
    """
    main  [step 0-9000  |mm 0-100|call 100-140|          silent          |tanh at resumes|...
    gloo                                [gloo:all_reduce ran]
    """
    built = schedule().range(0, 9000, "s").op(0, 100, "aten::mm").op(100, 140, call)
    built.op(resumes, resumes + 50, "aten::tanh")
    return built.thread("pt_gloo_runloop").range(*ran, "gloo:all_reduce").thread("main")


def rows(built: Schedule) -> list[Row]:
    return path_of(built, steps="^s$", boundary="host")


def waited(built: Schedule) -> int:
    """Time of ``collective.host``, us."""
    (window,) = analysis_of(built, steps="^s$", boundary="host").diagnosis.ranks[0].windows
    return window.path_ns["collective.host"] // 1000


def test_a_thread_that_waits_for_a_collective_on_the_cpu_is_in_it() -> None:
    """From the call's end to the collective's: its queueing is part of the wait, waking up is not."""
    assert rows(calls_gloo((200, 1000), 1010))[:5] == [
        (0, 100, "host.framework", "aten::mm"),
        (100, 140, "host.framework", "c10d::allreduce_"),
        (140, 1000, "collective.host", "gloo:all_reduce"),
        (1000, 1010, "host.untraced", ""),
        (1010, 1060, "host.framework", "aten::tanh"),
    ]


@pytest.mark.parametrize(
    ("ran", "resumes", "expected"),
    [
        ((200, 1000), 1500, 860),  # goes on within 0.5 ms
        ((200, 1000), 1801, 860),  # woken late, yet the collective holds half of the silence
        ((200, 1000), 1900, 0),  # silent for other reasons, it seems
        ((200, 1000), 980, 0),  # did not wait: at the end it does other work
        ((200, 1000), 900, 50),  # went on with an op, then waited
    ],
)
def test_silence_counts_where_the_collective_ends_it(
    ran: tuple[int, int], resumes: int, expected: int
) -> None:
    assert waited(calls_gloo(ran, resumes)) == expected


def test_the_path_stays_with_the_thread_that_calls() -> None:
    """The backend's thread rests while the loop works, and the loop goes on soon after: that is no hand-over."""
    built, begins = schedule(), range(0, 12_400, 3100)
    for at in begins:
        built.range(at, at + 3000, "s").op(at + 10, at + 900, "aten::mm")
        built.op(at + 920, at + 960, "c10d::allreduce_")
        built.thread("pt_gloo_runloop").range(at + 1000, at + 2900, "gloo:all_reduce").thread("main")
    for step, at in enumerate(begins):
        assert path_of(built, step, steps="^s$", boundary="host") == [
            (at, at + 10, "host.untraced", ""),
            (at + 10, at + 900, "host.framework", "aten::mm"),
            (at + 900, at + 920, "host.untraced", ""),
            (at + 920, at + 960, "host.framework", "c10d::allreduce_"),
            (at + 960, at + 2900, "collective.host", "gloo:all_reduce"),
            (at + 2900, at + 3000, "host.untraced", ""),
        ]


def test_the_end_of_a_step_is_no_sign_of_life() -> None:
    """torch.profiler's own marker ends in ``step()``, before the loop goes on."""
    built = schedule().range(0, 1004, "s").range(0, 1004, "ProfilerStep#3").op(100, 140, "c10d::allreduce_")
    built.range(1020, 1030, "later").thread("gloo").range(200, 1000, "gloo:all_reduce").thread("main")
    assert waited(built) == 860


@pytest.mark.parametrize("call", ["aten::copy_", "nccl:all_reduce"])
def test_without_a_call_no_thread_waits(call: str) -> None:
    assert waited(calls_gloo((200, 1000), 1010, call=call)) == 0


def test_the_backend_itself_is_in_the_collective() -> None:
    """Steps on the backend's own thread: its record is no framework work."""
    built = schedule().thread("gloo").range(0, 100, "s").range(10, 90, "gloo:broadcast")
    assert rows(built) == [
        (0, 10, "host.untraced", ""),
        (10, 90, "collective.host", "gloo:broadcast"),
        (90, 100, "host.untraced", ""),
    ]


def test_roll_ups_name_the_collective_for_the_thread_that_waited() -> None:
    diagnosis = analysis_of(calls_gloo((200, 1000), 1010), steps="^s$", boundary="host").diagnosis
    times = {row.name: row.path_ns // 1000 for row in diagnosis.host_rollups if row.by == "range"}
    assert times["gloo:all_reduce"] == 860
    (row,) = (row for row in diagnosis.host_rollups if row.name == "gloo:all_reduce")
    assert row.category == "collective.host"
