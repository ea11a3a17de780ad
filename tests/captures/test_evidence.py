"""From DIAGNOSIS.md to lines of segments.csv, and from there to events of the input; every number is in the JSON.

The events are looked up with the standard library alone, by their own start in their own file.
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyzer.diagnosis import Diagnosis, Evidence, Hypothesis
from analyzer.report import outputs
from tests.captures.results import analysis_of, capture_names, database, json_events, run
from tests.report.numbers_in_markdown import numbers_of, shown_forms
from tests.shared import SHARED, trace_path

every_capture = pytest.mark.parametrize("name", capture_names())


@cache
def events_of(path: str) -> frozenset[tuple[int, str]]:
    """(start in ns as the file has it, name) of every event of a file."""
    if path.endswith(".sqlite"):
        with database(path) as connection:
            return frozenset(rows_of(connection))
    name = Path(path).relative_to(SHARED / "traces").as_posix()
    return frozenset((int(Decimal(event["ts"]) * 1000), str(event["name"])) for event in json_events(name))


def rows_of(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Every row with a start, under each name that the export gives it."""
    texts = dict(connection.execute("SELECT id, value FROM StringIds"))
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        if "start" not in columns:
            continue
        named = [c for c in ("demangledName", "shortName", "nameId", "textId") if c in columns]
        plain = [c for c in ("text", "name") if c in columns]
        for start, *values in connection.execute(
            f'SELECT {", ".join(["start", *named, *plain])} FROM "{table}"'
        ):
            names = [texts.get(value) for value in values[: len(named)]] + list(values[len(named) :])
            for text in names:
                if text:
                    yield start, str(text)
            yield start, f"a row of {table}"


def is_there(entry: Evidence) -> bool:
    """Whether the input holds an event of that name at that start.

    Copies, graph rows and overhead have no name of their own in an export; API calls carry a version there.
    """
    events = events_of(entry.input)
    if (entry.event_start_ns, entry.event) in events:
        return True
    at = {text for start, text in events if start == entry.event_start_ns}
    if any(re.sub(r"_v\d{4,}$", "", text) == entry.event for text in at):
        return True
    unnamed = r"a row of (?:CUPTI_ACTIVITY_KIND_(?:MEMCPY|MEMSET|GRAPH_TRACE|OVERHEAD)|PROFILER_OVERHEAD)"
    return any(re.fullmatch(unnamed, text) for text in at)


def supported(diagnosis: Diagnosis) -> list[Hypothesis]:
    return [row for row in diagnosis.hypotheses if row.verdict == "supported"]


@every_capture
def test_supported_verdicts_lead_to_lines_and_these_to_events(name: str, tmp_path: Path) -> None:
    analysis = analysis_of(name)
    report = outputs.write(analysis, tmp_path, figures=False).read_text(encoding="utf-8")
    tables = {}
    for path in ("segments.csv", "global_path.csv"):
        if (tmp_path / "diagnosis" / path).exists():
            with (tmp_path / "diagnosis" / path).open(newline="", encoding="utf-8") as file:
                tables[path] = list(csv.reader(file))
    for row in supported(analysis.diagnosis):
        assert row.evidence, row.id
        assert f"| `{row.id}`" in report or f"`{row.id}`: " in report
        first = row.evidence[0]
        assert f"line {first.line:,}" in report or f"`{first.file}` {first.line:,}" in report
        for entry in row.evidence:
            lines = tables[entry.file]
            found: dict[str, Any] = dict(zip(lines[0], lines[entry.line - 1], strict=True))
            assert (int(found["start_ns"]), int(found["end_ns"])) == (entry.start_ns, entry.end_ns)
            assert (int(found["rank"]), int(found["window"])) == (entry.rank, entry.window)
            if entry.event_start_ns is None:
                assert found["event_start_ns"] == ""
                continue
            assert int(found["event_start_ns"]) == entry.event_start_ns
            assert is_there(entry), entry


@every_capture
def test_every_number_in_the_markdown_is_in_the_json(name: str, tmp_path: Path) -> None:
    analysis = analysis_of(name)
    report = outputs.write(analysis, tmp_path, figures=False).read_text(encoding="utf-8")
    known = shown_forms(json.loads((tmp_path / "diagnosis" / "diagnosis.json").read_text()))
    assert [number for number in numbers_of(report) if number not in known] == []


def test_the_command_line_leads_there_too(tmp_path: Path) -> None:
    name = "tracelens-qwen/h100_qwen1.5_0.5b.json.gz"
    done = run("diagnose", trace_path(name), "-o", tmp_path, "-q", "--no-figures")
    assert done.exit_code == 0
    report = (tmp_path / "DIAGNOSIS.md").read_text(encoding="utf-8")
    first = re.search(r"`diagnosis/segments\.csv` line ([\d,]+) ", report)
    assert first is not None
    with (tmp_path / "diagnosis" / "segments.csv").open(newline="", encoding="utf-8") as file:
        line = list(csv.DictReader(file))[int(first[1].replace(",", "")) - 2]
    starts = {start for start, _ in events_of(str(trace_path(name)))}
    assert int(line["event_start_ns"]) in starts
