"""The one place where the stages meet: files -> Capture -> Analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import msgspec

from analyzer.analysis import Analysis
from analyzer.diagnosis import (
    FORMAT,
    FORMAT_VERSION,
    Budget,
    Diagnosis,
    GlobalAccount,
    Hypothesis,
    Rank,
    SweepUse,
    Unmeasured,
)
from analyzer.errors import TraceError, UsageError
from analyzer.explain import (
    absent_device,
    cautions,
    profiling_cost,
    quality,
    run,
    summary,
    swept_context,
)
from analyzer.explain.advice import advice_for
from analyzer.explain.bytes import account as byte_account
from analyzer.explain.bytes.given import Given
from analyzer.explain.bytes.given import given as read_given
from analyzer.explain.focus import focus_rank
from analyzer.explain.host.look_first import look_first
from analyzer.explain.launches.queue import join_queues
from analyzer.explain.outliers import outliers
from analyzer.explain.outlook import Asked, Outlook, outlook, what_would_predict
from analyzer.explain.rank_report import RankReport, report_rank
from analyzer.explain.ranks import remarks
from analyzer.explain.ranks.costs import collective_costs
from analyzer.explain.ranks.joint_report import (
    JointReport,
    global_budgets,
    join_reports,
    joint_verdicts,
)
from analyzer.explain.ranks.price import collective_prices
from analyzer.explain.service import after_device
from analyzer.explain.service.after_device import CLIENT
from analyzer.explain.verdicts import thresholds
from analyzer.explain.verdicts.hypotheses import SEGMENTS_FILE, verdicts
from analyzer.explain.windows import budgets, phases_of
from analyzer.intake import given, on_one_zero, opened, pool_map, read, token_logs, workers
from analyzer.model import Capture, StoredTrace, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.reconstruct.rank import DEVICE, HOST, RankOptions
from analyzer.rules import Rules, load_rules
from analyzer.version import __version__

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
    after_device.check(options.boundary, options.token_logs, options.token_clocks)
    asked = Asked(options.changes, options.assume, own=options.own_changes)
    asked.checked()
    rules = load_rules(options.rules)
    limits = thresholds.resolve(options.thresholds, rules)
    given_bytes = read_given(options.ledger, options.counters, capture.ranks)
    capture, zero = on_one_zero(capture)
    reports = _report_ranks(capture, options, rules, limits, given_bytes, progress, executor)
    reports = byte_account.with_ledger(reports, given_bytes, limits)
    reports = run.with_records(reports, capture, zero)
    joint = join_reports(reports, capture.missing_ranks, world_known=_world_known(capture))
    reports, paths = joint.reports, joint.paths
    ranks = [report.rank for report in reports]
    per_phase = global_budgets(joint, phases_of(ranks)) + budgets(ranks)
    account = None if paths is None else paths.account
    advice = advice_for(capture, joint.collectives, whole_graphs=_whole_graphs(reports))
    focus = _focus(reports, per_phase, account)
    detail = focus.detail
    host_rollups = [row for report in reports for row in report.host_rollups]
    predicted = outlook(joint, _hypotheses(capture, joint, limits), asked)
    bytes_, held = byte_account.bytes_account(joint, capture, given_bytes, predicted.hypotheses)
    hypotheses, swept = _by_sweep(held, options.sweep, zero, ranks, capture)
    service = after_device.of(
        token_logs(options.token_logs), joint, focus.rank.rank, zero, options.boundary, options.token_clocks
    )
    explained = service.hypotheses(
        [advice.verdict(row) for row in hypotheses],
        limits,
        cautions.distortion(capture, reports, limits),
    )
    diagnosis = Diagnosis(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=__version__,
        time_zero_ns=None if zero is None else str(zero),
        inputs=summary.inputs(capture),
        boundary=CLIENT if options.boundary == CLIENT else _boundary(capture, options),
        constants=ranks[0].constants,
        steps=summary.steps(reports),
        ranks=ranks,
        missing_ranks=list(capture.missing_ranks),
        rank_basis=capture.rank_basis,
        global_=account,
        budget=per_phase,
        outliers=outliers(ranks, account),
        kernels=[kernel for report in reports for kernel in report.kernels],
        kernel_shapes=[shape for report in reports for shape in report.shapes],
        host_culprits=[culprit for report in reports for culprit in report.culprits],
        hypotheses=explained,
        sweep=swept,
        whatif=predicted.whatif,
        service=service.result,
        collectives=joint.collectives,
        late_ranks=joint.late_ranks,
        alpha_beta=collective_prices(joint, run.pin(capture, "topology")),
        collective_costs=collective_costs(joint, phases_of(ranks)),
        run=run.facts(capture),
        undeclared=run.undeclared(capture),
        unmeasured=[
            *advice.unmeasured(_unmeasured(capture, joint, advice.no_device)),
            *_unpredicted(predicted, advice.no_device),
            *([] if advice.no_device else byte_account.unmeasured(given_bytes, bytes_)),
            *service.unmeasured,
        ],
        quality=quality.ledger(
            capture,
            [
                *(entry for report in reports for entry in report.quality),
                *remarks.quality(joint),
                *service.quality,
            ],
        ),
        ranges=[row for report in reports for row in report.ranges],
        classes=[row for report in reports for row in report.classes],
        launch_bill=[row for report in reports for row in report.launch_bill],
        graph_replays=[row for report in reports for row in report.graph_replays],
        shape_replays=[row for report in reports for row in report.shape_replays],
        small_kernels=[row for report in reports for row in report.small_kernels],
        step_work=[row for report in reports for row in report.step_work],
        step_sequences=[row for report in reports for row in report.step_sequences],
        host_rollups=host_rollups,
        look_first=look_first(host_rollups, per_phase, account),
        detail=detail[0] if detail is not None else None,
        rules=list(rules.sources),
        shared_devices=summary.shared_devices(capture),
        bytes=bytes_,
        notes=[
            *([absent_device.sentence(advice.no_device)] if advice.no_device else []),
            *run.notes(capture),
            *profiling_cost.notes(profiling_cost.costs(capture)),
            *cautions.notes(capture, reports),
            *remarks.notes(joint, capture),
        ],
    )
    return Analysis(
        diagnosis,
        joint.segments,
        join_queues([report.queue for report in reports]),
        detail[1] if detail is not None else None,
        None if paths is None else paths.segments,
        service.tokens,
    )


def _by_sweep(
    rows: Sequence[Hypothesis], path: str | None, zero: int | None, ranks: list[Rank], capture: Capture
) -> tuple[Sequence[Hypothesis], SweepUse | None]:
    """The rows with what a sweep says of ``kv-context``, and what ties it to this capture."""
    if path is None:
        return rows, None
    sweep = swept_context.read_sweep(path)
    use = swept_context.sweep_use(sweep, path, None if zero is None else str(zero), ranks, run.facts(capture))
    return swept_context.with_sweep(rows, sweep, use), use


def _unmeasured(capture: Capture, joint: JointReport, no_device: str) -> list[Unmeasured]:
    ranks, whole_graphs = [report.rank for report in joint.reports], _whole_graphs(joint.reports)
    alone = quality.unmeasured(capture, ranks, whole_graphs=whole_graphs, no_device=no_device)
    return [*alone, *remarks.unmeasured(joint, no_device)]


def _unpredicted(predicted: Outlook, no_device: str) -> list[Unmeasured]:
    if not predicted.whatif.withheld:
        return []
    remedy = what_would_predict(predicted.whatif, no_device)
    return [
        Unmeasured(
            what="predicted step times", how_to_measure=f"withheld: {predicted.whatif.withheld}; {remedy}"
        )
    ]


def _world_known(capture: Capture) -> bool:
    """Whether something says how many ranks there are."""
    declared = capture.run is not None and any(record.world_size for record in capture.run.ranks)
    return declared or any(trace.world_size for trace in capture.traces)


def _focus(reports: list[RankReport], per_phase: list[Budget], account: GlobalAccount | None) -> RankReport:
    """The report of the rank that a reader sees first."""
    focus = focus_rank(per_phase, [report.rank for report in reports], account)
    return next(report for report in reports if report.rank.rank == focus)


def _whole_graphs(reports: list[RankReport]) -> bool:
    """Whether replays were recorded as one row each."""
    return any(kernel.kind == "graph" for report in reports for kernel in report.kernels)


def _boundary(capture: Capture, options: Options) -> str:
    """One report uses one boundary: without any device work only the host's is left."""
    asked = DEVICE if options.boundary == CLIENT else options.boundary
    return asked if any(capture.device_events) else HOST


def _report_ranks(
    capture: Capture,
    options: Options,
    rules: Rules,
    limits: Mapping[str, float],
    given_bytes: Given,
    progress: Progress,
    executor: Executor | None,
) -> list[RankReport]:
    if not capture.traces:
        raise TraceError("capture", "", "holds no rank", "check the files and the rank selection")
    rank_options = RankOptions(
        options.steps,
        options.dispatch,
        options.output_ranges,
        _boundary(capture, options),
        rules,
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
            options.step_index,
            dict(limits),
            devices_of[at] == 1,
            shared[rank],
            MOST_EVENTS // len(traces),
            given_bytes.of_rank(rank),
        )
        for at, (trace, rank) in enumerate(zip(traces, capture.ranks, strict=True))
    ]
    progress.start("analyzing ranks", len(arguments))
    reports = []
    with given(executor, min(options.jobs, len(arguments))) as pool:
        for report in pool_map(pool, _report_one, arguments):
            reports.append(report)
            progress.advance(1)
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


def _hypotheses(capture: Capture, joint: JointReport, limits: Mapping[str, float]) -> list[Hypothesis]:
    reports = joint.reports
    phases = phases_of([report.rank for report in reports])
    distorted = cautions.distortion(capture, reports, limits)
    lengths = accumulate(joint.segment_counts, initial=0)
    before = {report.rank.rank: first for report, first in zip(reports, lengths, strict=False)}
    result = []
    for phase in phases or ["whole capture"]:
        across = joint_verdicts(joint, phase, limits, distorted)
        if across:
            result += [_in_joined_table(row, before) for row in across]
            continue
        parts = [report.evidence[phase] for report in reports if phase in report.evidence]
        result += [_in_joined_table(row, before) for row in verdicts(phase, parts, limits, distorted)]
    cost = profiling_cost.costs(capture)
    return [profiling_cost.with_cost(row, cost, limits) for row in result]


def _in_joined_table(row: Hypothesis, before: Mapping[int, int]) -> Hypothesis:
    """Evidence lines of one rank's segments as lines of the table of all ranks."""
    moved = [
        msgspec.structs.replace(e, line=e.line + before[e.rank]) if e.file == SEGMENTS_FILE else e
        for e in row.evidence
    ]
    return msgspec.structs.replace(row, evidence=moved)
