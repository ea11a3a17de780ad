"""The history of a store as text for a terminal: per workload the runs in order of time, predictions, comparisons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from analyzer.history import KEY_SHOWN, History, StoredComparison, StoredRun, StoredWorkload
from analyzer.report import history_tables as tables
from analyzer.report.escape import visible
from analyzer.report.numbers import count
from analyzer.report.tables import section

WIDTH = 100
RUNS_SHOWN = 20
PHASES_SHOWN = 6
PINS_LIMIT = 60
_MINUTE = "%Y-%m-%d %H:%M UTC"


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
    parts.append("\n".join(["Runs", *(line for run in shown for line in _run(run))]))
    phases = tables.phases(shown)
    for phase in phases[:PHASES_SHOWN]:
        parts += _phase(phase, shown, workload.comparisons)
    if len(phases) > PHASES_SHOWN:
        parts.append(f"and {count(len(phases) - PHASES_SHOWN, 'more phase')}: --format json lists all")
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


def _phase(phase: str, runs: Sequence[StoredRun], comparisons: Sequence[StoredComparison]) -> Iterator[str]:
    yield f"Phase {visible(phase, 60)}: mean step by what bound it, ms\n\n{tables.budgets(phase, runs)}"
    predicted = tables.predicted(phase, runs)
    if predicted:
        yield "\n".join(_predictions(predicted))
    numbers = {run.run for run in runs}
    compared = [row for row in comparisons if row.phase_a == phase and row.a in numbers]
    if compared:
        yield f"B against A, ms\n\n{tables.comparisons(compared)}"


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
    recorded = f"recorded {tables.utc(run.recorded_ns, _MINUTE)}"
    return (
        recorded
        if run.captured_ns is None
        else f"captured {tables.utc(run.captured_ns, _MINUTE)}, {recorded}"
    )


def _predictions(rows: Sequence[tables.Predicted]) -> Iterator[str]:
    """The table, and once for each hypothesis the change that it means."""
    yield "What one change gives at most (a bound), and the step predicted with it (a model), ms"
    yield ""
    yield tables.predictions(rows)
    yield ""
    for name, change in dict.fromkeys((row.hypothesis, row.intervention) for _, row in rows):
        if change:
            yield from _wrapped(f"{visible(name, 24)}: {visible(change, 240)}", "  ")
