"""The manifest: what a run pins, written by ranks, read back; versions, secrets, missing ranks, differing pins."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors import manifest
from collectors.errors import CollectError
from collectors.manifest import (
    Anchor,
    ClockBound,
    Inflation,
    Interval,
    Manifest,
    ManifestError,
    Pin,
    RankRecord,
    TraceFile,
)
from collectors.run_folder import RunFolder

FULL = RankRecord(
    rank=1, collector="nsys", status="complete", world_size=2, local_rank=1, host="node-a", boot_id="b", pid=77,
    launcher="torchrun", command=["python", "serve.py"], exit_code=0, started_ns=10, ended_ns=20,
    collector_version="0.1.0", profiler="nsys", profiler_version="2024.6",
    files=[TraceFile("rank1.sqlite", "nsys-sqlite", 12, "sha256:00")], anchors=[Anchor(5, 6, 1)],
    clock_bound=ClockBound(0, -3, 4, 64), inflation=Inflation(120, 100, 10, 10), steps="marked", captured_steps=10,
    versions={"torch": "2.9"}, environment={"NCCL_ALGO": "Ring"}, withheld=["VLLM_API_KEY"],
    device={"before": {"gpus": [1, None, 2.5]}}, pins={"model": Pin("m", "declared")}, notes=["a note"],
)  # fmt: skip


def made(*records: RankRecord) -> Manifest:
    return manifest.assemble(records, run_id="r", created_ns=3)


def written(folder: Path, data: Any) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps(data))
    return path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    whole = made(FULL, RankRecord(rank=0, collector="nsys", status="complete"))
    path = tmp_path / "manifest.json"
    path.write_text(manifest.encode(whole))
    assert manifest.read(path) == whole
    assert [record.rank for record in whole.ranks] == [0, 1]
    assert whole.complete
    assert FULL.inflation is not None and FULL.inflation.ratio == 1.2


@pytest.mark.parametrize(("low_ns", "costs"), [(104, False), (105, False), (106, True)])
def test_profiling_costs_where_the_intervals_lie_apart(low_ns: int, costs: bool, tmp_path: Path) -> None:
    cost = Inflation(110, 100, 10, 10, Interval(low_ns, 120), Interval(98, 105))
    assert cost.costs == costs
    path = tmp_path / "rank.json"
    path.write_text(manifest.encode_record(replace(FULL, inflation=cost)))
    assert manifest.read_record(path).inflation == cost


def test_a_cost_from_before_there_were_intervals_is_read_and_claims_nothing(tmp_path: Path) -> None:
    data = json.loads(manifest.encode(made(FULL)))
    for field in ("profiled_interval", "plain_interval"):
        del data["ranks"][0]["inflation"][field]
    (record,) = manifest.read(written(tmp_path, data)).ranks
    assert record.inflation == Inflation(120, 100, 10, 10)
    assert record.inflation.costs is None


def test_fields_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    data = json.loads(manifest.encode(made(FULL)))
    data["new"] = data["ranks"][0]["newer"] = {"x": 1}
    assert manifest.read(written(tmp_path, data)) == made(FULL)


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"format_version": 2}, "format_version", "update tracebound"),
        ({"format_version": "1"}, "format_version", "collect the run again"),
        ({"format": "other"}, "format", "pass the folder of a run"),
        ({"complete": "yes"}, "complete", "is str, not bool"),
        ({"created_ns": True}, "created_ns", "is bool, not int"),
        ({"ranks": [7]}, "ranks[0]", "is no JSON object"),
        ({"ranks": [{"rank": 0}]}, "ranks[0]", "lacks a field"),
        ({"ranks": 3}, "ranks", "is int, not list"),
        ({"pins": {"model": {"value": 1, "source": "found"}}}, "pins.model.value", "is int, not str"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(
    change: dict[str, Any], where: str, words: str, tmp_path: Path
) -> None:
    data = json.loads(manifest.encode(made(FULL))) | change
    with pytest.raises(ManifestError) as told:
        manifest.read(written(tmp_path, data))
    assert told.value.where == where
    assert words in str(told.value)
    assert "next: " in str(told.value)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff"])
def test_a_damaged_file_is_an_error_of_ours(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(ManifestError):
        manifest.read(path)
    with pytest.raises(ManifestError, match="check the path"):
        manifest.read(tmp_path / "none.json")


def test_a_rank_that_did_not_end_or_is_not_there_makes_the_run_partial() -> None:
    assert made(FULL).missing_ranks == [0]
    assert not made(FULL).complete
    cut = made(FULL, replace(FULL, rank=0, status="running"))
    assert (cut.missing_ranks, cut.complete) == ([], False)
    assert not made().complete


def test_declared_pins_win_and_differing_ones_name_the_ranks() -> None:
    one = replace(FULL, pins={"model": Pin("m", "declared"), "hardware": Pin("H200", "found")})
    other = replace(FULL, rank=0, pins={"model": Pin("found m", "found"), "hardware": Pin("H100", "found")})
    whole = made(one, other)
    assert whole.pins["model"] == Pin("m", "declared")
    assert whole.pins["hardware"] == Pin("rank 0: H100; rank 1: H200", "found")
    assert "weights" in whole.undeclared and "model" not in whole.undeclared
    assert {*whole.undeclared, *whole.pins, "timing_boundary"} == set(manifest.PINS)
    assert "timing_boundary" not in whole.undeclared  # a diagnosis names its own


def test_pins_that_differ_are_told_with_both_values() -> None:
    a = made(replace(FULL, pins={"model": Pin("m", "declared"), "batch": Pin("8", "declared")}))
    b = made(
        replace(
            FULL,
            pins={"model": Pin("m", "found"), "batch": Pin("16", "declared"), "input": Pin("x", "declared")},
        )
    )
    assert manifest.differing_pins(a, b) == {"batch": ("8", "16"), "input": (None, "x")}


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("modle=x", "one of these names"),
        ("model", "NAME=VALUE"),
        ("model=", "NAME=VALUE"),
        ("model=hf_AbCdEf123456", "looks like a credential"),
        ("input=https://me:pa55@host/data", "looks like a credential"),
    ],
)
def test_pins_are_refused_with_the_reason(word: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as told:
        manifest.declared(["batch=8", word])
    assert "pa55" not in str(told.value) and "AbCdEf" not in str(told.value)
    assert manifest.declared(["batch=8"]) == {"batch": Pin("8", "declared")}


def _write(arguments: tuple[str, int]) -> None:
    folder, rank = arguments
    record = RankRecord(rank=rank, collector="torch", status="running", world_size=8)
    for status in ("running", "complete"):
        RunFolder(folder).write(replace(record, status=status))


def test_ranks_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(_write, [(str(tmp_path / "run"), rank) for rank in range(8)])
    whole = manifest.read(tmp_path / "run" / "manifest.json")
    assert whole.complete
    assert [record.status for record in whole.ranks] == ["complete"] * 8
    assert not [path for path in (tmp_path / "run").rglob(".*") if path.name != ".lock"]


def test_a_run_keeps_its_name_and_heals_a_damaged_manifest(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write(FULL)
    first = manifest.read(folder.path / "manifest.json")
    folder.write(replace(FULL, rank=0))
    second = manifest.read(folder.path / "manifest.json")
    assert (second.run_id, second.created_ns) == (first.run_id, first.created_ns)
    (folder.path / "manifest.json").write_text("{")
    folder.write(FULL)
    assert len(manifest.read(folder.path / "manifest.json").ranks) == 2


def test_a_file_is_described_with_its_size_and_checksum(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.trace_path(3, ".sqlite").write_bytes(b"abc")
    assert folder.describe(folder.trace_path(3, ".sqlite"), "nsys-sqlite") == TraceFile(
        "rank3.sqlite",
        "nsys-sqlite",
        3,
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    )


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CollectError, match="cannot be written"):
        RunFolder(tmp_path / "file" / "run")


def test_a_folder_holds_one_run_of_one_collector(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write(replace(FULL, status="failed", files=[]))
    folder.refuse_used(1, "nsys")  # what did not come to an end is replaced
    with pytest.raises(CollectError, match="holds a capture of the collector nsys"):
        folder.refuse_used(0, "client")
    folder.write(FULL)
    folder.refuse_used(0, "nsys")  # another rank of the same run
    with pytest.raises(CollectError, match="holds the capture of rank 1 already"):
        folder.refuse_used(1, "nsys")
    folder.record_path(1).write_text("{")
    with pytest.raises(CollectError, match="pass another folder"):
        folder.refuse_used(0, "nsys")
