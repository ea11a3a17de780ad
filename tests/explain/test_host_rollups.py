"""Path time on the CPU by call, op, range, frame and thread, and what to look at first."""

from __future__ import annotations

import pytest

from analyzer.diagnosis import Diagnosis, HostRollup, LookFirst
from analyzer.explain.host.python_frames import INSTALLED, LIBRARY, OWN, frame_origins
from analyzer.explain.host.rollups import KEEP, NOTHING, OTHER
from analyzer.explain.windows import used_windows
from tests.builders import Schedule, analysis_of, schedule
from tests.captures.results import analysis_of as analysis_of_capture
from tests.shared import needs_shared


def times(built: Schedule, by: str, **options: object) -> dict[str, int]:
    """Path time of each name, us."""
    rows = analysis_of(built, **options).diagnosis.host_rollups
    return {row.name: row.path_ns // 1000 for row in rows if row.by == by}


def look_at(built: Schedule, **options: object) -> LookFirst:
    (found,) = analysis_of(built, **options).diagnosis.look_first
    return found


def busy() -> Schedule:
    """
    main  |L|L|L 0-6 |range sample 6-100 [op topk 10-60 [frame pick 20-60]] |os futex 100-160 |        |L 170
    """
    built = schedule()
    for at in range(3):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at))
    built.range(6, 100, "sample").op(10, 60, "aten::topk").frame(20, 60, "sampler.py(12): pick")
    return built.os(100, 160, "futex_wait").launch(170, 174, runs=(180, 190))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("call", {NOTHING: 164, "cudaLaunchKernel": 6}),
        ("os", {NOTHING: 110, "futex_wait": 60}),
        ("op", {NOTHING: 120, "aten::topk": 50}),
        ("range", {"sample": 94, NOTHING: 76}),
        ("frame", {NOTHING: 130, "sampler.py(12): pick": 40}),
        ("thread", {"thread main": 170}),
    ],
)
def test_each_kind_of_record_sums_to_the_path_on_the_cpu(by: str, expected: dict[str, int]) -> None:
    """An op counts with the frames inside it, a range with the ops inside it."""
    assert times(busy(), by) == expected


def test_a_row_says_in_what_category_and_how_often() -> None:
    rows = {(row.by, row.name): row for row in analysis_of(busy()).diagnosis.host_rollups}
    call, sample = rows["call", "cudaLaunchKernel"], rows["range", "sample"]
    assert (call.category, call.segments, call.windows, call.windows_with) == ("launch.api", 3, 1, 1)
    assert (sample.category, sample.segments) == ("host.framework", 4)


def test_a_call_that_the_device_held_counts_for_the_time_after_the_work() -> None:
    """The kernel ends at 40, the wait returns at 45, the next launch starts at 45."""
    built = schedule().launch(0, 4, runs=(10, 40)).sync(5, 45, stream=7).launch(45, 48, runs=(55, 60))
    assert times(built, "call") == {"cudaStreamSynchronize": 5}


def test_step_markers_are_no_ranges() -> None:
    built = schedule().range(0, 100, "s").range(20, 60, "inner").launch(80, 84, runs=(90, 99))
    assert times(built, "range", steps="^s$") == {NOTHING: 40, "inner": 40}


def marked(*around: tuple[int, int, str]) -> Schedule:
    """A step 0-100 that a program marks, with 60 us of an op in it, and more ranges."""
    built = schedule().range(0, 100, "tracebound.step[decode]#3").op(20, 80, "aten::mm")
    for start, end, name in around:
        built.range(start, end, name)
    return built.launch(100, 104, runs=(110, 120)).launch(130, 134, runs=(140, 150))


@pytest.mark.parametrize("outer", ["tracebound.phase[decode]", "ProfilerStep#7", "tracebound.step[decode]#2"])
def test_what_surrounds_a_whole_step_is_no_range_of_it(outer: str) -> None:
    built = marked((-10, 128, outer))
    assert set(times(built, "range")) == {NOTHING}
    assert look_at(built).name == "aten::mm"
    (culprit,) = (row for row in analysis_of(built).diagnosis.host_culprits if row.name == "aten::mm")
    assert culprit.stack == ["aten::mm"]


def test_a_phase_inside_a_step_is_a_part_of_it() -> None:
    assert times(marked((10, 90, "tracebound.phase[decode]")), "range")["tracebound.phase[decode]"] == 80


FRAMES = (
    "vllm/v1/engine/core.py(10): step",
    "torch/nn/modules/module.py(1775): _call_impl",
    "<built-in method item of Tensor object at 0x7f00>",
)


def nested_frames(*names: str) -> Schedule:
    """Frames inside one another, the first outermost, then the launch that the path starts from."""
    built = schedule()
    for depth, name in enumerate(names):
        built.frame(depth, 80 - depth, name)
    return built.launch(80, 84, runs=(90, 100)).range(0, 100, "s")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (FRAMES, FRAMES[0]),
        (FRAMES[1:], FRAMES[2]),
        (("/x/site-packages/engine/run.py(3): go", FRAMES[1]), "/x/site-packages/engine/run.py(3): go"),
        (("app.py(3): main", "/x/site-packages/engine/run.py(3): go"), "app.py(3): main"),
    ],
)
def test_the_innermost_frame_of_own_code_counts(names: tuple[str, ...], chosen: str) -> None:
    found = times(nested_frames(*names), "frame", steps="^s$")
    assert max(found, key=lambda name: found[name]) == chosen


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("train.py(12): step", OWN),
        ("vllm/utils/torch_utils.py(636): weak_ref_tensor", OWN),
        ("/srv/sglang/srt/models/qwen2.py(340): forward", OWN),
        ("/usr/lib/python3/dist-packages/engine/run.py(3): go", INSTALLED),
        ("/x/site-packages/torch/nn/functional.py(2358): silu", LIBRARY),
        ("torch/nn/modules/module.py(1775): _call_impl", LIBRARY),
        ("numpy/_core/fromnumeric.py(51): _wrapfunc", LIBRARY),
        ("contextlib.py(141): __exit__", LIBRARY),
        ("/usr/lib/python3.12/threading.py(355): wait", LIBRARY),
        ("engine/threading.py(10): wait", OWN),
        ("<built-in function len>", LIBRARY),
        ("<frozen os>(808): getenv", LIBRARY),
        ("nn.Module: Linear_105", LIBRARY),
        ("", OWN),
    ],
)
def test_whose_code_a_frame_is(name: str, origin: int) -> None:
    assert frame_origins([name]).tolist() == [origin]


def test_what_is_not_listed_stands_in_one_row() -> None:
    """KEEP + 2 ops of 10 us and more: the two shortest are "(other)"."""
    built, at = schedule(), 0
    for number in range(KEEP + 2):
        built.op(at, at + 10 + number, f"op{number}")
        at += 10 + number
    built.launch(at, at + 4, runs=(at + 10, at + 20)).range(0, at + 20, "s")
    rows = [row for row in analysis_of(built, steps="^s$").diagnosis.host_rollups if row.by == "op"]
    assert len(rows) == KEEP + 1
    (other,) = (row for row in rows if row.name == OTHER)
    assert (other.path_ns, other.segments, other.windows_with) == (21_000, 2, 1)
    assert sum(row.path_ns for row in rows) == at * 1000


def test_a_frame_is_looked_at_before_the_range_around_it() -> None:
    found = look_at(busy())
    assert (found.by, found.name, found.path_ns, found.per_step_ns) == (
        "frame", "sampler.py(12): pick", 40_000, 40_000,
    )  # fmt: skip
    assert found.share_of_host == 40 / 170
    assert (
        found.why == "no other Python frame holds more: 24 % of the CPU's time on the path, in 1 of 1 steps"
    )


def test_a_frame_that_holds_little_is_not_looked_at_first() -> None:
    """The frame holds 10 us, less than a quarter of the range's 80."""
    built = schedule().range(0, 100, "s").range(0, 80, "prepare").frame(0, 10, "a.py(1): f")
    built.launch(80, 84, runs=(90, 99))
    assert look_at(built, steps="^s$").name == "prepare"


def test_a_range_around_a_whole_step_tells_nothing() -> None:
    built = schedule().range(0, 100, "s").range(0, 80, "ProfilerStep#7").op(0, 40, "aten::index")
    built.launch(80, 84, runs=(90, 99))
    assert look_at(built, steps="^s$").name == "aten::index"


def test_a_thread_is_named_where_nothing_else_was_recorded() -> None:
    built = schedule().launch(0, 4, runs=(10, 20)).sync(4, 20, stream=7).launch(100, 104, runs=(110, 120))
    found = look_at(built)
    assert (found.by, found.name, found.share_of_host) == ("thread", "thread main", 1.0)
    assert found.why.startswith("no call, op, frame or range inside the step holds a tenth of the CPU's time")
    assert found.why.endswith("; ranges around parts of the step would name what it does there")


def test_a_call_of_the_operating_system_is_named() -> None:
    """Asleep for 98 us of 100, in no range and in no op."""
    built = schedule().os(1, 99, "clock_nanosleep").launch(100, 104, runs=(110, 120)).range(0, 120, "s")
    found = look_at(built, steps="^s$")
    assert (found.by, found.name, found.category) == ("os", "clock_nanosleep", "host.wait")
    assert found.why == "no other OS call holds more: 98 % of the CPU's time on the path, in 1 of 1 steps"


def test_a_record_that_holds_next_to_nothing_is_not_looked_at() -> None:
    """The op holds 8 us of 88."""
    built = schedule().range(0, 200, "s").op(0, 8, "aten::index").launch(88, 92, runs=(100, 199))
    assert look_at(built, steps="^s$").by == "thread"


def test_a_path_without_the_cpu_has_nothing_to_look_at() -> None:
    assert analysis_of(schedule().launch(0, 4, runs=(10, 20))).diagnosis.look_first == []


CAPTURES = (
    "hta-diff/trace_diff_test.json.gz",
    "tracelens-vllm/vllm_piecewise.json.gz",
    "tracelens-sglang/sglang_qwen3_8b_prefilldecode.json.gz",
    "cs336-zx/gpt2_2.7B_nvtx.sqlite",
)


@needs_shared
@pytest.mark.parametrize("name", CAPTURES)
def test_roll_ups_of_a_real_capture_sum_to_its_path_on_the_cpu(name: str) -> None:
    analysis = analysis_of_capture(name)
    table, diagnosis = analysis.segment_table, analysis.diagnosis
    assert table is not None
    on_cpu = [not place.startswith("device ") for place in table.places]
    for rank in diagnosis.ranks:
        for phase in {window.phase for window in rank.windows}:
            used = {window.index for window in used_windows(rank, phase)}
            expected = sum(
                end - start
                for of_rank, window, start, end, place in zip(
                    table.rank.tolist(), table.window.tolist(), table.start_ns.tolist(), table.end_ns.tolist(),
                    table.place.tolist(), strict=True,
                )
                if of_rank == rank.rank and window in used and place >= 0 and on_cpu[place]
            )  # fmt: skip
            for rows in by_kind(diagnosis, rank.rank, phase).values():
                assert sum(row.path_ns for row in rows) == expected
                assert all(0 < row.windows_with <= row.windows == len(used) for row in rows)


def by_kind(diagnosis: Diagnosis, rank: int, phase: str) -> dict[str, list[HostRollup]]:
    rows: dict[str, list[HostRollup]] = {}
    for row in diagnosis.host_rollups:
        if (row.rank, row.phase) == (rank, phase):
            rows.setdefault(row.by, []).append(row)
    return rows
