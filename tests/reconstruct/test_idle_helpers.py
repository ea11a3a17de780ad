"""A thread that slept until it was needed: the path goes back to whoever waited for it."""

from __future__ import annotations

import pytest

from analyzer.reconstruct.idle_helpers import Needed, Wake, idle_helpers
from tests.builders import Row, Schedule, path_of, schedule

MAIN, LOOP, IO = 0, 1, 2


def io_thread(sleep: str = "epoll_wait", asleep_from: int = -500) -> Schedule:
    """
    main  [step 0-1000  |mm 0-400|           cond_wait 410-900           |
    loop                                       timedwait 500-850|signal 880
    io    |            epoll_wait -500-700                |recv|signal 840
    """
    built = schedule().range(0, 1000, "s").op(0, 400, "aten::mm").os(410, 900, "pthread_cond_wait")
    built.thread("loop").os(500, 850, "pthread_cond_timedwait").os(880, 885, "pthread_cond_signal")
    built.thread("io").os(asleep_from, 700, sleep).os(840, 845, "pthread_cond_signal")
    return built.thread("main")


def begins(built: Schedule) -> Row:
    """The first segment of the step."""
    return path_of(built, steps="^s$", boundary="host")[0]


def test_a_step_does_not_begin_in_a_thread_that_nobody_needed_yet() -> None:
    """The loop waited for the I/O thread from 500 on; before that moment the path is the loop's."""
    rows = path_of(io_thread(), steps="^s$", boundary="host")
    assert (500, 700, "host.wait", "epoll_wait") in rows
    assert not any(name == "epoll_wait" and start < 500 for start, _, _, name in rows)


def test_the_chain_leads_back_to_the_thread_that_runs_the_step() -> None:
    """The I/O thread signals the main thread itself: what that one did before it waited is on the path."""
    built = schedule().range(0, 1000, "s").op(0, 400, "aten::mm").os(410, 900, "pthread_cond_wait")
    built.thread("io").os(-500, 700, "epoll_wait").os(880, 885, "pthread_cond_signal").thread("main")
    assert path_of(built, steps="^s$", boundary="host")[:3] == [
        (0, 400, "host.framework", "aten::mm"),
        (400, 410, "host.untraced", ""),
        (410, 700, "host.wait", "epoll_wait"),
    ]


@pytest.mark.parametrize("wait", ["clock_nanosleep", "pthread_mutex_lock"])
def test_a_thread_with_something_to_do_is_not_idle(wait: str) -> None:
    assert begins(io_thread(sleep=wait)) == (0, 700, "host.wait", wait)


def test_a_thread_that_was_at_work_when_it_began_to_be_needed_is_not_idle() -> None:
    """It fell asleep after the loop had: what it did before is what the loop waited for."""
    assert begins(io_thread(asleep_from=520))[3] == ""


ASLEEP = {IO: [(0, 50)]}


def needed(*wakes: Wake) -> list[Needed]:
    return idle_helpers(wakes, ASLEEP)


def test_of_a_chain_the_one_that_fell_asleep_last_counts() -> None:
    """The loop rests since 10, but nobody needs it before main waits at 30."""
    chain = (Wake(LOOP, 10, 65, IO, 60), Wake(MAIN, 30, 80, LOOP, 75))
    assert needed(*chain) == [Needed(IO, MAIN, 30)]
    assert needed(chain[0]) == [Needed(IO, LOOP, 10)]


def test_who_fell_asleep_after_the_signal_had_not_waited_for_it() -> None:
    assert needed(Wake(LOOP, 10, 65, IO, 60), Wake(MAIN, 70, 80, LOOP, 75)) == [Needed(IO, LOOP, 10)]


def test_what_the_waiter_did_after_it_was_woken_again_does_not_count() -> None:
    again = Wake(LOOP, 66, 72, IO, 71)
    assert Needed(IO, LOOP, 10) in needed(Wake(LOOP, 10, 65, IO, 60), again, Wake(MAIN, 30, 80, LOOP, 75))


def test_a_sleep_that_somebody_waits_out_is_no_rest() -> None:
    """Main had waited before the helper fell asleep: its sleep is what main waited for."""
    helper = {IO: [(20, 50)]}
    assert idle_helpers([Wake(LOOP, 30, 65, IO, 60)], helper) == [Needed(IO, LOOP, 30)]
    assert idle_helpers([Wake(LOOP, 30, 65, IO, 60), Wake(MAIN, 10, 58, IO, 55)], helper) == []
