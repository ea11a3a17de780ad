"""Transfers of collectives: the calls whose waiting is told apart, with size, latency, step and contention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.across.joint import Joint
from analyzer.across.parts import RankPart
from analyzer.across.waits import BoolArray, Calls
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks.collectives import kinds_of, shortest, steps_of
from analyzer.explain.ranks.contention import contended
from analyzer.explain.ranks.global_account import GlobalPaths
from analyzer.explain.ranks.protocols import Protocol, protocol_of
from analyzer.latency_fit import Samples
from analyzer.model import IntArray

STEPS = 5
"""Steps are the blocks of an interval from this number on, where each half of the range of sizes ..."""
STEPS_OF_HALF = 2
"""... occurs in so many of them; else calls ..."""
STRETCHES = 200
"""... at most so many blocks: of more each is a stretch of steps or calls in a row."""


@dataclass(frozen=True)
class CallKind:
    """What calls of one price have in common."""

    operation: str
    dtype: str | None
    family: str | None
    how: Protocol
    in_graph: bool


@dataclass(frozen=True)
class Transfers:
    """(n,) columns of split calls of one group and kind, in order of time.

    ``latency_ns``: the shortest member's duration; the last rank to come has waited for nobody, so that it is the
    transfer, and no error of the clocks enters it. A sender may leave early, so that a send and a receive end with the
    receiver, on the common clock. ``bytes``, ``step``: -1 not known, in no step that counts.
    """

    bytes: IntArray
    latency_ns: IntArray
    step: IntArray
    contended: BoolArray

    def __len__(self) -> int:
        return len(self.bytes)

    def take(self, rows: IntArray | BoolArray) -> Transfers:
        """Some of them, by positions or a mask."""
        return Transfers(self.bytes[rows], self.latency_ns[rows], self.step[rows], self.contended[rows])

    def samples(self) -> tuple[Samples, str]:
        """The calls in blocks for an interval, and what the blocks are: "steps" or "calls"."""
        steps, place = np.unique(self.step, return_inverse=True)
        by_steps = len(steps) >= STEPS and bool(steps[0] >= 0) and self._half_in_steps() >= STEPS_OF_HALF
        n, place = (len(steps), place) if by_steps else (len(self), np.arange(len(self)))
        stretches = np.asarray(place, np.int64) * min(n, STRETCHES) // max(n, 1)
        return Samples(self.bytes, self.latency_ns, stretches), "steps" if by_steps else "calls"

    def upper_half(self) -> BoolArray:
        """(n,) sizes above the geometric middle of the range, or on it."""
        size = self.bytes.astype(np.float64)
        return np.asarray(size**2 >= size.min() * size.max(), np.bool_)

    def _half_in_steps(self) -> int:
        """In how many steps the rarer half of the range occurs: of a single one drawing steps anew tells nothing."""
        upper = self.upper_half()
        return min(len(np.unique(self.step[upper])), len(np.unique(self.step[~upper])))


@dataclass(frozen=True)
class KindOfCalls:
    """The calls of one group and kind: all of them, and those that have a price."""

    calls: Calls
    kind: CallKind
    rows: IntArray  # into calls
    transfers: Transfers


def kinds_of_calls(
    reports: Sequence[RankReport], joint: Joint, paths: GlobalPaths | None
) -> Iterator[KindOfCalls]:
    """Every group and kind of collective. Of calls in steps only those of steps that count have a price."""
    by_rank = {report.rank.rank: report for report in reports}
    parts = {rank: report.part for rank, report in by_rank.items()}
    counted = _counted(paths)
    for calls in joint.calls:
        if not len(calls):
            continue
        kinds, sizes = _kinds(calls, by_rank), _sizes(calls, parts)
        step = steps_of(calls, np.arange(len(calls)), parts, counted)
        latency = latencies(calls, parts)
        beside = contended(calls, joint, by_rank)
        codes = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
        code_of = np.array([codes[kind] for kind in kinds], np.int64)
        for kind, code in codes.items():
            rows = np.flatnonzero(code_of == code)
            priced = rows[calls.split[rows]]
            if (step[priced] >= 0).any():
                priced = priced[step[priced] >= 0]
            priced = priced[np.argsort(calls.latest_ns[priced], kind="stable")]
            yield KindOfCalls(
                calls, kind, rows, Transfers(sizes[priced], latency[priced], step[priced], beside[priced])
            )


def _kinds(calls: Calls, by_rank: Mapping[int, RankReport]) -> list[CallKind]:
    """What each call is, by the first member that recorded it."""
    parts = {rank: report.part for rank, report in by_rank.items()}
    kinds = kinds_of(calls, parts)
    first = np.argmax(calls.group.calls >= 0, axis=1)
    result = []
    for at, kind in enumerate(kinds):
        part = parts[calls.group.members[int(first[at])]]
        kernel = part.table.text(int(part.arrivals.kernel[calls.group.calls[at, first[at]]]))
        result.append(CallKind(kind.operation, kind.dtype, kind.family, protocol_of(kernel), kind.in_graph))
    return result


def _sizes(calls: Calls, parts: Mapping[int, RankPart]) -> IntArray:
    """(k,) size of each call, of the member with most where they differ; -1 where no member recorded it."""
    size = np.full(len(calls), -1, np.int64)
    for column, rank in enumerate(calls.group.members):
        rows = calls.group.calls[:, column]
        has = np.flatnonzero(rows >= 0)
        size[has] = np.maximum(size[has], parts[rank].arrivals.bytes[rows[has]])
    return size


def latencies(calls: Calls, parts: Mapping[int, RankPart]) -> IntArray:
    """(k,) transfer of each call: the shortest duration; of a send and a receive until the receiver has it."""
    latency = shortest(calls, np.arange(len(calls)))
    pairs = np.array([operation == "send/recv" for operation in calls.operation], bool) & calls.split
    for column, rank in enumerate(calls.group.members):
        own, table = calls.group.calls[:, column], parts[rank].table
        mine = np.flatnonzero(pairs & (own >= 0))
        mine = mine[[table.text(int(code)) == "recv" for code in table.arrivals.operation[own[mine]]]]
        latency[mine] = calls.transfer_ns[mine, column]
    return latency


def _counted(paths: GlobalPaths | None) -> dict[int, dict[int, int]]:
    """By rank, the global step of each of its windows, where that step is neither warm-up nor outlier."""
    steps: dict[int, dict[int, int]] = {}
    for window in paths.account.windows if paths is not None else ():
        if not (window.left_out or window.empty):
            for rank, at in window.windows.items():
                steps.setdefault(rank, {})[at] = window.index
    return steps
