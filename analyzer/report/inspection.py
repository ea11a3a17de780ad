"""What a capture holds: the data behind ``tracebound inspect``, before any judgement."""

from __future__ import annotations

import msgspec
import numpy as np

from analyzer import strict_json
from analyzer.diagnosis import Device, Quality, Steps
from analyzer.explain.quality import ledger_line
from analyzer.explain.rank_report import device_of
from analyzer.model import RECORD_CLASSES, Capture, DeviceKind, QualityEntry, Source, Trace
from analyzer.rules import Rules, builtin_rules

FORMAT = "tracebound.inspection"
FORMAT_VERSION = 1


class InspectedInput(msgspec.Struct, frozen=True, kw_only=True):
    """One file: ``captured`` has a place in it, ``not_captured`` has none (which is not the same as zero)."""

    path: str
    kind: str
    profiler_version: str | None
    schema_version: str | None
    vendor: str
    partial: bool
    captured: list[str]
    not_captured: list[str]
    settings: dict[str, str]
    diagnostics: list[str]


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One stream and how much ran on it (``total_ns`` is a sum of durations)."""

    device: int
    context: int
    stream: int
    events: int
    total_ns: int


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """All device work of one name on one rank (``total_ns`` is a sum of durations)."""

    rank: int
    name: str
    kind: str
    operation: str | None
    calls: int
    total_ns: int


class InspectedRank(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one process."""

    rank: int
    source: str
    host: str | None
    pid: str
    process: str
    device: Device | None
    device_events: int
    host_records: int
    threads: int
    streams: list[Stream]


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that ``tracebound inspect --format json`` prints."""

    format: str
    format_version: int
    tracebound_version: str
    inputs: list[InspectedInput]
    ranks: list[InspectedRank]
    missing_ranks: list[int]
    rank_basis: str
    steps: Steps | None
    steps_missing_because: str | None
    device_work: list[Work]
    collectives: list[Work]
    quality: list[Quality]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        strict_json.require_finite(self.quality)
        return strict_json.encode(self)


def inspect(
    capture: Capture,
    *,
    version: str,
    steps: Steps | None,
    steps_missing_because: str | None,
    quality: list[Quality] | None,
    rules: Rules | None = None,
) -> Inspection:
    """The inspection of ``capture``. ``quality`` is the analysis' ledger, None where it got none.

    ``rules`` say which kernels communicate; None: the built-in ones.
    """
    rules = rules or builtin_rules()
    work = [
        row
        for rank, trace in zip(capture.ranks, capture.traces, strict=True)
        for row in _work(rank, trace, rules)
    ]
    work.sort(key=lambda row: (-row.total_ns, row.rank, row.name, row.operation or ""))
    return Inspection(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=version,
        inputs=[_input(source) for source in capture.sources],
        ranks=[_rank(rank, trace) for rank, trace in zip(capture.ranks, capture.traces, strict=True)],
        missing_ranks=list(capture.missing_ranks),
        rank_basis=capture.rank_basis,
        steps=steps,
        steps_missing_because=steps_missing_because,
        device_work=work,
        collectives=[row for row in work if row.kind == "collective"],
        quality=_ledger(capture) if quality is None else quality,
    )


def _input(source: Source) -> InspectedInput:
    return InspectedInput(
        path=source.path,
        kind=source.kind,
        profiler_version=source.profiler_version,
        schema_version=source.schema_version,
        vendor=source.vendor,
        partial=source.partial,
        captured=[name for name in RECORD_CLASSES if name in source.captured],
        not_captured=[name for name in RECORD_CLASSES if name not in source.captured],
        settings=dict(sorted(source.settings)),
        diagnostics=[diagnostic.text for diagnostic in source.diagnostics],
    )


def _rank(rank: int, trace: Trace) -> InspectedRank:
    return InspectedRank(
        rank=rank,
        source=trace.source.path,
        host=trace.hostname,
        pid=trace.process.pid,
        process=trace.process.name,
        device=device_of(trace),
        device_events=len(trace.device),
        host_records=len(trace.process.host),
        threads=len(trace.process.threads),
        streams=_streams(trace),
    )


def _streams(trace: Trace) -> list[Stream]:
    lanes, inverse, events = np.unique(trace.device.lane, return_inverse=True, return_counts=True)
    totals = np.zeros(len(lanes), np.int64)
    np.add.at(totals, inverse, trace.device.duration_ns)
    rows = []
    for code, count, total in zip(lanes.tolist(), events.tolist(), totals.tolist(), strict=True):
        lane = trace.process.lanes[code]
        rows.append(
            Stream(device=lane.device, context=lane.context, stream=lane.stream, events=count, total_ns=total)
        )
    return sorted(rows, key=lambda row: (row.device, row.context, row.stream))


def _work(rank: int, trace: Trace, rules: Rules) -> list[Work]:
    """Device work by (name, kind, operation); two codes of one text are one row."""
    table = trace.device
    totals: dict[tuple[str, str, str | None], list[int]] = {}
    keys = np.stack(
        [table.name.astype(np.int64), table.kind.astype(np.int64), table.collective.astype(np.int64)]
    )
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    calls = np.bincount(inverse.ravel(), minlength=unique.shape[1])
    sums = np.zeros(unique.shape[1], np.int64)
    np.add.at(sums, inverse.ravel(), table.duration_ns)
    for (name_code, kind_code, meta), count, total in zip(
        unique.T.tolist(), calls.tolist(), sums.tolist(), strict=True
    ):
        name = trace.process.names[name_code] if name_code >= 0 else ""
        kind = DeviceKind(kind_code).name.lower()
        operation = None
        if meta >= 0 or (kind == "kernel" and rules.is_collective(name)):
            kind = "collective"
            recorded = trace.collectives[meta].op if meta >= 0 else None
            operation = rules.metadata_operation(recorded) if recorded else rules.collective_operation(name)
        held = totals.setdefault((name, kind, operation), [0, 0])
        held[0] += count
        held[1] += total
    return [
        Work(rank=rank, name=name, kind=kind, operation=operation, calls=calls_, total_ns=total)
        for (name, kind, operation), (calls_, total) in totals.items()
    ]


def _ledger(capture: Capture) -> list[Quality]:
    entries: list[QualityEntry] = [*capture.quality]
    entries += [entry for source in capture.sources for entry in source.quality if entry not in entries]
    return [ledger_line(entry) for entry in entries]
