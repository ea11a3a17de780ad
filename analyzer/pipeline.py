"""The one place where the stages meet: files -> Capture -> Analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path

import msgspec

from analyzer import __version__
from analyzer.analysis import Analysis
from analyzer.diagnosis import FORMAT, FORMAT_VERSION, Budget, Diagnosis, GlobalAccount, Hypothesis
from analyzer.errors import TraceError, UsageError
from analyzer.explain import cautions, quality, summary
from analyzer.explain.focus import focus_rank
from analyzer.explain.host.look_first import look_first
from analyzer.explain.launches.queue import join_queues
from analyzer.explain.rank_report import RankReport, report_rank
from analyzer.explain.ranks import remarks
from analyzer.explain.ranks.joint_report import (
    JointReport,
    global_budgets,
    join_reports,
    joint_verdicts,
)
from analyzer.explain.segments import join_tables
from analyzer.explain.verdicts import thresholds
from analyzer.explain.verdicts.hypotheses import SEGMENTS_FILE, verdicts
from analyzer.explain.windows import budgets, phases_of
from analyzer.model import Capture, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.readers.assemble import assemble
from analyzer.readers.registry import expand, read_file
from analyzer.reconstruct.rank import DEVICE, HOST, RankOptions
from analyzer.rules import Rules, load_rules

_NO_PROGRESS = NoProgress()


@dataclass(frozen=True)
class Options:
    """What a user can decide about an analysis. Patterns are regular expressions."""

    steps: str | None = None
    step_index: str | None = None  # a number, "median", "slowest" or "p95"
    boundary: str = DEVICE  # or "host"
    dispatch: str | None = None
    output_ranges: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[str | Path] | str | Path = ()  # rules files, tried in this order before the built-in ones
    jobs: int = 1


def read(
    paths: Sequence[str | Path] | str | Path,
    *,
    rank_regex: str | None = None,
    ranks: Sequence[int] | None = None,
    device: int | None = None,
    jobs: int = 1,
    progress: Progress = _NO_PROGRESS,
) -> Capture:
    """Read files, folders or patterns into one capture.

    Raises TraceError for what cannot be read, UsageError for a rank or device that is not there.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files = expand(given)
    if jobs > 1 and len(files) > 1:
        with _pool(min(jobs, len(files))) as pool:
            per_file = list(pool.map(read_file, files))
    else:
        per_file = [read_file(path, progress) for path in files]
    capture = assemble(per_file, rank_regex)
    return _only_ranks(_only_device(capture, device), ranks)


def _pool(workers: int) -> Executor:
    # Spawned rather than forked: the parent may hold Arrow's threads.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _only_device(capture: Capture, device: int | None) -> Capture:
    if device is None:
        return capture
    present = sorted({t.device_info.index for t in capture.traces if t.device_info is not None})
    if device not in present:
        there = ", ".join(str(index) for index in present) or "none"
        raise UsageError(
            "--device", str(device), f"this capture holds work of devices {there}", "choose one of these"
        )
    return _filtered(
        capture, [t.device_info is not None and t.device_info.index == device for t in capture.traces]
    )


def _only_ranks(capture: Capture, ranks: Sequence[int] | None) -> Capture:
    if ranks is None:
        return capture
    absent = sorted(set(ranks) - set(capture.ranks))
    if absent:
        there = ", ".join(str(rank) for rank in capture.ranks)
        raise UsageError("--ranks", str(absent[0]), f"this capture holds ranks {there}", "choose among these")
    return _filtered(capture, [rank in set(ranks) for rank in capture.ranks])


def _filtered(capture: Capture, keep: Sequence[bool]) -> Capture:
    kept = [at for at, wanted in enumerate(keep) if wanted]
    return replace(
        capture,
        traces=tuple(capture.traces[at] for at in kept),
        ranks=tuple(capture.ranks[at] for at in kept),
    )


def on_one_zero(capture: Capture) -> tuple[Capture, int | None]:
    """All ranks' instants relative to one epoch: that of the first rank that knows its own.

    Returns the capture and that epoch in ns, None where no rank knows it (then nothing is moved).
    """
    known = [trace.epoch_zero_ns for trace in capture.traces if trace.epoch_zero_ns is not None]
    if not known:
        return capture, None
    zero = known[0]
    moved: dict[tuple[int, int], Trace] = {}
    traces = []
    for trace in capture.traces:
        shift = 0 if trace.epoch_zero_ns is None else trace.epoch_zero_ns - zero
        if shift:
            key = (id(trace.process), shift)
            process = moved[key].process if key in moved else trace.process.shifted(shift)
            metrics = trace.metrics.shifted(shift) if trace.metrics is not None else None
            trace = replace(
                trace,
                process=process,
                device=trace.device.shifted(shift),
                metrics=metrics,
                epoch_zero_ns=zero,
                file_zero_ns=trace.file_zero_ns - shift,
            )
            moved[key] = trace
        traces.append(trace)
    return replace(capture, traces=tuple(traces)), zero


def analyze(
    capture: Capture,
    options: Options | None = None,
    *,
    progress: Progress = _NO_PROGRESS,
    **overrides: object,
) -> Analysis:
    """Reconstruct and explain a capture. ``overrides`` are fields of Options by name.

    Raises StepsError or UsageError where an option does not fit the capture.
    """
    options = replace(options or Options(), **overrides)  # type: ignore[arg-type]
    if options.boundary not in (DEVICE, HOST):
        raise UsageError("--boundary", options.boundary, "is no boundary", "use device or host")
    rules = load_rules(options.rules)
    limits = thresholds.resolve(options.thresholds, rules)
    capture, zero = on_one_zero(capture)
    reports = _report_ranks(capture, options, rules, limits, progress)
    joint = join_reports(
        reports, capture.missing_ranks, world_known=any(trace.world_size for trace in capture.traces)
    )
    reports, paths = joint.reports, joint.paths
    ranks = [report.rank for report in reports]
    per_phase = global_budgets(joint, phases_of(ranks)) + budgets(ranks)
    account = None if paths is None else paths.account
    detail = _focus(reports, per_phase, account).detail
    host_rollups = [row for report in reports for row in report.host_rollups]
    diagnosis = Diagnosis(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=__version__,
        time_zero_ns=None if zero is None else str(zero),
        inputs=summary.inputs(capture),
        boundary=_boundary(capture, options),
        constants=ranks[0].constants,
        steps=summary.steps(reports),
        ranks=ranks,
        missing_ranks=list(capture.missing_ranks),
        rank_basis=capture.rank_basis,
        global_=account,
        budget=per_phase,
        kernels=[kernel for report in reports for kernel in report.kernels],
        kernel_shapes=[shape for report in reports for shape in report.shapes],
        host_culprits=[culprit for report in reports for culprit in report.culprits],
        hypotheses=_hypotheses(capture, joint, limits),
        collectives=joint.collectives,
        late_ranks=joint.late_ranks,
        undeclared=quality.undeclared(capture),
        unmeasured=[*quality.unmeasured(capture, ranks), *remarks.unmeasured(joint), quality.PREDICTIONS],
        quality=quality.ledger(
            capture, [*(entry for report in reports for entry in report.quality), *remarks.quality(joint)]
        ),
        ranges=[row for report in reports for row in report.ranges],
        classes=[row for report in reports for row in report.classes],
        launch_bill=[row for report in reports for row in report.launch_bill],
        graph_replays=[row for report in reports for row in report.graph_replays],
        small_kernels=[row for report in reports for row in report.small_kernels],
        host_rollups=host_rollups,
        look_first=look_first(host_rollups, per_phase, account),
        detail=detail[0] if detail is not None else None,
        rules=list(rules.sources),
        shared_devices=summary.shared_devices(capture),
        notes=[*cautions.notes(capture, reports), *remarks.notes(joint, capture)],
    )
    return Analysis(
        diagnosis,
        join_tables([report.segments for report in reports]),
        join_queues([report.queue for report in reports]),
        detail[1] if detail is not None else None,
        None if paths is None else paths.segments,
    )


def _focus(reports: list[RankReport], per_phase: list[Budget], account: GlobalAccount | None) -> RankReport:
    """The report of the rank that a reader sees first."""
    focus = focus_rank(per_phase, [report.rank for report in reports], account)
    return next(report for report in reports if report.rank.rank == focus)


def _boundary(capture: Capture, options: Options) -> str:
    """One report uses one boundary: without any device work only the host's is left."""
    return options.boundary if any(len(trace.device) for trace in capture.traces) else HOST


def _report_ranks(
    capture: Capture, options: Options, rules: Rules, limits: Mapping[str, float], progress: Progress
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
    arguments = [
        (trace, rank, rank_options, options.step_index, dict(limits), devices_of[at] == 1, shared[rank])
        for at, (trace, rank) in enumerate(zip(capture.traces, capture.ranks, strict=True))
    ]
    progress.start("analyzing ranks", len(arguments))
    if options.jobs > 1 and len(arguments) > 1:
        with _pool(min(options.jobs, len(arguments))) as pool:
            return list(pool.map(_report_one, arguments))
    reports = []
    for argument in arguments:
        reports.append(_report_one(argument))
        progress.advance(1)
    return reports


_Arguments = tuple[Trace, int, RankOptions, str | None, dict[str, float], bool, list[int]]


def _report_one(arguments: _Arguments) -> RankReport:
    trace, rank, options, step_index, limits, sole_device, shared = arguments
    return report_rank(
        trace, rank, options, step_index, limits, sole_device=sole_device, shared_gpu_with=shared
    )


def _hypotheses(capture: Capture, joint: JointReport, limits: Mapping[str, float]) -> list[Hypothesis]:
    reports = joint.reports
    phases = phases_of([report.rank for report in reports])
    distorted = cautions.distortion(capture, reports, limits)
    lengths = accumulate((len(report.segments) for report in reports), initial=0)
    before = {report.rank.rank: first for report, first in zip(reports, lengths, strict=False)}
    result = []
    for phase in phases or ["whole capture"]:
        across = joint_verdicts(joint, phase, limits, distorted)
        if across:
            result += [_in_joined_table(row, before) for row in across]
            continue
        parts = [report.evidence[phase] for report in reports if phase in report.evidence]
        result += [_in_joined_table(row, before) for row in verdicts(phase, parts, limits, distorted)]
    return result


def _in_joined_table(row: Hypothesis, before: Mapping[int, int]) -> Hypothesis:
    """Evidence lines of one rank's segments as lines of the table of all ranks."""
    moved = [
        msgspec.structs.replace(e, line=e.line + before[e.rank]) if e.file == SEGMENTS_FILE else e
        for e in row.evidence
    ]
    return msgspec.structs.replace(row, evidence=moved)
