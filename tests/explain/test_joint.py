"""What several ranks say together: one clock for all tables, budgets, verdicts, notes and the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.categories import Category
from analyzer.diagnosis import Diagnosis, GlobalWindow, Hypothesis, Window
from fixtures.simulator.program import Group, Op
from fixtures.simulator.recording import Recording
from fixtures.simulator.run import Run
from tests.across.programs import analyzed, host, meet, rank_of, team, work, written

OFF = Recording(clock_offset_ns={1: 4_000_000, 2: -3_000_000})


def late(rank: int, step: int) -> tuple[Op, ...]:
    """Rank 1's CPU is late in every step; rank 0 ends each step."""
    return (
        host(50_000 + 250_000 * (rank == 1)),
        work(30_000),
        meet(),
        work(20_000 if rank == 0 else 5_000, "tail"),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


@pytest.fixture(scope="module")
def right(folder: Path) -> Analysis:
    """Three ranks with clocks that agree."""
    return analyzed(team(3, late), folder / "right")


@pytest.fixture(scope="module")
def off(folder: Path) -> Analysis:
    """The same with clocks that are off."""
    return analyzed(team(3, late), folder / "off", "kineto", OFF)


def of(analysis: Analysis, name: str) -> Hypothesis:
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == name]
    return row


def note(diagnosis: Diagnosis, text: str) -> bool:
    return any(text in sentence for sentence in diagnosis.notes)


# -- one clock ------------------------------------------------------------------------------------


def test_everything_a_rank_shows_is_on_the_reference_clock(right: Analysis, off: Analysis) -> None:
    for rank in range(3):
        mine, other = rank_of(right.diagnosis, rank), rank_of(off.diagnosis, rank)
        assert [(w.start_ns, w.end_ns, w.host_start_ns) for w in mine.windows] == [
            (w.start_ns, w.end_ns, w.host_start_ns) for w in other.windows
        ]
        assert mine.device_span == other.device_span
        assert [w.path_ns for w in mine.windows] == [w.path_ns for w in other.windows]
        assert [w.exposed_ns for w in mine.windows] == [w.exposed_ns for w in other.windows]
    for name in ("segment_table", "queue", "global_segments"):
        mine, other = getattr(right, name), getattr(off, name)
        assert np.array_equal(mine.start_ns, other.start_ns), name
        assert np.array_equal(mine.end_ns, other.end_ns), name
    assert right.diagnosis.global_ == off.diagnosis.global_


def test_evidence_still_points_at_the_events_of_the_files(off: Analysis) -> None:
    """Times move with the clock; what an input calls the event does not."""
    table = off.segment_table
    assert table is not None
    moved = np.flatnonzero((table.rank == 1) & (table.category == Category.KERNEL))
    other = np.flatnonzero((table.rank == 0) & (table.category == Category.KERNEL))
    apart = (table.event_start_ns[moved] - table.event_start_ns[other]) - (
        table.start_ns[moved] - table.start_ns[other]
    )
    assert apart.tolist() == [4_000_000] * len(moved)


def test_lines_of_evidence_are_lines_of_the_split_table(off: Analysis) -> None:
    assert_lines(off)


def assert_lines(analysis: Analysis) -> None:
    table, paths = analysis.segment_table, analysis.global_segments
    assert table is not None
    seen = 0
    for row in analysis.diagnosis.hypotheses:
        for piece in row.evidence:
            rows = table if piece.file == "segments.csv" else paths
            assert rows is not None
            at = piece.line - 2
            assert (piece.rank, piece.window) == (int(rows.rank[at]), int(rows.window[at])), row.id
            assert (piece.start_ns, piece.end_ns) == (int(rows.start_ns[at]), int(rows.end_ns[at])), row.id
            seen += 1
    assert seen > 5


def test_segments_of_every_window_sum_to_it_after_the_split(off: Analysis) -> None:
    table = off.segment_table
    assert table is not None
    for rank in off.diagnosis.ranks:
        for window in rank.windows:
            mine = np.flatnonzero((table.rank == rank.rank) & (table.window == window.index))
            length = (table.end_ns - table.start_ns)[mine]
            assert int(length.sum()) == window.end_ns - window.start_ns == sum(window.path_ns.values())
            assert int(table.start_ns[mine[0]]) == window.start_ns


def test_waits_name_the_rank_waited_for(off: Analysis) -> None:
    table = off.segment_table
    assert table is not None
    waiting = table.category == Category.COLLECTIVE_WAIT
    assert set(table.rank[waiting].tolist()) == {0, 2}
    assert set(table.late_rank[waiting].tolist()) == {1}
    assert set(table.late_rank[~waiting].tolist()) == {-1}


# -- budgets and verdicts -------------------------------------------------------------------------


def test_the_global_budget_sums_the_global_windows(off: Analysis) -> None:
    account = off.diagnosis.global_
    assert account is not None
    assert account.reference_rank == 0
    (budget,) = [row for row in off.diagnosis.budget if row.scope == "global"]
    assert budget.windows == len(account.windows) == 8
    assert budget.step_ns_total == sum(w.end_ns - w.start_ns for w in account.windows)
    assert sum(budget.path_ns_total.values()) == budget.step_ns_total
    for window in account.windows:
        assert sum(window.path_ns.values()) == window.end_ns - window.start_ns
        assert sum(window.rank_ns.values()) == window.end_ns - window.start_ns
        assert (window.ranks_visited, window.last_rank) == ([1, 0], 0)
        assert window.launch_stagger_ns is not None


def test_verdicts_of_joined_ranks_are_about_the_path_through_all(off: Analysis) -> None:
    assert {row.scope for row in off.diagnosis.hypotheses} == {"global"}
    late_rank = of(off, "collective-late-rank")
    assert (late_rank.verdict, late_rank.rank) == ("supported", 1)
    assert late_rank.share is not None
    account = off.diagnosis.global_
    assert account is not None
    waited = sum(w.waited_ns for w in account.windows) / sum(w.end_ns - w.start_ns for w in account.windows)
    assert late_rank.share.value == pytest.approx(waited)
    assert late_rank.share.interval[0] <= late_rank.share.value <= late_rank.share.interval[1]
    host_bound = of(off, "host-bound")
    assert (host_bound.verdict, host_bound.rank) == ("supported", 1)


def test_without_a_common_path_each_rank_keeps_its_verdict(tmp_path: Path) -> None:
    run = team(3, late)
    diagnosis = analyzed(run, tmp_path, "kineto", Recording(lost_ranks=frozenset({1, 2}))).diagnosis
    assert {row.scope for row in diagnosis.hypotheses} == {"rank"}
    (transfer,) = [row for row in diagnosis.hypotheses if row.id == "collective-transfer"]
    assert transfer.verdict == "unmeasured"


def busy_or_late(rank: int, step: int) -> tuple[Op, ...]:
    """Rank 1's CPU is late in every step, the devices of the others are busy meanwhile; rank 0 ends each step."""
    before = (host(600_000),) if rank == 1 else (host(20_000), work(400_000))
    return (*before, meet(), work(20_000 if rank == 0 else 5_000, "tail"))


def test_before_a_call_that_is_not_split_the_path_may_lie_on_another_rank(tmp_path: Path) -> None:
    """All files: the path is on the late rank. Without that of rank 3 nobody knows, and the intervals say so."""
    run = team(4, busy_or_late)
    whole, without = (
        analyzed(run, tmp_path / name, "kineto", Recording(lost_ranks=frozenset(lost)))
        for name, lost in (("whole", ()), ("without", (3,)))
    )
    for name in ("host-bound", "kernel-bound", "launch-bound"):
        true, found = of(whole, name).share, of(without, name).share
        assert true is not None
        assert found is not None
        assert found.interval[0] <= true.value <= found.interval[1], name
    assert of(whole, "host-bound").verdict == "supported"
    assert of(without, "kernel-bound").verdict == "inconclusive"


@pytest.mark.parametrize("lost", [(), (5,)])
def test_a_split_call_is_where_the_ways_of_all_ranks_meet(lost: tuple[int, ...], tmp_path: Path) -> None:
    """Ten calls a step, of one of which a record is lost: only what lies between it and the one before is open."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        return tuple(op for _ in range(10) for op in (work(50_000 + 20_000 * (rank == 1)), meet()))

    run = team(3, ops)
    files = written(run, tmp_path)
    if lost:
        events = msgspec.json.decode(files[2].read_bytes())
        calls = [e for e in events["traceEvents"] if e.get("cat") == "kernel" and "AllReduce" in e["name"]]
        gone = calls[45]
        events["traceEvents"].remove(gone)
        files[2].write_bytes(msgspec.json.encode(events))
    analysis = pipeline.analyze(pipeline.read(files))
    share = of(analysis, "kernel-bound").share
    assert share is not None
    width = share.interval[1] - share.interval[0]
    assert (width < 0.005) == (not lost)
    assert width < 0.05


def test_a_rank_is_named_late_only_once_per_group(off: Analysis) -> None:
    (row,) = off.diagnosis.late_ranks
    assert (row.rank, row.late_calls, row.of_calls) == (1, 8, 8)
    assert sum(row.cause_ns.values()) == 8 * row.behind_ns.median


# -- notes and the ledger -------------------------------------------------------------------------


def test_clocks_of_one_host_that_are_far_apart_are_news(right: Analysis, off: Analysis, folder: Path) -> None:
    assert not note(right.diagnosis, "come from one host")
    files = written(team(3, late), folder / "hosts", "kineto", OFF)
    capture = pipeline.read(files)
    for hosts, told in ((("a", "a", "a"), {1, 2}), (("a", "b", "c"), set()), ((None, None, None), set())):
        traces = tuple(
            replace(trace, hostname=name) for trace, name in zip(capture.traces, hosts, strict=True)
        )
        notes = pipeline.analyze(replace(capture, traces=traces)).diagnosis.notes
        assert {
            rank for rank in (1, 2) for n in notes if n.startswith(f"Rank {rank} and rank 0 come from one")
        } == told


def test_groups_that_nothing_lists_are_said_to_be_assumed_complete(tmp_path: Path) -> None:
    run = team(2, lambda rank, _: (host(50_000 + 100_000 * rank), work(30_000), meet()))
    diagnosis = analyzed(run, tmp_path, "nsys", Recording(collective_metadata=False)).diagnosis
    assert all(row.assumed_complete for row in diagnosis.collectives)
    assert note(diagnosis, "does not say which ranks take part")
    told = analyzed(run, tmp_path / "told").diagnosis
    assert not any(row.assumed_complete for row in told.collectives)
    assert not note(told, "does not say which ranks take part")


def test_calls_that_are_not_split_are_counted_by_reason(tmp_path: Path) -> None:
    run = team(2, lambda rank, _: (host(50_000), work(10_000), meet(), meet(op="broadcast")))
    diagnosis = analyzed(run, tmp_path).diagnosis
    (entry,) = [row for row in diagnosis.quality if row.reason == "collective-not-split"]
    assert (entry.count, round(entry.count / entry.share) if entry.share else 0) == (8, 16)
    assert "leave before all have come" in entry.effect
    assert [row.class_ for row in diagnosis.collectives if row.op == "broadcast"] == ["inconclusive"]


def test_a_rank_that_shares_nothing_with_the_others_is_named(tmp_path: Path) -> None:
    groups = (Group("tp", (0, 1), "tp", "1"), Group("own", (2,), "tp", "2"))
    run = team(
        3,
        lambda rank, _: (host(50_000 + 100_000 * rank), work(30_000), meet("own" if rank == 2 else "tp")),
        groups=groups,
    )
    diagnosis = analyzed(run, tmp_path).diagnosis
    assert note(diagnosis, "Rank 2 shares no collective with the others")
    assert diagnosis.global_ is None
    (row,) = [row for row in diagnosis.collectives if row.ranks == [0, 1]]
    assert row.split_calls == 8


def test_two_worlds_that_nothing_links_split_their_own_collectives(tmp_path: Path) -> None:
    groups = (Group("low", (0, 1), "tp", "1"), Group("high", (2, 3), "tp", "2"))

    def ops(rank: int, _: int) -> tuple[Op, ...]:
        return (host(50_000 + 100_000 * (rank % 2)), work(30_000), meet("low" if rank < 2 else "high"))

    analysis = analyzed(team(4, ops, groups=groups), tmp_path)
    assert_lines(analysis)
    diagnosis = analysis.diagnosis
    assert diagnosis.global_ is None
    assert note(diagnosis, "the ranks form 2 groups that no collective links")
    assert [row.wait_ns for row in diagnosis.collectives] == [{0: 100_000, 1: 0}, {2: 100_000, 3: 0}]
    assert {rank.rank: rank.clock.reference_rank for rank in diagnosis.ranks} == {0: 0, 1: 0, 2: 2, 3: 2}


def test_the_step_index_leaves_the_collectives_as_they_are(folder: Path) -> None:
    """It chooses steps; what is said of all calls of the capture stays."""
    capture = pipeline.read(written(team(3, late), folder / "index"))
    everything = pipeline.analyze(capture).diagnosis
    one = pipeline.analyze(capture, step_index="2").diagnosis
    assert [len(rank.windows) for rank in one.ranks] == [1, 1, 1]
    assert rank_of(one, 0).windows[0].path_ns == rank_of(everything, 0).windows[2].path_ns
    assert one.collectives == everything.collectives
    assert one.late_ranks == everything.late_ranks
    assert one.alpha_beta == everything.alpha_beta


def uneven(rank: int, step: int) -> tuple[Op, ...]:
    """Step 2 takes all ranks longest; rank 0's own longest is step 1, which only its tail ends late."""
    late = host(50_000 + 250_000 * (step == 2) * (rank == 1))
    return late, work(30_000), meet(), work(300_000 if (rank, step) == (0, 1) else 5_000, "tail")


def length(window: Window | GlobalWindow) -> int:
    return window.end_ns - window.start_ns


@pytest.mark.parametrize("asked", ["1", "median", "slowest"])
def test_the_one_step_asked_for_is_that_of_all_ranks_together(asked: str, folder: Path) -> None:
    capture = pipeline.read(written(team(3, uneven), folder / "uneven"))
    everything = pipeline.analyze(capture).diagnosis
    assert everything.global_ is not None
    steps = everything.global_.windows
    ordered = sorted(steps, key=length)
    wanted = {"1": steps[1], "median": ordered[(len(steps) - 1) // 2], "slowest": ordered[-1]}[asked]
    one = pipeline.analyze(capture, step_index=asked)
    assert one.diagnosis.global_ is not None
    assert one.diagnosis.global_.windows == [wanted]
    budget = next(row for row in one.diagnosis.budget if row.scope == "global")
    assert (budget.windows, budget.step_ns_total) == (1, length(wanted))
    own = {rank.rank: [window.index for window in rank.windows] for rank in one.diagnosis.ranks}
    assert own == {rank: [at] for rank, at in wanted.windows.items()}
    assert {row.measured.windows for row in one.diagnosis.hypotheses if row.measured} == {1}
    assert_lines(one)


def test_the_slowest_step_of_all_ranks_need_not_be_each_ranks_own(folder: Path) -> None:
    """What the test above rests on."""
    diagnosis = pipeline.analyze(pipeline.read(written(team(3, uneven), folder / "own"))).diagnosis
    assert diagnosis.global_ is not None
    slowest = max(diagnosis.global_.windows, key=length)
    assert {rank.rank: max(rank.windows, key=length).index for rank in diagnosis.ranks} != slowest.windows


def run_of(extra: int) -> Run:
    return team(3, lambda rank, _: (host(50_000 + extra * (rank == 1)), work(30_000), meet()))


def test_the_result_can_be_read_back(off: Analysis) -> None:
    again = Analysis.from_json(off.to_json())
    assert again.diagnosis == off.diagnosis
    assert msgspec.json.encode(again.diagnosis.global_) == msgspec.json.encode(off.diagnosis.global_)
    assert len(off.collectives()) == len(off.diagnosis.collectives)
    assert off.late_ranks()["rank"].tolist() == [1]


@pytest.mark.parametrize("extra", [0, 30_000, 400_000])
def test_the_late_share_grows_with_the_lateness(extra: int, tmp_path: Path) -> None:
    analysis = analyzed(run_of(extra), tmp_path)
    row = of(analysis, "collective-late-rank")
    account = analysis.diagnosis.global_
    assert account is not None
    assert [window.waited_ns for window in account.windows] == [extra] * 8
    assert row.verdict == ("contradicted" if extra == 0 else "supported")
