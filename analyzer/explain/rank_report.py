"""Everything that one rank contributes to a diagnosis, small enough to travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analyzer.across.parts import RankPart
from analyzer.cuda_api import LAUNCHES
from analyzer.diagnosis import (
    ClassTime,
    Clock,
    Constants,
    Detail,
    Device,
    DeviceSpan,
    GraphReplay,
    HostCulprit,
    HostRollup,
    Kernel,
    KernelShape,
    LaunchBill,
    RangeTime,
    Rank,
    ShapeReplays,
    SmallKernels,
    StepSequence,
    StepWork,
)
from analyzer.diagnosis import Window as WindowResult
from analyzer.errors import UsageError
from analyzer.explain.bytes.evidence import with_counters
from analyzer.explain.bytes.given import NOTHING, Given
from analyzer.explain.bytes.rank_rates import NEAR_PEAK, RankRates, counters_of, rank_rates, roof_of_rank
from analyzer.explain.detail import detail_step
from analyzer.explain.device.classes import row_classes
from analyzer.explain.device.grids import coverage
from analyzer.explain.device.kernels import body_path_time, kernel_table
from analyzer.explain.device.rollups import class_times, graph_replays, small_kernels
from analyzer.explain.device.shape_replays import shape_replays
from analyzer.explain.device.shapes import kernel_shapes
from analyzer.explain.device.step_sequence import step_sequences
from analyzer.explain.device.step_work import step_work
from analyzer.explain.host.culprits import host_culprits
from analyzer.explain.host.rollups import host_rollups
from analyzer.explain.launches.bill import launch_bills
from analyzer.explain.launches.queue import queue_table
from analyzer.explain.launches.ranges import range_times
from analyzer.explain.phase_windows import phase_windows
from analyzer.explain.quality import rank_entries
from analyzer.explain.ranks.links import Links, arrival_of_segment, find_links
from analyzer.explain.segments import place_of_thread, segment_table
from analyzer.explain.verdicts.hypotheses import RankEvidence, gather
from analyzer.explain.windows import AnyWindow, own_calls, phases_of, used_windows, window_results
from analyzer.intervals import Intervals
from analyzer.model import IntArray, QualityEntry, Trace
from analyzer.predict.cut import cut
from analyzer.predict.rank_graph import RankGraph, rank_graph
from analyzer.reconstruct.exposure import beside_collectives, busy_time
from analyzer.reconstruct.rank import RankAccount, RankOptions, reconstruct_rank
from analyzer.reconstruct.windows import Window
from analyzer.reconstruct.work import NO_TIME
from analyzer.tables import DetailTable, QueueTable, SegmentTable


@dataclass(frozen=True)
class StepsFound:
    """How this rank's steps were found."""

    rule: str
    pattern: str | None
    confidence: str
    count: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RankReport:
    """One rank's part of the diagnosis."""

    rank: Rank
    steps: StepsFound
    segments: SegmentTable
    kernels: list[Kernel]
    shapes: list[KernelShape]
    culprits: list[HostCulprit]
    evidence: dict[str, RankEvidence]  # by phase
    quality: list[QualityEntry]
    ranges: list[RangeTime]
    launch_bill: list[LaunchBill]
    graph_replays: list[GraphReplay]
    shape_replays: list[ShapeReplays]
    small_kernels: list[SmallKernels]
    step_work: list[StepWork]
    step_sequences: list[StepSequence]
    classes: list[ClassTime]
    host_rollups: list[HostRollup]
    queue: QueueTable
    detail: tuple[Detail, DetailTable] | None
    part: RankPart
    steps_walked: tuple[Window, ...]
    arrival: IntArray  # (s,) collective that runs in each segment, -1 none
    links: Links | None
    beside: Intervals  # when a collective shares the device with other kernels
    first_launch_ns: list[int]  # by window: its step's first launch call, NO_TIME without
    last_work_ns: list[
        tuple[int, int]
    ]  # by window: start and launch of the work that ends it, NO_TIME without
    graph: RankGraph | None  # what a replay needs; None where nothing is to be replayed
    rates: RankRates  # bytes and arithmetic against the device's peaks


def report_rank(
    trace: Trace,
    rank: int,
    options: RankOptions,
    step_index: str | None,
    thresholds: Mapping[str, float],
    *,
    sole_device: bool,
    shared_gpu_with: list[int],
    most_events: int,
    given: Given = NOTHING,
) -> RankReport:
    """Reconstruct and measure one rank. ``most_events``: so many of its events are kept for a replay."""
    account = reconstruct_rank(trace, options, sole_device=sole_device)
    windows = window_results(account)
    chosen = choose_windows(windows, step_index)
    result = _rank_result(account, rank, chosen, thresholds, shared_gpu_with)
    every_window = account.windows
    account = _only(account, chosen, windows)
    roof, at = roof_of_rank(account, rank, given), thresholds[NEAR_PEAK]
    counters = counters_of(account, given, roof, at)
    used = {phase: _positions(account, used_windows(result, phase)) for phase in phases_of([result])}
    rates = rank_rates(account, rank, used, given, roof, counters, at)
    evidence = {
        phase: with_counters(gather(account, rank, indices, thresholds, counters.codes), counters, at)
        for phase, indices in used.items()
    }
    steps, phases, classes = account.steps, phase_windows(account, result), row_classes(account)
    path_ns = body_path_time(account)
    counted = step_work(account, rank, phases)
    shapes = kernel_shapes(account, rank, classes, path_ns)
    return RankReport(
        rank=result,
        steps=StepsFound(steps.rule, steps.pattern, steps.confidence, len(steps), steps.notes),
        segments=segment_table(account, rank),
        kernels=kernel_table(account, rank, shapes, classes, path_ns),
        shapes=shapes,
        culprits=host_culprits(account, rank, phases),
        evidence=evidence,
        quality=rank_entries(rank, account),
        ranges=range_times(account, rank),
        launch_bill=launch_bills(account, rank, phases, sole_device=sole_device),
        graph_replays=graph_replays(account, rank, phases),
        shape_replays=shape_replays(account, result),
        small_kernels=small_kernels(account, rank, phases),
        step_work=counted.table,
        step_sequences=step_sequences(account, rank, phases, counted),
        classes=class_times(account, rank, phases, classes),
        host_rollups=host_rollups(account, rank, phases),
        queue=queue_table(account, rank),
        detail=detail_step(account, result, classes, step_index),
        part=RankPart(rank, account.arrivals, trace.epoch_zero_ns is not None, clock_of(trace)),
        steps_walked=every_window,
        arrival=arrival_of_segment(account),
        links=find_links(account, rank, thresholds, counters.codes),
        beside=beside_collectives(account.work),
        first_launch_ns=_first_launches(account, len(every_window)),
        last_work_ns=[_started(account, window) for window in every_window],
        graph=_replayable(account, rank, result, thresholds, most_events),
        rates=rates,
    )


def _positions(account: RankAccount, used: list[WindowResult]) -> list[int]:
    """Where these windows stand in the account."""
    wanted = {window.index for window in used}
    return [at for at, window in enumerate(account.windows) if window.index in wanted]


def _replayable(
    account: RankAccount, rank: int, result: Rank, thresholds: Mapping[str, float], most_events: int
) -> RankGraph | None:
    """The event graph of the steps that count, None without any."""
    wanted = [window.index for window in result.windows if not (window.left_out or window.empty)]
    if len(wanted) < 2 or not most_events:
        return None
    small = coverage(account.trace, account.work.table) < thresholds["small_grid_coverage"]
    whole = rank_graph(account, rank, small)
    return None if whole is None else cut(whole, wanted[0], most_events)


def clock_of(trace: Trace) -> str:
    """What a rank's times were taken from: the wall clock of its host, else its file."""
    known = trace.hostname is not None and trace.epoch_zero_ns is not None
    return f"host {trace.hostname}" if known else f"file {trace.source.path}"


def _started(account: RankAccount, window: Window) -> tuple[int, int]:
    """When the device work that ends a window started and was launched."""
    if window.row is None:
        return NO_TIME, NO_TIME
    return int(account.work.start_ns[window.row]), int(account.work.launch_ns[window.row])


def _first_launches(account: RankAccount, windows: int) -> list[int]:
    """Start of the first launch call of each step, NO_TIME where none is known."""
    first = np.full(windows, np.iinfo(np.int64).max, np.int64)
    calls = account.calls
    launches = np.flatnonzero(np.isin(calls.kind, list(LAUNCHES)) & own_calls(account))
    owner = np.zeros(len(calls), np.int64) if account.assignment is None else account.assignment.of_call
    mine = launches[(owner[launches] >= 0) & (owner[launches] < windows)]
    np.minimum.at(first, owner[mine], calls.start_ns[mine])
    return [int(at) for at in np.where(first == np.iinfo(np.int64).max, NO_TIME, first)]


def choose_windows(windows: list[AnyWindow], step_index: str | None) -> list[AnyWindow]:
    """All windows, or the one that the user asked for: an index, "median", "slowest" or "p95".

    Raises UsageError for anything else and for an index that is not there.
    """
    if step_index is None:
        return windows
    full = [window for window in windows if not window.empty]
    clean = [window for window in full if not window.warmup] or full
    ordered = sorted(clean, key=lambda window: (window.end_ns - window.start_ns, window.index))
    quantiles = {"median": 0.5, "slowest": 1.0, "p95": 0.95}
    if step_index in quantiles:
        if not ordered:
            return []
        return [ordered[int(quantiles[step_index] * (len(ordered) - 1))]]
    found = [window for window in windows if str(window.index) == step_index]
    if not found:
        there = f"0 to {windows[-1].index}" if windows else "none"
        raise UsageError(
            "--step-index", step_index, f"windows are {there}", "give one of them, or median, slowest, p95"
        )
    return found


def _only(account: RankAccount, chosen: list[WindowResult], windows: list[WindowResult]) -> RankAccount:
    """The account restricted to the chosen windows."""
    if len(chosen) == len(windows):
        return account
    wanted = {window.index for window in chosen}
    keep = [at for at, window in enumerate(account.windows) if window.index in wanted]
    return replace(
        account,
        windows=tuple(account.windows[at] for at in keep),
        paths=tuple(account.paths[at] for at in keep),
    )


def _rank_result(
    account: RankAccount,
    rank: int,
    windows: list[WindowResult],
    thresholds: Mapping[str, float],
    shared_gpu_with: list[int],
) -> Rank:
    trace, work = account.trace, account.work
    unlinked = ~work.linked & ~work.migration
    prior_ns = int((work.end_ns - work.start_ns)[work.prior].sum())
    return Rank(
        rank=rank,
        host=trace.hostname,
        pid=trace.process.pid,
        source=trace.source.path,
        device=device_of(trace),
        device_span=_span(account),
        device_events=len(work),
        linked_events=int(work.linked.sum()),
        unlinked_events=int(unlinked.sum()),
        prior_events=int(work.prior.sum()),
        prior_ns=prior_ns,
        held_launches=account.held.queue_held,
        shared_gpu_with=shared_gpu_with,
        clock=Clock(
            offset_ns=None,
            drift_ppb=None,
            interval_ns=None,
            uncertainty_ns=None,
            reference_rank=rank,
            device_shift_ns=account.clock.shift_ns,
            device_interval_ns=(account.clock.low_ns, account.clock.high_ns),
            negative_latency_count=account.clock.negative_latency_count,
            early_return_count=account.clock.early_return_count,
            pair_count=account.clock.pair_count,
            correction=account.clock.correction,
        ),
        constants=_constants(account, thresholds),
        windows=windows,
    )


def device_of(trace: Trace) -> Device | None:
    """What the capture says of a rank's device, None where no device work was recorded."""
    info = trace.device_info
    if info is None:
        return None
    return Device(
        index=info.index,
        uuid=info.uuid,
        name=info.name,
        sm_count=info.sm_count,
        memory_bytes_per_s=info.memory_bytes_per_s,
    )


def _span(account: RankAccount) -> DeviceSpan | None:
    work = account.work
    if not len(work):
        return None
    start, end, busy = int(work.start_ns[0]), int(work.end_ns.max()), busy_time(work)
    return DeviceSpan(start_ns=start, end_ns=end, busy_ns=busy, idle_ns=end - start - busy)


def _constants(account: RankAccount, thresholds: Mapping[str, float]) -> Constants:
    known = account.constants
    apis = {**known.latency, "any other call": known.pooled}
    return Constants(
        launch_lambda_ns={api: (latency.low_ns, latency.high_ns) for api, latency in apis.items()},
        launch_samples={api: latency.samples for api, latency in apis.items()},
        stream_tau_ns=known.tau_ns,
        turnaround_ns=known.turnaround_ns,
        turnaround_samples=known.turnaround_samples,
        event_hop_ns=account.bindings.event_hop_ns,
        quiet_ns=known.quiet_ns,
        burst_gap_ns={
            place_of_thread(account.trace.process, thread): entry.burst_gap_ns
            for thread, entry in sorted(account.account.built.items())
        },
        queue_depth_limit=account.held.queue_depth,
        uncertainty_ns=None,
        assumed=list(known.assumed),
        thresholds=dict(sorted(thresholds.items())),
    )
