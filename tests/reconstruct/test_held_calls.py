"""Calls that the device held, and calls that only look like it (attribution, section 3; host time)."""

from __future__ import annotations

import pytest

from analyzer.model import CopyKind, MemoryKind
from tests.builders import Schedule, account_of, path_of, quality_of, schedule

PAGEABLE, PINNED = MemoryKind.PAGEABLE, MemoryKind.PINNED
DTOH, HTOD = CopyKind.DTOH, CopyKind.HTOD


def last_kernel(built: Schedule, launched: int) -> Schedule:
    """A launch at ``launched`` whose kernel ``next`` runs from 10 to 20 us later: where the walk begins."""
    return built.launch(launched, launched + 4, runs=(launched + 10, launched + 20), name="next")


def burst() -> Schedule:
    """Three launches without a pause, so that a burst of this thread ends after 50 us without one."""
    built = schedule()
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at), name=f"k{at}")
    return built


def held(built: Schedule) -> list[tuple[str, str]]:
    """(call, awaited work) of every call that the device held, in order of return."""
    account = account_of(built)
    names, table = account.trace.process.names, account.held
    host, work = account.trace.process.host, account.work
    return [
        (names[host.name[account.calls.row[call]]], names[work.table.name[row]])
        for call, row in zip(table.call.tolist(), table.work.tolist(), strict=True)
    ]


def test_a_stream_synchronization_returns_after_its_stream() -> None:
    """
    main      |L 0-4 |sync 5-66                    |op 66-90 |L 90-94
    stream 7         |a 10-60                                      |next 100-110
    stream 20        |b 12-64 (launched by another call, not waited for)
    """
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(2, 4, runs=(12, 64), name="b", stream=20)
        .sync(5, 66, stream=7)
        .op(66, 90, "sample")
    )
    assert path_of(last_kernel(built, 90)) == [
        (0, 10, "launch.latency", "a"),
        (10, 60, "kernel", "a"),
        (60, 66, "host.sync_return", "cudaStreamSynchronize"),
        (66, 90, "host.framework", "sample"),
        (90, 100, "launch.latency", "next"),
        (100, 110, "kernel", "next"),
    ]


def test_a_device_synchronization_waits_for_every_stream() -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(2, 4, runs=(12, 64), name="b", stream=20)
        .sync(5, 66)
    )
    assert held(last_kernel(built, 90)) == [("cudaDeviceSynchronize", "b")]


def test_an_event_synchronization_waits_for_what_was_recorded_not_for_the_stream() -> None:
    """b follows the record: the call returned at 33 because a ended at 30, b runs on until 80."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 30), name="a")
        .event_record(2, 3, "a done")
        .launch(3, 4, runs=(31, 80), name="b")
        .event_sync(5, 33, "a done")
    )
    assert held(last_kernel(built, 90)) == [("cudaEventSynchronize", "a")]


def test_a_synchronization_with_nothing_pending_is_cpu_time() -> None:
    built = burst().sync(150, 153, stream=7)
    assert held(built) == []
    assert path_of(last_kernel(built, 210))[-4:-2] == [
        (150, 153, "host.api", "cudaStreamSynchronize"),
        (153, 210, "host.untraced", ""),
    ]


def test_without_a_recorded_stream_the_work_that_ended_near_the_return_counts() -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(2, 4, runs=(12, 40), name="b", stream=20)
        .sync(5, 66, stream=7, row=False)
    )
    assert held(last_kernel(built, 90)) == [("cudaStreamSynchronize", "a")]


def test_an_event_synchronization_without_its_record_is_told_by_what_ended_before_it_returned() -> None:
    """b was pending too, but ended long after the return: it cannot have been awaited."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 30), name="a")
        .launch(3, 4, runs=(31, 80), name="b")
        .call(5, 33, "cudaEventSynchronize")
    )
    assert held(last_kernel(built, 90)) == [("cudaEventSynchronize", "a")]


def test_a_recorded_stream_whose_work_ended_long_after_the_return_was_not_awaited() -> None:
    """The row names stream 7, whose work went on until 500: the record contradicts the times."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(2, 4, runs=(61, 500), name="b")
        .sync(8, 65, stream=7)
    )
    assert held(built) == []


def test_item_is_an_asynchronous_copy_and_the_synchronization_behind_it() -> None:
    """
    main      |L 0-4 |memcpyAsync 5-9 |sync 9-70            |op 70-90 |L 90
    stream 7        |a 10-60                 |D2H 61-64               |next
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60), name="a")
        .op(5, 71, "aten::item")
        .copy(5, 9, runs=(61, 64), kind=DTOH, size=4)
        .sync(9, 70, stream=7)
    )
    assert path_of(last_kernel(built, 90))[1:-2] == [
        (10, 60, "kernel", "a"),
        (60, 61, "gap.dispatch", "Memcpy DTOH"),
        (61, 64, "copy", "Memcpy DTOH"),
        (64, 70, "host.sync_return", "cudaStreamSynchronize"),
        (70, 71, "host.framework", "aten::item"),
        (71, 90, "host.untraced", ""),
    ]


@pytest.mark.parametrize("api", ["cudaMemcpy", "cudaMemcpyAsync"])
def test_a_pageable_copy_to_the_host_returns_after_its_transfer(api: str) -> None:
    """The CPU still copies out of the staging buffer from 64 to 90: the device had finished."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60), name="a")
        .copy(5, 90, runs=(61, 64), kind=DTOH, host=PAGEABLE, api=api)
    )
    assert path_of(last_kernel(built, 95))[2:-3] == [
        (60, 61, "gap.dispatch", "Memcpy DTOH"),
        (61, 64, "copy", "Memcpy DTOH"),
        (64, 90, "host.sync_return", api),
    ]


def test_a_pinned_asynchronous_copy_to_the_host_waits_for_nothing() -> None:
    built = schedule().launch(0, 4, runs=(10, 60)).copy(5, 9, runs=(61, 64), kind=DTOH, host=PINNED)
    assert held(built) == []


def test_a_large_pageable_copy_to_the_device_may_return_before_its_recorded_end() -> None:
    """The last staging chunk is in flight until 560; the call returned at 530: the walk goes on there."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60), name="a")
        .copy(5, 530, runs=(61, 560), kind=HTOD, host=PAGEABLE, size=1 << 20, api="cudaMemcpyAsync")
        .launch(600, 604, runs=(610, 620), name="next")
    )
    assert path_of(built)[2:] == [
        (60, 61, "gap.dispatch", "Memcpy HTOD"),
        (61, 530, "copy", "Memcpy HTOD"),
        (530, 600, "host.untraced", ""),
        (600, 610, "launch.latency", "next"),
        (610, 620, "kernel", "next"),
    ]


def test_a_small_pageable_copy_to_the_device_does_not_wait() -> None:
    """64 KB travel with the command: cudaMemcpyAsync returns behind a running kernel, before the copy."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 500), name="a")
        .copy(5, 18, runs=(501, 503), host=PAGEABLE, size=64 * 1024)
    )
    assert held(built) == []


@pytest.mark.parametrize(
    ("size", "waits"), [(64 * 1024, []), (64 * 1024 + 1, [("cudaMemcpyAsync", "Memcpy HTOD")])]
)
def test_only_what_is_larger_than_64_kb_is_staged(size: int, waits: list[tuple[str, str]]) -> None:
    """The same times for both: the transfer runs from 20 to 60 inside the call."""
    built = schedule().copy(5, 70, runs=(20, 60), host=PAGEABLE, size=size)
    assert held(built) == waits


def test_a_small_synchronous_pageable_copy_still_waits_for_its_streams_earlier_work() -> None:
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60), name="a")
        .copy(5, 64, runs=(66, 68), host=PAGEABLE, size=4096, api="cudaMemcpy")
    )
    assert held(last_kernel(built, 90)) == [("cudaMemcpy", "a")]


def test_a_device_to_device_copy_of_a_blocking_name_does_not_wait() -> None:
    built = (
        schedule()
        .launch(0, 4, runs=(10, 60))
        .copy(5, 62, runs=(61, 70), kind=CopyKind.DTOD, api="cudaMemcpy")
    )
    assert held(built) == []


@pytest.mark.parametrize("api", ["cudaMalloc", "cudaFree", "cuMemFree_v2"])
def test_an_allocator_call_that_began_with_work_pending_and_returned_with_none_was_held(api: str) -> None:
    """
    main      |L 0-4 |cudaFree 5-305            |op 305-330 |L 330
    stream 7      |a 10-300                                     |next 340-350
    """
    built = schedule().launch(0, 4, runs=(10, 300), name="a").call(5, 305, api).op(305, 330, "prepare")
    assert path_of(last_kernel(built, 330))[1:-2] == [
        (10, 300, "kernel", "a"),
        (300, 305, "host.sync_return", api),
        (305, 330, "host.framework", "prepare"),
    ]


def test_an_allocation_that_returned_with_work_still_pending_is_cpu_time() -> None:
    built = burst().launch(6, 8, runs=(43, 340), name="long").call(8, 308, "cudaMalloc")
    assert held(built) == []
    assert path_of(last_kernel(built, 400))[-4:-2] == [
        (8, 308, "host.api", "cudaMalloc"),
        (308, 400, "host.untraced", ""),
    ]


def test_an_allocation_of_less_than_100_us_is_never_called_held() -> None:
    built = schedule().launch(0, 4, runs=(10, 60), name="a").call(5, 65, "cudaFree")
    assert held(last_kernel(built, 90)) == []


def test_a_loop_of_event_queries_is_a_wait_for_what_ended_before_the_first_ready() -> None:
    """
    main      |L 0-4 |q not ready, every 10 us from 10 ... 60|q ready 70-71 |op 71-90 |L 90
    stream 7      |a 10-65
    """
    built = schedule().launch(0, 4, runs=(10, 65), name="a")
    for at in range(10, 70, 10):
        built.query(at, at + 1, ready=False)
    built.query(70, 71, ready=True).op(71, 90, "sample")
    assert path_of(last_kernel(built, 90))[1:-2] == [
        (10, 65, "kernel", "a"),
        (65, 71, "host.sync_return", "cudaEventQuery"),
        (71, 90, "host.framework", "sample"),
    ]


def test_queries_that_were_ready_at_once_waited_for_nothing() -> None:
    built = schedule().launch(0, 4, runs=(10, 65), name="a")
    for at in (70, 80, 90):
        built.query(at, at + 1, ready=True)
    assert held(built) == []


def full_queue(depth: int = 99) -> Schedule:
    """250 us kernels back to back, launched every 2 us until ``depth`` are queued behind the running one;
    from then on launch i returns 5 us after kernel i - (depth + 1) has ended."""
    built, host = schedule(), 0
    for i in range(depth + 8):
        start = 10 + 251 * i
        ended = 10 + 251 * (i - depth - 1) + 250
        back = host + 2 if i <= depth else max(host + 2, ended + 5)
        built.launch(host, back, runs=(start, start + 250), name=f"k{i}")
        host = back
    return built


def test_a_launch_into_a_full_queue_is_held_by_the_oldest_kernel() -> None:
    """Launches 100 to 106 return when kernels 0 to 6 have ended; the first of them after 65 us, the rest
    after 251: six are longer than 100 us.
    """
    built = full_queue()
    assert held(built) == [("cudaLaunchKernel", f"k{i}") for i in range(7)]
    assert quality_of(built)["held-by-full-launch-queue"] == 6
    assert account_of(built).held.queue_depth == 99


def test_a_full_queue_keeps_the_kernels_on_the_path_not_the_launches() -> None:
    rows = path_of(full_queue())
    assert sum(end - start for start, end, category, _ in rows if category == "kernel") == 107 * 250
    assert sum(end - start for start, end, category, _ in rows if category == "gap.dispatch") == 106
    assert [row for row in rows if row[2] not in ("kernel", "gap.dispatch")] == [
        (0, 10, "launch.latency", "k0")
    ]


def test_blocking_copies_at_one_depth_are_no_full_queue() -> None:
    """Three times 80 kernels of 5 us are queued, then a copy out waits for itself: slow, but not for the queue."""
    built, host = schedule(), 0
    for step in range(3):
        first = host + 10
        for i in range(80):
            built.launch(host, host + 1, runs=(first + 5 * i, first + 5 * i + 5), name=f"k{step}")
            host += 1
        done = first + 5 * 80 + 20
        built.copy(host, done + 4, runs=(done - 20, done), kind=CopyKind.DTOH, host=MemoryKind.PAGEABLE)
        host = done + 10
    assert held(built) == [("cudaMemcpyAsync", "Memcpy DTOH")] * 3
    assert account_of(built).held.queue_depth is None


def test_a_long_launch_with_an_empty_queue_is_no_full_queue() -> None:
    """Loading code on a first launch: 300 us in the call, nothing pending at its start."""
    built = schedule().launch(0, 300, runs=(305, 320), name="a")
    assert held(built) == []


def test_a_recorded_full_command_buffer_names_the_wait() -> None:
    """Too few launches to see a plateau, but the profiler recorded it inside the second call."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 200), name="a")
        .launch(5, 205, runs=(210, 220), name="b")
        .thread("")
        .overhead(20, 200, "Command Buffer Full")
    )
    assert held(built) == [("cudaLaunchKernel", "a")]
