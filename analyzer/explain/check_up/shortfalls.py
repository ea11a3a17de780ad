"""Where a rank's capture falls short of what a hypothesis asks, and what would close each gap.

Which rules apply to a hypothesis follows from its entry in the catalogue: what it needs, and which
categories of the path it counts. Nothing here lists hypotheses by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analyzer.categories import CPU_CATEGORIES, Category
from analyzer.cuda_api import WAITS, CallKind, call_kind
from analyzer.diagnosis import Rank
from analyzer.explain.check_up import remedies
from analyzer.explain.check_up.remedies import Remedy, Tool
from analyzer.explain.verdicts.catalogue import Entry
from analyzer.explain.verdicts.facts import GRID, OUTPUT_RANGE, SM_COUNT, recorded
from analyzer.explain.verdicts.hypotheses import missing
from analyzer.model import DeviceKind, HostKind, Trace

UNLINKED_SHARE = 0.05
"""Device work without a launch record above this share leaves launch times in doubt."""
UNRESOLVED_SHARE = 0.05
"""Device-side waits without their event's record above this share leave the order in doubt."""

_NAMED = (HostKind.OP, HostKind.RANGE, HostKind.SPAN, HostKind.FRAME)

_NEED_WORDS = {
    "device": "device work was not recorded",
    "call": "CUDA API calls were not recorded",
    "kernel": "no kernel was recorded",
    "kernel or graph": "no kernel and no graph replay was recorded",
    "copy": "no copy was recorded",
    "overhead": "the profiler recorded no overhead of its own",
    GRID: "the grid sizes of kernels are not recorded",
    SM_COUNT: "the device's SM count is not recorded",
    OUTPUT_RANGE: "no range is known to be output processing",
}


@dataclass(frozen=True)
class RankHolds:
    """What one rank's capture holds, counted."""

    rank: int
    process: str  # what ranks of one process share: their host records are the same
    tool: Tool
    facts: frozenset[str]
    device_events: int
    whole_graphs: int  # replays recorded as one row
    blocking_calls: int
    sync_records: int
    stream_waits: int
    resolved_waits: int
    event_records: int
    frames: int
    named_records: int  # ops, ranges and frames
    unlinked_share: float | None  # of the device work; None where it was not analyzed
    clipped_clock: bool
    forked: bool  # other ranks of the capture have device work, this one has none
    no_gpu: bool = False  # the run's manifest says that this machine has none


@dataclass(frozen=True)
class Shortfall:
    """One thing that is missing. ``fatal``: nothing can be said; else less than all.

    ``{n}`` in the reason is ``count``, of host records (``on_host``) or of the rank's own work.
    """

    reason: str
    remedy: Remedy
    fatal: bool = False
    count: int = 0
    on_host: bool = False


def holdings(
    trace: Trace, rank: int, result: Rank | None, *, output: bool | None, forked: bool, no_gpu: bool = False
) -> RankHolds:
    """Count what the questions depend on. ``result``: of the analysis, None where there is none.

    ``output``: whether output ranges were found; None: only engines' own names count.
    """
    host, syncs = trace.process.host, trace.process.syncs
    calls = host.kind == HostKind.CALL
    kinds = np.array([int(call_kind(name)) for name in trace.process.names] or [0], np.int8)[host.name]
    kinds[~calls | (host.name < 0)] = CallKind.OTHER
    waits = kinds == CallKind.STREAM_WAIT
    resolved = np.isin(host.correlation[waits], syncs.correlation[syncs.record_correlation != 0])
    unlinked = None if result is None else result.unlinked_events / max(result.device_events, 1)
    return RankHolds(
        rank=rank,
        process=f"{trace.process.pid} {trace.source.path}",
        tool=Tool.of(trace.source),
        facts=recorded(trace, output_ranges=output),
        device_events=len(trace.device),
        whole_graphs=int((trace.device.kind == DeviceKind.GRAPH).sum()),
        blocking_calls=int(np.isin(kinds, tuple(WAITS)).sum()),
        sync_records=int((~syncs.polled).sum()),
        stream_waits=int(waits.sum()),
        resolved_waits=int(resolved.sum()),
        event_records=len(trace.process.event_records),
        frames=int((host.kind == HostKind.FRAME).sum()),
        named_records=int(np.isin(host.kind, _NAMED).sum()),
        unlinked_share=unlinked,
        clipped_clock=result is not None and result.clock.correction == "clipped",
        forked=forked,
        no_gpu=no_gpu,
    )


def shortfalls(entry: Entry, holds: RankHolds) -> list[Shortfall]:
    """Everything that keeps this rank from answering in full."""
    fatal = list(_needs(entry, holds))
    return fatal or [*_graphs(entry, holds), *_waits(entry, holds), *_host(entry, holds), *_own(entry)]


def _needs(entry: Entry, holds: RankHolds) -> Iterator[Shortfall]:
    if holds.no_gpu:
        yield Shortfall(_NEED_WORDS["device"], Remedy("capture where the GPU is"), fatal=True)
        return
    lacking = missing(entry, holds.facts) if holds.device_events else ["device"]
    for need in lacking:
        remedy = remedies.for_need(
            need, holds.tool, holds.facts, whole_graphs=holds.whole_graphs > 0, forked=holds.forked
        )
        yield Shortfall(_NEED_WORDS.get(need, f"no {need} was recorded"), remedy, fatal=True)


def _graphs(entry: Entry, holds: RankHolds) -> Iterator[Shortfall]:
    if not holds.whole_graphs:
        return
    remedy = remedies.graph_nodes(holds.tool)
    if Category.GRAPH_UNRESOLVED in entry.categories:
        yield Shortfall(
            "graph replays recorded as one row each ({n}): their time counts, their kernels have no names", remedy,
            count=holds.whole_graphs,
        )  # fmt: skip
    elif Category.GRAPH_UNRESOLVED in entry.could_belong:
        yield Shortfall(
            "graph replays recorded as one row each ({n}): what is inside them only widens the interval", remedy,
            count=holds.whole_graphs,
        )  # fmt: skip


def _waits(entry: Entry, holds: RankHolds) -> Iterator[Shortfall]:
    if Category.HOST_SYNC_RETURN in entry.categories and holds.blocking_calls and not holds.sync_records:
        yield Shortfall(
            "blocking calls without a synchronization record ({n}): what they waited for is inferred",
            remedies.sync_records(holds.tool, holds.facts),
            count=holds.blocking_calls,
            on_host=True,
        )
    open_waits = holds.stream_waits - holds.resolved_waits
    if Category.GAP_DEPENDENCY in entry.categories and open_waits > UNRESOLVED_SHARE * holds.stream_waits:
        yield Shortfall(
            "device-side waits without an event record ({n}): what they waited for is not known",
            remedies.event_records(holds.tool, some=holds.event_records > 0),
            count=open_waits,
            on_host=True,
        )


def _host(entry: Entry, holds: RankHolds) -> Iterator[Shortfall]:
    if holds.frames and entry.categories & CPU_CATEGORIES:
        yield Shortfall(
            "Python frames were recorded: CPU time is inflated by an unknown amount",
            remedies.without_frames(holds.tool),
        )
    if Category.HOST_FRAMEWORK in entry.categories and not holds.named_records:
        yield Shortfall(
            "no ops or ranges were recorded: how much CPU time is known, which code is not",
            remedies.named_ranges(holds.tool),
        )
    if Category.LAUNCH_LATENCY not in entry.categories:
        return
    if holds.unlinked_share is not None and holds.unlinked_share > UNLINKED_SHARE:
        yield Shortfall(
            f"over {UNLINKED_SHARE:.0%} of the device work has no launch record",
            remedies.launch_records(holds.tool),
        )
    if holds.clipped_clock:
        yield Shortfall(
            "device and host clock contradict one another, and no one shift mends it: latencies are clipped",
            Remedy("nothing but another capture mends it"),
        )


def _own(entry: Entry) -> Iterator[Shortfall]:
    if Category.PROFILER in entry.categories:
        yield Shortfall(
            "only the overhead that the profiler logged itself: what it slows down is not in it",
            remedies.without_profiler(),
        )
    if entry.beyond:
        yield Shortfall(
            entry.beyond,
            Remedy(
                "a token log of the same run, for `diagnose --token-log FILE` (docs/service.md);"
                " `tracebound collect client` writes one"
            ),
        )
