"""Several ranks through the whole analyzer: files, clocks, waits, late ranks, the table of collectives."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from analyzer import pipeline
from analyzer.across.waits import COMPUTES, MISSING_RANK, MISSING_RECORD, ONE_WAY_CALL
from analyzer.analysis import Analysis
from analyzer.diagnosis import Collective as Row
from analyzer.diagnosis import Diagnosis, Spread
from analyzer.errors import TraceError
from fixtures.simulator.kineto_writer import BASE_TIME_NS
from fixtures.simulator.program import Collective, Group, Op
from fixtures.simulator.recording import Recording
from fixtures.simulator.run import Run
from tests.across.programs import (
    Form,
    analyzed,
    host,
    meet,
    only,
    rank_of,
    shown,
    team,
    work,
    written,
)

FORMS: tuple[Form, ...] = ("kineto", "nsys", "one nsys file")
every_form = pytest.mark.parametrize("form", FORMS)


def late_cpu(ranks: int = 3, late: int = 1, by_ns: int = 250_000) -> Run:
    """One rank's CPU comes later to every step: the others wait in the collective for just that long."""
    return team(ranks, lambda rank, _: (host(50_000 + by_ns * (rank == late)), work(30_000), meet()))


def paths(diagnosis: Diagnosis) -> dict[int, list[dict[str, int]]]:
    return {rank.rank: [shown(window.path_ns) for window in rank.windows] for rank in diagnosis.ranks}


def claim(diagnosis: Diagnosis, name: str) -> tuple[str, float]:
    (row,) = [row for row in diagnosis.hypotheses if row.id == name]
    return row.verdict, -1.0 if row.share is None else round(row.share.value, 4)


# -- who waits for whom ---------------------------------------------------------------------------


@every_form
def test_a_late_cpu_is_waited_for_by_the_others_and_named(form: Form, tmp_path: Path) -> None:
    diagnosis = analyzed(late_cpu(), tmp_path, form).diagnosis
    own = {
        "host.framework": 50_000,
        "launch.latency": 5_000,
        "kernel": 30_000,
        "gap.dispatch": 1_100,
        "collective.transfer": 20_000,
    }
    assert shown(rank_of(diagnosis, 0).windows[0].path_ns) == own | {"collective.wait": 250_000}
    assert shown(rank_of(diagnosis, 2).windows[0].path_ns) == own | {"collective.wait": 250_000}
    assert shown(rank_of(diagnosis, 1).windows[0].path_ns) == own | {"host.framework": 300_000}
    row = only(diagnosis.collectives)
    assert (row.ranks, row.calls_total, row.calls_per_step, row.split_calls) == ([0, 1, 2], 8, 1.0, 8)
    assert row.wait_ns == {0: 250_000, 1: 0, 2: 250_000}
    assert (row.transfer_ns, row.class_) == (Spread(median=20_000, p95=20_000), "skew-dominated")
    assert (row.late_rank_counts, row.late_rank_steps, row.steps) == ({0: 0, 1: 8, 2: 0}, {1: 8}, 8)
    (late,) = diagnosis.late_ranks
    assert (late.rank, late.late_calls, late.alone_last_calls, late.of_calls) == (1, 8, 8, 8)
    assert (late.late_steps, late.of_steps, late.behind_ns.median) == (8, 8, 250_000)
    assert late.wait_total_ns == 8 * 2 * 250_000
    assert late.cause.startswith("its CPU did other work than submitting (86 % of that time)")
    assert late.suspects[0] == "schedule"
    assert diagnosis.global_ is not None
    for window in diagnosis.global_.windows:
        assert (window.late_ranks, window.waited_ns, window.ranks_visited) == ([1], 250_000, [1])
        assert window.path_ns["collective.wait"] == 0
        assert window.path_ns["host.framework"] == 300_000
    assert claim(diagnosis, "collective-late-rank")[0] == "supported"
    assert claim(diagnosis, "host-bound")[0] == "supported"


@every_form
def test_at_the_host_boundary_the_path_through_all_ranks_ends_with_the_last_range(
    form: Form, tmp_path: Path
) -> None:
    """It once was unattributed as a whole. A step begins with the first rank's range."""
    files = written(late_cpu(), tmp_path, form)
    diagnosis = pipeline.analyze(pipeline.read(files), boundary="host").diagnosis
    assert diagnosis.global_ is not None
    for at, window in enumerate(diagnosis.global_.windows):
        ranges = [rank.windows[at] for rank in diagnosis.ranks]
        assert window.end_ns == max(one.end_ns for one in ranges)
        ended = diagnosis.global_.windows[at - 1].end_ns if at else 0
        assert window.start_ns == max(min(one.start_ns for one in ranges), ended)
        assert window.end_ns - window.start_ns >= max(one.end_ns - one.start_ns for one in ranges)
        path = shown(window.path_ns)
        assert sum(path.values()) == window.end_ns - window.start_ns
        assert "unattributed" not in path
        assert path["host.framework"] >= 300_000
        assert 1 in window.ranks_visited and window.waited_ns == 250_000
    (budget,) = [row for row in diagnosis.budget if row.scope == "global"]
    assert diagnosis.whatif is not None
    changes = [row for row in diagnosis.whatif.changes if row.scope == "global"]
    steps = {row.step_ns for row in changes if row.step_ns is not None}
    assert steps == {round(budget.step_ns_total / budget.windows)}


def test_slower_kernels_of_a_late_rank_are_named(tmp_path: Path) -> None:
    run = team(3, lambda rank, _: (host(20_000), work(200_000 + 150_000 * (rank == 2), "gemm"), meet()))
    diagnosis = analyzed(run, tmp_path).diagnosis
    (late,) = diagnosis.late_ranks
    assert (late.rank, late.late_calls, late.behind_ns.median) == (2, 8, 150_000)
    assert late.cause.startswith("its kernels ran (99 % of that time)")
    assert late.suspects[0] == "gemm"
    assert claim(diagnosis, "kernel-bound")[0] == "supported"


def test_a_rank_that_is_late_in_few_calls_is_not_named(tmp_path: Path) -> None:
    def ops(rank: int, step: int) -> tuple[Op, ...]:
        return (host(50_000 + 250_000 * (rank == 1 and step == 0)), work(30_000), meet())

    assert analyzed(team(3, ops, steps=11), tmp_path / "seldom").diagnosis.late_ranks == []
    (late,) = analyzed(team(3, ops, steps=10), tmp_path / "often").diagnosis.late_ranks
    assert (late.rank, late.late_calls, late.of_calls) == (1, 1, 10)


def test_ranks_that_come_together_make_nobody_late(tmp_path: Path) -> None:
    diagnosis = analyzed(late_cpu(by_ns=0), tmp_path).diagnosis
    assert diagnosis.late_ranks == []
    assert claim(diagnosis, "collective-late-rank") == ("contradicted", 0.0)
    row = only(diagnosis.collectives)
    assert row.wait_ns == {0: 0, 1: 0, 2: 0}
    assert (row.late_undecided, row.late_rank_counts) == (8, {0: 0, 1: 0, 2: 0})


@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_the_skew_is_real_and_the_clock_is_not(form: Form, tmp_path: Path) -> None:
    """A clock that is 5 ms off beside a true skew of 3 ms: the wait is 3 ms, not 8 and not 2."""
    run = late_cpu(ranks=2, by_ns=3_000_000)
    for offset in (5_000_000, -5_000_000):
        recording = Recording(clock_offset_ns={1: offset})
        diagnosis = analyzed(run, tmp_path / str(offset), form, recording).diagnosis
        row = only(diagnosis.collectives)
        assert row.wait_ns == {0: 3_000_000, 1: 0}
        assert rank_of(diagnosis, 0).windows[1].path_ns["collective.wait"] == 3_000_000
        clock = rank_of(diagnosis, 1).clock
        assert (clock.offset_ns, clock.reference_rank) == (-offset, 0)
        if form == "nsys":  # steps all alike, and no sequence numbers
            assert clock.interval_ns is None
            assert any("an assumption" in note for note in diagnosis.notes)
        else:
            assert clock.interval_ns is not None
            assert clock.interval_ns[0] <= -offset <= clock.interval_ns[1]


# -- what is missing ------------------------------------------------------------------------------


def test_without_a_ranks_file_nothing_is_split_and_the_rank_is_named(tmp_path: Path) -> None:
    recording = Recording(lost_ranks=frozenset({1}))
    run = team(3, lambda rank, _: (host(50_000 * (1 + rank)), work(30_000), meet()))
    diagnosis = analyzed(run, tmp_path, "kineto", recording).diagnosis
    assert diagnosis.missing_ranks == [1]
    row = only(diagnosis.collectives)
    assert (row.ranks, row.missing_ranks, row.split_calls) == ([0, 2], [1], 0)
    assert row.unsplit == {MISSING_RANK: 8}
    assert (row.transfer_ns, row.wait_ns, row.class_) == (None, None, "inconclusive")
    assert (row.latest_observed, row.observed_only, row.late_rank_counts) == ({2: 8}, True, {})
    assert any("nothing was captured of rank 1" in note for note in diagnosis.notes)
    assert any("transfer and waiting inside collectives" in entry.what for entry in diagnosis.unmeasured)
    assert diagnosis.late_ranks == []
    for rank in diagnosis.ranks:
        assert sum(w.path_ns["collective.wait"] + w.path_ns["collective.transfer"] for w in rank.windows) == 0
        assert all(w.path_ns["collective.unsplit"] for w in rank.windows)


def test_one_rank_alone_splits_nothing(tmp_path: Path) -> None:
    diagnosis = analyzed(late_cpu(), tmp_path, "kineto", Recording(lost_ranks=frozenset({1, 2}))).diagnosis
    assert diagnosis.missing_ranks == [1, 2]
    assert diagnosis.global_ is None
    row = only(diagnosis.collectives)
    assert (row.ranks, row.missing_ranks, row.split_calls) == ([0], [1, 2], 0)
    assert row.latest_observed == {}


def test_two_files_of_one_rank_are_refused_by_name(tmp_path: Path) -> None:
    first, second = written(late_cpu(ranks=2), tmp_path)
    twin = tmp_path / "again" / "rank1.pt.trace.json"
    twin.parent.mkdir()
    twin.write_bytes(second.read_bytes())
    with pytest.raises(TraceError) as refused:
        pipeline.read([first, second, twin])
    assert "claims rank 1" in str(refused.value)
    assert str(second) in str(refused.value)
    assert str(twin) in str(refused.value)
    with pytest.raises(TraceError), pipeline.opened([first, second, twin]):
        pass


@pytest.mark.parametrize("form", ["nsys", "kineto"])
def test_equal_process_ids_and_correlations_of_ranks_are_not_mixed(form: Form, tmp_path: Path) -> None:
    def run_of(pid: Callable[[int], int]) -> Run:
        return team(3, lambda rank, _: (host(50_000 * (1 + rank)), work(30_000), meet()), pid=pid)

    alike = analyzed(run_of(lambda _: 4_242), tmp_path / "alike", form).diagnosis
    apart = analyzed(run_of(lambda rank: 4_242 + rank), tmp_path / "apart", form).diagnosis
    assert {rank.pid for rank in alike.ranks} == {"4242"}
    assert paths(alike) == paths(apart)
    assert paths(alike)[0] != paths(alike)[2]
    assert [alike.collectives, alike.late_ranks] == [apart.collectives, apart.late_ranks]
    assert alike.global_ == apart.global_


@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_a_rank_without_device_work_takes_no_part(form: Form, tmp_path: Path) -> None:
    def ops(rank: int, _: int) -> tuple[Op, ...]:
        return (host(500_000),) if rank == 2 else (host(50_000 + 250_000 * rank), work(30_000), meet())

    run = team(3, ops, groups=(Group("tp", (0, 1), "tp", "1"),))
    diagnosis = analyzed(run, tmp_path, form).diagnosis
    silent = rank_of(diagnosis, 2)
    assert (silent.device_events, silent.windows) == (0, [])
    assert any("not recorded for rank 2" in note for note in diagnosis.notes)
    assert diagnosis.global_ is not None
    assert len(diagnosis.global_.windows) == 8
    assert {rank for w in diagnosis.global_.windows for rank in w.ranks_visited} == {1}
    row = only(diagnosis.collectives)
    assert (row.ranks, row.wait_ns) == ([0, 1], {0: 250_000, 1: 0})


def test_two_processes_on_one_gpu_are_joined_like_any_ranks(tmp_path: Path) -> None:
    files = written(late_cpu(ranks=2), tmp_path, "nsys")
    for path in files:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE TARGET_INFO_CUDA_DEVICE SET uuid = 'GPU-5a'")
            database.execute("UPDATE TARGET_INFO_GPU SET uuid = 'GPU-5a'")
        database.close()
    diagnosis = pipeline.analyze(pipeline.read(files)).diagnosis
    assert [rank.shared_gpu_with for rank in diagnosis.ranks] == [[1], [0]]
    (device,) = diagnosis.shared_devices
    assert device.ranks == [0, 1]
    assert sum("shares its GPU" in note for note in diagnosis.notes) == 2
    row = only(diagnosis.collectives)
    assert (row.split_calls, row.wait_ns) == (8, {0: 250_000, 1: 0})


def test_two_slices_of_one_gpu_are_two_devices(tmp_path: Path) -> None:
    """MIG: instances have uuids of their own, on one chip."""
    files = written(late_cpu(ranks=2), tmp_path, "nsys")
    for at, path in enumerate(files):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE TARGET_INFO_CUDA_DEVICE SET uuid = ?", (f"MIG-5a-{at}",))
            database.execute(
                "UPDATE TARGET_INFO_GPU SET uuid = 'GPU-5a', name = 'NVIDIA H200 MIG 3g.71gb', busLocation = '0:1'"
            )
        database.close()
    diagnosis = pipeline.analyze(pipeline.read(files)).diagnosis
    assert [rank.shared_gpu_with for rank in diagnosis.ranks] == [[], []]
    assert diagnosis.shared_devices == []
    row = only(diagnosis.collectives)
    assert (row.split_calls, row.wait_ns) == (8, {0: 250_000, 1: 0})


def test_ranks_without_a_common_collective_have_no_common_path(tmp_path: Path) -> None:
    groups = (Group("a", (0,), "tp", "1"), Group("b", (1,), "tp", "2"))
    run = team(2, lambda rank, _: (host(50_000), work(30_000), meet("ab"[rank])), groups=groups)
    diagnosis = analyzed(run, tmp_path).diagnosis
    assert diagnosis.global_ is None
    assert any("no path through all ranks: the ranks share no collective" in n for n in diagnosis.notes)
    assert any("one path through all ranks" in entry.what for entry in diagnosis.unmeasured)
    assert {row.scope for row in diagnosis.hypotheses} == {"rank"}


def test_a_call_that_one_rank_did_not_record_is_not_split_and_shifts_nothing(tmp_path: Path) -> None:
    run = team(2, lambda rank, step: (host(50_000 + 10_000 * step * rank), work(30_000), meet()), steps=6)
    files = written(run, tmp_path, "nsys")
    with sqlite3.connect(files[1]) as database:
        (third,) = database.execute(
            "SELECT k.rowid FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
            "WHERE s.value LIKE 'nccl%' ORDER BY k.start LIMIT 1 OFFSET 2"
        ).fetchone()
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = ?", (third,))
    database.close()
    diagnosis = pipeline.analyze(pipeline.read(files)).diagnosis
    row = only(diagnosis.collectives)
    assert (row.calls_total, row.split_calls, row.unsplit) == (6, 5, {MISSING_RECORD: 1})
    assert any("1 collective calls could not be split beside others" in note for note in diagnosis.notes)
    assert row.wait_total_ns is not None
    assert row.wait_total_ns[0] == 10_000 * (0 + 1 + 3 + 4 + 5)
    assert row.latest_observed == {}


# -- operations that do not synchronize -----------------------------------------------------------


def test_a_receiver_waits_and_a_sender_does_not(tmp_path: Path) -> None:
    def ops(rank: int, _: int) -> tuple[Op, ...]:
        together = (work(10_000), meet())
        if rank == 0:
            return (host(450_000), *together, meet("pp", "send"))
        return (host(50_000), *together, work(30_000), meet("pp", "recv"))

    groups = (Group("tp", (0, 1), "tp", "1"), Group("pp", (0, 1), "pp", "2"))
    diagnosis = analyzed(team(2, ops, groups=groups), tmp_path).diagnosis
    row = only([row for row in diagnosis.collectives if row.op == "send/recv"])
    assert row.parallelism == "pipeline"
    assert row.split_calls == 8
    # the receiver comes 30 us and a turnaround later here: the sender is held, but it may leave first
    sender, receiver = (rank_of(diagnosis, rank).windows[1].path_ns for rank in (0, 1))
    assert sender["collective.wait"] == 0
    assert sender["collective.unsplit"] > 0
    assert receiver["collective.wait"] == 400_000
    assert receiver["collective.transfer"] == 40_000


def test_a_broadcast_is_not_split(tmp_path: Path) -> None:
    run = team(2, lambda rank, _: (host(50_000 + 100_000 * rank), work(10_000), meet(), meet(op="broadcast")))
    rows = {row.op: row for row in analyzed(run, tmp_path).diagnosis.collectives}
    assert rows["broadcast"].unsplit == {ONE_WAY_CALL: 8}
    assert rows["all_reduce"].wait_ns == {0: 100_000, 1: 0}


def test_a_kernel_that_also_computes_is_not_split(tmp_path: Path) -> None:
    fused = Collective("tp", "all_reduce", "BFloat16", 4_096, 20_000, kernel="fused_gemm_allreduce_kernel")
    run = team(2, lambda rank, _: (host(50_000 + 100_000 * rank), work(10_000), meet(), fused))
    rows = analyzed(run, tmp_path).diagnosis.collectives
    reasons = [reason for row in rows for reason in row.unsplit]
    assert reasons == [COMPUTES]


# -- the table of collectives ---------------------------------------------------------------------


def row_of(tmp_path: Path, skews: tuple[int, ...], transfer_ns: int = 100_000) -> Row:
    def ops(rank: int, step: int) -> tuple[Op, ...]:
        return (host(50_000 + skews[step] * rank), work(10_000), meet(transfer_ns=transfer_ns))

    run = team(2, ops, steps=len(skews))
    return only(analyzed(run, tmp_path).diagnosis.collectives)


def test_calls_without_skew_are_transfer_and_their_own_baseline(tmp_path: Path) -> None:
    row = row_of(tmp_path, (0, 0, 0, 0))
    assert (row.class_, row.baseline_ns, row.baseline_calls) == ("transfer-dominated", 100_000, 4)
    assert "4 calls of equal size without skew take 100000 ns" in row.class_note


def test_calls_that_one_rank_sits_out_are_skew(tmp_path: Path) -> None:
    row = row_of(tmp_path, (900_000,) * 4)
    assert (row.class_, row.baseline_ns, row.baseline_calls) == ("skew-dominated", None, 0)
    assert row.arrival_spread_ns is not None
    assert row.arrival_spread_ns.median == 900_000
    assert row.shortest_ns.median == 100_000


def test_calls_of_which_half_is_waiting_are_mixed(tmp_path: Path) -> None:
    row = row_of(tmp_path, (200_000,) * 4)  # rank 0 waits 200 us; both transfer 100 us: half and half
    assert row.class_ == "mixed"


def test_the_baseline_needs_three_calls_without_skew(tmp_path: Path) -> None:
    assert row_of(tmp_path / "two", (0, 0, 300_000, 300_000)).baseline_calls == 0
    row = row_of(tmp_path / "three", (0, 0, 0, 300_000))
    assert (row.baseline_calls, row.baseline_ns) == (3, 100_000)


def test_two_calls_are_too_few_to_know_the_clocks(tmp_path: Path) -> None:
    """Then 50 us are assumed, of which 2 us of transfer and no wait say nothing."""
    row = row_of(tmp_path, (0, 0), transfer_ns=2_000)
    assert row.class_ == "inconclusive"
    assert "uncertainty" in row.class_note


def test_a_wait_within_what_is_unsure_dominates_nothing(tmp_path: Path) -> None:
    """40 us of 42 are waiting, by clocks that two calls tell to 50 us."""
    assert row_of(tmp_path, (40_000, 40_000), transfer_ns=2_000).class_ == "inconclusive"


def test_sizes_and_groups_are_rows_of_their_own(tmp_path: Path) -> None:
    groups = (
        Group("left", (0, 1), "tp", "1"),
        Group("right", (2, 3), "tp", "1"),
        Group("world", (0, 1, 2, 3), "dp", "2"),
    )

    def ops(rank: int, _: int) -> tuple[Op, ...]:
        mine = "left" if rank < 2 else "right"
        return (host(50_000), meet(mine, elements=64), meet(mine, elements=4_096), meet("world"))

    diagnosis = analyzed(team(4, ops, groups=groups), tmp_path).diagnosis
    rows = {(tuple(row.ranks), row.bytes): row.calls_total for row in diagnosis.collectives}
    assert rows == {
        ((0, 1), 128): 8, ((0, 1), 8_192): 8, ((2, 3), 128): 8, ((2, 3), 8_192): 8, ((0, 1, 2, 3), 8_192): 8,
    }  # fmt: skip


# -- nothing depends on how the files come --------------------------------------------------------


def comparable(analysis: Analysis) -> bytes:
    return replace(analysis, diagnosis=msgspec.structs.replace(analysis.diagnosis, inputs=[])).to_json()


def test_the_order_of_the_files_changes_nothing_but_the_list_of_inputs(tmp_path: Path) -> None:
    files = written(late_cpu(), tmp_path, "kineto", Recording(clock_offset_ns={1: 2_000_000, 2: -700_000}))
    expected = comparable(pipeline.analyze(pipeline.read(files)))
    for order in list(permutations(files))[1:]:
        assert comparable(pipeline.analyze(pipeline.read(list(order)))) == expected
    renamed = [path.rename(tmp_path / f"{name}.json") for path, name in zip(files, "cba", strict=True)]
    again = comparable(pipeline.analyze(pipeline.read(renamed)))
    for path, new in zip(files, renamed, strict=True):
        again = again.replace(str(new).encode(), str(path).encode())
    assert again == expected


@every_form
def test_an_executor_gives_the_same_bytes(form: Form, tmp_path: Path) -> None:
    capture = pipeline.read(written(late_cpu(), tmp_path, form))
    alone = pipeline.analyze(capture).to_json()
    with ThreadPoolExecutor(2) as executor:
        assert pipeline.analyze(capture, executor=executor).to_json() == alone


@every_form
def test_traces_laid_aside_give_the_same_bytes_and_leave_nothing_behind(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = written(late_cpu(), tmp_path / "capture", form, Recording(drop_any=0.02))
    expected = pipeline.analyze(pipeline.read(files)).to_json()
    aside = tmp_path / "aside"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    with pipeline.opened(files) as capture:
        assert bool(list(aside.iterdir())) == (len(files) > 1)
        assert pipeline.analyze(capture).to_json() == expected
    assert list(aside.iterdir()) == []
    with pytest.raises(RuntimeError), pipeline.opened(files):
        raise RuntimeError
    assert list(aside.iterdir()) == []


def test_traces_laid_aside_keep_their_own_wall_clocks(tmp_path: Path) -> None:
    """The second file counts from another instant than the first."""
    files = written(late_cpu(ranks=2), tmp_path)
    text = files[1].read_bytes()
    base = str(BASE_TIME_NS).encode()
    assert base in text
    files[1].write_bytes(text.replace(base, str(BASE_TIME_NS + 20_000_000).encode()))
    expected = pipeline.analyze(pipeline.read(files))
    assert rank_of(expected.diagnosis, 1).clock.offset_ns == -20_000_000
    with pipeline.opened(files) as capture:
        assert pipeline.analyze(capture).to_json() == expected.to_json()


def test_traces_laid_aside_know_shared_gpus(tmp_path: Path) -> None:
    files = written(late_cpu(ranks=2), tmp_path, "nsys", Recording(clock_offset_ns={1: 1_000_000}))
    for path in files:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE TARGET_INFO_CUDA_DEVICE SET uuid = 'GPU-5a'")
        database.close()
    with pipeline.opened(files) as capture:
        assert pipeline.analyze(capture).to_json() == pipeline.analyze(pipeline.read(files)).to_json()


def test_the_causes_name_shares_of_the_time_that_others_waited(tmp_path: Path) -> None:
    """Half other work, half kernels: both are named, the larger first."""

    def ops(rank: int, _: int) -> tuple[Op, ...]:
        slow = rank == 0
        return (host(20_000 + 150_000 * slow), work(20_000 + 100_000 * slow), meet())

    (late,) = analyzed(team(3, ops), tmp_path).diagnosis.late_ranks
    assert late.rank == 0
    assert re.fullmatch(
        r"its CPU did other work than submitting \(50 % of that time\), its kernels ran \(48 % of that time\)",
        late.cause,
    )
