"""The events of the step that the timeline shows."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.analysis import Analysis
from analyzer.diagnosis import Detail
from analyzer.explain import detail as module
from analyzer.explain.focus import focus_rank
from analyzer.model import Capture, CopyKind
from analyzer.pipeline import analyze
from analyzer.tables import DetailKind, DetailTable
from tests.builders import Schedule, analysis_of, schedule
from tests.captures.results import analysis_of as analysis_of_capture
from tests.shared import needs_shared

Event = tuple[str, str, int, str]  # lane, kind, depth, name


def detail_of(built: Schedule, **options: object) -> tuple[Detail, DetailTable]:
    analysis = analysis_of(built, **options)
    assert analysis.diagnosis.detail is not None and analysis.detail is not None
    return analysis.diagnosis.detail, analysis.detail


def events(table: DetailTable) -> list[Event]:
    return [
        (table.lanes[lane], DetailKind(kind).name, depth, table.names[name])
        for lane, kind, depth, name in zip(
            table.lane.tolist(), table.kind.tolist(), table.depth.tolist(), table.name.tolist(), strict=True
        )
    ]


def steps(*lengths: int) -> Schedule:
    """Steps whose windows have these lengths, us."""
    built, end = schedule(), 0
    for length in lengths:
        built.range(end, end + length - 1, "s").launch(end, end + 4, runs=(end + 10, end + length))
        end += length
    return built


def test_the_median_step_of_the_longest_phase_is_shown() -> None:
    """In order of length: windows 0, 2, 3, 1; of the two in the middle the shorter."""
    detail, table = detail_of(steps(100, 140, 110, 120), steps="^s$")
    assert (detail.window, detail.step, detail.why) == (2, "s", "the median step of phase step")
    assert (detail.events, detail.left_out) == (len(table), 0)


def test_a_flagged_step_is_not_shown() -> None:
    built = steps(100, 140, 110).call(250, 252, "cudaMalloc")
    assert detail_of(built, steps="^s$")[0].window == 0


def test_the_step_that_was_asked_for_is_shown() -> None:
    detail, _ = detail_of(steps(100, 140, 110), steps="^s$", step_index="1")
    assert (detail.window, detail.why) == (1, "the step chosen by --step-index 1")


def one_step() -> Schedule:
    """
    main  |range s 0-100 [op mm 0-20 [L 2-6]] [copy call 30-60, held]
    other |op elsewhere 0-50: neither launches nor waits nor lies on the path
    s7    |gemm 10-28|copy 28-58
    """
    return (
        schedule()
        .range(0, 100, "s")
        .op(0, 20, "aten::mm")
        .launch(2, 6, runs=(10, 28), name="gemm")
        .copy(30, 60, runs=(31, 58), kind=CopyKind.DTOH, api="cudaMemcpy")
        .thread("other")
        .op(0, 50, "elsewhere")
    )


def test_events_by_thread_and_stream() -> None:
    _, table = detail_of(one_step(), steps="^s$")
    assert events(table) == [
        ("thread main", "RANGE", 0, "s"),
        ("thread main", "OP", 1, "aten::mm"),
        ("thread main", "LAUNCH", 2, "cudaLaunchKernel"),
        ("thread main", "HELD", 1, "cudaMemcpy"),
        ("device 0 stream 7", "KERNEL", 0, "gemm"),
        ("device 0 stream 7", "COPY", 0, "Memcpy DTOH"),
    ]
    assert (table.lanes, table.device_lanes) == (("thread main", "device 0 stream 7"), 1)


def test_device_work_carries_its_class_and_host_records_none() -> None:
    _, table = detail_of(one_step(), steps="^s$")
    classes = [table.names[code] if code >= 0 else None for code in table.class_.tolist()]
    assert classes[:4] == [None] * 4
    assert classes[5] == "copy"
    assert classes[4] is not None


def test_instants_are_those_of_the_windows_and_events_may_reach_beyond() -> None:
    """The second window is [100, 200); the range of its step runs on, to 250."""
    built = schedule().range(0, 90, "s").launch(0, 4, runs=(10, 100))
    built.range(110, 250, "s").launch(110, 114, runs=(120, 200))
    _, table = detail_of(built, steps="^s$", step_index="1")
    spans = list(zip(events(table), table.start_ns.tolist(), table.end_ns.tolist(), strict=True))
    assert [(event[3], start // 1000, end // 1000) for event, start, end in spans] == [
        ("s", 110, 250), ("cudaLaunchKernel", 110, 114), ("k", 120, 200),
    ]  # fmt: skip


def test_overhead_of_the_profiler_is_told_from_calls_that_cuda_delayed() -> None:
    built = schedule().launch(0, 40, runs=(50, 60)).overhead(5, 10).overhead(12, 30, "Lazy Function Loading")
    _, table = detail_of(built)
    kinds = {name: kind for _, kind, _, name in events(table)}
    assert (kinds["Instrumentation"], kinds["Lazy Function Loading"]) == ("PROFILER", "API")


@pytest.mark.parametrize(
    ("room", "names"),
    [
        (6, ["s", "aten::mm", "cudaLaunchKernel", "cudaMemcpy", "gemm", "Memcpy DTOH"]),
        (5, ["s", "cudaLaunchKernel", "cudaMemcpy", "gemm", "Memcpy DTOH"]),
        (4, ["cudaLaunchKernel", "cudaMemcpy", "gemm", "Memcpy DTOH"]),
        (3, ["cudaMemcpy", "gemm", "Memcpy DTOH"]),
        (1, ["Memcpy DTOH"]),
    ],
)
def test_what_does_not_fit_is_left_out_and_counted(
    room: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ops and ranges go first, the shortest before the longer; then calls; then device work."""
    monkeypatch.setattr(module, "MOST_EVENTS", room)
    detail, table = detail_of(one_step(), steps="^s$")
    assert [name for _, _, _, name in events(table)] == names
    assert (detail.events, detail.left_out) == (room, 6 - room)


def test_of_several_ranks_the_slowest_is_shown_and_the_queue_of_each() -> None:
    built = (steps(100, 100), steps(150, 150), steps(120, 120))
    capture = Capture(tuple(one.build() for one in built), (0, 1, 2))
    analysis = analyze(capture, steps="^s$")
    assert analysis.diagnosis.detail is not None and analysis.queue is not None
    assert (
        analysis.diagnosis.detail.rank,
        focus_rank(analysis.diagnosis.budget, analysis.diagnosis.ranks),
    ) == (1, 1)
    assert np.unique(analysis.queue.rank).tolist() == [0, 1, 2]


def test_without_windows_nothing_is_shown() -> None:
    """Marks alone: no thread did anything that a window could cover."""
    analysis = analysis_of(schedule())
    assert (analysis.diagnosis.detail, analysis.detail) == (None, None)


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "hta-diff/trace_diff_test.json.gz",
        "tracelens-sglang/sglang_qwen3_8b_prefilldecode.json.gz",
        "cs336-zx/gpt2_2.7B_nvtx.sqlite",
    ],
)
def test_the_detail_step_of_a_real_capture(name: str) -> None:
    analysis: Analysis = analysis_of_capture(name)
    detail, table = analysis.diagnosis.detail, analysis.detail
    assert detail is not None and table is not None
    assert detail.events == len(table) <= module.MOST_EVENTS
    rank = next(rank for rank in analysis.diagnosis.ranks if rank.rank == detail.rank)
    window = rank.windows[detail.window]
    assert ((table.start_ns <= window.end_ns) & (table.end_ns >= window.start_ns)).all()
    order = np.lexsort((-table.end_ns, table.start_ns, table.lane))
    assert (np.diff(order) > 0).all()
    on_device = table.lane >= len(table.lanes) - table.device_lanes
    assert (on_device == (table.kind <= DetailKind.PRIOR)).all()
    assert (table.depth[on_device] == 0).all()
    assert ((table.class_ >= 0) == on_device).all()
