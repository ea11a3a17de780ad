"""What the verdicts rest on once ranks are joined: waiting and transfer per rank, and the global path.

An end of an interval counts the clocks' uncertainty once for every piece of waiting or transfer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from analyzer.across.joint import Joint
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import Evidence, GlobalWindow
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks.global_account import GlobalPaths
from analyzer.explain.verdicts.amounts import amounts, ceiling
from analyzer.explain.verdicts.catalogue import BETWEEN_RANKS, MEASURABLE, RATES, UNMEASURED, Entry
from analyzer.explain.verdicts.facts import DRAM_COUNTERS, SPLIT, TENSOR_COUNTERS
from analyzer.explain.verdicts.hypotheses import (
    EVIDENCE_ROWS,
    FIRST_LINE,
    SEGMENTS_FILE,
    RankEvidence,
    missing,
)
from analyzer.explain.verdicts.shares import WindowShares
from analyzer.explain.windows import used_windows
from analyzer.model import IntArray
from analyzer.tables import NO_EVENT, SegmentTable

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")
LATE = "collective-late-rank"
GLOBAL_FILE = "global_path.csv"


def with_waits(report: RankReport, joint: Joint) -> RankReport:
    """The report of a rank whose collectives were split, with what that says of transfer and late ranks."""
    waits = joint.waits[report.rank.rank]
    if not waits.split.any():
        return report
    clock = joint.alignment.maps.get(report.rank.rank)
    unsure = joint.alignment.uncertainty_ns([report.rank.rank]) if clock is not None else 0
    source = {report.rank.rank: report.rank.source}
    evidence = {}
    for phase, known in report.evidence.items():
        used = used_windows(report.rank, phase)
        step = np.array([window.end_ns - window.start_ns for window in used], np.float64)
        shares, rows = dict(known.shares), dict(known.evidence)
        in_phase = np.isin(report.segments.window, [window.index for window in used])
        for entry in BETWEEN_RANKS:
            mine = _of(used, entry.categories)
            pieces = _pieces(report.segments, [window.index for window in used], entry)
            open_ = _of(used, entry.could_belong)
            shares[entry.id] = WindowShares(
                mine,
                np.maximum(mine - unsure * pieces, 0),
                np.minimum(mine + open_ + unsure * pieces, step),
                step,
            )
            rows[entry.id] = _longest(
                report.segments, in_phase & _is(report.segments, entry), source, SEGMENTS_FILE
            )
        evidence[phase] = replace(known, facts=known.facts | {SPLIT}, shares=shares, evidence=rows)
    return replace(report, evidence=evidence)


def _of(windows: Sequence[object], categories: frozenset[Category]) -> FloatArray:
    names = [CATEGORY_NAMES[category] for category in categories]
    return np.array([sum(window.path_ns[name] for name in names) for window in windows], np.float64)  # type: ignore[attr-defined]


def _is(table: SegmentTable, entry: Entry) -> npt.NDArray[np.bool_]:
    return np.isin(table.category, [int(category) for category in entry.categories])


def _pieces(table: SegmentTable, windows: Sequence[int], entry: Entry) -> IntArray:
    """(w,) segments of the hypothesis in each window."""
    count = np.bincount(table.window[_is(table, entry)], minlength=max([*windows, -1]) + 1)
    return count[np.asarray(windows, np.int64)]


def global_evidence(
    paths: GlobalPaths,
    reports: Sequence[RankReport],
    joint: Joint,
    windows: Sequence[GlobalWindow],
    phase: str,
) -> RankEvidence:
    """The same for the global path over some of its windows (of one phase)."""
    indices = np.array([window.index for window in windows], np.int64)
    rows = np.flatnonzero(np.isin(paths.segments.window, indices))
    facts = paths.facts.take(rows)
    edges = np.append(np.searchsorted(paths.segments.window[rows], indices), len(rows))
    sources = {report.rank.rank: report.rank.source for report in reports}
    elsewhere = _Elsewhere.of(paths.elsewhere[rows], facts.length, edges, reports, windows, phase)
    shares: dict[str, WindowShares] = {}
    evidence: dict[str, list[Evidence]] = {}
    parts = [
        part for report in reports for part in list(report.evidence.values())[:1] if report.rank.device_events
    ]
    common = frozenset.intersection(*(part.facts - {SPLIT} for part in parts))
    counted = [entry for entry in RATES if not missing(entry, common & {DRAM_COUNTERS, TENSOR_COUNTERS})]
    for entry in (*MEASURABLE, *BETWEEN_RANKS, *counted):
        measured = amounts(entry, facts)
        found = _or_unsplit(measured.per_window(facts.length, edges), windows)
        shares[entry.id] = elsewhere.widened(entry.id, found, measured.mine)
        chosen = np.zeros(len(paths.segments), bool)
        chosen[rows[measured.mine > 0]] = True
        evidence[entry.id] = _longest(paths.segments, chosen, sources, GLOBAL_FILE)
    waits = [
        row
        for report in reports
        if phase in report.evidence
        for row in report.evidence[phase].evidence.get(LATE, [])
    ]
    evidence[LATE] = sorted(waits, key=lambda row: (row.start_ns - row.end_ns, row.rank, row.line))[
        :EVIDENCE_ROWS
    ]
    split = {SPLIT} if any(calls.split.any() for calls in joint.calls) else set()
    ranks = list(joint.alignment.maps)
    _widen(shares, paths, windows, joint.alignment.uncertainty_ns(ranks))
    return RankEvidence(
        rank=_mostly(paths.segments, rows),
        device_events=sum(report.rank.device_events for report in reports),
        facts=common | split,
        windows=len(windows),
        shares=shares,
        evidence=evidence,
        clocks_contradict=any(part.clocks_contradict for part in parts),
        ceilings={
            entry.id: ceiling(entry.ceiling, facts).per_window(facts.length, edges)
            for entry in UNMEASURED
            if entry.ceiling
        }
        | {LATE: _late(windows, shares[LATE].step, np.zeros(len(windows)))},
        basis=_first(report.evidence[phase].basis for report in reports if phase in report.evidence),
        why_not=_first(report.evidence[phase].why_not for report in reports if phase in report.evidence),
    )


def _first(tables: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Of each hypothesis what the first rank says."""
    joined: dict[str, T] = {}
    for table in tables:
        joined = {**table, **joined}
    return joined


@dataclass(frozen=True)
class _Elsewhere:
    """How much of each window's path may have lain on another rank, and each rank's own path of that step.

    ``segments``: (s,) which do; ``edges``: (w + 1,) where each window's segments begin; ``open_ns``: (w,) their time.
    ``own``: for each rank its quantities by hypothesis and the position of each window's own one, -1 none.
    """

    segments: npt.NDArray[np.bool_]
    edges: IntArray
    open_ns: FloatArray
    own: tuple[tuple[Mapping[str, WindowShares], IntArray], ...]

    @classmethod
    def of(
        cls,
        segments: npt.NDArray[np.bool_],
        length: IntArray,
        edges: IntArray,
        reports: Sequence[RankReport],
        windows: Sequence[GlobalWindow],
        phase: str,
    ) -> _Elsewhere:
        """``segments`` and ``length``: (s,) of the path over these windows."""
        own = []
        for report in reports if segments.any() else ():
            if phase not in report.evidence:
                continue
            used = used_windows(report.rank, phase)
            position = {window.index: at for at, window in enumerate(used)}
            mine = [position.get(window.windows.get(report.rank.rank, -1), -1) for window in windows]
            own.append((report.evidence[phase].shares, np.array(mine, np.int64)))
        return cls(segments, edges, _per_window(np.where(segments, length, 0), edges), tuple(own))

    def widened(self, name: str, shares: WindowShares, mine: IntArray) -> WindowShares:
        """Ends at which that time holds as much of the hypothesis as it could on any of the ranks."""
        low, high = shares.low.copy(), shares.high.copy()
        in_open = _per_window(np.where(self.segments, mine, 0), self.edges)
        certain_outside, outside = np.maximum(shares.low - in_open, 0), shares.value - in_open
        for quantities, at in self.own:
            rows = np.flatnonzero((at >= 0) & (self.open_ns > 0))
            if name not in quantities or not len(rows):
                continue
            theirs, step = quantities[name].value[at[rows]], quantities[name].step[at[rows]]
            least = np.maximum(theirs - np.maximum(step - self.open_ns[rows], 0), 0)
            most = np.minimum(theirs, self.open_ns[rows])
            low[rows] = np.minimum(low[rows], certain_outside[rows] + least)
            high[rows] = np.maximum(high[rows], outside[rows] + most)
        return WindowShares(shares.value, low, np.minimum(high, shares.step), shares.step)


def _per_window(column: IntArray, edges: IntArray) -> FloatArray:
    return np.diff(np.concatenate(([0], np.cumsum(column)))[edges]).astype(np.float64)


def _or_unsplit(shares: WindowShares, windows: Sequence[GlobalWindow]) -> WindowShares:
    """What a hypothesis holds at most where a call was not split: the path may have been on another rank then."""
    unsplit = np.array([window.path_ns["collective.unsplit"] for window in windows], np.float64)
    return WindowShares(shares.value, shares.low, np.minimum(shares.high + unsplit, shares.step), shares.step)


def _widen(
    shares: dict[str, WindowShares],
    paths: GlobalPaths,
    windows: Sequence[GlobalWindow],
    unsure: int,
) -> None:
    """Give the hypotheses between ranks their quantity on the global path and the clocks' uncertainty.

    The path itself leaves a rank where it waits: what was waited is a figure of its own.
    """
    indices = np.array([window.index for window in windows], np.int64)
    waits = paths.waits[indices].astype(np.float64)
    transfer = shares["collective-transfer"]
    shares["collective-transfer"] = WindowShares(
        transfer.value,
        np.maximum(transfer.low - unsure * waits, 0),
        np.minimum(transfer.high + unsure * waits, transfer.step),
        transfer.step,
    )
    shares[LATE] = _late(windows, shares[LATE].step, unsure * waits)


def _late(windows: Sequence[GlobalWindow], step: FloatArray, unsure: FloatArray) -> WindowShares:
    """Waits for late ranks; at most also all time in which calls ran whose waiting could not be told apart."""
    waited = np.array([window.waited_ns for window in windows], np.float64)
    most = np.array([window.waited_at_most_ns for window in windows], np.float64)
    return WindowShares(waited, np.maximum(waited - unsure, 0), np.minimum(most + unsure, step), step)


def _mostly(table: SegmentTable, rows: IntArray) -> int:
    """The rank with the most time of the path."""
    if not len(rows):
        return 0
    time = np.bincount(np.maximum(table.rank[rows], 0), weights=(table.end_ns - table.start_ns)[rows])
    return int(np.argmax(time))


def mostly_by_entry(paths: GlobalPaths, windows: Sequence[GlobalWindow]) -> dict[str, int]:
    """For each hypothesis the rank on which most of its time on the global path lies."""
    indices = [window.index for window in windows]
    rows = np.flatnonzero(np.isin(paths.segments.window, indices))
    result = {}
    for entry in (*MEASURABLE, *BETWEEN_RANKS, *RATES):
        mine = amounts(entry, paths.facts.take(rows)).mine
        time = np.bincount(np.maximum(paths.segments.rank[rows], 0), weights=mine)
        if len(time) and time.max() > 0:
            result[entry.id] = int(np.argmax(time))
    late: dict[int, int] = {}
    for window in windows:
        for rank, waited in window.late_wait_ns.items():
            late[rank] = late.get(rank, 0) + waited
    if late:
        result[LATE] = min(late, key=lambda rank: (-late[rank], rank))
    return result


def _longest(
    table: SegmentTable, chosen: npt.NDArray[np.bool_], sources: Mapping[int, str], file: str
) -> list[Evidence]:
    """The longest of the chosen segments, with the event of the input behind each."""
    rows = np.flatnonzero(chosen)
    length = (table.end_ns - table.start_ns)[rows]
    shown = rows[np.lexsort((table.start_ns[rows], -length))[:EVIDENCE_ROWS]]
    return [
        Evidence(
            file=file,
            line=at + FIRST_LINE,
            rank=int(table.rank[at]),
            window=int(table.window[at]),
            start_ns=int(table.start_ns[at]),
            end_ns=int(table.end_ns[at]),
            event=table.names[table.name[at]] if table.name[at] >= 0 else "(nothing recorded)",
            input=sources.get(int(table.rank[at]), ""),
            event_start_ns=None if table.event_start_ns[at] == NO_EVENT else int(table.event_start_ns[at]),
        )
        for at in shown.tolist()
    ]
