"""Which processes of a file are ranks, on which devices, and what the others did instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.model import HostKind, QualityEntry
from analyzer.readers.nsys_sqlite.bystanders import bystanders
from analyzer.readers.nsys_sqlite.host import HostRows
from analyzer.readers.nsys_sqlite.identifiers import NO_PROCESS, pid_of
from analyzer.readers.nsys_sqlite.processes import UNKNOWN_DEVICE

LEFT_OUT = "process-without-rank"
"""In the ledger: processes that were recorded and are no ranks."""
_NAMED_PIDS = 8
_LAUNCH = re.compile(r"^(cuda|cu|hip)(Graph)?Launch(?!HostFunc)")
_RANGES = (HostKind.RANGE, HostKind.SPAN, HostKind.MARK)


@dataclass(frozen=True)
class Members:
    """``ranks``: (process, device), UNKNOWN_DEVICE where no device work was recorded.

    ``left_out``: the other processes, each with what it did, in words behind "it" or "they".
    """

    ranks: list[tuple[int, int]]
    left_out: dict[int, str]

    def quality(self) -> tuple[QualityEntry, ...]:
        """The processes that are left out, counted by what they did."""
        total = len({process for process, _ in self.ranks}) + len(self.left_out)
        reasons = sorted(set(self.left_out.values()))
        return tuple(self._entry(reason, total) for reason in reasons) if self.ranks else ()

    def _entry(self, reason: str, total: int) -> QualityEntry:
        pids = sorted(pid_of(process) for process, why in self.left_out.items() if why == reason)
        shown = ", ".join(map(str, pids[:_NAMED_PIDS])) + (", ..." if len(pids) > _NAMED_PIDS else "")
        one = len(pids) == 1
        which = f"process {shown} is no rank: it" if one else f"processes {shown} are no ranks: they"
        effect = f"{which} {reason}; what was recorded of {'it' if one else 'them'} is left out"
        return QualityEntry(LEFT_OUT, len(pids), total, effect)


def members(on_device: Iterable[tuple[int, int]], host: HostRows, names: Sequence[str]) -> Members:
    """Device work decides, then launches, then API calls and ranges, then OS calls. ``names`` by the rows' codes.

    ``on_device``: (process, device) of the device work.
    """
    ranks = sorted(set(on_device))
    is_call = host.kind == HostKind.CALL
    apart: dict[int, str] = {}
    if ranks:
        launches = [code for code, name in enumerate(names) if _LAUNCH.match(name)]
        others = host.process[is_call & np.isin(host.name, launches)]
        reason = "launched nothing on a device, as others did"
    else:
        others = host.process[is_call | np.isin(host.kind, _RANGES)]
        reason = "recorded neither API calls nor ranges, as others did"
        if not len(others):
            others = host.process[host.kind == HostKind.OS]
            reason = "called nothing of the OS runtime, as others did"
            apart = bystanders(host, names)
    with_work = {process for process, _ in ranks}
    extra = set(np.unique(others).tolist()) - with_work - {NO_PROCESS} - apart.keys()
    ranks += [(process, UNKNOWN_DEVICE) for process in sorted(extra)]
    rest = set(np.unique(host.process).tolist()) - {NO_PROCESS} - with_work - extra - apart.keys()
    return Members(ranks, {**dict.fromkeys(rest, reason), **apart})
