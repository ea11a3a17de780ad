"""The manifest of a run: which rank a file is, which ranks are missing, which manifest belongs to the files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.errors import TraceError
from analyzer.readers.run import find_run
from collectors.manifest import RankRecord
from collectors.run_folder import RunFolder
from fixtures.simulator.recording import Recording
from tests.across.programs import host, meet, team, work, written


def run_of(
    folder: Path, ranks: int = 3, *, numbers: dict[int, int] | None = None, lost: int | None = None
) -> RunFolder:
    """A run folder with one trace per rank; ``numbers``: the rank that the manifest gives to each file."""
    ranks = 3
    run = team(ranks, lambda rank, _: (host(50_000 * (1 + rank)), work(30_000), meet()))
    files = written(run, folder / "made", "kineto", Recording(collective_metadata=False))
    home = RunFolder(folder / "run")
    for at, file in enumerate(files):
        rank = at if numbers is None else numbers[at]
        place = home.path / f"capture-{'abc'[at]}.pt.trace.json"
        text = file.read_text()
        data = json.loads(text)
        data.pop("distributedInfo", None)
        record = RankRecord(
            rank=rank, collector="torch", status="complete", world_size=ranks, host="node", boot_id="k"
        )
        if at == lost:
            home.write(replace(record, status="running"))
            continue
        place.write_text(json.dumps(data))
        home.write(replace(record, files=[home.describe(place, "kineto-json")]))
    return home


def test_the_manifest_tells_the_rank_of_each_file(tmp_path: Path) -> None:
    home = run_of(tmp_path, numbers={0: 2, 1: 0, 2: 1})
    capture = pipeline.read(home.path)
    names = {
        rank: Path(trace.source.path).name for rank, trace in zip(capture.ranks, capture.traces, strict=True)
    }
    assert names == {0: "capture-b.pt.trace.json", 1: "capture-c.pt.trace.json", 2: "capture-a.pt.trace.json"}
    assert capture.rank_basis == "the run's manifest"
    assert [record.rank for record in capture.records if record is not None] == [0, 1, 2]
    with pipeline.opened(home.path) as opened:
        assert (opened.ranks, opened.records) == (capture.ranks, capture.records)


def test_files_find_the_manifest_beside_them_and_other_ones_do_not(tmp_path: Path) -> None:
    home = run_of(tmp_path)
    file = home.path / "capture-b.pt.trace.json"
    assert pipeline.read(file).ranks == (1,)
    stranger = home.path / "stranger.json"
    stranger.write_bytes(file.read_bytes())
    assert pipeline.read(stranger).run is None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "manifest.json").write_text('{"name": "a web application"}')
    assert find_run([elsewhere], []) is None


def test_a_rank_that_left_no_file_is_missing(tmp_path: Path) -> None:
    capture = pipeline.read(run_of(tmp_path, lost=1).path)
    assert (capture.ranks, capture.missing_ranks) == ((0, 2), (1,))


def test_files_of_two_runs_are_no_capture(tmp_path: Path) -> None:
    one, other = run_of(tmp_path / "one"), run_of(tmp_path / "other")
    with pytest.raises(TraceError, match="describes another run than"):
        pipeline.read([one.path, other.path])


def test_a_manifest_of_a_later_version_is_refused_politely(tmp_path: Path) -> None:
    home = run_of(tmp_path)
    path = home.path / "manifest.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 9'))
    with pytest.raises(TraceError, match="update tracebound") as told:
        pipeline.read(home.path)
    assert told.value.where == "format_version"


def test_a_manifest_can_be_named(tmp_path: Path) -> None:
    home = run_of(tmp_path)
    moved = tmp_path / "moved.json"
    (home.path / "manifest.json").rename(moved)
    assert pipeline.read(home.path).run is None
    assert pipeline.read(home.path, manifest=moved).run is not None
    with pytest.raises(TraceError, match="check the path"):
        pipeline.read(home.path, manifest=tmp_path / "none.json")


def test_some_ranks_keep_their_records(tmp_path: Path) -> None:
    capture = pipeline.read(run_of(tmp_path).path, ranks=[2, 0])
    assert [record.rank for record in capture.records if record is not None] == [0, 2]


def test_a_clients_log_is_no_capture_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "rank0.tokens.jsonl").write_text("{}\n")
    with pytest.raises(TraceError, match="holds a client's token log and no trace"):
        pipeline.read(tmp_path)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [("failed", 7, "rank 0 failed, exit code 7"), ("running", None, "rank 0 did not end")],
)
def test_a_run_of_which_nothing_is_left_says_how_it_ended(
    status: str, code: int | None, words: str, tmp_path: Path
) -> None:
    home = RunFolder(tmp_path / "run")
    home.write(RankRecord(rank=0, collector="torch", status=status, exit_code=code))
    with pytest.raises(TraceError, match=rf"no rank of this run left a trace \({words}\)"):
        pipeline.read(home.path)
