"""Launches, and path time on the CPU."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.quantiles import Quantiles


class LaunchBill(msgspec.Struct, frozen=True, kw_only=True):
    """What submitting the work of one phase costs one rank, over the windows of its budget.

    Sums of durations on several threads are no wall time. ``slot_ns`` is a budget: the mean step over the
    launches of a step, not what a launch costs.
    """

    rank: int
    phase: str
    windows: int
    launches_total: int  # kernel launch calls, a graph launch counts once
    graph_launches_total: int
    copy_calls_total: int  # copies and sets
    kernels_total: int | None  # recorded one by one; None: no device work was recorded
    kernels_in_graphs_total: int | None  # None also where replays were recorded as one row each
    launch_api_ns_total: int  # durations of launch calls that the device did not hold, summed
    held_launches_total: int
    path_launch_ns_total: int  # launch.* on the path
    slot_ns: int | None
    api_ns: Quantiles | None  # per launch call that was not held
    latency_ns: Quantiles | None  # from the start of the call to the start of its (first) work
    idle_latency_ns: Quantiles | None  # the same where the device was idle at the call
    depth_at_launch: Quantiles | None  # submissions before it that are not finished (a count, no ns)
    run_ahead_ns: Quantiles | None  # at the end of the call: how long until its work starts


class HostRollup(msgspec.Struct, frozen=True, kw_only=True):
    """Path time on the CPU of one phase and rank, rolled up ``by`` one kind of record."""

    rank: int
    phase: str
    by: str  # call (CUDA) | os (OS runtime call) | op | range | frame | thread
    name: str  # "(none recorded)": no such record was open; "(other)": all beyond those listed
    category: str  # with the most of this path time
    path_ns: int
    windows: int
    windows_with: int  # windows in which it was on the path
    segments: int


class LookFirst(msgspec.Struct, frozen=True, kw_only=True):
    """The one record on the CPU to look at first in one phase, and why that one."""

    rank: int
    phase: str
    name: str
    by: str  # as in HostRollup
    category: str
    path_ns: int
    per_step_ns: int  # mean over the windows of the budget, rounded down
    segments_per_step: float
    share_of_host: float  # of the path time on the CPU, 0..1
    windows_with: int
    why: str


class HostCulprit(msgspec.Struct, frozen=True, kw_only=True):
    """Path time on the CPU by what the CPU was doing: the answer to "what ran in the gaps"."""

    rank: int
    phase: str
    category: str
    thread: str
    name: str
    stack: list[str]
    frame: str | None
    path_ns: int
    segments: int
    windows: int  # of the budget
    windows_with: int  # windows in which it was on the path
