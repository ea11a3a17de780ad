"""What had been put on the device and was not finished: one entry per launch call, a replay counts once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analyzer.cuda_api import LAUNCHES, CallKind
from analyzer.model import IntArray
from analyzer.reconstruct.work import NO_TIME, BoolArray, Calls, Work

COPIES = (CallKind.COPY_ASYNC, CallKind.COPY_SYNC, CallKind.SET)


@dataclass(frozen=True)
class Submissions:
    """Device work of one rank by the call that submitted it; instants after the clock correction, ns."""

    work: Work
    calls: Calls

    @cached_property
    def first_start_ns(self) -> IntArray:
        """(m,) start of the first work of each call, NO_TIME where none is recorded on this device."""
        first = np.full(len(self.calls), NO_TIME, np.int64)
        rows = np.flatnonzero(self.work.linked)[::-1]
        first[self.work.launch[rows]] = self.work.start_ns[rows]  # latest first: the last write holds
        return first

    @cached_property
    def launched(self) -> BoolArray:
        """(m,) kernel and graph launches whose work is recorded on this device."""
        return np.asarray(np.isin(self.calls.kind, list(LAUNCHES)) & (self.first_start_ns != NO_TIME), bool)

    def latency_ns(self, call: IntArray) -> IntArray:
        """(k,) from the start of each call to the start of its first work.

        At least 0: where the clocks contradict each other the call counts as the later of the two, as on
        the path. Only for calls with recorded work.
        """
        latency: IntArray = np.maximum(self.first_start_ns[call] - self.calls.start_ns[call], 0)
        return latency

    @cached_property
    def changes(self) -> tuple[IntArray, IntArray]:
        """When submissions began and when they were finished, each sorted.

        A row without a launch record counts from its own start, prior work from the beginning.
        """
        work, calls = self.work, self.calls
        done = np.full(len(calls), NO_TIME, np.int64)
        linked = np.flatnonzero(work.linked)
        np.maximum.at(done, work.launch[linked], work.end_ns[linked])
        with_work = np.flatnonzero(done != NO_TIME)
        alone = np.flatnonzero(~work.linked)
        begin = np.concatenate((calls.start_ns[with_work], work.submitted_ns[alone]))
        finish = np.concatenate((done[with_work], work.end_ns[alone]))
        keep = finish > begin
        return np.sort(begin[keep]), np.sort(finish[keep])

    def depth_before(self, instants: IntArray) -> IntArray:
        """(k,) submissions made before each instant and not finished at it."""
        begin, finish = self.changes
        return np.searchsorted(begin, instants, "left") - np.searchsorted(finish, instants, "right")

    def depth_at(self, instants: IntArray) -> IntArray:
        """(k,) the same with those that are made at the instant itself."""
        begin, finish = self.changes
        return np.searchsorted(begin, instants, "right") - np.searchsorted(finish, instants, "right")
