"""Launch calls whose device work is not in the capture."""

from __future__ import annotations

import re

import numpy as np

from analyzer.cuda_api import LAUNCHES
from analyzer.model import IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import BoolArray

_BEGIN = re.compile(r"^(?:cuda|cu|hip)StreamBeginCapture")
_END = re.compile(r"^(?:cuda|cu|hip)StreamEndCapture")


def unrecorded_launches(account: RankAccount) -> tuple[int, int]:
    """How many kernel and graph launches left no device row, and of how many.

    Neither counts launches into a stream capture and launches that failed: they put nothing on the device. (0, 0)
    for a process with several devices, where the work may be recorded on another one, and without any device row.
    """
    work, calls = account.work, account.calls
    if not account.sole_device or not len(work):
        return 0, 0
    launches = np.isin(calls.kind, list(LAUNCHES)) & (calls.result <= 0) & ~_capturing(account)
    silent = launches.copy()
    silent[work.launch[work.linked]] = False
    return int(silent.sum()), int(launches.sum())


def _capturing(account: RankAccount) -> BoolArray:
    """(m,) calls made while some stream of the process was being captured."""
    calls, process = account.calls, account.trace.process
    code = process.host.name[calls.row]

    def instants(pattern: re.Pattern[str], at: IntArray) -> IntArray:
        known = [number for number, name in enumerate(process.names) if pattern.match(name)]
        return np.sort(at[np.isin(code, known)])

    begins, ends = instants(_BEGIN, calls.start_ns), instants(_END, calls.end_ns)
    # Captures that had begun before the first record: so many ends are ahead of the beginnings.
    ahead = np.arange(1, len(ends) + 1) - np.searchsorted(begins, ends, "right")
    before = max(0, int(ahead.max(initial=0)))
    begun = before + np.searchsorted(begins, calls.start_ns, "right")
    return np.asarray(begun > np.searchsorted(ends, calls.start_ns, "right"), bool)
