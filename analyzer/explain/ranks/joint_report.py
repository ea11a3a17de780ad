"""The joint answer of all ranks, put together: what the diagnosis takes from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzer.across.joint import Joint, join_ranks
from analyzer.across.split import take
from analyzer.diagnosis import Budget, Collective, GlobalWindow, Hypothesis, LateRank
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks.collectives import collectives
from analyzer.explain.ranks.evidence import global_evidence, mostly_by_entry, with_waits
from analyzer.explain.ranks.global_account import GlobalPaths, global_paths, of_step
from analyzer.explain.ranks.late_ranks import late_ranks
from analyzer.explain.ranks.on_reference import on_reference
from analyzer.explain.segments import join_tables
from analyzer.explain.verdicts.hypotheses import global_verdicts, rate_verdicts
from analyzer.explain.windows import Chosen, chosen_windows
from analyzer.tables import SegmentTable


@dataclass(frozen=True)
class JointReport:
    """All ranks on one clock. ``why_no_path``: what stands in the way of a path through all of them.

    ``segments``: those of all ranks in their order, ``segment_counts``: of each; the reports have none any more.
    """

    reports: list[RankReport]
    segments: SegmentTable
    segment_counts: list[int]
    joint: Joint
    paths: GlobalPaths | None
    every_path: GlobalPaths | None  # also of steps that nobody asked for
    why_no_path: str
    collectives: list[Collective]
    late_ranks: list[LateRank]
    world_known: bool  # the capture says how many ranks there are


def join_reports(
    reports: list[RankReport],
    missing_ranks: Sequence[int],
    *,
    world_known: bool,
    step_index: str | None = None,
) -> JointReport:
    """Match, align, split, walk through all ranks.

    Empties the list, so that no rank's tables lie in memory twice.
    """
    joint = join_ranks([report.part for report in reports], missing_ranks)
    every, why = global_paths(reports, joint)
    table = collectives([report.part for report in reports], joint, _steps(every))
    late = late_ranks(reports, joint, table)
    paths, why = (None, why) if every is None else of_step(every, step_index)
    moved: list[RankReport] = []
    segments: list[SegmentTable] = []
    while reports:
        report = with_waits(on_reference(reports.pop(0), joint), joint)
        segments.append(report.segments)
        moved.append(replace(report, links=None, segments=take(report.segments, np.empty(0, np.int64))))
    counts = [len(table) for table in segments]
    return JointReport(
        moved, join_tables(segments), counts, joint, paths, every, why, table, late, world_known
    )


def _steps(paths: GlobalPaths | None) -> dict[int, dict[int, int]]:
    """By rank, the global step of each of its windows."""
    steps: dict[int, dict[int, int]] = {}
    for window in paths.account.windows if paths is not None else ():
        for rank, at in window.windows.items():
            steps.setdefault(rank, {})[at] = window.index
    return steps


def used_globally(paths: GlobalPaths | None, phase: str) -> list[GlobalWindow]:
    """Global windows that a phase's budget rests on."""
    return _chosen(paths, phase).used


def _chosen(paths: GlobalPaths | None, phase: str) -> Chosen[GlobalWindow]:
    return chosen_windows([] if paths is None else paths.account.windows, phase)


def global_budgets(joint: JointReport, phases: Sequence[str]) -> list[Budget]:
    """One budget per phase over all ranks."""
    result = []
    for phase in phases:
        chosen = _chosen(joint.paths, phase)
        windows = chosen.used
        if not windows:
            continue
        result.append(
            Budget(
                phase=phase,
                scope="global",
                rank=None,
                windows=len(windows),
                windows_excluded=len(chosen.warmup) + len(chosen.outliers),
                outliers=len(chosen.outliers),
                outlier_ns_total=sum(window.end_ns - window.start_ns for window in chosen.outliers),
                step_ns_total=sum(window.end_ns - window.start_ns for window in windows),
                path_ns_total={
                    name: sum(window.path_ns[name] for window in windows) for name in windows[0].path_ns
                },
                exposed_ns_total=None,
                inferred_ns_total=sum(window.inferred_ns for window in windows),
                note=chosen.note,
            )
        )
    return result


def joint_verdicts(
    joint: JointReport, phase: str, thresholds: Mapping[str, float], distorted: str
) -> list[Hypothesis]:
    """The hypotheses of one phase on the global path; empty where it has none."""
    windows = used_globally(joint.paths, phase)
    if not windows or joint.paths is None:
        return []
    evidence = global_evidence(joint.paths, joint.reports, joint.joint, windows, phase)
    rows = global_verdicts(phase, evidence, mostly_by_entry(joint.paths, windows), thresholds, distorted)
    # A ledger tells the bytes of a rank's step, not which of its kernels a path through all ranks crosses.
    own = rate_verdicts(
        phase,
        [report.evidence[phase] for report in joint.reports if phase in report.evidence],
        thresholds,
        distorted,
    )
    return [own.get(row.id, row) if row.verdict == "unmeasured" else row for row in rows]
