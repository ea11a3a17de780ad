"""Cases distilled from public reports: several ranks, one clock, who was late."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from analyzer import pipeline
from tests.cases.load import case_file, case_path

US = 1_000


def test_b18_only_the_observed_ranks_are_spoken_of() -> None:
    files = [case_path(f"B18.rank{rank}.json") for rank in (0, 1, 3)]
    diagnosis = pipeline.analyze(pipeline.read(files)).diagnosis
    (row,) = diagnosis.collectives
    assert (row.missing_ranks, row.observed_only, row.split_calls) == ([2], True, 0)
    assert row.latest_observed == {1: 1} and row.late_rank_counts == {}
    assert row.shortest_ns.median == 80 * US  # from the latest observed arrival to the end
    assert row.class_ == "inconclusive" and diagnosis.late_ranks == []
    assert any("nothing was captured of rank 2" in note for note in diagnosis.notes)


def test_b39_the_wait_is_charged_to_what_delayed_the_late_rank() -> None:
    files = [case_path(f"B39.rank{rank}.json") for rank in (0, 1)]
    analysis = pipeline.analyze(pipeline.read(files))
    (row,) = analysis.diagnosis.collectives
    assert row.wait_ns == {0: 200 * US, 1: 0}
    assert row.transfer_ns is not None and row.transfer_ns.median == 20 * US
    assert row.late_rank_counts == {0: 0, 1: 1}
    (late,) = analysis.diagnosis.late_ranks
    assert late.rank == 1 and "its CPU" in late.cause
    account = analysis.diagnosis.global_
    assert account is not None and 1 in account.windows[0].ranks_visited
    waited = analysis.diagnosis.ranks[0].windows[0].path_ns["collective.wait"]
    assert waited == 200 * US


def test_b41_sessions_that_start_at_different_times(tmp_path: Path) -> None:
    files = [case_file(f"B41.{name}.sql", tmp_path) for name in ("a", "b")]
    analysis = pipeline.analyze(pipeline.read(files))
    (row,) = analysis.diagnosis.collectives
    assert row.wait_ns == {0: 2_000 * US, 1: 0}
    assert row.transfer_ns is not None and row.transfer_ns.median == 8_000 * US
    assert row.late_rank_counts == {0: 0, 1: 1}
    assert [rank.clock.offset_ns for rank in analysis.diagnosis.ranks] == [0, 0]


def test_b55_hundreds_of_ranks(tmp_path: Path) -> None:
    ranks = 64
    subprocess.run(
        [sys.executable, str(case_path("B55.gen.py")), str(ranks), str(tmp_path)], check=True, timeout=60
    )
    with pipeline.opened([tmp_path]) as capture:
        analysis = pipeline.analyze(capture)
    (row,) = analysis.diagnosis.collectives
    assert row.ranks == list(range(ranks)) and row.split_calls == 5
    assert row.transfer_ns is not None and row.transfer_ns.p95 == 60 * US
    late = ranks // 2
    assert row.late_rank_counts == {rank: 5 * (rank == late) for rank in range(ranks)}
    assert row.wait_ns == {rank: 0 if rank == late else (40 - rank % 7) * US for rank in range(ranks)}
    assert [entry.rank for entry in analysis.diagnosis.late_ranks] == [late]
