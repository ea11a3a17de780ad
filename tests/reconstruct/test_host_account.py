"""What the CPU did: bursts, declared ranges, the profiler, nesting (attribution, sections 2 and 3).

Each schedule ends in a kernel ``end`` that its launch binds; the path before it is the thread's account.
"""

from __future__ import annotations

import pytest

from tests.builders import Row, Schedule, account_of, path_of, quality_of, schedule


def quick(thread: str = "main") -> Schedule:
    """Launches at 0, 2 and 4 whose kernels end at 20: a thread whose bursts end after 50 us."""
    built = schedule().thread(thread)
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 3 * at, 12 + 3 * at), name=f"k{at}")
    return built


def account(built: Schedule, launched: int, **options: str) -> list[Row]:
    """The path from 6 us up to a launch at ``launched`` that binds the window's last kernel."""
    built.thread("main").launch(launched, launched + 2, runs=(launched + 10, launched + 20), name="end")
    rows = path_of(built, **options)
    assert rows[-2:] == [
        (launched, launched + 10, "launch.latency", "end"),
        (launched + 10, launched + 20, "kernel", "end"),
    ]
    return [row for row in rows[:-2] if row[0] >= 6]


def test_a_burst_holds_launch_calls_and_the_dispatch_between_them() -> None:
    """49 us between two launches are a burst, whatever runs in it."""
    built = quick().op(6, 30, "aten::mm").call(30, 33, "cudaPointerGetAttributes")
    assert account(built, 55) == [
        (6, 30, "launch.dispatch", "aten::mm"),
        (30, 33, "launch.dispatch", "cudaPointerGetAttributes"),
        (33, 55, "launch.dispatch", ""),
    ]


def test_at_50_us_the_burst_is_over_and_host_time_is_told_by_its_innermost_record() -> None:
    built = quick().range(6, 50, "sampling").op(10, 30, "aten::topk").call(12, 15, "cudaPointerGetAttributes")
    assert account(built, 56) == [
        (6, 10, "host.framework", "sampling"),
        (10, 12, "host.framework", "aten::topk"),
        (12, 15, "host.api", "cudaPointerGetAttributes"),
        (15, 30, "host.framework", "aten::topk"),
        (30, 50, "host.framework", "sampling"),
        (50, 56, "host.untraced", ""),
    ]


@pytest.mark.parametrize(
    ("pause", "limit"), [(1, 50), (12, 50), (13, 52), (100, 400), (250, 1000), (900, 1000)]
)
def test_a_burst_ends_after_four_median_gaps_between_50_us_and_1_ms(pause: int, limit: int) -> None:
    built, at = schedule(), 0
    for i in range(5):
        built.launch(at, at + 2, runs=(at + 10, at + 11) if i == 4 else None)
        at += 2 + pause
    bursts = account_of(built)
    bursts.account.thread(0)
    assert bursts.account.built[0].burst_gap_ns == limit * 1000


def test_a_call_that_the_device_held_breaks_a_burst() -> None:
    """Only 12 us lie between the two launches, but the synchronization returned in between."""
    built = quick().launch(6, 8, runs=(19, 40), name="a").sync(8, 42, stream=7).op(42, 50, "next step")
    assert account(built, 50)[-2:] == [
        (40, 42, "host.sync_return", "cudaStreamSynchronize"),
        (42, 50, "host.framework", "next step"),
    ]


def test_declared_dispatch_is_dispatch_however_long() -> None:
    built = quick().range(6, 300, "model forward").op(10, 200, "aten::slow_python")
    assert account(built, 310, dispatch="^model forward$") == [
        (6, 10, "launch.dispatch", "model forward"),
        (10, 200, "launch.dispatch", "aten::slow_python"),
        (200, 300, "launch.dispatch", "model forward"),
        (300, 310, "host.untraced", ""),
    ]


@pytest.mark.parametrize("name", ["gpu_model_runner: forward", "Forward"])
def test_engine_forward_ranges_are_dispatch_by_name(name: str) -> None:
    assert account(quick().range(6, 300, name), 310)[0] == (6, 300, "launch.dispatch", name)


@pytest.mark.parametrize(
    "name", ["schedule: allocate_slots", "scheduler.get_next_batch_to_run", "_fetch_new_requests"]
)
def test_scheduling_ranges_are_never_dispatch_even_inside_a_burst(name: str) -> None:
    built = quick().range(8, 30, name)
    assert account(built, 40) == [
        (6, 8, "launch.dispatch", ""),
        (8, 30, "host.framework", name),
        (30, 40, "launch.dispatch", ""),
    ]


@pytest.mark.parametrize(
    "name",
    ["gpu_model_runner: bookkeep", "_sample_async", "scheduler.process_batch_result", "tracebound.output"],
)
def test_output_ranges_are_output_even_inside_a_burst(name: str) -> None:
    built = quick().range(8, 30, name).op(10, 20, "aten::argmax")
    assert account(built, 40)[1:4] == [
        (8, 10, "host.output", name),
        (10, 20, "host.output", "aten::argmax"),
        (20, 30, "host.output", name),
    ]


def test_output_can_be_declared() -> None:
    built = quick().range(8, 100, "my detokenizer")
    assert account(built, 110, output_ranges="detokenizer")[1] == (8, 100, "host.output", "my detokenizer")


def test_launch_calls_of_an_output_range_stay_launch_calls() -> None:
    """Host side only: what is submitted there is submission."""
    built = quick().range(8, 100, "gpu_model_runner: sample").launch(60, 63, runs=(70, 71), name="sample")
    assert (60, 63, "launch.api", "cudaLaunchKernel") in account(built, 200)


def test_the_profilers_own_time_on_the_thread() -> None:
    built = quick().op(6, 200, "aten::mm").overhead(50, 150, "Buffer Flush")
    assert account(built, 210) == [
        (6, 50, "host.framework", "aten::mm"),
        (50, 150, "profiler", "Buffer Flush"),
        (150, 200, "host.framework", "aten::mm"),
        (200, 210, "host.untraced", ""),
    ]


def test_overhead_without_a_thread_covers_every_thread_and_that_of_another_covers_none() -> None:
    built = quick().op(6, 200, "aten::mm").thread("").overhead(50, 60).thread("other").overhead(100, 150)
    assert account(built, 210)[:3] == [
        (6, 50, "host.framework", "aten::mm"),
        (50, 60, "profiler", "aten::mm"),
        (60, 200, "host.framework", "aten::mm"),
    ]


@pytest.mark.parametrize(
    "name",
    ["Command Buffer Full", "Lazy Function Loading", "Runtime Triggered Module Loading", "Module Loading"],
)
def test_cudas_own_work_is_not_the_profiler(name: str) -> None:
    built = quick().op(6, 200, "aten::mm").thread("").overhead(50, 60, name)
    assert "profiler" not in {category for _, _, category, _ in account(built, 210)}


def test_a_blocked_thread_waits() -> None:
    assert account(quick().os(6, 100, "epoll_wait"), 110)[0] == (6, 100, "host.wait", "epoll_wait")


def test_the_step_marker_names_the_window_and_not_what_the_cpu_did() -> None:
    built = quick().range(0, 400, "ProfilerStep#3").op(6, 100, "aten::mm")
    assert account(built, 210) == [(6, 100, "host.framework", "aten::mm"), (100, 210, "host.untraced", "")]


def test_crossing_records_are_cut_at_the_outer_ones_end_and_counted() -> None:
    """
    |outer 6-100         |
              |crossing 50-150    ends at 100
    """
    built = quick().range(6, 100, "outer").range(50, 150, "crossing")
    assert account(built, 210) == [
        (6, 50, "host.framework", "outer"),
        (50, 100, "host.framework", "crossing"),
        (100, 210, "host.untraced", ""),
    ]
    assert quality_of(built)["crossing-host-records"] == 1


def test_spans_and_marks_say_nothing_of_what_the_thread_did() -> None:
    """A start/end range may cross others and end elsewhere: it encloses, it does not nest."""
    built = quick().span(6, 200, "request 17")
    assert account(built, 210) == [(6, 210, "host.untraced", "")]
