"""Processes that are no ranks where only calls of the OS runtime tell who did what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.intervals import measure, union
from analyzer.model import HostKind
from analyzer.readers.nsys_sqlite.host import HostRows
from analyzer.readers.nsys_sqlite.identifiers import pid_of

_WAIT = re.compile(r"_*wait(3|4|pid|id)?")
"""Calls that wait for a child process."""
BLOCKED = 0.9
"""Of the time of those that it started, so much at least a launcher's main thread is blocked."""
COVERED = 0.5
"""Those that a launcher started run at least so much of the time that is left to it when the first of them begins."""


@dataclass(frozen=True)
class _Process:
    """``begin_ns`` to ``end_ns``: its first and last call; ``waits``: it waited for a child."""

    process: int
    begin_ns: int
    end_ns: int
    waits: bool


def bystanders(host: HostRows, names: Sequence[str]) -> dict[int, str]:
    """Processes (globalPid) that are no ranks by their OS calls, each with what it did, in words.

    A launcher waits for children, which none of the others does, is there before and after them, and stands still while
    they run: its main thread is blocked for most of that time, and for more of it than theirs of their own. A program
    that runs a helper beside its own work is none, and neither is one whose helpers end soon.

    Of the others the ranks run at one time, that of the longest. What ended before that one began, or began after its
    end, is a step of a script.
    """
    found = [_process(host, names, int(process)) for process in np.unique(host.process)]
    processes = [one for one in found if one is not None]
    workers = [one for one in processes if not one.waits]
    launchers = [one for one in processes if one.waits and _only_waits_for(one, _inside(one, workers), host)]
    others = [one for one in processes if one not in launchers]
    longest = max(others, key=lambda one: one.end_ns - one.begin_ns, default=None)
    apart = [
        one for one in others
        if longest and (one.end_ns <= longest.begin_ns or longest.end_ns <= one.begin_ns)
    ]  # fmt: skip
    return {
        **dict.fromkeys(
            (one.process for one in launchers), "waited for child processes while the others ran"
        ),
        **dict.fromkeys((one.process for one in apart), "ran before or after the one that ran longest"),
    }


def _process(host: HostRows, names: Sequence[str], process: int) -> _Process | None:
    rows = np.flatnonzero((host.process == process) & (host.kind == HostKind.OS))
    if not len(rows):
        return None
    called = {names[code] for code in np.unique(host.name[rows]).tolist() if code >= 0}
    waits = any(_WAIT.fullmatch(name) for name in called)
    return _Process(process, int(host.start_ns[rows].min()), int(host.end_ns[rows].max()), waits)


def _inside(one: _Process, others: Sequence[_Process]) -> list[_Process]:
    return [other for other in others if one.begin_ns <= other.begin_ns and other.end_ns <= one.end_ns]


def _only_waits_for(one: _Process, workers: Sequence[_Process], host: HostRows) -> bool:
    if not workers:
        return False
    begin = min(worker.begin_ns for worker in workers)
    end = max(worker.end_ns for worker in workers)
    if end - begin < COVERED * (one.end_ns - begin):
        return False
    blocked = _blocked(one.process, begin, end, host)
    busier = all(_blocked(w.process, w.begin_ns, w.end_ns, host) < blocked for w in workers)
    return blocked >= BLOCKED and busier


def _blocked(process: int, begin_ns: int, end_ns: int, host: HostRows) -> float:
    """Share of a time in which the process's main thread was inside calls of the OS runtime."""
    rows = np.flatnonzero((host.thread == (process | pid_of(process))) & (host.kind == HostKind.OS))
    start = np.maximum(host.start_ns[rows], begin_ns)
    end = np.minimum(host.end_ns[rows], end_ns)
    inside = end > start
    return measure(union(start[inside], end[inside])) / max(end_ns - begin_ns, 1)
