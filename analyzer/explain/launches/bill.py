"""The launch bill: what submitting the work of each phase costs one rank."""

from __future__ import annotations

import numpy as np

from analyzer.categories import LAUNCH_CATEGORIES
from analyzer.cuda_api import LAUNCHES, CallKind
from analyzer.diagnosis import LaunchBill, Quantiles
from analyzer.explain.launches.submissions import COPIES, Submissions
from analyzer.explain.order_statistics import quantiles
from analyzer.explain.phase_windows import PhaseWindows, sums
from analyzer.model import DeviceKind, IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.work import NO_TIME


def launch_bills(
    account: RankAccount, rank: int, phases: PhaseWindows, *, sole_device: bool
) -> list[LaunchBill]:
    """One bill per phase, over the windows of its budget; empty where no calls were recorded.

    Launches are those of the steps behind these windows. ``sole_device`` False: the process drives other
    devices, too, so only calls count whose work is recorded on this one.
    """
    if "call" not in account.trace.source.captured:
        return []
    count, calls, work = len(phases.phases), account.calls, account.work
    submissions = Submissions(work, calls)
    of_call = phases.of_call
    if not sole_device:
        of_call = np.where(submissions.first_start_ns != NO_TIME, of_call, -1)
    launches = np.where(np.isin(calls.kind, list(LAUNCHES)), of_call, -1)
    held = np.zeros(len(calls), bool)
    held[account.held.call] = True
    free = np.where(held, -1, launches)
    duration = calls.end_ns - calls.start_ns
    kernels = np.where(work.kernels, phases.of_row, -1)
    unresolved = _counts(np.where(work.table.kind == DeviceKind.GRAPH, phases.of_row, -1), count)
    in_graphs = _counts(np.where(work.replay >= 0, kernels, -1), count)
    on_path = np.where(np.isin(phases.path.category, list(LAUNCH_CATEGORIES)), phases.of_segment, -1)
    launches_total = _counts(launches, count)
    graph_launches = _counts(np.where(calls.kind == CallKind.GRAPH_LAUNCH, launches, -1), count)
    copy_calls = _counts(np.where(np.isin(calls.kind, COPIES), of_call, -1), count)
    launch_api_ns = sums(free, duration, count)
    held_launches = _counts(np.where(held, launches, -1), count)
    path_launch_ns = sums(on_path, phases.segment_ns, count)
    kernels_total = _counts(kernels, count)
    orders = {"api_ns": quantiles(free, duration, count), **_latencies(account, submissions, launches, count)}
    return [
        LaunchBill(
            rank=rank,
            phase=phase,
            windows=int(phases.windows[at]),
            launches_total=int(launches_total[at]),
            graph_launches_total=int(graph_launches[at]),
            copy_calls_total=int(copy_calls[at]),
            kernels_total=int(kernels_total[at]) if len(work) else None,
            kernels_in_graphs_total=int(in_graphs[at]) if len(work) and not unresolved[at] else None,
            launch_api_ns_total=int(launch_api_ns[at]),
            held_launches_total=int(held_launches[at]),
            path_launch_ns_total=int(path_launch_ns[at]),
            slot_ns=_slot(int(phases.step_ns[at]), int(launches_total[at])),
            api_ns=orders["api_ns"][at],
            latency_ns=orders["latency_ns"][at],
            idle_latency_ns=orders["idle_latency_ns"][at],
            depth_at_launch=orders["depth_at_launch"][at],
            run_ahead_ns=orders["run_ahead_ns"][at],
        )
        for at, phase in enumerate(phases.phases)
    ]


def _latencies(
    account: RankAccount, submissions: Submissions, launches: IntArray, count: int
) -> dict[str, list[Quantiles | None]]:
    """Latency, queue depth and run-ahead of launches whose work is recorded on this device."""
    calls = account.calls
    call = np.flatnonzero((launches >= 0) & submissions.launched)
    phase = launches[call]
    latency = submissions.latency_ns(call)
    depth = submissions.depth_before(calls.start_ns[call])
    ahead = np.maximum(submissions.first_start_ns[call] - calls.end_ns[call], 0)
    return {
        "latency_ns": quantiles(phase, latency, count),
        "idle_latency_ns": quantiles(np.where(depth == 0, phase, -1), latency, count),
        "depth_at_launch": quantiles(phase, depth, count),
        "run_ahead_ns": quantiles(phase, ahead, count),
    }


def _counts(codes: IntArray, count: int) -> IntArray:
    """(count,) how often each code occurs; codes below 0 count nowhere."""
    return np.bincount(codes[codes >= 0], minlength=count)


def _slot(step_ns: int, launches: int) -> int | None:
    """Mean step over launches per step, rounded down: both rest on the same windows."""
    return step_ns // launches if launches else None
