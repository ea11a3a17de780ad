"""The field cases as captures."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Hypothesis, Kernel, Rank, Window
from tests.shared import case_path


def case_file(name: str, folder: Path) -> Path:
    """The case's file; databases are made from their SQL in ``folder``."""
    if not name.endswith(".sql"):
        return case_path(name)
    path = folder / f"{name.removesuffix('.sql')}.sqlite"
    if not path.exists():
        with closing(sqlite3.connect(path)) as file:
            file.executescript(case_path(name).read_text())
    return path


def diagnose(name: str, folder: Path, **options: Any) -> Analysis:
    """The analysis of one case."""
    return pipeline.analyze(pipeline.read([case_file(name, folder)]), **options)


def only_rank(analysis: Analysis) -> Rank:
    (rank,) = analysis.diagnosis.ranks
    return rank


def only_window(analysis: Analysis) -> Window:
    (window,) = only_rank(analysis).windows
    return window


def device_us(analysis: Analysis) -> tuple[float, float, float]:
    """Busy, idle and span of the only rank's device, in us."""
    span = only_rank(analysis).device_span
    assert span is not None
    return span.busy_ns / 1000, span.idle_ns / 1000, (span.end_ns - span.start_ns) / 1000


def path_us(window: Window) -> dict[str, float]:
    """What is not zero on the path, in us."""
    return {category: ns / 1000 for category, ns in window.path_ns.items() if ns}


def exposed_us(window: Window) -> dict[str, float]:
    """What is not zero of the exposure, in us."""
    assert window.exposed_ns is not None
    return {label: ns / 1000 for label, ns in window.exposed_ns.items() if ns}


def kernel(analysis: Analysis, name: str) -> Kernel:
    (row,) = [row for row in analysis.diagnosis.kernels if row.name == name]
    return row


def us_by_class(analysis: Analysis) -> dict[str, float]:
    """Device time of collectives, copies, sets and (all classes together) kernels, in us."""
    total: dict[str, float] = {}
    for row in analysis.diagnosis.kernels:
        kind = row.class_.partition(".")[0]
        kind = kind if kind in ("collective", "copy", "set", "graph") else "kernel"
        total[kind] = total.get(kind, 0) + row.total_ns / 1000
    return total


def verdict(analysis: Analysis, id_: str) -> Hypothesis:
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == id_]
    return row


def ledger(analysis: Analysis) -> dict[str, int]:
    """Counts of the quality ledger by reason."""
    return {row.reason: row.count for row in analysis.diagnosis.quality}


def not_captured(analysis: Analysis) -> list[str]:
    """What the capture has no records of, as the result lists it."""
    return [row.what for row in analysis.diagnosis.unmeasured if "not captured" in row.what]
