"""What was read and how the steps were found, over all ranks."""

from __future__ import annotations

import numpy as np

from analyzer.diagnosis import Input, SharedDevice, Steps
from analyzer.explain.cautions import WARNING
from analyzer.explain.rank_report import RankReport
from analyzer.explain.windows import phases_of
from analyzer.intervals import Intervals, measure, union
from analyzer.model import Capture, Trace


def shared_gpus(capture: Capture) -> dict[int, list[int]]:
    """Ranks of other processes on the same physical device, where the capture identifies devices."""
    identity = {
        rank: trace.device_info.uuid or trace.device_info.physical
        for trace, rank in zip(capture.traces, capture.ranks, strict=True)
        if trace.device_info is not None
    }
    return {
        rank: [
            other
            for other in capture.ranks
            if other != rank and identity.get(rank) is not None and identity.get(other) == identity[rank]
        ]
        for rank in capture.ranks
    }


def shared_devices(capture: Capture) -> list[SharedDevice]:
    """Devices that several processes of the capture use: their work as one union."""
    groups = sorted({(rank, *others) for rank, others in shared_gpus(capture).items() if others})
    result = []
    for group in sorted({tuple(sorted(members)) for members in groups}):
        parts = [_busy(capture.trace(at)) for at, rank in enumerate(capture.ranks) if rank in group]
        start = np.concatenate([starts for starts, _ in parts])
        end = np.concatenate([ends for _, ends in parts])
        busy = measure(union(start, end))
        span = int(end.max() - start.min())
        result.append(SharedDevice(ranks=list(group), span_ns=span, busy_ns=busy))
    return result


def _busy(trace: Trace) -> Intervals:
    return union(trace.device.start_ns, trace.device.end_ns)


def inputs(capture: Capture) -> list[Input]:
    """The files, with the ranks that each holds and the messages that the profiler left."""
    result = []
    for source in capture.sources:
        ranks = [
            rank
            for trace, rank in zip(capture.traces, capture.ranks, strict=True)
            if trace.source.path == source.path
        ]
        result.append(
            Input(
                path=source.path,
                kind=source.kind,
                profiler_version=source.profiler_version,
                schema_version=source.schema_version,
                ranks=ranks,
                partial=source.partial,
                captured=sorted(source.captured),
                settings=dict(sorted(source.settings)),
                diagnostics=[d.text for d in source.diagnostics if d.severity >= WARNING],
            )
        )
    return result


def steps(reports: list[RankReport]) -> Steps:
    """How steps were found: the first rank's rule; ranks that differ are named."""
    first = reports[0].steps
    windows = [window for report in reports for window in report.rank.windows]
    others = sorted({report.steps.rule for report in reports} - {first.rule})
    details = list(first.notes)
    if others:
        details.append("other ranks by: " + ", ".join(others))
    counts = sorted({len(report.rank.windows) for report in reports})
    if len(counts) > 1:
        details.append(f"ranks have {counts[0]} to {counts[-1]} windows")
    return Steps(
        rule=first.rule,
        pattern=first.pattern,
        count=len(reports[0].rank.windows),
        warmup_count=sum(window.warmup for window in reports[0].rank.windows),
        outlier_count=sum(window.outlier for window in reports[0].rank.windows),
        confidence=first.confidence,
        phases=phases_of([report.rank for report in reports]),
        detail="; ".join(details) if windows else "no window",
    )
