"""What is laid aside on disk, so that memory holds one rank at a time however many files there are."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from analyzer.model import CollectiveInfo, Columns, ProcessTrace, StoredTrace, Trace

T = TypeVar("T", bound=Columns)
V = TypeVar("V")


@dataclass(frozen=True)
class Aside(Generic[V]):
    """Where a value lies on disk; only the process and its workers read what they wrote."""

    path: str

    def load(self) -> V:
        """The value."""
        with Path(self.path).open("rb") as file:
            value: V = pickle.load(file)
        return value


def lay_aside(value: V, path: Path) -> Aside[V]:
    """Lay a value aside."""
    with path.open("wb") as file:
        pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)
    return Aside(str(path))


def store(trace: Trace, path: Path) -> StoredTrace:
    """Lay a trace aside."""
    return StoredTrace(lay_aside(trace, path).path, len(trace.device))


def outlines(traces: list[Trace]) -> list[Trace]:
    """What tells the ranks apart, without any table. Traces of one process keep sharing theirs."""
    processes = {id(trace.process): _empty_process(trace) for trace in traces}
    return [
        replace(
            trace,
            process=processes[id(trace.process)],
            device=_empty(trace.device),
            collectives=_one_per_group(trace.collectives),
            metrics=None,
        )
        for trace in traces
    ]


def _one_per_group(collectives: Sequence[CollectiveInfo]) -> tuple[CollectiveInfo, ...]:
    """Enough to tell who takes part in them."""
    return tuple({info.group_ranks: info for info in collectives}.values())


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
