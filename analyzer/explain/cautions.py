"""What a reader must know before any figure, and what weakens a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyzer.explain import absent_device, profiling_cost
from analyzer.explain.quality import UNRECORDED_LAUNCHES
from analyzer.explain.rank_report import RankReport
from analyzer.model import Capture, Source

WARNING = 2
"""Severity from which a profiler's own message is shown and lowers confidence."""
NOTED = 0.01
"""Least share of the launches without a device row that is told before any figure."""
_LOST = re.compile(r"drop|lost|incomplete|overflow", re.IGNORECASE)


def lost_records(source: Source) -> list[str]:
    """The profiler's own messages that say it lost records."""
    return [d.text for d in source.diagnostics if d.severity >= WARNING and _LOST.search(d.text)]


def distortion(capture: Capture, reports: list[RankReport], limits: Mapping[str, float]) -> str:
    """Why absolute verdicts are weakened: lost records, or a profiler that takes much of the path or the step."""
    reasons = []
    if any(lost_records(source) for source in capture.sources):
        reasons.append("the profiler reports lost records")
    if any(source.partial for source in capture.sources):
        reasons.append("a file is truncated")
    total = sum(w.end_ns - w.start_ns for r in reports for w in r.rank.windows if not w.left_out)
    own = sum(w.path_ns["profiler"] for r in reports for w in r.rank.windows if not w.left_out)
    if total and own > limits["distortion_share"] * total:
        reasons.append("the profiler's own overhead is on the path")
    reasons.append(profiling_cost.distorts(profiling_cost.costs(capture), limits))
    return "; ".join(filter(None, reasons))


def notes(capture: Capture, reports: list[RankReport]) -> list[str]:
    """What a reader must know before any figure: each a sentence."""
    sentences = []
    for source in capture.sources:
        if source.partial:
            sentences.append(f"{source.path} is incomplete: figures cover what could be salvaged.")
        sentences += [
            f"The profiler says of {source.path}: {d.text}"
            for d in source.diagnostics
            if d.severity >= WARNING
        ]
    if capture.missing_ranks:
        missing = ", ".join(str(rank) for rank in capture.missing_ranks)
        sentences.append(f"No file of rank {missing} was given: nothing here says what happened there.")
    silent = [str(r.rank.rank) for r in reports if not r.rank.device_events]
    if silent and not absent_device.no_device(capture):
        sentences.append(
            f"Device activity was not recorded for rank {', '.join(silent)}: "
            "no device figure and no verdict about what bounds it."
        )
    for report in reports:
        sentences += _rank_notes(report)
    return sentences


def _rank_notes(report: RankReport) -> list[str]:
    rank, notes = report.rank, []
    if rank.shared_gpu_with:
        others = ", ".join(str(other) for other in rank.shared_gpu_with)
        notes.append(
            f"Rank {rank.rank} shares its GPU with rank {others}: idle time in one process is not "
            "necessarily free time."
        )
    clock = rank.clock
    if clock.correction != "none":
        how = (
            f"the device clock was shifted by {clock.device_shift_ns} ns"
            if clock.correction == "shifted"
            else "no shift fits all pairs, so intervals were clipped"
        )
        notes.append(
            f"Rank {rank.rank}: the raw clocks contradict one another ({clock.negative_latency_count} of "
            f"{clock.pair_count} device events start before their own launch, {clock.early_return_count} "
            f"waits return before their work has ended); {how}."
        )
    flagged = [window for window in rank.windows if not window.empty]
    if flagged and all(window.warmup for window in flagged):
        notes.append(f"Rank {rank.rank}: every window is flagged as warm-up; all of them are used.")
    for entry in report.quality:
        if entry.reason == UNRECORDED_LAUNCHES and entry.total and entry.count >= NOTED * entry.total:
            notes.append(
                f"Rank {rank.rank}: {entry.count:,} of {entry.total:,} launches left no device row: device work is "
                "incomplete. Where rows were lost, idle time is too large; else recording ended before the work did."
            )
    if any(entry.reason == "python-frames-recorded" and entry.count for entry in report.quality):
        notes.append(
            f"Rank {rank.rank}: Python frames were recorded, which slows the CPU down: "
            "host and launch shares are inflated by an unknown amount."
        )
    if report.steps.rule == "whole" and rank.windows:
        notes.append(f"Rank {rank.rank}: no steps were found; the whole capture is one window.")
    notes += [f"Rank {rank.rank}: {note}." for note in report.steps.notes]
    return notes
