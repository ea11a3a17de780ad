"""The explanations of a capture: each hypothesis with all that traces, changes and what is given beside tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from analyzer.diagnosis import Budget, Bytes, Hypothesis, SweepUse, Unmeasured
from analyzer.explain import cautions, profiling_cost, quality, run, swept_context
from analyzer.explain.advice import Advice, advice_for
from analyzer.explain.beside import Beside
from analyzer.explain.bytes import account as byte_account
from analyzer.explain.focus import focus_rank
from analyzer.explain.outlook import Asked, Outlook, outlook, what_would_predict
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks import remarks
from analyzer.explain.ranks.joint_report import JointReport, joint_verdicts
from analyzer.explain.service import after_device
from analyzer.explain.service.after_device import AfterDevice
from analyzer.explain.verdicts.hypotheses import SEGMENTS_FILE, verdicts
from analyzer.explain.windows import phases_of
from analyzer.model import Capture
from analyzer.reconstruct.rank import DEVICE


@dataclass(frozen=True)
class Explained:
    """``focus``: the report of the rank that a reader sees first."""

    hypotheses: list[Hypothesis]
    predicted: Outlook
    bytes: Bytes | None
    sweep: SweepUse | None
    service: AfterDevice
    advice: Advice
    focus: RankReport
    unmeasured: list[Unmeasured]


def explain(
    capture: Capture,
    zero_ns: int | None,
    joint: JointReport,
    per_phase: list[Budget],
    beside: Beside,
    asked: Asked,
    limits: Mapping[str, float],
    boundary: str,
) -> Explained:
    """Verdicts first, then what each change would give, bytes, the sweep, and the way of tokens to the client.

    Raises UsageError where a change or a log does not fit the capture.
    """
    whole_graphs = any(kernel.kind == "graph" for report in joint.reports for kernel in report.kernels)
    advice = advice_for(capture, joint.collectives, whole_graphs=whole_graphs)
    focus = _focus(joint, per_phase)
    distorted = cautions.distortion(capture, joint.reports, limits)
    predicted = outlook(joint, _verdicts(capture, joint, limits, distorted), asked)
    bytes_, told = byte_account.bytes_account(joint, capture, beside.bytes, predicted.hypotheses)
    rows, sweep = _by_sweep(told, beside, zero_ns, joint, capture, boundary)
    service = after_device.of(beside.logs, joint, focus.rank.rank, zero_ns, boundary, beside.clocks)
    ranks = [report.rank for report in joint.reports]
    alone = quality.unmeasured(capture, ranks, whole_graphs=whole_graphs, no_device=advice.no_device)
    return Explained(
        hypotheses=service.hypotheses([advice.verdict(row) for row in rows], limits, distorted),
        predicted=predicted,
        bytes=bytes_,
        sweep=sweep,
        service=service,
        advice=advice,
        focus=focus,
        unmeasured=[
            *advice.unmeasured([*alone, *remarks.unmeasured(joint, advice.no_device)]),
            *_unpredicted(predicted, advice.no_device),
            *([] if advice.no_device else byte_account.unmeasured(beside.bytes, bytes_)),
            *([] if advice.no_device and service.result is None else service.unmeasured),
        ],
    )


def _focus(joint: JointReport, per_phase: list[Budget]) -> RankReport:
    account = None if joint.paths is None else joint.paths.account
    focus = focus_rank(per_phase, [report.rank for report in joint.reports], account)
    return next(report for report in joint.reports if report.rank.rank == focus)


def _verdicts(
    capture: Capture, joint: JointReport, limits: Mapping[str, float], distorted: str
) -> list[Hypothesis]:
    reports = joint.reports
    phases = phases_of([report.rank for report in reports])
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


def _by_sweep(
    rows: Sequence[Hypothesis],
    beside: Beside,
    zero_ns: int | None,
    joint: JointReport,
    capture: Capture,
    boundary: str,
) -> tuple[Sequence[Hypothesis], SweepUse | None]:
    """The rows with what a sweep says of ``kv-context``, and what ties it to this capture."""
    if beside.sweep is None:
        return rows, None
    path, sweep = beside.sweep
    ranks = [report.rank for report in joint.reports]
    use = swept_context.sweep_use(
        sweep, path, None if zero_ns is None else str(zero_ns), ranks, run.facts(capture)
    )
    ends = DEVICE if boundary == after_device.CLIENT else boundary  # client windows are a part of their own
    return swept_context.with_sweep(rows, sweep, use, ends), use


def _unpredicted(predicted: Outlook, no_device: str) -> list[Unmeasured]:
    if not predicted.whatif.withheld:
        return []
    remedy = what_would_predict(predicted.whatif, no_device)
    return [
        Unmeasured(
            what="predicted step times", how_to_measure=f"withheld: {predicted.whatif.withheld}; {remedy}"
        )
    ]
