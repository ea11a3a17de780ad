"""Real captures and what the analyzer makes of them, each analyzed once per test process."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.cli import app
from analyzer.diagnosis import Hypothesis, Window
from analyzer.model import Capture
from tests.shared import SHARED, trace_path

MANY_RANKS = ("astra-megatron-tp8", "torchrec-a2a", "torchrec-resnet18")
"""Folders whose files are the ranks of one run."""

REFUSED = (
    "ascend/ascend_level0_rank0_trace_view.json.gz",
    "jacc/julia_nocuda.sqlite",
    "alpa/jax_mem.nsys-rep",
    "alpa/nccl_init_nokernel.nsys-rep",
)
"""Files that cannot be analyzed (the reports: not without ``nsys``)."""

HOST_ONLY = ("odd/cpu_only_gloo_rank34.pt.trace.json.gz", "odd/rank_non_gpu.json.gz")
"""Captures in which no device row stands."""


def capture_names() -> list[str]:
    """Every capture that can be analyzed, as MANIFEST.tsv lists them; empty without ../shared."""
    manifest = SHARED / "traces" / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    files = [line.split("\t", 1)[0] for line in manifest.read_text().splitlines()[1:] if line.strip()]
    names = {folder if (folder := file.split("/")[0]) in MANY_RANKS else file for file in files}
    return sorted(names - set(REFUSED))


@cache
def capture_of(name: str) -> Capture:
    """What the readers make of a capture of ../shared/traces."""
    return pipeline.read([trace_path(name)])


@cache
def analysis_of(name: str) -> Analysis:
    """The analysis of a capture of ../shared/traces, with the default options."""
    return pipeline.analyze(capture_of(name))


def files_of(name: str) -> list[str]:
    """The files of a capture, by their paths in ../shared/traces."""
    path = trace_path(name)
    return [f"{name}/{file.name}" for file in sorted(path.iterdir())] if path.is_dir() else [name]


def windows_of(name: str, rank: int = 0) -> list[Window]:
    """The windows of the rank at that place in the capture."""
    return analysis_of(name).diagnosis.ranks[rank].windows


def hypotheses_of(analysis: Analysis, id_: str) -> list[Hypothesis]:
    """One hypothesis in every phase."""
    return [row for row in analysis.diagnosis.hypotheses if row.id == id_]


def json_events(name: str) -> list[dict[str, Any]]:
    """The complete events of a torch.profiler trace by the standard library, times as exact decimals."""
    data = trace_path(name).read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    found = json.loads(text, parse_float=Decimal, parse_int=int)
    events = found["traceEvents"] if isinstance(found, dict) else found
    return [event for event in events if event.get("ph") == "X"]


def of_categories(events: Iterable[dict[str, Any]], *categories: str) -> list[dict[str, Any]]:
    """Events of some categories, whatever their case."""
    return [event for event in events if str(event.get("cat", "")).lower() in categories]


def span_ns(event: dict[str, Any]) -> tuple[int, int]:
    """Start and end of a JSON event in ns (the file counts in decimal microseconds)."""
    start, length = Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000
    return int(start), int(start + length)


@contextmanager
def database(path: str | Path) -> Iterator[sqlite3.Connection]:
    """An export opened read-only."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as found:
        yield found


def covered(intervals: Iterable[tuple[int, int]], low: int | None = None, high: int | None = None) -> int:
    """Length of the union of intervals, inside ``[low, high)`` where given; written out, to check others."""
    total, reached = 0, None
    for start, end in sorted(intervals):
        start = start if low is None else max(start, low)
        end = end if high is None else min(end, high)
        start = start if reached is None else max(start, reached)
        if end > start:
            total += end - start
            reached = end
    return total


def run(*arguments: str | Path) -> Result:
    """The command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
