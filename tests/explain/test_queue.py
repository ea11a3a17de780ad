"""Queue depth and launch latency over time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.explain.launches.queue import BINS, join_queues, queue_table
from analyzer.explain.launches.submissions import Submissions
from analyzer.tables import QueueTable
from tests.builders import Schedule, account_of, analysis_of, schedule
from tests.captures.results import analysis_of as analysis_of_capture
from tests.shared import needs_shared

Launch = tuple[int, int, int]  # start of the call, start and end of its work


def queue_of(built: Schedule, **options: object) -> QueueTable:
    table = analysis_of(built, **options).queue
    assert table is not None
    return table


def two_launches() -> Schedule:
    """
    main  |L0 0-1|L1 2-3
    s7              |a 4-6|b 6-10
    """
    return schedule(unit_ns=1).launch(0, 1, runs=(4, 6), name="a").launch(2, 3, runs=(6, 10), name="b")


def test_depth_counts_what_is_submitted_and_not_finished() -> None:
    table = queue_of(two_launches())  # ten bins of 1 ns: no bin is shorter
    assert table.start_ns.tolist() == list(range(10))
    assert table.depth_low.tolist() == [1, 1, 2, 2, 2, 2, 1, 1, 1, 1]
    assert table.depth_high.tolist() == table.depth_low.tolist()


def test_a_launch_counts_in_the_bin_where_its_call_starts() -> None:
    table = queue_of(two_launches())
    assert table.launches.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert table.latency_median_ns.tolist() == [4, -1, 4, -1, -1, -1, -1, -1, -1, -1]


def test_several_launches_in_one_bin() -> None:
    """1,200 ns in 600 bins of 2 ns; both calls start in the first, with latencies 100 and 499."""
    built = schedule(unit_ns=1).launch(0, 1, runs=(100, 200)).launch(1, 2, runs=(500, 1200))
    table = queue_of(built)
    assert (len(table), table.start_ns[1], table.end_ns[-1]) == (600, 2, 1200)
    first = (table.launches[0], table.latency_low_ns[0], table.latency_median_ns[0], table.latency_high_ns[0])
    assert first == (2, 100, 100, 499)
    assert (table.depth_low[0], table.depth_high[0]) == (1, 2)


def test_a_replay_is_one_submission_however_many_nodes_were_recorded() -> None:
    nodes = [(3, 5, "a", 7), (5, 6, "b", 7), (6, 9, "c", 7)]
    assert queue_of(schedule(unit_ns=1).graph(0, 1, nodes)).depth_high.max() == 1


def test_without_device_work_there_is_no_queue() -> None:
    assert len(queue_of(schedule().call(0, 5, "cudaMalloc"))) == 0


def test_bins_reach_from_the_first_window_to_the_last_and_are_equal() -> None:
    built = schedule(unit_ns=1)
    for at in (0, 500):
        built.range(at, at + 400, "s").launch(at, at + 4, runs=(at + 10, at + 451))
    table = queue_of(built, steps="^s$")
    assert (len(table), table.start_ns[0], table.end_ns[-1]) == (BINS, 0, 951)
    assert table.start_ns[1:].tolist() == table.end_ns[:-1].tolist()
    assert set((table.end_ns - table.start_ns).tolist()) == {1, 2}


launches = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 300), st.integers(1, 400)).map(
        lambda row: (row[0], row[0] + 1 + row[1], row[0] + 1 + row[1] + row[2])
    ),
    min_size=1,
    max_size=12,
)


def built_from(rows: list[Launch]) -> Schedule:
    built = schedule(unit_ns=1)
    for number, (call, begin, finish) in enumerate(sorted(rows)):
        built.thread(f"t{number}").launch(call, call + 1, runs=(begin, finish), stream=number)
    return built


@settings(max_examples=50, deadline=None)
@given(launches)
def test_depth_agrees_with_counting_at_every_nanosecond(rows: list[Launch]) -> None:
    table = queue_table(account_of(built_from(rows)), rank=0)
    for low, high, least, most in zip(
        table.start_ns.tolist(), table.end_ns.tolist(), table.depth_low, table.depth_high, strict=True
    ):
        depths = [sum(call <= at < finish for call, _, finish in rows) for at in range(low, high)]
        assert (least, most) == (min(depths), max(depths))


@settings(max_examples=50, deadline=None)
@given(launches)
def test_the_depth_at_a_launch_leaves_out_its_own(rows: list[Launch]) -> None:
    account = account_of(built_from(rows))
    calls = account.calls
    depth = Submissions(account.work, calls).depth_before(calls.start_ns)
    for start, found in zip(calls.start_ns.tolist(), depth.tolist(), strict=True):
        assert found == sum(call < start < finish for call, _, finish in rows)


def test_several_ranks_follow_one_another() -> None:
    table = queue_of(two_launches())
    joined = join_queues([table, table])
    assert len(joined) == 20
    assert joined.rank.dtype == table.rank.dtype


@needs_shared
@pytest.mark.parametrize("name", ["hta-diff/trace_diff_test.json.gz", "cs336-zx/gpt2_2.7B_nvtx.sqlite"])
def test_the_cpu_never_runs_further_ahead_than_the_launch_queue(name: str) -> None:
    """CUDA's queue holds 1,022 launches here; the one beyond it waits in its call."""
    table = analysis_of_capture(name).queue
    assert table is not None and len(table) == BINS
    assert 1_000 < table.depth_high.max() <= 1_030
    assert (table.depth_low >= 0).all() and (table.depth_low <= table.depth_high).all()
    has = table.launches > 0
    assert (table.latency_low_ns[has] >= 0).all() and (table.latency_high_ns[~has] == -1).all()
