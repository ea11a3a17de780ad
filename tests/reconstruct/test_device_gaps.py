"""What binds device work (attribution, section 3): stream, submission, events, inference, nothing recorded.

Without enough samples the constants are the assumed ones: launch latency 5 to 20 us, turnaround 2 us.
"""

from __future__ import annotations

import pytest

from analyzer.model import StreamFlag
from tests.builders import Schedule, account_of, causes_of, path_of, quality_of, schedule


def test_queued_work_is_bound_by_its_stream() -> None:
    """
    main      |L|L 0-8
    stream 7      |a 10-30 |b 31-50
    """
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(4, 8, runs=(31, 50), name="b")
    assert path_of(built) == [
        (0, 10, "launch.latency", "a"),
        (10, 30, "kernel", "a"),
        (30, 31, "gap.dispatch", "b"),
        (31, 50, "kernel", "b"),
    ]
    assert causes_of(built)[2] == (30, 31, "stream", False)


def test_late_work_is_bound_by_its_launch_even_while_earlier_work_still_runs() -> None:
    """b is launched at 28, ready at 33 by its launch and at 31 by its stream: a leaves the path."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 30), name="a")
        .op(4, 28, "aten::mm")
        .launch(28, 32, runs=(36, 50), name="b")
    )
    assert path_of(built) == [
        (0, 4, "launch.api", "cudaLaunchKernel"),
        (4, 28, "launch.dispatch", "aten::mm"),
        (28, 36, "launch.latency", "b"),
        (36, 50, "kernel", "b"),
    ]


def test_on_a_tie_stream_order_wins() -> None:
    """Ready at 31 both by the stream (30 + 1) and by the launch (26 + 5)."""
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(26, 28, runs=(31, 40), name="b")
    assert [row[2] for row in path_of(built)] == ["launch.latency", "kernel", "gap.dispatch", "kernel"]


def test_submission_explains_at_most_the_high_latency() -> None:
    """b is launched at 35 and starts at 70: 20 us of it are latency, then nothing visible holds it."""
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(35, 39, runs=(70, 80), name="b")
    assert path_of(built)[-3:] == [
        (35, 55, "launch.latency", "b"),
        (55, 70, "gap.dependency", "b"),
        (70, 80, "kernel", "b"),
    ]
    assert causes_of(built)[-3:] == [
        (35, 55, "submission", False),
        (55, 70, "unseen", True),
        (70, 80, "work", False),
    ]


def test_beyond_it_a_call_that_still_runs_and_recorded_overhead_come_first() -> None:
    """The call lasts until 65, the profiler was at work from 58 to 61."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 30), name="a")
        .launch(35, 65, runs=(70, 80), name="b")
        .thread("profiler")
        .overhead(58, 61)
    )
    assert path_of(built)[-6:] == [
        (35, 55, "launch.latency", "b"),
        (55, 58, "host.api", "cudaLaunchKernel"),
        (58, 61, "profiler", "b"),
        (61, 65, "host.api", "cudaLaunchKernel"),
        (65, 70, "gap.dependency", "b"),
        (70, 80, "kernel", "b"),
    ]


def train(*last: tuple[int, int, int, int]) -> Schedule:
    """Four queued kernels on stream 7 with gaps of 1 us, 10-20, 21-31, 32-42 and 43-53; then ``last``:
    (launch start, launch end, start, end)."""
    built = schedule()
    for at in range(4):
        built.launch(2 * at, 2 * at + 2, runs=(10 + 11 * at, 20 + 11 * at), name=f"k{at}")
    for start, end, begin, finish in last:
        built.launch(start, end, runs=(begin, finish), name="last")
    return built


def test_a_longer_gap_of_queued_work_has_a_cause_that_was_not_seen() -> None:
    built = train((8, 10, 70, 80))
    assert path_of(built)[-3:] == [
        (43, 53, "kernel", "k3"),
        (53, 70, "gap.dependency", "last"),
        (70, 80, "kernel", "last"),
    ]
    assert causes_of(built)[-2] == (53, 70, "unseen", True)


def test_a_gap_of_the_usual_turnaround_is_turnaround() -> None:
    assert path_of(train((8, 10, 55, 60)))[-2] == (53, 55, "gap.dispatch", "last")


def test_an_event_wait_binds_across_streams() -> None:
    """
    main      |L a|rec|wait|L b 7-9
    stream 7       |a 10-40
    stream 20               |b 42-50      b waits for the event that was recorded behind a
    """
    built = (
        schedule()
        .launch(0, 4, runs=(10, 40), name="a")
        .event_record(4, 5, "done")
        .event_wait(5, 6, "done", stream=20)
        .launch(7, 9, runs=(42, 50), name="b", stream=20)
    )
    assert path_of(built) == [
        (0, 10, "launch.latency", "a"),
        (10, 40, "kernel", "a"),
        (40, 42, "gap.dependency", "b"),
        (42, 50, "kernel", "b"),
    ]
    assert causes_of(built)[2] == (40, 42, "event", False)


def test_a_start_long_after_the_event_is_not_explained_by_it_alone() -> None:
    """b starts 10 us after the event's work, where 5 us are usual: the gap's cause is an inference."""
    built = (
        schedule()
        .launch(0, 4, runs=(10, 40), name="a")
        .event_record(4, 5, "done")
        .event_wait(5, 6, "done", stream=20)
        .launch(7, 9, runs=(50, 60), name="b", stream=20)
    )
    assert path_of(built)[2] == (40, 50, "gap.dependency", "b")
    assert causes_of(built)[2] == (40, 50, "unseen", True)


def test_an_event_waits_only_for_work_before_its_record() -> None:
    """a2 runs on stream 7 until 60, but was launched after the record: b still follows a."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="a")
        .event_record(2, 3, "done")
        .launch(3, 4, runs=(41, 60), name="a2")
        .event_wait(5, 6, "done", stream=20)
        .launch(7, 9, runs=(41, 70), name="b", stream=20)
    )
    assert path_of(built)[1:] == [
        (10, 40, "kernel", "a"),
        (40, 41, "gap.dependency", "b"),
        (41, 70, "kernel", "b"),
    ]


def test_a_wait_holds_only_the_stream_that_issued_it_and_later_work_there() -> None:
    """The wait was issued after b's launch: b is bound by its own launch; c behind it by the event."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="a")
        .launch(2, 4, runs=(12, 20), name="b", stream=20)
        .event_record(4, 5, "done")
        .event_wait(5, 6, "done", stream=20)
        .launch(6, 8, runs=(42, 50), name="c", stream=20)
    )
    assert path_of(built)[1:] == [
        (10, 40, "kernel", "a"),
        (40, 42, "gap.dependency", "c"),
        (42, 50, "kernel", "c"),
    ]


def test_a_wait_that_failed_holds_nothing() -> None:
    """It returned an error: b is bound by its own launch."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="a")
        .event_record(2, 3, "done")
        .event_wait(5, 6, "done", stream=20, result=400)
        .launch(30, 32, runs=(42, 50), name="b", stream=20)
    )
    assert path_of(built)[-2:] == [(30, 42, "launch.latency", "b"), (42, 50, "kernel", "b")]


def test_a_wait_without_its_record_is_counted() -> None:
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="a")
        .event_record(2, 3, "done", row=False)
        .event_wait(5, 6, "done", stream=20)
        .launch(7, 9, runs=(41, 50), name="b", stream=20)
    )
    assert quality_of(built)["unresolved-stream-wait"] == 1
    assert causes_of(built)[2] == (40, 41, "inferred", True)


def test_without_a_recorded_cause_work_that_ended_just_before_is_inferred() -> None:
    """b was launched at 7: submission explains 27 at most. a ended at 40 on another stream, 1 us before b."""
    built = schedule().launch(0, 4, runs=(10, 40), name="a").launch(7, 9, runs=(41, 50), name="b", stream=20)
    assert path_of(built)[1:] == [
        (10, 40, "kernel", "a"),
        (40, 41, "gap.dependency", "b"),
        (41, 50, "kernel", "b"),
    ]
    assert causes_of(built)[2] == (40, 41, "inferred", True)


def test_where_a_stream_was_told_to_wait_only_what_for_is_inferred() -> None:
    """
    main      |L a|L x 3-5 |wait, record unknown |L b 8-10
    stream 7       |a 10-60
    stream 20           |x 11-20                          |b 61-70
    """
    built = (
        schedule()
        .launch(0, 2, runs=(10, 60), name="a")
        .launch(3, 5, runs=(11, 20), name="x", stream=20)
        .event_record(5, 6, "done", row=False)
        .event_wait(6, 7, "done", stream=20)
        .launch(8, 10, runs=(61, 70), name="b", stream=20)
    )
    assert causes_of(built)[-2] == (60, 61, "inferred", False)
    assert path_of(built)[-2] == (60, 61, "gap.dependency", "b")


def test_a_gap_in_which_a_lost_kernel_may_have_run_has_no_known_cause() -> None:
    """Between the launches of a and b something was launched that left no device row."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 40), name="a")
        .launch(2, 4, runs=None, name="lost")
        .launch(4, 6, runs=(60, 70), name="b")
    )
    assert path_of(built)[-2] == (40, 60, "unattributed", "b")


def hops(length: int, count: int) -> Schedule:
    """``count`` pairs of kernels on two streams, the second ``length`` us after the event behind the first."""
    built = schedule()
    for at in range(count):
        host, start = 10 * at, 1_000 + 200 * at
        built.launch(host, host + 1, runs=(start, start + 50), name=f"a{at}")
        built.event_record(host + 1, host + 2, f"e{at}")
        built.event_wait(host + 2, host + 3, f"e{at}", stream=20)
        built.launch(host + 3, host + 4, runs=(start + 50 + length, start + 150), name=f"b{at}", stream=20)
    return built


@pytest.mark.parametrize(("count", "known"), [(7, False), (8, True)])
def test_the_usual_hop_over_an_event_is_learned_from_a_sample(count: int, known: bool) -> None:
    built = hops(9, count)
    assert account_of(built).bindings.event_hop_ns == (9_000 if known else 5_000)
    gaps = [cause for cause in causes_of(built) if cause[1] - cause[0] == 9]
    assert gaps
    assert all(cause[2:] == ("event" if known else "inferred", False) for cause in gaps)


def test_a_few_gaps_never_stretch_the_usual_turnaround() -> None:
    """Seven queued kernels that start 9 us after one another; in the eighth gap a sample is large enough."""
    for count, turnaround in ((8, 2_000), (9, 18_000)):
        built = schedule()
        for at in range(count):
            built.launch(2 * at, 2 * at + 2, runs=(100 + 59 * at, 150 + 59 * at), name=f"k{at}")
        constants = account_of(built).constants
        assert constants.turnaround_ns == turnaround
        assert ("turnaround_ns" in constants.assumed) == (turnaround == 2_000)


def test_a_gap_that_may_be_a_wait_teaches_no_turnaround() -> None:
    built = schedule()
    for at in range(12):
        built.event_record(6 * at, 6 * at + 1, f"e{at}", row=False)
        built.event_wait(6 * at + 1, 6 * at + 2, f"e{at}", stream=7)
        built.launch(6 * at + 2, 6 * at + 4, runs=(100 + 59 * at, 150 + 59 * at), name=f"k{at}")
    assert account_of(built).constants.turnaround_samples == 0


def test_work_of_another_stream_that_ended_long_before_explains_nothing() -> None:
    built = schedule().launch(0, 4, runs=(10, 30), name="a").launch(7, 9, runs=(60, 70), name="b", stream=20)
    assert path_of(built)[-3:] == [
        (7, 27, "launch.latency", "b"),
        (27, 60, "gap.dependency", "b"),
        (60, 70, "kernel", "b"),
    ]
    assert causes_of(built)[-2] == (27, 60, "unseen", True)


def test_programmatic_dependent_launch_keeps_what_the_later_kernel_adds() -> None:
    """
    stream 7  |a 10-30
              |   b 25-50        starts inside a, ends after it: [30, 50) is b's
    """
    built = schedule().launch(0, 2, runs=(10, 30), name="a").launch(2, 4, runs=(25, 50), name="b")
    assert path_of(built) == [
        (0, 10, "launch.latency", "a"),
        (10, 30, "kernel", "a"),
        (30, 50, "kernel", "b"),
    ]


def test_a_kernel_inside_another_of_its_stream_keeps_nothing() -> None:
    """a 10-50 outlasts b 20-40; c at 51 had to wait for a, which ended last."""
    built = (
        schedule()
        .launch(0, 2, runs=(10, 50), name="a")
        .launch(2, 4, runs=(20, 40), name="b")
        .launch(4, 6, runs=(51, 60), name="c")
    )
    assert path_of(built)[1:] == [
        (10, 50, "kernel", "a"),
        (50, 51, "gap.dispatch", "c"),
        (51, 60, "kernel", "c"),
    ]


def test_the_legacy_default_stream_waits_for_blocking_streams_and_they_for_it() -> None:
    """
    stream 7 (null)      |a 10-30         |c 62-70     c waits for b, b for a
    stream 20 (blocking)         |b 32-60
    """
    built = (
        schedule()
        .flag(7, StreamFlag.NULL)
        .flag(20, StreamFlag.BLOCKING)
        .launch(0, 2, runs=(10, 30), name="a")
        .launch(2, 4, runs=(32, 60), name="b", stream=20)
        .launch(4, 6, runs=(62, 70), name="c")
    )
    assert path_of(built)[1:] == [
        (10, 30, "kernel", "a"),
        (30, 32, "gap.dependency", "b"),
        (32, 60, "kernel", "b"),
        (60, 62, "gap.dependency", "c"),
        (62, 70, "kernel", "c"),
    ]
    assert [cause for *_, cause, inferred in causes_of(built) if not inferred] == [
        "submission", "work", "event", "work", "event", "work",
    ]  # fmt: skip


def test_a_non_blocking_stream_owes_the_default_stream_nothing() -> None:
    built = (
        schedule()
        .flag(7, StreamFlag.NULL)
        .flag(20, StreamFlag.NON_BLOCKING)
        .launch(0, 2, runs=(10, 30), name="a")
        .launch(2, 4, runs=(12, 60), name="b", stream=20)
        .launch(4, 6, runs=(31, 70), name="c")
    )
    assert path_of(built)[1:] == [
        (10, 30, "kernel", "a"),
        (30, 31, "gap.dispatch", "c"),
        (31, 70, "kernel", "c"),
    ]


def test_unlinked_work_close_behind_its_stream_is_turnaround() -> None:
    built = schedule().launch(0, 4, runs=(10, 30), name="a").kernel(31, 50, "unlinked")
    assert path_of(built)[1:] == [
        (10, 30, "kernel", "a"),
        (30, 31, "gap.dispatch", "unlinked"),
        (31, 50, "kernel", "unlinked"),
    ]
    assert quality_of(built)["unlinked-device-work"] == 1


def test_unlinked_work_after_a_longer_gap_is_unattributed_and_the_path_goes_on() -> None:
    built = schedule().launch(0, 4, runs=(10, 30), name="a").kernel(40, 50, "unlinked")
    assert path_of(built) == [
        (0, 10, "launch.latency", "a"),
        (10, 30, "kernel", "a"),
        (30, 40, "unattributed", "unlinked"),
        (40, 50, "kernel", "unlinked"),
    ]
    assert causes_of(built)[2] == (30, 40, "missing", False)


def test_unlinked_work_that_follows_nothing_leaves_the_rest_unattributed() -> None:
    """Stream 20 holds no work with a launch record, so nothing says that this was submitted before."""
    built = schedule().launch(0, 4, runs=(10, 20), name="a").kernel(60, 70, "unlinked", stream=20)
    assert path_of(built) == [(0, 60, "unattributed", ""), (60, 70, "kernel", "unlinked")]


def test_work_from_before_the_capture_is_prior_work() -> None:
    """Both unlinked rows start before the first linked one of their stream; the second has a low id."""
    built = schedule().kernel(0, 10, "x").kernel(11, 30, "y", corr=3).launch(5, 9, runs=(31, 40), name="a")
    assert path_of(built) == [
        (0, 10, "prior_work", "x"),
        (10, 11, "gap.dispatch", "y"),
        (11, 30, "prior_work", "y"),
        (30, 31, "gap.dispatch", "a"),
        (31, 40, "kernel", "a"),
    ]
    assert quality_of(built)["prior-work"] == 2


def test_a_low_correlation_id_tells_prior_work_on_a_stream_of_its_own() -> None:
    built = schedule().launch(0, 4, runs=(10, 20)).kernel(12, 40, "nccl before", stream=20, corr=3)
    assert quality_of(built)["prior-work"] == 1


def test_two_threads_each_launch_on_a_stream_and_the_path_stays_on_the_launching_one() -> None:
    """
    A  |op 0-60          |L 60-64
    B     |op 5-20 |L 20-24              b runs long before a: only A's work ends the window
    """
    built = (
        schedule()
        .thread("A").op(0, 60, "prepare a").launch(60, 64, runs=(70, 90), name="a")
        .thread("B").op(5, 20, "prepare b").launch(20, 24, runs=(30, 45), name="b", stream=20)
    )  # fmt: skip
    assert path_of(built) == [
        (20, 60, "host.framework", "prepare a"),
        (60, 70, "launch.latency", "a"),
        (70, 90, "kernel", "a"),
    ]


def test_a_predecessor_that_does_not_precede_is_discarded_and_counted() -> None:
    """c waits for a and for b; b starts after c (clock noise), so that only a can have held c."""
    built = (
        schedule()
        .launch(0, 1, runs=(10, 40), name="a")
        .event_record(1, 2, "a")
        .launch(2, 3, runs=(45, 60), name="b", stream=20)
        .event_record(3, 4, "b", stream=20)
        .event_wait(4, 5, "a", stream=21)
        .event_wait(5, 6, "b", stream=21)
        .launch(6, 7, runs=(42, 70), name="c", stream=21)
    )
    assert path_of(built)[1:] == [
        (10, 40, "kernel", "a"),
        (40, 42, "gap.dependency", "c"),
        (42, 70, "kernel", "c"),
    ]
    assert causes_of(built)[2] == (40, 42, "event", False)
    assert quality_of(built)["predecessor-discarded"] == 1
