"""Nsight Compute's counters laid beside the launches of a trace.

Nsight Compute replays kernels one at a time, by default at base clocks and with flushed caches. The bytes of a launch
carry over to the traced run, its duration does not: throughput is those bytes over the duration in the trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analyzer.categories import Category
from analyzer.explain.bytes.codes import FloatArray
from analyzer.kernel_names import base_name, full_name, loose_name
from analyzer.model import IntArray
from analyzer.readers.ncu_csv import CounterFile, LaunchCounters
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import BoolArray

MOST_OF_PEAK = 1.05
"""More than this share of the peak cannot be: the bytes were counted in a run that the trace is not like."""


@dataclass(frozen=True)
class Matched:
    """(n,) per row of Work, NaN where nothing was counted: least, mean and most over the launches counted alike.

    ``arithmetic``: share of the peak of the busiest arithmetic pipe (0..1) under Nsight Compute. ``absent``: names that
    the trace lacks.
    """

    kernels: BoolArray  # (n,) kernels that could have counters: recorded one by one, no collectives
    least_bytes: FloatArray
    bytes: FloatArray
    most_bytes: FloatArray
    arithmetic_low: FloatArray
    arithmetic: FloatArray
    arithmetic_high: FloatArray
    absent: tuple[str, ...]
    names: int  # kernel names of the files
    matched: int  # of them in the trace


_COLUMNS = ("least_bytes", "bytes", "most_bytes", "arithmetic_low", "arithmetic", "arithmetic_high")


def matched(account: RankAccount, files: Iterable[CounterFile]) -> Matched:
    """Counters of each row: by full name where the file has it, else by base name; and by grid and block, if told."""
    work = account.work
    kernels: BoolArray = work.kernels & (work.own_label == Category.KERNEL)
    columns = {name: np.full(len(work), np.nan) for name in _COLUMNS}
    launches = [launch for file in files for launch in file.launches]
    of_name = _Names(
        launches, [account.trace.process.name_of(int(c)) for c in np.unique(work.table.name[kernels])]
    )
    used: set[str] = set()
    for rows in _alike(account, np.flatnonzero(kernels)):
        found = of_name.launches(account.trace.process.name_of(int(work.table.name[rows[0]])))
        used |= {launch.name for launch in found}
        shape = [launch for launch in found if _fits(account, int(rows[0]), launch)]
        for column, value in zip(_COLUMNS, _figures(shape), strict=True):
            columns[column][rows] = value
    names = dict.fromkeys(launch.name for launch in launches)
    absent = tuple(name for name in names if name not in used)
    return Matched(kernels, **columns, absent=absent, names=len(names), matched=len(names) - len(absent))


class _Names:
    """Launches by the names of a trace. Nsight Compute can leave out arguments, templates, and namespaces as well, and
    spells all of them in another way than Kineto.
    """

    def __init__(self, launches: Iterable[LaunchCounters], traced: Iterable[str]) -> None:
        self._full: dict[str, list[LaunchCounters]] = {}
        self._loose: dict[str, list[LaunchCounters]] = {}
        self._base: dict[str, list[LaunchCounters]] = {}
        for launch in launches:
            self._full.setdefault(full_name(launch.name), []).append(launch)
            self._loose.setdefault(loose_name(launch.name), []).append(launch)
            if full_name(launch.name) == base_name(launch.name):
                self._base.setdefault(base_name(launch.name), []).append(launch)
        self._alone = Counter(base.rpartition("::")[2] for base in {base_name(name) for name in traced})

    def launches(self, name: str) -> list[LaunchCounters]:
        """Those of one kernel; without namespaces only where a single kernel of the trace is called so."""
        base = base_name(name)
        short = base.rpartition("::")[2]
        found = self._full.get(full_name(name)) or self._loose.get(loose_name(name)) or self._base.get(base)
        return found or (self._base.get(short, []) if self._alone[short] == 1 else [])


def _alike(account: RankAccount, rows: IntArray) -> list[IntArray]:
    """Rows of one name, grid and block together."""
    if not len(rows):
        return []
    table = account.work.table
    key = np.column_stack((table.name[rows], table.grid[rows], table.block[rows]))
    order = np.lexsort(key.T[::-1])
    edges = np.flatnonzero(np.any(np.diff(key[order], axis=0) != 0, axis=1)) + 1
    return np.split(rows[order], edges)


def _fits(account: RankAccount, row: int, launch: LaunchCounters) -> bool:
    """Whether grid and block are the same, as far as both sides tell them."""
    table = account.work.table
    pairs = ((launch.grid, table.grid[row].tolist()), (launch.block, table.block[row].tolist()))
    return all(told is None or min(seen) <= 0 or list(told) == seen for told, seen in pairs)


def _figures(launches: list[LaunchCounters]) -> tuple[float, ...]:
    """Least, mean, most bytes; least, mean, most share of the arithmetic peak.

    A pipe that was measured says nothing of the others: at most it is the busiest of everything in the SMs, where that
    was measured, else all.
    """
    size = [launch.bytes for launch in launches if launch.bytes is not None]
    pipe = [launch.pipe_pct / 100 for launch in launches if launch.pipe_pct is not None]
    whole = [launch.sm_pct / 100 for launch in launches if launch.sm_pct is not None]
    nothing = (np.nan,) * 3
    bytes_ = (min(size), sum(size) / len(size), max(size)) if size else nothing
    if not pipe and not whole:
        return (*bytes_, *nothing)
    least, mean = (min(pipe), sum(pipe) / len(pipe)) if pipe else (0.0, 0.0)
    return (*bytes_, least, mean, max([*whole, mean]) if whole else 1.0)


def beyond_peak(account: RankAccount, found: Matched, bytes_per_s: float) -> BoolArray:
    """(n,) rows whose counted bytes their duration in the trace could not hold."""
    work = account.work
    with np.errstate(invalid="ignore"):
        most = np.maximum(work.end_ns - work.start_ns, 1) / 1e9 * bytes_per_s * MOST_OF_PEAK
        return np.asarray(found.bytes > most, np.bool_)


def throughput(
    account: RankAccount, found: Matched, bytes_per_s: float
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Least, mean and most share of the bandwidth of each row (n,), and how many rows would exceed it: NaN there."""
    work = account.work
    peak = np.maximum(work.end_ns - work.start_ns, 1) / 1e9 * bytes_per_s
    low, middle, high = found.least_bytes / peak, found.bytes / peak, found.most_bytes / peak
    beyond = beyond_peak(account, found, bytes_per_s)
    low, middle, high = (np.where(beyond, np.nan, one) for one in (low, middle, high))
    return low, middle, high, int(beyond.sum())
