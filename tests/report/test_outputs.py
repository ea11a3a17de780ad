"""JSON, CSV and whole directories: strict, deterministic, never half written."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import strict_json
from analyzer.analysis import Analysis
from analyzer.errors import InvariantError, TraceboundError, TraceError
from analyzer.report import outputs
from analyzer.report.csv_tables import CONTENTS, TABLES
from tests.report import builder
from tests.report.builder import analysis, diagnosis, hypothesis, kernel


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_json_comes_back_equal() -> None:
    first = analysis()
    data = first.to_json()
    again = Analysis.from_json(data)
    assert again.diagnosis == first.diagnosis
    assert again.segment_table is None
    assert again.to_json() == data
    assert data.endswith(b"}\n")


def test_json_keys_stand_as_declared() -> None:
    keys = list(json.loads(analysis().to_json()))
    assert keys[:3] == ["format", "format_version", "tracebound_version"]
    assert "global" in keys
    assert "class" in json.loads(analysis().to_json())["kernels"][0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_hold_is_refused(value: float) -> None:
    broken = [
        diagnosis(kernels=[kernel(coverage=value)]),
        diagnosis(hypotheses=[hypothesis(share=builder.Share(value=0.1, interval=(0.0, value)))]),
        diagnosis(constants=msgspec.structs.replace(builder.CONSTANTS, thresholds={"supported": value})),
    ]
    for one in broken:
        with pytest.raises(InvariantError, match="not a finite number"):
            Analysis(one, None).to_json()


def test_a_file_name_that_is_no_unicode_is_spelled_out() -> None:
    data = Analysis(builder.hostile("caf\udce9.sqlite"), None).to_json()
    assert json.loads(data)["inputs"][0]["path"] == "caf\\udce9.sqlite"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_json_keeps_every_text_and_steers_no_terminal(name: str) -> None:
    data = strict_json.encode(kernel(name))
    assert json.loads(data)["name"] == name
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", data.decode())


@pytest.mark.parametrize("data", [b"", b"[]", b'{"format": 1}', b"\xff"])
def test_what_is_no_diagnosis_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(TraceError, match="diagnosis"):
        Analysis.from_json(data)


def test_another_format_version_is_refused() -> None:
    with pytest.raises(TraceError, match="version 99"):
        Analysis.from_json(Analysis(diagnosis(format_version=99), None).to_json())


def test_frames_tell_not_captured_from_zero() -> None:
    frame = analysis().windows()
    assert list(frame["path_ns.kernel"]) == [2_333_333] * 5
    assert frame["path_ns.copy"].sum() == 0
    host_only = Analysis(
        diagnosis(ranks=[builder.rank(windows=[builder.window(0), builder.window(1, exposed_ns=None)])]), None
    ).windows()
    assert host_only["exposed_ns.kernel"].isna().tolist() == [False, True]
    assert host_only["exposed_ns.kernel"].dtype == "Int64"
    assert analysis().kernels()["occupancy"].isna().all()
    assert analysis().collectives().empty
    assert analysis().hypotheses()["share_low"].tolist()[:2] == [0.481, 0.08]


def test_frames_of_segments_keep_equal_names_of_different_codes() -> None:
    frame = analysis().segments()
    assert frame["category"].tolist() == ["launch.latency", "kernel"]
    assert frame["binding"].tolist() == ["submission", "work"]
    assert frame["place"].tolist() == ["thread 4711", "device 0 stream 7"]
    assert pd.isna(frame["name"][0])
    with pytest.raises(TraceError, match=r"segments\.csv"):
        Analysis(diagnosis(), None).segments()


def test_tables_hold_what_the_json_holds(tmp_path: Path) -> None:
    outputs.write(analysis(), tmp_path)
    folder = tmp_path / "diagnosis"
    windows = read_csv(folder / "windows.csv")
    assert [row["window"] for row in windows] == ["0", "1", "2", "3", "4"]
    assert windows[1]["warmup_reasons"] == "allocates device memory"
    for row in windows:
        parts = [int(value) for name, value in row.items() if name.startswith("path_ns.")]
        assert sum(parts) == int(row["duration_ns"])
    segments = read_csv(folder / "segments.csv")
    assert segments[0] == {
        "rank": "0",
        "window": "2",
        "start_ns": "20000000",
        "end_ns": "21000000",
        "category": "launch.latency",
        "binding": "submission",
        "inferred": "false",
        "name": "",
        "place": "thread 4711",
        "correlation": "17",
        "event_start_ns": "",
        "late_rank": "",
    }
    assert read_csv(folder / "kernels.csv")[0]["occupancy"] == ""
    assert read_csv(folder / "host_time.csv")[0]["stack"] == "decode > model.forward > aten::linear"
    assert read_csv(folder / "collectives.csv") == []
    assert (folder / "collectives.csv").read_text().startswith("group,description,parallelism,op,dtype,")


def test_every_table_is_described() -> None:
    assert list(TABLES) == list(CONTENTS)


@pytest.mark.parametrize("name", ['a,"b"\nc', "\x1b[31m", "=cmd|x", "x" * 20_000])
def test_hostile_names_stay_one_record_on_one_line(name: str, tmp_path: Path) -> None:
    outputs.write(Analysis(builder.hostile(name), builder.segments()), tmp_path, figures=False)
    for file in (tmp_path / "diagnosis").glob("*.csv"):
        text = file.read_text(encoding="utf-8")
        assert not any(char < " " and char != "\n" for char in text)
        assert len(text.splitlines()) - 1 == len(read_csv(file))
    stored = json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_bytes())
    assert stored["kernels"][0]["name"] == name


def test_the_same_analysis_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        outputs.write(analysis(), tmp_path / name)
    first, second = (
        {
            file.relative_to(tmp_path / name): file.read_bytes()
            for file in sorted((tmp_path / name).rglob("*.*"))
        }
        for name in ("a", "b")
    )
    assert first == second
    assert str(tmp_path).encode() not in b"".join(first.values())


def test_a_run_that_fails_half_way_leaves_the_old_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs.write(analysis(), tmp_path, figures=False)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def fail(path: Path, _: Analysis) -> None:
        path.write_text("half a ")
        raise KeyboardInterrupt

    monkeypatch.setitem(outputs.TABLES, "kernels.csv", fail)
    with pytest.raises(KeyboardInterrupt):
        outputs.write(analysis(notes=["new"]), tmp_path, figures=False)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["DIAGNOSIS.md", "diagnosis"]


def test_a_run_killed_between_two_renames_leaves_no_report_that_mixes_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs.write(analysis(), tmp_path, figures=False)
    replace = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if self.name == "kernels.csv":
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        outputs.write(analysis(notes=["new"]), tmp_path, figures=False)
    assert not (tmp_path / "DIAGNOSIS.md").exists()


def test_files_of_the_users_own_stay(tmp_path: Path) -> None:
    (tmp_path / "diagnosis").mkdir()
    (tmp_path / "diagnosis" / "notes.txt").write_text("mine")
    outputs.write(analysis(), tmp_path)
    assert (tmp_path / "diagnosis" / "notes.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceboundError, match="cannot write the report"):
        outputs.write(analysis(), tmp_path / "file" / "below")
