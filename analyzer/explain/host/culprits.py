"""What the CPU did in the time that the path spent on it."""

from __future__ import annotations

import numpy as np

from analyzer.arrays import distinct, group
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import HostCulprit
from analyzer.explain.segments import merge_suffixes, place_of_thread
from analyzer.model import HostKind, IntArray
from analyzer.reconstruct.critical_path import ON_HOST, Path
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import clean_name

KEEP = 40
"""Culprits kept per phase: the rest is in segments.csv."""
MAX_STACK = 12


def host_culprits(account: RankAccount, rank: int) -> list[HostCulprit]:
    """Path time on the CPU by category, thread and innermost record, longest first, per phase."""
    flagged = {window.phase for window in account.windows if not window.empty and not window.warmup_reasons}
    phases: dict[str, list[Path]] = {}
    for window, path in zip(account.windows, account.paths, strict=True):
        if window.phase in flagged and window.warmup_reasons:
            continue
        phases.setdefault(window.phase, []).append(path)
    return [culprit for phase in sorted(phases) for culprit in _of_phase(account, rank, phase, phases[phase])]


def _of_phase(account: RankAccount, rank: int, phase: str, paths: list[Path]) -> list[HostCulprit]:
    process = account.trace.process
    host = [path.side == ON_HOST for path in paths]

    def column(name: str) -> IntArray:
        parts = [getattr(path, name)[mask] for path, mask in zip(paths, host, strict=True)]
        return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)

    start, end, category = column("start_ns"), column("end_ns"), column("category")
    ref, thread = column("ref"), column("thread")
    window = np.repeat(np.arange(len(paths)), [int(mask.sum()) for mask in host])
    if not len(start):
        return []
    name = np.where(ref >= 0, process.host.name[np.maximum(ref, 0)], -1) if len(process.host) else ref
    name = merge_suffixes(process, name)
    groups, inverse = group([category, thread, name])
    time = np.zeros(len(groups), np.int64)
    np.add.at(time, inverse, end - start)
    counts = np.bincount(inverse, minlength=len(groups))
    texts = [clean_name(process.names[code]) if code >= 0 else "(nothing recorded)" for _, _, code in groups]
    order = sorted(range(len(groups)), key=lambda at: (-time[at], *groups[at][:2], texts[at]))
    result = []
    for at in order[:KEEP]:
        members = np.flatnonzero(inverse == at)
        longest = int(members[np.argmax((end - start)[members])])
        stack = _stack(account, int(thread[longest]), int(start[longest]), int(end[longest]))
        frames = [text for kind, text in stack if kind == HostKind.FRAME]
        result.append(
            HostCulprit(
                rank=rank,
                phase=phase,
                category=CATEGORY_NAMES[Category(groups[at][0])],
                thread=place_of_thread(process, groups[at][1]),
                name=texts[at],
                stack=[text for _, text in stack][-MAX_STACK:],
                frame=frames[-1] if frames else None,
                path_ns=int(time[at]),
                segments=int(counts[at]),
                windows=len(paths),
                windows_with=len(distinct(window[members])),
            )
        )
    return result


def _stack(account: RankAccount, thread: int, start: int, end: int) -> list[tuple[int, str]]:
    """Records of the thread that enclose ``[start, end)``, outermost first."""
    process = account.trace.process
    rows = account.account.rows_of(thread)
    host = process.host
    before = rows[: np.searchsorted(host.start_ns[rows], start, side="right")]
    around = before[(host.end_ns[before] >= end) & (host.kind[before] != HostKind.SPAN)]
    return [
        (int(host.kind[row]), process.names[host.name[row]] if host.name[row] >= 0 else "")
        for row in around.tolist()
    ]
