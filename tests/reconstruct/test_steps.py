"""Which ranges are the steps (attribution, section 1: the six rules in their order)."""

from __future__ import annotations

import pytest

from analyzer.errors import StepsError
from tests.builders import Schedule, account_of, analysis_of, schedule


def work(built: Schedule, at: int, name: str = "k", grid: int = 1) -> Schedule:
    """A launch at ``at`` and its kernel from 10 to 30 us later."""
    return built.launch(at, at + 4, runs=(at + 10, at + 30), name=name, grid=grid)


def ranges(*names: str) -> Schedule:
    """One range per name, 100 us long, with one kernel in each."""
    built = schedule()
    for i, name in enumerate(names):
        work(built.range(100 * i, 100 * i + 90, name), 100 * i + 5)
    return built


def found(built: Schedule, **options: str) -> tuple[str, tuple[str, ...]]:
    steps = account_of(built, **options).steps
    return steps.rule, steps.names


def test_the_users_pattern_comes_first() -> None:
    built = ranges("ProfilerStep#1", "ProfilerStep#2").range(10, 50, "inner").range(110, 150, "inner")
    assert found(built, steps="^inner$") == ("regex", ("inner", "inner"))


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(StepsError, match="no range, op or frame of this capture matches"):
        account_of(ranges("a", "b"), steps="no such range")


def test_of_nested_matches_the_innermost_of_a_thread_counts() -> None:
    built = ranges("step outer", "step outer").range(10, 50, "step inner").range(110, 150, "step inner")
    assert found(built, steps="^step") == ("regex", ("step inner", "step inner"))


def test_a_match_without_an_inner_one_stays() -> None:
    built = ranges("step outer", "step outer").range(10, 50, "step inner")
    assert found(built, steps="^step") == ("regex", ("step inner", "step outer"))


def test_profiler_steps_come_before_engine_ranges() -> None:
    built = ranges("ProfilerStep#7", "ProfilerStep#8")
    built.range(5, 80, "execute_context_0(0)_generation_8(8)").range(
        105, 180, "execute_context_0(0)_generation_8(8)"
    )
    assert found(built) == ("profiler-step", ("ProfilerStep#7", "ProfilerStep#8"))


def test_steps_that_the_program_marks_come_before_all_known_names() -> None:
    """One batch of torch's loop holds a prefill and a decode step of the engine's own code."""
    built = ranges("ProfilerStep#7", "ProfilerStep#8")
    built.range(2, 40, "tracebound.step[prefill]#0").range(45, 85, "tracebound.step[decode bs=8]#1")
    built.range(105, 180, "tracebound.step[decode bs=8]#2, op_id = 4")
    account = account_of(built)
    assert (account.steps.rule, account.steps.confidence) == ("marked-range", "high")
    assert account.steps.names == (
        "tracebound.step[prefill]#0",
        "tracebound.step[decode bs=8]#1",
        "tracebound.step[decode bs=8]#2",
    )


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("tracebound.step[prefill]#3", "prefill"),
        ("tracebound.step[decode bs=8]#3", "decode"),
        ("tracebound.step[mixed]:late", "mixed"),
        ("tracebound.step[bs=8]#3", "step"),
        ("tracebound.step#3", "step"),
        ("tracebound.step:decode", "step"),  # a name that the user chose
    ],
)
def test_marked_steps_tell_the_phase_around_them(name: str, phase: str) -> None:
    account = account_of(ranges(name, name))
    assert account.steps.rule == "marked-range"
    assert [window.phase for window in account.windows] == [phase, phase]


@pytest.mark.parametrize("name", ["tracebound.phase[decode]", "tracebound.step", "my tracebound.step#1"])
def test_names_that_are_no_marked_step(name: str) -> None:
    assert account_of(ranges(name, name)).steps.rule != "marked-range"


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("execute_context_2(256)_generation_0(0)", "prefill"),
        ("execute_context_0(0)_generation_32(32)", "decode"),
        ("execute_context_1(64)_generation_31(31)", "mixed"),
        ("execute_40_context_1(sq8sk8sqsq64sqsk64)_generation_32(sq32sk900sqsq32sqsk900)", "mixed"),
        ("step[EXTEND bs=2 toks=512]", "prefill"),
        ("step[DECODE bs=32]", "decode"),
        ("step[VERIFY bs=4]", "decode"),
        ("step[MIXED bs=9 c=1 g=8]", "mixed"),
        ("[Executor] _forward_step 12: 0 ctx reqs, 8 gen reqs", "decode"),
        ("[Executor] _forward_step 13: 2 ctx reqs, 300 ctx tokens, 8 gen reqs", "mixed"),
        ("_forward_step: 3 ctx reqs, 0 gen reqs", "prefill"),
        ("prefill[bs=1 tok=128]", "prefill"),
        ("decode[bs=8/16 tok=8 d=8]", "decode"),
        ("Prefill", "prefill"),
        ("Decode", "decode"),
        ("execute_new_1_cached_7", "step"),  # newly scheduled and running requests: tells no phase
        ("AsyncOverlap", "step"),
    ],
)
def test_engine_ranges_are_known_by_name_and_tell_their_phase(name: str, phase: str) -> None:
    """vLLM, its detailed form, SGLang, TensorRT-LLM, ATOM, Megatron; two of them, too few for a rhythm."""
    account = account_of(ranges(name, name))
    assert (account.steps.rule, len(account.steps)) == ("engine-range", 2)
    assert [window.phase for window in account.windows] == [phase, phase]


@pytest.mark.parametrize(
    "name",
    ["capture_8_FULL", "_forward_step", "EP-dummy-forward", "step[DECODE", "execute_context_0", "Decoder"],
)
def test_names_that_only_look_like_engine_steps(name: str) -> None:
    assert account_of(ranges(name, name)).steps.rule == "whole"


def test_of_two_nested_engine_families_the_inner_one_counts() -> None:
    """Builds that emit both: vLLM's name around SGLang's on one thread."""
    outer, inner = "execute_context_0(0)_generation_32(32)", "step[DECODE bs=32]"
    built = ranges(outer, outer).range(2, 80, inner).range(102, 180, inner)
    assert found(built) == ("engine-range", (inner, inner))


def test_what_emit_nvtx_appends_is_cut_from_a_name() -> None:
    names = [f"Decode, op_id = {i}" for i in range(2)]
    assert found(ranges(*names)) == ("engine-range", ("Decode", "Decode"))


def test_a_range_that_repeats_and_encloses_the_launches() -> None:
    built = ranges(*(f"iteration {i}" for i in range(4)))
    assert found(built) == ("repeated-range", tuple(f"iteration {i}" for i in range(4)))


def test_a_range_that_encloses_few_launches_is_no_step() -> None:
    """Ranges 0-90, 100-190, ... of thread B enclose 4 of 12 launches."""
    built = ranges(*["sometimes"] * 4)
    for at in range(1000, 1800, 100):
        work(built, at)
    assert account_of(built).steps.rule != "repeated-range"


def test_a_range_without_a_rhythm_is_no_step() -> None:
    built = schedule()
    for at in (0, 100, 1000, 1100, 5000, 5100):
        work(built.range(at, at + 90, "burst"), at + 5)
    assert account_of(built).steps.rule != "repeated-range"


def test_a_range_nested_in_itself_is_no_step() -> None:
    built = schedule().range(0, 390, "layer")
    for at in (10, 110, 210, 310):
        work(built.range(at, at + 60, "layer"), at + 5)
    assert account_of(built).steps.rule != "repeated-range"


def test_repeated_replays_of_one_executable() -> None:
    built = schedule()
    for i in range(4):
        built.graph(100 * i, 100 * i + 5, [(100 * i + 20, 100 * i + 90, "decode", 7)], exec_id=9)
    account = account_of(built)
    assert (account.steps.rule, len(account.steps)) == ("graph-replays", 4)
    assert [(w.start_ns, w.end_ns) for w in account.windows] == [
        (0, 90_000), (90_000, 190_000), (190_000, 290_000), (290_000, 390_000),
    ]  # fmt: skip


def test_replays_that_hold_little_of_the_device_time_are_no_steps() -> None:
    built = schedule()
    for i in range(3):
        built.graph(100 * i, 100 * i + 5, [(100 * i + 20, 100 * i + 22, "tiny", 7)])
        built.launch(100 * i + 6, 100 * i + 8, runs=(100 * i + 30, 100 * i + 90), name=f"eager {i}")
    assert account_of(built).steps.rule != "graph-replays"


def test_a_period_in_the_sequence_of_kernels_and_grids() -> None:
    """Ten kernels, three times over: a step starts at the first launch of its unit."""
    built = schedule()
    for i in range(30):
        work(built, 50 * i, "abcdefghij"[i % 10])
    account = account_of(built)
    assert (account.steps.rule, account.steps.pattern, account.steps.confidence) == (
        "kernel-period", "10 kernels", "low",
    )  # fmt: skip
    assert [w.start_ns for w in account.windows] == [0, 480_000, 980_000]


def test_the_grid_tells_kernels_of_one_name_apart() -> None:
    built = schedule()
    for i in range(30):
        work(built, 50 * i, "gemm", grid=1 + i % 10)
    assert account_of(built).steps.pattern == "10 kernels"


def test_otherwise_the_whole_capture_is_one_window_and_the_top_says_so() -> None:
    """First launch at 100, last completion at 290."""
    built = work(work(work(schedule().op(0, 90, "import"), 100, "a"), 200, "b"), 260, "c")
    account = account_of(built)
    assert account.steps.rule == "whole"
    assert [(w.start_ns, w.end_ns) for w in account.windows] == [(100_000, 290_000)]
    assert "no steps were found; the whole capture is one window" in " ".join(
        analysis_of(built).diagnosis.notes
    )


def test_the_whole_capture_begins_with_the_first_device_event_where_that_is_earlier() -> None:
    built = work(schedule().kernel(20, 40, "before", corr=1), 100)
    assert [(w.start_ns, w.end_ns) for w in account_of(built).windows] == [(20_000, 130_000)]


def overlapping(second_end: int) -> Schedule:
    """Two threads' steps: 0-90 on A and 50 to ``second_end`` on B."""
    built = schedule().thread("A").range(0, 90, "step").launch(5, 7, runs=(15, 20))
    return built.thread("B").range(50, second_end, "step").launch(55, 57, runs=(65, 70))


def test_overlapping_steps_are_said_so() -> None:
    steps = account_of(overlapping(140), steps="^step$").steps
    assert steps.names == ("step", "step")
    assert steps.notes == ("1 step ranges begin before an earlier one has ended",)


def test_ends_out_of_order_are_refused_with_the_reason() -> None:
    with pytest.raises(StepsError, match="overlap with ends out of order"):
        account_of(overlapping(80), steps="^step$")


def test_known_names_out_of_order_fall_to_the_next_rule_and_the_reason_is_kept() -> None:
    built = schedule().thread("A").range(0, 90, "Decode").launch(5, 7, runs=(15, 20))
    built.thread("B").range(50, 80, "Decode").launch(55, 57, runs=(65, 70))
    steps = account_of(built).steps
    assert steps.rule == "whole"
    assert "engine-range" in steps.notes[0] and "ends out of order" in steps.notes[0]


def test_annotations_that_old_profilers_recorded_as_operators() -> None:
    built = schedule()
    for i in range(2):
        work(built.op(100 * i, 100 * i + 90, f"ProfilerStep#{i}"), 100 * i + 5)
    assert found(built) == ("profiler-step", ("ProfilerStep#0", "ProfilerStep#1"))
