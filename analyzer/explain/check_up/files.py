"""What each file of a capture holds and what is doubtful about it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from analyzer.diagnosis import Diagnosis, Rank
from analyzer.explain.cautions import WARNING, lost_records
from analyzer.explain.check_up import remedies
from analyzer.explain.check_up.remedies import Remedy, Tool
from analyzer.explain.verdicts.facts import SM_COUNT, recorded
from analyzer.model import RECORD_CLASSES, Capture, DeviceKind, HostKind, Source, StreamFlag, Trace
from analyzer.rules import Rules

UNLINKED_NOTED = 0.01
"""From this share on, device work without a launch record is worth a line."""

_BY_DEVICE = {
    "kernel": DeviceKind.KERNEL,
    "copy": DeviceKind.COPY,
    "set": DeviceKind.SET,
    "graph": DeviceKind.GRAPH,
}
_BY_HOST = {
    "call": (HostKind.CALL,),
    "nvtx": (HostKind.RANGE, HostKind.SPAN, HostKind.MARK),
    "op": (HostKind.OP,),
    "frame": (HostKind.FRAME,),
    "os": (HostKind.OS,),
    "overhead": (HostKind.OVERHEAD,),
}


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One doubtful thing. ``close_gap``: what to do about it, "" nothing; ``flags`` as in a limit."""

    code: str
    text: str
    close_gap: str
    flags: list[str]


class FileCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``records``: rows by class that the file has a place for; ``not_captured``: the others."""

    path: str
    kind: str
    profiler: str
    profiler_version: str | None
    vendor: str
    ranks: list[int]
    partial: bool
    records: dict[str, int]
    not_captured: list[str]
    warnings: list[str]
    notes: list[Note]


def check_files(capture: Capture, diagnosis: Diagnosis | None, rules: Rules) -> list[FileCheck]:
    """All files in path order."""
    results = {} if diagnosis is None else {rank.rank: rank for rank in diagnosis.ranks}
    members: dict[str, list[tuple[int, Trace]]] = {}
    for trace, rank in zip(capture.traces, capture.ranks, strict=True):
        members.setdefault(trace.source.path, []).append((rank, trace))
    return [
        _file(
            source, members[source.path], [results[r] for r, _ in members[source.path] if r in results], rules
        )
        for source in capture.sources
    ]


def _file(source: Source, members: list[tuple[int, Trace]], results: list[Rank], rules: Rules) -> FileCheck:
    traces = [trace for _, trace in members]
    counts = _counts(traces)
    return FileCheck(
        path=source.path,
        kind=source.kind,
        profiler=Tool.of(source).label,
        profiler_version=source.profiler_version,
        vendor=source.vendor,
        ranks=[rank for rank, _ in members],
        partial=source.partial,
        records={name: counts[name] for name in RECORD_CLASSES if name in source.captured},
        not_captured=[name for name in RECORD_CLASSES if name not in source.captured],
        warnings=[d.text for d in source.diagnostics if d.severity >= WARNING],
        notes=[
            Note(code=code, text=text, close_gap=remedy.how, flags=list(remedy.flags))
            for code, text, remedy in _notes(source, traces, results, rules)
        ],
    )


def _counts(traces: list[Trace]) -> dict[str, int]:
    """Rows by class; a process that several ranks share counts once."""
    counts = dict.fromkeys(RECORD_CLASSES, 0)
    for process in {id(trace.process): trace.process for trace in traces}.values():
        for name, kinds in _BY_HOST.items():
            counts[name] += int(np.isin(process.host.kind, kinds).sum())
        counts["sync"] += len(process.syncs)
        counts["event-record"] += len(process.event_records)
        counts["flow"] += len(process.flows)
        counts["stream-flags"] += sum(lane.flag != StreamFlag.UNKNOWN for lane in process.lanes)
    for trace in traces:
        for name, kind in _BY_DEVICE.items():
            counts[name] += int((trace.device.kind == kind).sum())
        counts["graph-node"] += int((trace.device.graph_node >= 0).sum())
        counts["collective-metadata"] += int((trace.device.collective >= 0).sum())
        counts["metrics"] += 0 if trace.metrics is None else len(trace.metrics)
    return counts


def collectives_of(trace: Trace, rules: Rules) -> tuple[int, int]:
    """Collective kernels of one rank, and how many of them carry metadata."""
    table = trace.device
    named = np.array([rules.is_collective(name) for name in trace.process.names] or [False], np.bool_)
    described = table.collective >= 0
    kernels = (table.kind == DeviceKind.KERNEL) & (table.name >= 0)
    return int((described | (kernels & named[table.name])).sum()), int(described.sum())


_Row = tuple[str, str, Remedy]


def _notes(source: Source, traces: list[Trace], results: list[Rank], rules: Rules) -> Iterator[_Row]:
    yield from _damage(source)
    yield from _distortion(source, traces)
    tool = Tool.of(source)
    for result in results:
        if result.clock.correction != "none":
            yield (
                "clock-contradiction",
                f"rank {result.rank}: device and host clock contradict one another "
                f"({result.clock.negative_latency_count:,} of {result.clock.pair_count:,} start before their "
                f"launch); correction: {result.clock.correction}",
                Remedy(""),
            )
    device_events = sum(result.device_events for result in results)
    unlinked = sum(result.unlinked_events for result in results)
    if unlinked > UNLINKED_NOTED * device_events:
        yield (
            "unlinked-device-work",
            f"{unlinked:,} of {device_events:,} device events have no launch record",
            remedies.launch_records(tool),
        )
    if any(len(trace.device) and SM_COUNT not in recorded(trace) for trace in traces):
        yield (
            "device-model-unknown",
            "the device's figures are not recorded: no coverage, no occupancy",
            remedies.for_need(SM_COUNT, tool, source.captured, whole_graphs=False, forked=False),
        )
    found = [collectives_of(trace, rules) for trace in traces]
    all_, described = sum(a for a, _ in found), sum(d for _, d in found)
    if described < all_:
        yield (
            "collectives-without-metadata",
            f"{all_ - described:,} of {all_:,} collectives carry no group and no size",
            remedies.collective_metadata(tool),
        )


def _damage(source: Source) -> Iterator[_Row]:
    if source.partial:
        yield (
            "damaged-file",
            "cut off or damaged: only what could be salvaged is used",
            Remedy("capture again"),
        )
    lost = lost_records(source)
    if lost:
        yield (
            "lost-records",
            f"the profiler lost records: {lost[0]}" + (f" (and {len(lost) - 1} more)" if lost[1:] else ""),
            Remedy("capture fewer steps, or let the profiler flush less often"),
        )


def _distortion(source: Source, traces: list[Trace]) -> Iterator[_Row]:
    tool, settings = Tool.of(source), dict(source.settings)
    frames = any((trace.process.host.kind == HostKind.FRAME).any() for trace in traces)
    if frames or settings.get("with_stack") == "1":
        yield (
            "python-frames",
            "Python stacks were recorded, which slows the CPU down by an unknown amount",
            remedies.without_frames(tool),
        )
    if settings.get("profile_memory") == "1":
        yield (
            "memory-events",
            "memory events were recorded, which costs CPU time",
            Remedy("leave `profile_memory` out"),
        )
    if tool.kind == remedies.NSYS and any((trace.device.graph_node >= 0).any() for trace in traces):
        yield (
            "graph-nodes-traced",
            "graphs were recorded node by node, which slows replays down",
            Remedy("time replays in a capture with `--cuda-graph-trace=graph`"),
        )
