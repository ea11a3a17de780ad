"""What the CPU did in the time that the path spent on it."""

from __future__ import annotations

import numpy as np

from analyzer.arrays import distinct, group
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import HostCulprit
from analyzer.explain.host.on_path import HostSegments, host_segments
from analyzer.explain.phase_windows import PhaseWindows, sums
from analyzer.explain.segments import merge_suffixes, place_of_thread
from analyzer.model import HostKind
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import clean_name

KEEP = 40
"""Culprits kept per phase: the rest is in segments.csv."""
MAX_STACK = 12
NOT_RECORDED = "(nothing recorded)"


def host_culprits(account: RankAccount, rank: int, phases: PhaseWindows) -> list[HostCulprit]:
    """Path time on the CPU by category, thread and innermost record, longest first, per phase."""
    segments = host_segments(phases)
    return [
        culprit
        for phase in distinct(segments.phase).tolist()
        for culprit in _of_phase(account, rank, phases, phase, segments.of_phase(phase))
    ]


def _of_phase(
    account: RankAccount, rank: int, phases: PhaseWindows, phase: int, segments: HostSegments
) -> list[HostCulprit]:
    process = account.trace.process
    name = np.full(len(segments), -1, np.int64)
    known = segments.row >= 0
    name[known] = process.host.name[segments.row[known]]
    name = merge_suffixes(process, name)
    groups, inverse = group([segments.category, segments.thread, name])
    time = sums(inverse, segments.length_ns, len(groups))
    counts = np.bincount(inverse, minlength=len(groups))
    texts = [clean_name(process.names[code]) if code >= 0 else NOT_RECORDED for _, _, code in groups]
    order = sorted(range(len(groups)), key=lambda at: (-time[at], *groups[at][:2], texts[at]))
    result = []
    for at in order[:KEEP]:
        members = np.flatnonzero(inverse == at)
        longest = int(members[np.argmax(segments.length_ns[members])])
        stack = _stack(account, segments, longest)
        frames = [text for kind, text in stack if kind == HostKind.FRAME]
        result.append(
            HostCulprit(
                rank=rank,
                phase=phases.phases[phase],
                category=CATEGORY_NAMES[Category(groups[at][0])],
                thread=place_of_thread(process, groups[at][1]),
                name=texts[at],
                stack=[text for _, text in stack][-MAX_STACK:],
                frame=frames[-1] if frames else None,
                path_ns=int(time[at]),
                segments=int(counts[at]),
                windows=int(phases.windows[phase]),
                windows_with=len(distinct(segments.window[members])),
            )
        )
    return result


def _stack(account: RankAccount, segments: HostSegments, at: int) -> list[tuple[int, str]]:
    """Records of the thread that enclose a segment, outermost first.

    Without step markers: they hold everything, and the number of one step beside a figure of all misleads.
    """
    process = account.trace.process
    rows = account.account.rows_of(int(segments.thread[at]))
    host = process.host
    start, end = segments.start_ns[at], segments.start_ns[at] + segments.length_ns[at]
    before = rows[: np.searchsorted(host.start_ns[rows], start, side="right")]
    told = (host.kind[before] != HostKind.SPAN) & ~account.account.roles.step[before]
    around = before[(host.end_ns[before] >= end) & told]
    return [
        (int(host.kind[row]), process.names[host.name[row]] if host.name[row] >= 0 else "")
        for row in around.tolist()
    ]
