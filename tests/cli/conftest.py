"""A pipeline that returns literal results and remembers how it was called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import analyzer
from analyzer.cli import app
from analyzer.report import figures as drawings
from tests.cli.captures import capture
from tests.report.builder import analysis


@dataclass(frozen=True)
class Options:
    """The fields that the command line sets."""

    steps: str | None = None
    step_index: str | None = None
    boundary: str = "device"
    ledger: Path | None = None
    counters: tuple[str, ...] = ()
    dispatch: str | None = None
    output_ranges: str | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    rules: tuple[Path, ...] = ()
    jobs: int = 1
    changes: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()
    own_changes: bool = True
    sweep: str | None = None
    token_logs: tuple[Path, ...] = ()
    token_clocks: dict[str, str] = field(default_factory=dict)


class Stub(SimpleNamespace):
    """``read``, ``opened`` and ``analyze`` as the pipeline has them; an exception in a slot is raised instead."""

    capture: Any
    analysis: Any
    read_with: dict[str, Any]
    analyzed_with: Options
    analyzed_by: Any

    def read(self, paths: list[str], **options: Any) -> Any:
        options["progress"].start("reading \x1b[31m", 10)
        options["progress"].advance(5)
        self.read_with = {"paths": list(paths), **options}
        return _give(self.capture)

    @contextmanager
    def workers(self, jobs: int) -> Iterator[str]:
        yield f"{jobs} workers"

    @contextmanager
    def opened(self, paths: list[str], **options: Any) -> Iterator[Any]:
        yield self.read(paths, **options)

    def analyze(self, capture: Any, options: Options, *, executor: Any = None, progress: Any) -> Any:
        self.analyzed_with, self.analyzed_by = options, executor
        return _give(self.analysis)


def _give(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Stub:
    stub = Stub(capture=capture(), analysis=analysis(), Options=Options)
    monkeypatch.setitem(sys.modules, "analyzer.pipeline", stub)  # type: ignore[arg-type]
    monkeypatch.setattr(analyzer, "pipeline", stub, raising=False)
    # what the figures show has tests of its own, and each takes a second to draw
    monkeypatch.setattr(drawings, "figures", lambda _: drawings.Figures())
    return stub


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))
