"""The history of a store as text for a terminal: per workload the runs in order of time, predictions, comparisons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from analyzer.history import KEY_SHOWN, History, StoredRun, StoredWorkload
from analyzer.report import history_tables as tables
from analyzer.report.escape import visible
from analyzer.report.numbers import NS_PER_MS, count
from analyzer.report.tables import section

WIDTH = 100
RUNS_SHOWN = 20
PHASES_SHOWN = 6
PINS_LIMIT = 60
_NS_PER_S = NS_PER_MS * 1_000


def text(history: History) -> str:
    """The whole history, lines of at most WIDTH columns where numbers are of a usual size."""
    runs = sum(len(workload.runs) for workload in history.workloads)
    what = f"{count(runs, 'run')} of {count(len(history.workloads), 'workload')}"
    head = "\n".join(_wrapped(f"{visible(history.store, 200)}: {what}", ""))
    return "\n".join([f"{head}\n", *(_workload(workload) for workload in history.workloads)])


def _wrapped(words: str, indent: str) -> list[str]:
    """``words`` (safe text) on lines of WIDTH columns."""
    return textwrap.wrap(
        words, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def _workload(workload: StoredWorkload) -> str:
    shown = workload.runs[-RUNS_SHOWN:]
    parts = [_pinned(workload)]
    if len(shown) < len(workload.runs):
        parts.append(f"and {count(len(workload.runs) - len(shown), 'earlier run')}: --format json lists all")
    parts += _budgets(shown)
    parts.append("\n".join(["Runs", *(line for run in shown for line in _run(run))]))
    parts.append("\n".join(_predictions(shown)))
    numbers = {run.run for run in shown}
    compared = [row for row in workload.comparisons if row.a in numbers]
    if compared:
        parts.append(f"Comparisons, B against A, ms\n\n{tables.comparisons(compared)}")
    return section(f"Workload {workload.workload[:KEY_SHOWN]}", "\n\n".join(parts))


def _pinned(workload: StoredWorkload) -> str:
    pins = [f"{name} {visible(value, PINS_LIMIT)}" for name, value in workload.pins.items()]
    lines = _wrapped(f"pinned: {', '.join(pins) or 'nothing'}", "")
    if workload.undeclared:
        names = ", ".join(workload.undeclared)
        lines += _wrapped(
            f"undeclared: {names}; whether these runs were asked for the same work is not known", ""
        )
    return "\n".join(lines)


def _budgets(runs: Sequence[StoredRun]) -> Iterator[str]:
    phases = tables.phases(runs)
    for phase in phases[:PHASES_SHOWN]:
        yield f"Phase {visible(phase, 60)}: mean step by what bound it, ms\n\n{tables.budgets(phase, runs)}"
    if len(phases) > PHASES_SHOWN:
        yield f"and {count(len(phases) - PHASES_SHOWN, 'more phase')}: --format json lists all"


def _run(run: StoredRun) -> list[str]:
    files = [visible(one.path, 60) for one in run.inputs[:1]] or ["no file"]
    if len(run.inputs) > 1:
        files.append(f"and {len(run.inputs) - 1} more")
    parts = [
        f"{run.run}: {_moment(run)}",
        " ".join(files),
        count(run.ranks, "rank"),
        f"boundary {visible(run.boundary, 20)}",
        f"tracebound {visible(run.tracebound_version, 20)}",
    ]
    if run.same_capture_as is not None:
        parts.append(f"the same capture as run {run.same_capture_as}")
    return _wrapped("; ".join(parts), "  ")


def _moment(run: StoredRun) -> str:
    recorded = f"recorded {_utc(run.recorded_ns)} UTC"
    return recorded if run.captured_ns is None else f"captured {_utc(run.captured_ns)} UTC, {recorded}"


def _utc(moment_ns: str) -> str:
    return datetime.fromtimestamp(int(moment_ns) // _NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M")


def _predictions(runs: Sequence[StoredRun]) -> Iterator[str]:
    """The table, and once for each hypothesis the change that it means."""
    rows = tables.predicted(runs)
    if not rows:
        yield "Predictions: none"
        return
    yield "Predictions: what one change gives at most (a bound), and the step predicted with it (a model), ms"
    yield ""
    yield tables.predictions(rows)
    yield ""
    for name, change in dict.fromkeys((row.hypothesis, row.intervention) for _, row in rows):
        if change:
            yield from _wrapped(f"{visible(name, 24)}: {visible(change, 240)}", "  ")
