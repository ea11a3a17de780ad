"""Hand-overs and joins between host threads (attribution, section 3; host time)."""

from __future__ import annotations

from tests.builders import Schedule, causes_of, path_of, schedule


def backward(engine_starts: int = 115) -> Schedule:
    """
    main    |op loss 0-100 |backward 100-210 (silent)                |op step 210-230 |L 230-234
    engine                 |op bwd 115-205, launches 120 and 160                          k 240-250
    """
    return (
        schedule()
        .thread("main").op(0, 100, "aten::loss").range(100, 210, "backward")
        .thread("engine").op(engine_starts, 205, "MmBackward0")
        .launch(120, 124, runs=(130, 140), name="b1").launch(160, 164, runs=(170, 180), name="b2")
        .thread("main").op(210, 230, "Adam.step").launch(230, 234, runs=(240, 250), name="adam")
    )  # fmt: skip


def test_autograds_join_goes_on_in_the_engine_thread_and_back_in_main() -> None:
    built = backward()
    assert path_of(built) == [
        (120, 124, "launch.api", "cudaLaunchKernel"),
        (124, 160, "launch.dispatch", "MmBackward0"),
        (160, 164, "launch.api", "cudaLaunchKernel"),
        (164, 205, "host.framework", "MmBackward0"),
        (205, 210, "host.framework", "backward"),
        (210, 230, "host.framework", "Adam.step"),
        (230, 240, "launch.latency", "adam"),
        (240, 250, "kernel", "adam"),
    ]
    assert (205, 210, "join", True) in causes_of(built)


def test_the_engines_first_record_is_a_hand_over_from_main() -> None:
    """A window from 0: before 115 the engine waited for main, which fell silent at 100."""
    built = backward().thread("main").range(0, 235, "train step")
    rows = path_of(built, steps="^train step$")
    assert rows[:3] == [
        (0, 100, "host.framework", "aten::loss"),
        (100, 115, "host.wait", ""),
        (115, 120, "host.framework", "MmBackward0"),
    ]
    assert (100, 115, "handover", True) in causes_of(built, steps="^train step$")


def test_a_helper_that_works_all_the_time_is_not_delegated_to() -> None:
    """Thread 2 has records right before and after main's silence: it works on something of its own."""
    built = (
        schedule()
        .thread("main").launch(0, 2, runs=(10, 15), name="k0").op(2, 100, "prepare")
        .range(100, 210, "wait").op(210, 230, "next").launch(230, 234, runs=(240, 250))
        .thread("logger").op(5, 95, "log").op(110, 204, "log").op(206, 300, "log")
    )  # fmt: skip
    assert [cause for *_, cause, _ in causes_of(built)] == ["host", "submission", "work"]


def test_a_wait_that_another_threads_signal_ended_is_a_hand_over() -> None:
    """
    scheduler |op schedule 0-90 |sem_post 90-92
    worker    |sem_wait 5-95                   |op forward 95-110 |L 110        k 120-130
    """
    built = (
        schedule()
        .thread("scheduler").op(0, 90, "schedule").os(90, 92, "sem_post").launch(0, 2, runs=(10, 15), name="k0")
        .thread("worker").os(5, 95, "sem_wait").op(95, 110, "forward").launch(110, 114, runs=(120, 130))
    )  # fmt: skip
    assert path_of(built) == [
        (0, 2, "launch.api", "cudaLaunchKernel"),
        (2, 90, "host.framework", "schedule"),
        (90, 95, "host.wait", ""),
        (95, 110, "host.framework", "forward"),
        (110, 120, "launch.latency", "k"),
        (120, 130, "kernel", "k"),
    ]
    assert (90, 95, "handover", True) in causes_of(built)


def test_a_recorded_flow_is_a_hand_over_that_is_not_inferred() -> None:
    built = (
        schedule()
        .thread("scheduler").op(0, 90, "schedule").launch(0, 2, runs=(10, 15), name="k0")
        .thread("worker").op(95, 110, "forward").launch(110, 114, runs=(120, 130))
        .flow("scheduler", 90, "worker", 95)
    )  # fmt: skip
    assert path_of(built)[1:3] == [(2, 90, "host.framework", "schedule"), (90, 95, "host.wait", "")]
    assert (90, 95, "handover", False) in causes_of(built)


def test_autograds_forward_backward_links_hand_nothing_over() -> None:
    """The link says which forward op belongs to a backward op, not that the one waited for the other."""
    built = (
        schedule()
        .thread("scheduler").op(0, 90, "forward").launch(0, 2, runs=(10, 15), name="k0")
        .thread("worker").op(95, 110, "backward").launch(110, 114, runs=(120, 130))
        .flow("scheduler", 90, "worker", 95, kind="fwdbwd")
    )  # fmt: skip
    assert path_of(built)[:2] == [(0, 95, "host.untraced", ""), (95, 110, "host.framework", "backward")]


def test_a_flow_into_a_busy_thread_hands_nothing_over() -> None:
    """The worker had a record 5 us before: it was not quiet."""
    built = (
        schedule()
        .thread("scheduler").op(0, 90, "schedule").launch(0, 2, runs=(10, 15), name="k0")
        .thread("worker").op(20, 90, "own work").op(95, 110, "forward").launch(110, 114, runs=(120, 130))
        .flow("scheduler", 90, "worker", 95)
    )  # fmt: skip
    assert (20, 90, "host.framework", "own work") in path_of(built)


def test_a_wait_that_nothing_explains_stays_on_its_thread() -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, 15), name="k0").launch(2, 4, runs=(16, 20), name="k1").launch(4, 5, runs=(21, 25))
        .os(5, 95, "futex_wait").op(95, 110, "forward").launch(110, 114, runs=(120, 130))
    )  # fmt: skip
    assert path_of(built)[-4:-2] == [
        (5, 95, "host.wait", "futex_wait"),
        (95, 110, "host.framework", "forward"),
    ]


def test_two_threads_that_hand_over_to_one_another_at_one_instant_do_not_hold_the_walk() -> None:
    """Flows both ways at 90: neither thread is visited twice there, the time before stays on one of them."""
    built = (
        schedule()
        .thread("a").op(0, 2, "a").launch(0, 2, runs=(10, 15), name="k0").op(2, 60, "a").op(90, 95, "a again")
        .thread("b").op(0, 60, "b").op(90, 104, "b again").launch(104, 108, runs=(114, 130))
        .flow("a", 90, "b", 90).flow("b", 90, "a", 90)
    )  # fmt: skip
    rows = path_of(built)
    assert rows[-4:] == [
        (60, 90, "host.untraced", ""),
        (90, 104, "host.framework", "b again"),
        (104, 114, "launch.latency", "k"),
        (114, 130, "kernel", "k"),
    ]
    assert {name for *_, name in rows[:-4]} in ({"a", "cudaLaunchKernel"}, {"b"})


def test_a_call_of_its_own_is_no_silence_that_another_thread_fills() -> None:
    """main is inside cudaMemGetInfo from 100 to 210; the engine works meanwhile on something of its own."""
    built = (
        schedule()
        .thread("main").launch(0, 2, runs=(10, 15), name="k0").launch(2, 4, runs=(16, 20)).launch(4, 6, runs=(21, 25))
        .op(6, 100, "prepare").call(100, 210, "cudaMemGetInfo").op(210, 230, "next").launch(230, 234, runs=(240, 250))
        .thread("engine").op(115, 205, "other work")
    )  # fmt: skip
    assert path_of(built)[-5:-2] == [
        (6, 100, "host.framework", "prepare"),
        (100, 210, "host.api", "cudaMemGetInfo"),
        (210, 230, "host.framework", "next"),
    ]


def test_the_latest_of_a_held_call_and_a_hand_over_decides() -> None:
    """The worker was woken at 30, but then waited for the device until 80: the path goes to the device."""
    built = (
        schedule()
        .thread("scheduler").op(0, 28, "schedule").launch(0, 2, runs=(10, 75), name="k0")
        .thread("worker").op(30, 35, "start").sync(35, 80, stream=7).op(80, 95, "forward")
        .launch(95, 99, runs=(105, 130))
        .flow("scheduler", 28, "worker", 30)
    )  # fmt: skip
    assert path_of(built)[1:4] == [
        (10, 75, "kernel", "k0"),
        (75, 80, "host.sync_return", "cudaStreamSynchronize"),
        (80, 95, "host.framework", "forward"),
    ]
