"""Traces laid aside on disk, so that memory holds one rank at a time however many files there are."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from analyzer.model import Columns, ProcessTrace, StoredTrace, Trace

T = TypeVar("T", bound=Columns)


def store(trace: Trace, path: Path) -> StoredTrace:
    """Lay a trace aside."""
    with path.open("wb") as file:
        pickle.dump(trace, file, protocol=pickle.HIGHEST_PROTOCOL)
    return StoredTrace(str(path), len(trace.device))


def outlines(traces: list[Trace]) -> list[Trace]:
    """What tells the ranks apart, without any table. Traces of one process keep sharing theirs."""
    processes = {id(trace.process): _empty_process(trace) for trace in traces}
    return [
        replace(trace, process=processes[id(trace.process)], device=_empty(trace.device), metrics=None)
        for trace in traces
    ]


def _empty(table: T) -> T:
    return table.take(np.empty(0, np.int64))


def _empty_process(trace: Trace) -> ProcessTrace:
    process = trace.process
    tables = {
        field.name: _empty(getattr(process, field.name))
        for field in fields(process)
        if isinstance(getattr(process, field.name), Columns)
    }
    return replace(process, names=(), **tables)
