"""The CSV tables of the launch bill, the queue, host roll-ups and the detail step."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from analyzer.analysis import Analysis
from analyzer.diagnosis import LaunchBill
from analyzer.frames import LAUNCH_COLUMNS
from analyzer.report.csv_tables import TABLES
from analyzer.report.launches import launch_tables
from tests.builders import analysis_of, schedule


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """
    main  |op mm 0-8 [L0 0-4]|L1 10-14
    s7          |gemm 10-20|gemm 20-30
    """
    built = schedule().op(0, 8, "aten::mm").launch(0, 4, runs=(10, 20), name="gemm")
    return analysis_of(built.launch(10, 14, runs=(20, 30), name="gemm"))


def rows(name: str, analysis: Analysis, folder: Path) -> list[dict[str, str]]:
    TABLES[name](folder / name, analysis)
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_quantiles_are_columns_named_as_in_the_json(analysis: Analysis, tmp_path: Path) -> None:
    (row,) = rows("launches.csv", analysis, tmp_path)
    assert (row["launches_total"], row["slot_ns"]) == ("2", "15000")
    assert (row["latency_ns.count"], row["latency_ns.median"], row["latency_ns.max"]) == (
        "2",
        "10000",
        "10000",
    )
    plain = {column.split(".")[0] for column in LAUNCH_COLUMNS}
    assert plain == {field.encode_name for field in msgspec.structs.fields(LaunchBill)}


def test_quantiles_of_nothing_are_empty_fields(tmp_path: Path) -> None:
    (row,) = rows("launches.csv", analysis_of(schedule().launch(0, 4)), tmp_path)
    assert (row["launches_total"], row["kernels_total"]) == ("1", "")
    assert {row[column] for column in LAUNCH_COLUMNS if column.startswith("latency_ns.")} == {""}


def test_sizes_stand_in_one_field(analysis: Analysis, tmp_path: Path) -> None:
    (row,) = rows("kernel_shapes.csv", analysis, tmp_path)
    assert (row["name"], row["grid"], row["block"]) == ("gemm", "1x1x1", "32x1x1")


def test_a_bin_without_a_launch_has_no_latency(analysis: Analysis, tmp_path: Path) -> None:
    table = rows("queue.csv", analysis, tmp_path)
    assert (table[0]["launches"], table[0]["latency_median_ns"]) == ("1", "10000")
    assert (table[1]["launches"], table[1]["latency_median_ns"], table[1]["depth_high"]) == ("0", "", "1")


def test_the_detail_step_names_lanes_kinds_and_events(analysis: Analysis, tmp_path: Path) -> None:
    table = rows("detail_step.csv", analysis, tmp_path)
    assert [(row["lane"], row["kind"], row["depth"], row["name"]) for row in table] == [
        ("thread main", "op", "0", "aten::mm"),
        ("thread main", "launch", "1", "cudaLaunchKernel"),
        ("thread main", "launch", "0", "cudaLaunchKernel"),
        ("device 0 stream 7", "kernel", "0", "gemm"),
        ("device 0 stream 7", "kernel", "0", "gemm"),
    ]
    assert {row["window"] for row in table} == {"0"}
    assert [bool(row["class"]) for row in table] == [False, False, False, True, True]


def test_tables_read_back_from_json_have_no_queue_and_no_events(analysis: Analysis, tmp_path: Path) -> None:
    again = Analysis.from_json(analysis.to_json())
    assert again.diagnosis == analysis.diagnosis
    assert rows("queue.csv", again, tmp_path) == rows("detail_step.csv", again, tmp_path) == []
    assert rows("host_rollups.csv", again, tmp_path) == rows("host_rollups.csv", analysis, tmp_path)


@pytest.fixture(scope="module")
def shapes() -> Analysis:
    """Batches of 8 replay, batches of 16 are launched one by one."""
    built = schedule()
    for at in range(0, 1200, 200):
        built.range(at, at + 90, "execute_context_0(0)_generation_8(8)")
        built.graph(at, at + 4, [(at + 10, at + 90, "a", 7)])
        built.range(at + 100, at + 190, "execute_context_0(0)_generation_16(16)")
        built.launch(at + 100, at + 104, runs=(at + 110, at + 190), name="a")
    return analysis_of(built)


def test_shapes_have_a_table_of_their_own(shapes: Analysis, tmp_path: Path) -> None:
    table = rows("shape_replays.csv", shapes, tmp_path)
    assert {(row["shape"], row["steps"], row["replayed_steps"], row["eager_steps"]) for row in table} == {
        ("batch 8", "6", "6", "0"),
        ("batch 16", "6", "0", "6"),
    }
    (graph,) = rows("graph_replays.csv", shapes, tmp_path)
    assert (graph["shapes"], graph["kernels_total"], graph["steps"]) == ("batch 8", "6", "6")


def test_the_report_says_which_shapes_are_launched_one_by_one(shapes: Analysis) -> None:
    (view,) = [view for view in launch_tables(shapes.diagnosis) if "by batch shape" in view.intro]
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in view.table.splitlines()[2:]]
    assert sorted(lines) == [
        ["`decode batch 16`", "`batch 16`", "6", "0", "6", "0.0 %", "0.100", "0.100"],
        ["`decode batch 8`", "`batch 8`", "6", "6", "0", "100.0 %", "0.098", "-"],
    ]
    eager = analysis_of(schedule().range(0, 90, "step[DECODE bs=8]").launch(0, 4, runs=(5, 80)))
    assert not [view for view in launch_tables(eager.diagnosis) if "by batch shape" in view.intro]
