"""The tables of a history: step budgets, predictions and their outcomes, comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from analyzer.history import StoredBudget, StoredComparison, StoredOutcome, StoredPrediction, StoredRun
from analyzer.report.escape import visible
from analyzer.report.labels import PATH_GROUPS
from analyzer.report.numbers import MS_DECIMALS, NS_PER_MS, ms, ms_parts, signed_ms
from analyzer.report.tables import columns

PREDICTIONS_SHOWN = 4
"""Of one run."""
_NS_PER_S = NS_PER_MS * 1_000

_COLUMNS = {"Kernels": "kernels", "Collectives": "collectives", "Launches": "launches", "CPU": "CPU"}
"""Groups of categories with a column of their own; all others are "Rest"."""

Predicted = tuple[int, StoredPrediction]
"""A prediction and the number of its run."""


def phases(runs: Sequence[StoredRun]) -> list[str]:
    """Phases of all runs, the one with the most time first."""
    time: dict[str, int] = {}
    for run in runs:
        for budget in run.budgets:
            time[budget.phase] = max(time.get(budget.phase, 0), budget.step_ns_total)
    return sorted(time, key=lambda phase: (-time[phase], phase))


def budgets(phase: str, runs: Sequence[StoredRun]) -> str:
    """One line per run: of all ranks together where a run has that account, else of its slowest rank."""
    rows = [(run, budget) for run in runs if (budget := _leading(run, phase)) is not None]
    decimals = _decimals([budget.mean_ns for _, budget in rows])
    cells = [
        [
            str(run.run),
            _date(run),
            "all" if budget.rank is None else f"rank {budget.rank}",
            f"{budget.steps:,}",
            "-" if budget.median_ns is None else ms(budget.median_ns, decimals=decimals),
            ms(budget.mean_ns, decimals=decimals),
            *ms_parts(_grouped(budget), decimals=decimals),
        ]
        for run, budget in rows
    ]
    header = ["Run", "Date", "Of", "Steps", "Median", "Mean", *_COLUMNS, "Rest"]
    return columns(header, cells, left=(1, 2))


def _leading(run: StoredRun, phase: str) -> StoredBudget | None:
    mine = [budget for budget in run.budgets if budget.phase == phase]
    whole = [budget for budget in mine if budget.rank is None]
    return next(iter(whole), None) or max(mine, key=lambda budget: budget.mean_ns, default=None)


def _decimals(means_ns: Sequence[int]) -> int:
    """So many that seven characters hold a step."""
    largest = max(means_ns, default=0)
    if largest < 100 * NS_PER_MS:
        return MS_DECIMALS
    return 1 if largest < 10_000 * NS_PER_MS else 0


def _grouped(budget: StoredBudget) -> list[int]:
    parts = [sum(budget.path_ns.get(name, 0) for name in PATH_GROUPS[group]) for group in _COLUMNS.values()]
    return [*parts, budget.mean_ns - sum(parts)]


def _date(run: StoredRun) -> str:
    return utc(run.recorded_ns if run.captured_ns is None else run.captured_ns, "%Y-%m-%d")


def utc(moment_ns: str, style: str) -> str:
    """A moment, given in ns since the epoch, as a date in UTC."""
    return datetime.fromtimestamp(int(moment_ns) // _NS_PER_S, UTC).strftime(style)


def predicted(phase: str, runs: Sequence[StoredRun]) -> list[Predicted]:
    """Of each run what it predicts for supported hypotheses, and every step time that it predicts."""
    result = []
    for run in runs:
        mine = [row for row in run.predictions if row.phase == phase]
        mine = [row for row in mine if row.verdict == "supported" or row.predicted_step_ns is not None]
        mine.sort(key=lambda row: (row.predicted_step_ns is None, -(row.gain_upper_bound_ns or 0)))
        result += [(run.run, row) for row in mine[:PREDICTIONS_SHOWN]]
    return result


def predictions(rows: Sequence[Predicted]) -> str:
    """One line per prediction and outcome."""
    decimals = _decimals([ns for _, row in rows for ns in _figures(row)])
    cells = []
    for run, row in rows:
        low_high = row.predicted_step_ns
        known = [
            str(run),
            visible(row.hypothesis, 24),
            "-" if row.gain_upper_bound_ns is None else ms(row.gain_upper_bound_ns, decimals=decimals),
            "-" if low_high is None else " to ".join(ms(end, decimals=decimals) for end in low_high),
        ]
        outcomes = [_outcome(one, decimals) for one in row.outcomes]
        cells += [
            [*known, outcome] for outcome in outcomes or ["-" if low_high is None else "not compared yet"]
        ]
    return columns(["Run", "Hypothesis", "At most", "Predicted step", "Outcome"], cells, left=(1, 4))


def _figures(row: StoredPrediction) -> list[int]:
    """Every time that a line shows, in ns."""
    observed = [one.observed_step_ns for one in row.outcomes]
    return [
        ns for ns in (row.gain_upper_bound_ns, *(row.predicted_step_ns or ()), *observed) if ns is not None
    ]


def _outcome(outcome: StoredOutcome, decimals: int) -> str:
    seen = outcome.observed_step_ns
    figure = "" if seen is None else f", {ms(seen, decimals=decimals)}"
    return f"run {outcome.run}{figure}: {visible(outcome.verdict, 20).replace('-', ' ')}"


def comparisons(rows: Sequence[StoredComparison]) -> str:
    """One line per comparison."""
    decimals = _decimals([ns for row in rows for ns in (row.mean_a_ns, row.mean_b_ns)])
    cells = [
        [
            str(row.a),
            str(row.b),
            visible(row.same_work, 20),
            ms(row.mean_a_ns, decimals=decimals),
            ms(row.mean_b_ns, decimals=decimals),
            signed_ms(row.delta_mean_ns, decimals),
            _interval(row, decimals),
            _speedup(row),
        ]
        for row in rows
    ]
    header = ["A", "B", "Work", "A, mean", "B, mean", "B - A", "95 % interval", "Speedup"]
    return columns(header, cells, left=(2,))


def _interval(row: StoredComparison, decimals: int) -> str:
    if row.ci95_ns is None:
        return "too few steps"
    return " to ".join(signed_ms(end, decimals) for end in row.ci95_ns)


def _speedup(row: StoredComparison) -> str:
    """None is claimed where the work is not the same; where no difference is shown, the ratio says nothing."""
    if row.speedup is None:
        return "-"
    if not row.shown:
        return "none shown"
    ends = "" if row.speedup_ci95 is None else f" ({row.speedup_ci95[0]:.3f} to {row.speedup_ci95[1]:.3f})"
    return f"{row.speedup:.3f}x{ends}"
