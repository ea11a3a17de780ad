"""The one place where the stages meet: files -> Capture -> Analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

from analyzer.analysis import Analysis
from analyzer.errors import TraceError, UsageError
from analyzer.explain import run, summary
from analyzer.explain.beside import Beside
from analyzer.explain.bytes import account as byte_account
from analyzer.explain.bytes.given import Given
from analyzer.explain.bytes.given import given as read_given
from analyzer.explain.explanations import explain
from analyzer.explain.launches.queue import join_queues
from analyzer.explain.outlook import Asked
from analyzer.explain.rank_report import RankReport, report_rank
from analyzer.explain.ranks.joint_report import global_budgets, join_reports
from analyzer.explain.service import after_device
from analyzer.explain.service.after_device import CLIENT
from analyzer.explain.swept_context import read_sweep
from analyzer.explain.verdicts import thresholds
from analyzer.explain.whole import whole
from analyzer.explain.windows import budgets, phases_of
from analyzer.intake import given, on_one_zero, opened, pool_map, read, token_logs, workers
from analyzer.model import Capture, StoredTrace, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.reconstruct.rank import DEVICE, HOST, RankOptions
from analyzer.rules import Rules, load_rules

__all__ = ["Options", "analyze", "opened", "read", "workers"]

_NO_PROGRESS = NoProgress()
MOST_EVENTS = 100_000
"""So many events of all ranks together are replayed; of longer captures the first steps that count."""


@dataclass(frozen=True)
class Options:
    """What a user can decide about an analysis. Patterns are regular expressions."""

    steps: str | None = None
    step_index: str | None = None  # a number, "median", "slowest" or "p95"
    boundary: str = DEVICE  # or "host", or "client" with a token log
    dispatch: str | None = None
    output_ranges: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[str | Path] | str | Path = ()  # rules files, tried in this order before the built-in ones
    jobs: int = 1
    changes: Sequence[str] = ()  # SPECs of changes to replay besides each explanation's own
    assume: Sequence[str] = ()  # NAME=NS or NAME=LOW..HIGH
    own_changes: bool = True  # replay each explanation's intervention
    ledger: str | Path | None = None  # a byte ledger of these steps
    counters: Sequence[str | Path] = ()  # CSV files of Nsight Compute: FILE, or RANK=FILE
    sweep: str | None = None  # a sweep.json that kv-context is taken from
    token_logs: Sequence[str | Path] = ()
    token_clocks: Mapping[str, str] = field(default_factory=dict)  # device, server, client: name of its clock


def analyze(
    capture: Capture,
    options: Options | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress = _NO_PROGRESS,
    **overrides: object,
) -> Analysis:
    """Reconstruct and explain a capture. ``overrides`` are fields of Options by name.

    ``executor``: any ``concurrent.futures.Executor``, instead of ``Options.jobs`` processes.

    Raises StepsError or UsageError where an option does not fit the capture.
    """
    options = replace(options or Options(), **overrides)  # type: ignore[arg-type]
    if options.boundary not in (DEVICE, HOST, CLIENT):
        raise UsageError("--boundary", options.boundary, "is no boundary", "use device, host or client")
    asked = Asked(options.changes, options.assume, own=options.own_changes)
    asked.checked()
    rules = load_rules(options.rules)
    limits = thresholds.resolve(options.thresholds, rules)
    beside = _beside(options, capture)
    capture, zero = on_one_zero(capture)
    how = _How(rules, limits, beside.bytes, progress, executor)
    step, of_ranks = _asked_step(capture, options, how)
    reports = _report_ranks(capture, options, of_ranks, how)
    reports = byte_account.with_ledger(reports, beside.bytes, limits)
    reports = run.with_records(reports, capture, zero)
    joint = join_reports(reports, capture.missing_ranks, world_known=_world_known(capture), step_index=step)
    ranks = [report.rank for report in joint.reports]
    per_phase = global_budgets(joint, phases_of(ranks)) + budgets(ranks)
    explained = explain(capture, zero, joint, per_phase, beside, asked, limits, options.boundary)
    boundary = CLIENT if options.boundary == CLIENT else _boundary(capture, options)
    detail = explained.focus.detail
    return Analysis(
        whole(capture, zero, joint, per_phase, explained, boundary, rules.sources),
        joint.segments,
        join_queues([report.queue for report in joint.reports]),
        None if detail is None else detail[1],
        None if joint.paths is None else joint.paths.segments,
        explained.service.tokens,
    )


def _beside(options: Options, capture: Capture) -> Beside:
    """All that is given beside the traces. Raises TraceError or UsageError."""
    after_device.check(options.boundary, options.token_logs, options.token_clocks)
    return Beside(
        read_given(options.ledger, options.counters, capture.ranks),
        None if options.sweep is None else (options.sweep, read_sweep(options.sweep)),
        tuple(token_logs(options.token_logs)),
        options.token_clocks,
    )


def _world_known(capture: Capture) -> bool:
    """Whether something says how many ranks there are."""
    declared = capture.run is not None and any(record.world_size for record in capture.run.ranks)
    return declared or any(trace.world_size for trace in capture.traces)


def _boundary(capture: Capture, options: Options) -> str:
    """One report uses one boundary: without any device work only the host's is left."""
    asked = DEVICE if options.boundary == CLIENT else options.boundary
    return asked if any(capture.device_events) else HOST


@dataclass(frozen=True)
class _How:
    """What the reports of all ranks are made with."""

    rules: Rules
    limits: Mapping[str, float]
    bytes: Given
    progress: Progress
    executor: Executor | None


def _asked_step(capture: Capture, options: Options, how: _How) -> tuple[str | None, dict[int, str | None]]:
    """The step of all ranks together that was asked for, and which of its own steps that is on each rank.

    Each rank's own slowest step may be another one, and ranks may number their steps otherwise: every rank is walked
    once more to tell.
    """
    asked = options.step_index
    alike: dict[int, str | None] = dict.fromkeys(capture.ranks, asked)
    if asked is None or len(capture.traces) < 2:
        return asked, alike
    reports = _report_ranks(capture, options, dict.fromkeys(capture.ranks), how)
    joint = join_reports(reports, capture.missing_ranks, world_known=_world_known(capture), step_index=asked)
    if joint.paths is None or not joint.paths.account.windows:
        return asked, alike
    (step,) = joint.paths.account.windows
    return str(step.index), {**alike, **{rank: str(own) for rank, own in step.windows.items()}}


def _report_ranks(
    capture: Capture, options: Options, step_of: Mapping[int, str | None], how: _How
) -> list[RankReport]:
    """``step_of``: by rank, the one step that is asked for, None for all."""
    if not capture.traces:
        raise TraceError("capture", "", "holds no rank", "check the files and the rank selection")
    rank_options = RankOptions(
        options.steps,
        options.dispatch,
        options.output_ranges,
        _boundary(capture, options),
        how.rules,
        chains=len(capture.traces) > 1,
    )
    devices_of = [sum(o.process is t.process for o in capture.traces) for t in capture.traces]
    shared = summary.shared_gpus(capture)
    traces: Sequence[Trace | StoredTrace] = capture.stored or capture.traces
    arguments = [
        (
            trace,
            rank,
            rank_options,
            step_of[rank],
            dict(how.limits),
            devices_of[at] == 1,
            shared[rank],
            MOST_EVENTS // len(traces),
            how.bytes.of_rank(rank),
        )
        for at, (trace, rank) in enumerate(zip(traces, capture.ranks, strict=True))
    ]
    how.progress.start("analyzing ranks", len(arguments))
    reports = []
    with given(how.executor, min(options.jobs, len(arguments))) as pool:
        for report in pool_map(pool, _report_one, arguments):
            reports.append(report)
            how.progress.advance(1)
    return reports


_Arguments = tuple[
    Trace | StoredTrace, int, RankOptions, str | None, dict[str, float], bool, list[int], int, Given
]


def _report_one(arguments: _Arguments) -> RankReport:
    given_trace, rank, options, step_index, limits, sole_device, shared, most_events, given_bytes = arguments
    stored = given_trace if isinstance(given_trace, StoredTrace) else None
    trace = given_trace.load() if isinstance(given_trace, StoredTrace) else given_trace
    report = report_rank(
        trace,
        rank,
        options,
        step_index,
        limits,
        sole_device=sole_device,
        shared_gpu_with=shared,
        most_events=most_events,
        given=given_bytes,
    )
    if stored is None or report.links is None:
        return report
    return replace(report, links=report.links.laid_aside(Path(f"{stored.path}-links")))
