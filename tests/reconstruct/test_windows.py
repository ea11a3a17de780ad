"""Windows at the device and the host boundary, phases, warm-up (attribution, section 1)."""

from __future__ import annotations

from analyzer.reconstruct.windows import Window
from tests.builders import Schedule, account_of, analysis_of, path_of, schedule, windows_of


def step(
    built: Schedule, start: int, launch: int, runs: tuple[int, int], *, length: int = 90, name: str = "k"
) -> Schedule:
    """A range ``s`` of ``length`` us and one launch in it."""
    return built.range(start, start + length, "s").launch(launch, launch + 2, runs=runs, name=name)


def test_asynchronous_scheduling_tiles_the_device_time() -> None:
    """
    main      |s0 0-20 |s1 20-40 |s2 40-60           launched far ahead
    stream 7      |k0 10-100      |k1 101-200    |k2 201-300
    """
    built = schedule()
    for i, runs in enumerate(((10, 100), (101, 200), (201, 300))):
        step(built, 20 * i, 20 * i, runs, length=20, name=f"k{i}")
    assert windows_of(built, steps="^s$") == [(0, 100, "s"), (100, 200, "s"), (200, 300, "s")]
    assert path_of(built, 1, steps="^s$") == [(100, 101, "gap.dispatch", "k1"), (101, 200, "kernel", "k1")]


def test_the_next_steps_work_may_end_inside_this_steps_window() -> None:
    """s1's only kernel ends at 60 on a side stream, before s0's at 100: s1 gets an empty window, flagged."""
    built = step(schedule(), 0, 0, (10, 100), length=20)
    built.range(20, 40, "s").launch(20, 22, runs=(30, 60), stream=20)
    step(built, 40, 40, (101, 150), length=20)
    windows = account_of(built, steps="^s$").windows
    assert [(w.start_ns, w.end_ns, w.empty) for w in windows] == [
        (0, 100_000, False), (100_000, 100_000, True), (100_000, 150_000, False),
    ]  # fmt: skip


def test_a_step_without_device_work_is_empty_and_flagged() -> None:
    built = step(schedule(), 0, 5, (10, 50))
    built.range(100, 190, "s").op(100, 180, "only the CPU")
    step(built, 200, 205, (210, 260))
    windows = analysis_of(built, steps="^s$").diagnosis.ranks[0].windows
    assert [(w.start_ns, w.end_ns, w.empty, w.phase) for w in windows] == [
        (0, 50_000, False, "step"), (50_000, 50_000, True, "no device work"), (50_000, 260_000, False, "step"),
    ]  # fmt: skip
    assert windows[1].path_ns == dict.fromkeys(windows[1].path_ns, 0)
    assert [budget.windows for budget in analysis_of(built, steps="^s$").diagnosis.budget] == [2]


def test_a_capture_of_one_step() -> None:
    """A single range reaches to the end of the capture: its late launch at 150 counts."""
    built = step(schedule().op(0, 40, "load"), 50, 60, (70, 90)).launch(
        150, 152, runs=(160, 170), name="late"
    )
    assert windows_of(built, steps="^s$") == [(50, 170, "s")]
    assert path_of(built, steps="^s$") == [
        (50, 60, "host.untraced", ""),
        (60, 62, "launch.api", "cudaLaunchKernel"),
        (62, 150, "launch.dispatch", ""),
        (150, 160, "launch.latency", "late"),
        (160, 170, "kernel", "late"),
    ]


def test_a_launch_belongs_to_the_latest_range_that_started_on_any_thread() -> None:
    """The worker launches k1 at 110, after the scheduler's second range began at 100, though s0's CPU is busy."""
    built = schedule().thread("scheduler").range(0, 10, "s").range(100, 110, "s")
    built.thread("worker").launch(20, 22, runs=(30, 60), name="k0").launch(
        99, 103, runs=(110, 120), name="still k0"
    )
    built.launch(105, 107, runs=(121, 150), name="k1")
    assert windows_of(built, steps="^s$") == [(0, 120, "s"), (120, 150, "s")]


def test_launches_before_the_first_range_belong_to_no_step_and_keep_their_category() -> None:
    built = schedule().launch(0, 2, runs=(10, 130), name="warmed up before")
    built.range(100, 190, "s").launch(105, 107, runs=(131, 160), name="k")
    window = analysis_of(built, steps="^s$").diagnosis.ranks[0].windows[0]
    assert (window.start_ns, window.end_ns, window.kernels) == (100_000, 160_000, 1)
    assert path_of(built, steps="^s$") == [
        (100, 130, "kernel", "warmed up before"),
        (130, 131, "gap.dispatch", "k"),
        (131, 160, "kernel", "k"),
    ]


def test_the_last_range_reaches_as_far_as_the_longest_distance_between_starts() -> None:
    """Starts at 0, 100 and 250: the last reaches to 400. The launch at 399 is its own, that at 400 nobody's."""
    built = step(step(step(schedule(), 0, 5, (15, 50)), 100, 105, (115, 150)), 250, 255, (265, 300))
    built.launch(399, 400, runs=(410, 450), name="last").launch(400, 402, runs=(451, 900), name="teardown")
    assert windows_of(built, steps="^s$") == [(0, 50, "s"), (50, 150, "s"), (150, 450, "s")]


def test_completions_that_fall_back_never_move_a_window_back() -> None:
    """D1 = max(D0, 140): s0's side stream runs until 200, s1's work ends at 140, s2's at 260."""
    built = schedule().range(0, 90, "s").launch(5, 7, runs=(15, 200), stream=20)
    step(step(built, 100, 105, (115, 140)), 200, 205, (215, 260))
    assert windows_of(built, steps="^s$") == [(0, 200, "s"), (200, 200, "s"), (200, 260, "s")]


def test_the_host_boundary_is_the_range_on_its_own_thread() -> None:
    """The walk starts on main at 90; the sync returned at 70 because k ended at 60."""
    built = schedule().range(0, 90, "s").launch(5, 9, runs=(20, 60)).sync(10, 70, stream=7).op(70, 85, "post")
    assert path_of(built, boundary="host", steps="^s$") == [
        (0, 5, "host.untraced", ""),
        (5, 20, "launch.latency", "k"),
        (20, 60, "kernel", "k"),
        (60, 70, "host.sync_return", "cudaStreamSynchronize"),
        (70, 85, "host.framework", "post"),
        (85, 90, "host.untraced", ""),
    ]


def test_without_device_work_the_boundary_is_the_host_and_device_figures_are_null() -> None:
    built = schedule().range(0, 90, "s").op(10, 80, "aten::mm")
    diagnosis = analysis_of(built, steps="^s$").diagnosis
    assert diagnosis.boundary == "host"
    assert diagnosis.ranks[0].device_span is None
    assert diagnosis.ranks[0].windows[0].exposed_ns is None
    assert {entry.verdict for entry in diagnosis.hypotheses} == {"unmeasured"}


def phases(built: Schedule) -> list[str]:
    return [window.phase for window in account_of(built, steps="^s$").windows]


def test_steps_of_different_kernels_are_different_phases() -> None:
    """Names tell nothing: {a b}, {a b}, {c d}; the group with the most time is called `step`."""
    built = schedule()
    for i, kernels in enumerate(("ab", "cd", "ab")):
        built.range(100 * i, 100 * i + 90, "s")
        for j, name in enumerate(kernels):
            at = 100 * i + 5 + 20 * j
            built.launch(at, at + 2, runs=(at + 10, at + 25), name=name)
    assert phases(built) == ["step", "step kind 2", "step"]


def test_phases_are_budgeted_apart() -> None:
    built = schedule().range(0, 90, "Prefill").launch(5, 7, runs=(15, 80))
    built.range(100, 190, "Decode").launch(105, 107, runs=(115, 120)).range(200, 290, "Decode").launch(
        205, 207, runs=(215, 220)
    )
    budget = {
        entry.phase: (entry.windows, entry.step_ns_total) for entry in analysis_of(built).diagnosis.budget
    }
    assert budget == {"prefill": (1, 80_000), "decode": (2, 140_000)}


def reasons(built: Schedule) -> list[tuple[str, ...]]:
    windows: tuple[Window, ...] = account_of(built, steps="^s$").windows
    return [window.warmup_reasons for window in windows]


def test_ranges_with_one_time_work_are_warm_up_and_being_first_is_none() -> None:
    built = schedule()
    for i, call in enumerate(
        ("", "cudaMalloc", "cuModuleLoadData", "cudaGraphInstantiate", "cudaStreamBeginCapture", "")
    ):
        step(built, 100 * i, 100 * i + 5, (100 * i + 15, 100 * i + 80))
        if call:
            built.call(100 * i + 10, 100 * i + 12, call)
    assert reasons(built) == [
        (),
        ("allocates device memory",),
        ("loads device code",),
        ("captures or instantiates a graph",),
        ("captures or instantiates a graph",),
        (),
    ]


def test_allocations_from_a_pool_or_of_host_memory_are_no_warm_up() -> None:
    built = schedule()
    for i, call in enumerate(
        ("cudaMallocAsync", "cudaMallocHost", "cuMemAllocHost_v2", "cudaMallocFromPoolAsync")
    ):
        step(built, 100 * i, 100 * i + 5, (100 * i + 15, 100 * i + 80)).call(100 * i + 10, 100 * i + 12, call)
    assert reasons(built) == [(), (), (), ()]


def test_an_allocation_between_two_ranges_is_in_neither() -> None:
    built = step(step(schedule(), 0, 5, (15, 80)), 100, 105, (115, 180)).call(92, 95, "cudaMalloc")
    assert reasons(built) == [(), ()]


def test_a_step_far_outside_its_group_is_an_outlier() -> None:
    """Windows of 90, 100, 101, 99, 400 and 101 us."""
    built = schedule()
    ends = [90, 190, 291, 390, 790, 891]
    for i, end in enumerate(ends):
        at = 700 * (i == 5) + 100 * min(i, 4)
        step(built, at, at + 5, (at + 15, end))
    assert reasons(built) == [()] * 6
    assert [window.outlier for window in account_of(built, steps="^s$").windows] == [False] * 4 + [
        True,
        False,
    ]
    budget = analysis_of(built, steps="^s$").diagnosis.budget[0]
    assert (budget.windows_excluded, budget.outliers, budget.outlier_ns_total) == (1, 1, 400_000)


def test_where_every_window_is_flagged_all_are_used_and_the_top_says_so() -> None:
    built = step(step(schedule(), 0, 5, (15, 80)), 100, 105, (115, 180))
    built.call(10, 12, "cudaMalloc").call(110, 112, "cudaMalloc")
    diagnosis = analysis_of(built, steps="^s$").diagnosis
    assert (diagnosis.budget[0].windows, diagnosis.budget[0].windows_excluded) == (2, 0)
    assert "every window is flagged as warm-up; all of them are used" in " ".join(diagnosis.notes)
