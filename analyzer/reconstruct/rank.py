"""One rank reconstructed: the stages of this package in order, and what each left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from analyzer.intervals import Intervals
from analyzer.model import HostKind, ProcessTrace, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.reconstruct.arrivals import ArrivalTable, find_arrivals
from analyzer.reconstruct.bindings import Bindings, bind
from analyzer.reconstruct.blocking import HeldCalls, find_held
from analyzer.reconstruct.chains import Chains, find_chains
from analyzer.reconstruct.clocks import DeviceClock, correct
from analyzer.reconstruct.constants import Constants, learn
from analyzer.reconstruct.critical_path import Path, Walker
from analyzer.reconstruct.exposure import ExposureLine, expose
from analyzer.reconstruct.handovers import Transitions, find_transitions
from analyzer.reconstruct.host_account import HostAccount, Roles, mask_of, profiler_intervals
from analyzer.reconstruct.nesting import enclosed
from analyzer.reconstruct.phases import name_phases
from analyzer.reconstruct.replays import Replays, find_replays
from analyzer.reconstruct.step_markers import (
    DISPATCH_RANGES,
    OUTPUT_RANGES,
    PHASE_RANGE,
    SCHEDULING_RANGES,
    clean_names,
    marks_a_step,
)
from analyzer.reconstruct.steps import StepRanges, find_steps
from analyzer.reconstruct.sync_targets import SyncTargets
from analyzer.reconstruct.windows import (
    Assignment,
    Window,
    assign,
    device_windows,
    flagged,
    host_windows,
    whole_window,
)
from analyzer.reconstruct.work import BoolArray, Calls, Work, calls_of, match
from analyzer.rules import Rules, builtin_rules

DEVICE, HOST = "device", "host"


@dataclass(frozen=True)
class RankOptions:
    """What a user can decide about the reconstruction."""

    steps: str | None = None
    dispatch: str | None = None
    output_ranges: str | None = None
    boundary: str = DEVICE
    rules: Rules = field(default_factory=builtin_rules)
    chains: bool = False  # whether other ranks will ask what led to each collective


@dataclass(frozen=True)
class RankAccount:
    """Everything that the explanation of one rank rests on."""

    trace: Trace
    boundary: str
    calls: Calls
    work: Work
    targets: SyncTargets
    clock: DeviceClock
    constants: Constants
    replays: Replays
    held: HeldCalls
    bindings: Bindings
    transitions: Transitions
    account: HostAccount
    profiler: Intervals
    steps: StepRanges
    assignment: Assignment | None
    windows: tuple[Window, ...]
    paths: tuple[Path, ...]
    exposure: ExposureLine | None
    loops_cut: int
    rules: Rules
    arrivals: ArrivalTable
    chains: Chains | None
    sole_device: bool  # the process drives no other one


def reconstruct_rank(
    trace: Trace, options: RankOptions, *, sole_device: bool, progress: Progress | None = None
) -> RankAccount:
    """Run every stage on one rank. Raises StepsError when the asked-for steps cannot be used."""
    progress = progress or NoProgress()
    process = trace.process
    calls = calls_of(process)
    work, clock = correct(match(trace, calls, options.rules), calls, process, sole_device=sole_device)
    constants = learn(work, calls, process)
    replays = find_replays(work, calls, constants.turnaround_ns)
    targets = SyncTargets(work, calls, process, replays)
    slack = 0 if clock.high_ns is None else max(0, clock.high_ns - clock.shift_ns)
    held = find_held(targets, process, sole_device=sole_device, slack_ns=slack)
    bindings = bind(work, calls, process, targets, replays, constants)
    transitions = find_transitions(process, calls, constants.quiet_ns)
    steps = find_steps(process, calls, work, options.steps)
    profiler = profiler_intervals(process, np.flatnonzero(process.host.kind == HostKind.OVERHEAD))
    account = HostAccount(
        process, calls, held, _roles(process, steps, options), device_recorded=len(work) > 0
    )
    walker = Walker(work, calls, bindings, held, transitions, account, profiler, constants.turnaround_ns)
    windows, assignment = _windows(steps, calls, work, process, options.boundary)
    progress.start("walking the critical path", len(windows))
    paths = []
    for window in windows:
        paths.append(walker.walk(window.start_ns, window.end_ns, row=window.row, thread=window.thread))
        progress.advance(1)
    exposure = None
    if len(work) and windows:
        low, high = windows[0].start_ns, max(window.end_ns for window in windows)
        exposure = expose(work, profiler, min(low, *(w.start_ns for w in windows)), high)
    arrivals = find_arrivals(trace, work, calls, assignment, options.rules)
    chains = None
    if options.chains and len(arrivals):
        chains = find_chains(walker, tuple(windows), arrivals.arrivals.row, _first_instant(work, process))
    return RankAccount(
        trace, options.boundary, calls, work, targets, clock, constants, replays, held, bindings, transitions, account,
        profiler, steps, assignment, tuple(windows), tuple(paths), exposure, walker.loops_cut, options.rules,
        arrivals, chains, sole_device,
    )  # fmt: skip


def _first_instant(work: Work, process: ProcessTrace) -> int:
    """When the rank's first record begins."""
    known = [int(times.min()) for times in (work.start_ns, process.host.start_ns) if len(times)]
    return min(known, default=0)


def _windows(
    steps: StepRanges, calls: Calls, work: Work, process: ProcessTrace, boundary: str
) -> tuple[list[Window], Assignment | None]:
    """Windows with phases, warm-up and outliers flagged."""
    if boundary == DEVICE and not len(work):
        return [], None  # other ranks' windows end on the device; this one's work was not recorded
    assignment = assign(steps, calls, work) if len(steps) else None
    if boundary == HOST:
        windows = host_windows(steps, process)
    elif assignment is not None:
        windows = device_windows(steps, assignment, work)
    else:
        windows = whole_window(work)
    phases = name_phases(windows, assignment, work)
    return flagged(windows, phases, steps, calls, process), assignment


def _roles(process: ProcessTrace, steps: StepRanges, options: RankOptions) -> Roles:
    """Host rows with a declared meaning: by engine names, and by what the user declares."""
    return Roles(
        step=_around_steps(process, steps),
        dispatch=_named(process, DISPATCH_RANGES.match) | _declared(process, options.dispatch),
        scheduling=_named(process, SCHEDULING_RANGES.match),
        output=_named(process, OUTPUT_RANGES.match) | _declared(process, options.output_ranges),
    )


def _around_steps(process: ProcessTrace, steps: StepRanges) -> BoolArray:
    """Mask of ranges that hold whole steps: the markers chosen, other step markers, phases around steps.

    A phase inside a step is a part of it like any other range.
    """
    chosen = mask_of(process, steps.rows[steps.rows >= 0])
    phases = np.flatnonzero(_named(process, PHASE_RANGE.match))
    inside = enclosed(process.host, phases, np.flatnonzero(chosen))
    return chosen | _named(process, marks_a_step) | mask_of(process, phases[~inside])


def _declared(process: ProcessTrace, pattern: str | None) -> BoolArray:
    if pattern is None:
        return np.zeros(len(process.host), bool)
    return _named(process, re.compile(pattern).search)


def _named(process: ProcessTrace, matcher: Callable[[str], object]) -> BoolArray:
    """Mask of ranges, ops and frames whose clean name satisfies ``matcher``."""
    host = process.host
    named = np.isin(host.kind, (HostKind.RANGE, HostKind.SPAN, HostKind.OP, HostKind.FRAME))
    return named & clean_names(process.names).matching(matcher)[host.name]
