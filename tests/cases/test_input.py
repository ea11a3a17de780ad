"""Damaged and unusual files, through the library and through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.captures.results import run
from tests.cases.load import (
    case_file,
    device_us,
    diagnose,
    exposed_us,
    ledger,
    not_captured,
    only_rank,
    only_window,
    path_us,
    verdict,
)
from tests.shared import needs_shared

pytestmark = needs_shared

FILES = (
    "B01.json",
    "B02.json",
    "B03.json",
    "B05.json",
    "B06.json",
    "B07.json",
    "B07b.json.gz",
    "B07c.json.gz",
)


@pytest.mark.parametrize("name", FILES)
def test_the_command_line_reads_it_and_says_what_is_missing(name: str, tmp_path: Path) -> None:
    result = run("diagnose", case_file(name, tmp_path), "-o", tmp_path)
    assert result.exit_code == 0
    assert "Traceback" not in result.output + result.stderr
    report = (tmp_path / "DIAGNOSIS.md").read_bytes().decode("utf-8")
    found = json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_bytes())
    cut = name in ("B01.json", "B07c.json.gz")
    assert found["inputs"][0]["partial"] is cut
    for text in (result.stderr, report.split("## What was read")[0]):
        assert ("is incomplete" in text) is cut
    assert ("truncated-file" in report) is cut


@pytest.mark.parametrize(
    ("name", "kernels", "busy", "idle"),
    [
        ("B01.json", 2, 15, 10),
        ("B02.json", 1, 8, 0),
        ("B03.json", 2, 12, 6),
        ("B05.json", 2, 20, 10),
        ("B07.json", 2, 30, 20),
        ("B07b.json.gz", 2, 30, 20),
        ("B07c.json.gz", 130, 1300, 1290),
    ],
)
def test_every_kernel_that_can_be_read_counts(
    name: str, kernels: int, busy: float, idle: float, tmp_path: Path
) -> None:
    analysis = diagnose(name, tmp_path)
    assert device_us(analysis) == (busy, idle, busy + idle)
    assert only_window(analysis).kernels == only_rank(analysis).device_events == kernels


def test_b01_says_after_which_event_the_file_ends(tmp_path: Path) -> None:
    analysis = diagnose("B01.json", tmp_path)
    (cut,) = [row for row in analysis.diagnosis.quality if row.reason == "truncated-file"]
    assert "after 3 whole events" in cut.place
    assert "byte 529" in cut.place
    assert path_us(only_window(analysis)) == {"kernel": 15, "launch.latency": 10, "unattributed": 10}
    for row in analysis.diagnosis.hypotheses:
        assert (row.verdict == "supported") == ("under distortion" in row.verdict_note)


def test_b01_strict_refuses(tmp_path: Path) -> None:
    result = run("diagnose", case_file("B01.json", tmp_path), "-o", tmp_path, "--strict")
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])


def test_b02_repaired_names_are_counted(tmp_path: Path) -> None:
    assert ledger(diagnose("B02.json", tmp_path))["names-repaired"] == 2


def test_b03_repaired_events_are_counted_with_their_lines(tmp_path: Path) -> None:
    (row,) = [r for r in diagnose("B03.json", tmp_path).diagnosis.quality if r.reason.startswith("bad-event")]
    assert (row.count, row.place) == (2, "line 2, 3")


def test_b05_times_written_as_text_are_exact(tmp_path: Path) -> None:
    analysis = diagnose("B05.json", tmp_path, boundary="host")
    window = only_window(analysis)
    zero = int(analysis.diagnosis.time_zero_ns or 0)
    assert (window.start_ns + zero, window.end_ns - window.start_ns) == (1_000_250, 30_500)
    (row,) = analysis.diagnosis.host_culprits
    assert (row.name, row.thread, row.path_ns) == ("aten::mm", "thread 140588800255680", 30_500)


def test_b06_without_device_work_there_is_no_device_figure(tmp_path: Path) -> None:
    analysis = diagnose("B06.json", tmp_path)
    assert analysis.diagnosis.boundary == "host"
    assert only_rank(analysis).device_span is None
    assert only_window(analysis).exposed_ns is None
    assert path_us(only_window(analysis)) == {"host.framework": 61, "host.untraced": 38}
    assert {row.verdict for row in analysis.diagnosis.hypotheses} == {"unmeasured"}
    assert any(what.startswith("device kernels") for what in not_captured(analysis))


def test_b07_two_events_of_one_stream(tmp_path: Path) -> None:
    for name in ("B07.json", "B07b.json.gz"):
        window = only_window(diagnose(name, tmp_path))
        assert exposed_us(window) == {"kernel": 30, "idle.unlinked": 20}
    assert verdict(diagnose("B07c.json.gz", tmp_path), "kernel-bound").verdict_note.endswith(
        "a file is truncated"
    )
