"""Reads one torch.profiler (Kineto) trace: plain or gzip JSON, torch 1.8 to 2.13, CUDA and ROCm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analyzer.errors import TraceError
from analyzer.model import HostKind, Source, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.readers import describe
from analyzer.readers.kineto_json.blocks import BLOCK_BYTES, EventBlocks
from analyzer.readers.kineto_json.columns import Rows
from analyzer.readers.kineto_json.era import infer_era
from analyzer.readers.kineto_json.ledger import quality_of
from analyzer.readers.kineto_json.metadata import Metadata, read_members
from analyzer.readers.kineto_json.source import ByteStream
from analyzer.readers.kineto_json.tables import Tables, build

_HEAD_BYTES = 1 << 16
_OBJECT_KEYS = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|baseTimeNanoseconds|distributedInfo)"\s*:'
)
_LIST_OF_EVENTS = re.compile(rb'\s*\[\s*\{.*?"ph"\s*:', re.DOTALL)
_ASCEND_CATEGORIES = frozenset(("HostToDevice", "async_npu", "async_task_queue"))
_ASCEND_PROCESSES = frozenset(("Ascend Hardware", "CANN"))
_NO_PROGRESS = NoProgress()


def looks_like(path: Path) -> bool:
    """Whether ``path`` is plain or gzip JSON with the marks of a trace in its first 64 KiB of text."""
    with ByteStream(path, _NO_PROGRESS) as stream:
        head = stream.read(_HEAD_BYTES)[:_HEAD_BYTES]
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return _OBJECT_KEYS.search(text) is not None
    return _LIST_OF_EVENTS.match(text) is not None


def read(path: Path, progress: Progress = _NO_PROGRESS, *, block_bytes: int = BLOCK_BYTES) -> list[Trace]:
    """One trace per device that worked, in order of the device number; all share one ``ProcessTrace``.

    A file without device work gives one trace with ``device_info`` None. Memory is bounded by the kept
    columns and one block of about ``block_bytes`` of text. Raises ``TraceError`` for what is no trace of
    torch.profiler; a truncated or partly malformed trace is read as far as it goes and says so in
    ``Source.partial`` and ``Source.quality``.
    """
    rows = Rows()
    try:
        progress.start(f"reading {path.name}", path.stat().st_size)
        with ByteStream(path, progress) as stream:
            blocks = EventBlocks(stream, block_bytes)
            for block in blocks:
                rows.add(block)
            _refuse_no_json(path, stream, blocks)
    except OSError as error:
        raise TraceError(
            str(path), "", f"cannot be read: {error.strerror or error}", "check the path"
        ) from error
    metadata = read_members(blocks.members)
    _refuse_other_tools(path, rows, blocks)
    tables = build(rows, metadata.base_ns)
    source = _source(path, rows, blocks, stream.damage, metadata, tables)
    return _traces(source, metadata, tables, rows)


def _refuse_no_json(path: Path, stream: ByteStream, blocks: EventBlocks) -> None:
    """Raise for what has no list of events at all."""
    if blocks.has_events or blocks.count:
        return
    if not blocks.is_object:
        what = describe.looks_like(blocks.head)
        if stream.damage:
            what += f"; {stream.damage}"
        raise TraceError(str(path), "", f"is no trace: it looks like {what}", describe.ACCEPTED)
    if stream.damage or not blocks.closed:
        raise TraceError(
            str(path), "", "ends before its first event", "copy the file again, or capture again"
        )
    raise TraceError(str(path), "", "is JSON, but has no list of events (traceEvents)", describe.ACCEPTED)


def _refuse_other_tools(path: Path, rows: Rows, blocks: EventBlocks) -> None:
    """Raise for traces of other tools, which look alike but mean other things."""
    if _ASCEND_CATEGORIES & rows.ignored.keys() or _ASCEND_PROCESSES & set(rows.process_names.values()):
        raise TraceError(
            str(path),
            "",
            "looks like a trace_view.json of the Ascend NPU profiler, whose device rows mean other things",
            describe.ACCEPTED,
        )
    if len(rows.host) or len(rows.device):
        return
    seen = ", ".join(f"{name} ({count})" for name, count in rows.ignored.most_common(5))
    raise TraceError(
        str(path),
        "",
        f"holds {blocks.count} events, none of a category that torch.profiler writes for work"
        + (f"; it has {seen}" if seen else ""),
        "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; " + describe.ACCEPTED,
    )


@dataclass(frozen=True)
class _Seen:
    """What a file turned out to hold."""

    captured: frozenset[str]
    vendor: str


def _seen(rows: Rows, metadata: Metadata, tables: Tables) -> _Seen:
    host, process = tables.process.host, tables.process
    kinds = set(np.unique(host.kind).tolist())
    captured: set[str] = set()
    if len(tables.device):
        captured |= {"kernel", "copy", "set"}
    if rows.device.has_nodes:
        captured.add("graph-node")
    if {HostKind.OP, HostKind.RANGE} & kinds:
        captured |= {"op", "nvtx"}
    by_kind = {HostKind.CALL: "call", HostKind.FRAME: "frame", HostKind.OVERHEAD: "overhead"}
    captured |= {name for kind, name in by_kind.items() if kind in kinds}
    if len(process.syncs):
        captured.add("sync")
    if len(process.event_records):
        captured.add("event-record")
    if len(process.flows):
        captured.add("flow")
    if len(rows.collectives):
        captured.add("collective-metadata")
    calls = np.unique(host.name[host.kind == HostKind.CALL]).tolist()
    hip = any(process.names[code].startswith("hip") for code in calls if code >= 0)
    vendor = "cuda" if len(tables.device) or calls else "none"
    if metadata.is_rocm or hip:
        vendor = "rocm"
    return _Seen(frozenset(captured), vendor)


def _source(
    path: Path, rows: Rows, blocks: EventBlocks, damage: str | None, metadata: Metadata, tables: Tables
) -> Source:
    seen = _seen(rows, metadata, tables)
    era = infer_era(metadata, rows.roles.keys(), rows.device.has_nodes, blocks.base_first)
    return Source(
        path=str(path),
        kind="kineto-json",
        profiler_version=metadata.profiler_version,
        schema_version=metadata.schema,
        partial=blocks.truncated is not None,
        vendor=seen.vendor,
        captured=seen.captured,
        settings=(*metadata.settings, *((("era", era),) if era else ())),
        diagnostics=metadata.diagnostics,
        quality=quality_of(rows, blocks, damage, tables),
    )


def _traces(source: Source, metadata: Metadata, tables: Tables, rows: Rows) -> list[Trace]:
    lane_device = np.array([lane.device for lane in tables.process.lanes] + [-1], dtype=object)
    device_of_row = lane_device[tables.device.lane]
    used = sorted(set(device_of_row.tolist()))
    infos = metadata.devices(used)
    collectives = rows.collectives.infos()
    return [
        Trace(
            source=source,
            process=tables.process,
            device_info=None if device is None else infos[device],
            device=tables.device if device is None else tables.device.take(device_of_row == device),
            collectives=collectives,
            rank=metadata.rank,
            world_size=metadata.world_size,
            hostname=metadata.hostname,
            epoch_zero_ns=tables.epoch_zero_ns,
            file_zero_ns=tables.zero_ns,
        )
        for device in (used or [None])
    ]
