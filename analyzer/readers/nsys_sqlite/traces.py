"""Makes the traces: who gets one, and what the file says of each rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analyzer.model import CollectiveInfo, DeviceInfo, MetricTable, ProcessTrace, Source, Trace
from analyzer.readers.nsys_sqlite import capture
from analyzer.readers.nsys_sqlite.bulk import Database
from analyzer.readers.nsys_sqlite.devices import Devices, Streams
from analyzer.readers.nsys_sqlite.host import HostRows
from analyzer.readers.nsys_sqlite.identifiers import pid_of
from analyzer.readers.nsys_sqlite.members import members
from analyzer.readers.nsys_sqlite.processes import (
    DeviceSplit,
    LaneBook,
    lane_book,
    named_streams,
    no_flows,
    split_host,
    split_syncs,
)
from analyzer.readers.nsys_sqlite.ranks import RankHints, rank_hints
from analyzer.readers.nsys_sqlite.strings import Strings
from analyzer.readers.nsys_sqlite.sync import RecordRows, SyncRows


@dataclass(frozen=True)
class Content:
    """Everything of the file, before it is split into processes."""

    strings: Strings
    device: DeviceSplit
    host: HostRows
    syncs: SyncRows
    records: RecordRows
    collectives: tuple[CollectiveInfo, ...]  # what NCCL's payload tells, by the device rows' codes
    metrics: dict[int, MetricTable]  # by TARGET_INFO_GPU.id
    devices: Devices
    streams: Streams
    source: Source
    epoch_zero_ns: int | None


@dataclass(frozen=True)
class _Labels:
    """Names and rank hints of the whole file."""

    names: tuple[str, ...]
    pids: dict[int, str]
    programs: dict[int, str]
    threads: dict[int, str]
    ranks: RankHints
    hostname: str | None


def make_traces(database: Database, content: Content) -> list[Trace]:
    """One trace per (process, device), sorted by (pid, device); none where nobody did anything."""
    found = members([(key[0], key[1]) for key in content.device.keys], content.host, content.strings.table())
    ranks = found.ranks
    processes = sorted({process for process, _ in ranks}, key=lambda process: (pid_of(process), process))
    source = replace(content.source, quality=(*content.source.quality, *found.quality()))
    content = replace(content, source=source)
    labels = _Labels(
        names=content.strings.table(),
        pids=capture.pid_texts(processes),
        programs=capture.process_names(database),
        threads=capture.thread_names(database, content.strings),
        ranks=rank_hints(database, content.strings, processes),
        hostname=capture.hostname(database),
    )
    return [
        trace
        for process in processes
        for trace in _traces_of(
            content, labels, process, [device for owner, device in ranks if owner == process]
        )
    ]


def _traces_of(content: Content, labels: _Labels, process: int, devices: list[int]) -> list[Trace]:
    """The ranks of one process; they share its host side."""
    book, shared = _process_trace(content, labels, process)
    recorded = {key[:2] for key in content.device.keys}
    traces = []
    for device in devices:
        info: DeviceInfo | None = None
        counters: MetricTable | None = None
        if (process, device) in recorded:
            info = content.devices.info(process, device)
            gpu = content.devices.gpu_id(process, device)
            counters = None if gpu is None else content.metrics.get(gpu)
        rank, world_size = labels.ranks.of(process, device, alone=len(devices) == 1)
        traces.append(
            Trace(
                source=content.source,
                process=shared,
                device_info=info,
                device=content.device.table(process, device, book),
                collectives=content.collectives,
                rank=rank,
                world_size=world_size,
                hostname=labels.hostname,
                epoch_zero_ns=content.epoch_zero_ns,
                metrics=counters,
            )
        )
    return traces


def _process_trace(content: Content, labels: _Labels, process: int) -> tuple[LaneBook, ProcessTrace]:
    named = named_streams(content.syncs, content.records, process)
    book = lane_book(process, content.device.lanes_of(process), named, content.streams)
    table, threads = split_host(content.host, content.host.process == process, labels.threads)
    syncs, records = split_syncs(content.syncs, content.records, process, book)
    main_thread = process | pid_of(process)
    shared = ProcessTrace(
        pid=labels.pids[process],
        name=labels.programs.get(process) or labels.threads.get(main_thread, ""),
        names=labels.names,
        threads=threads,
        lanes=book.lanes,
        host=table,
        syncs=syncs,
        event_records=records,
        flows=no_flows(),
    )
    return book, shared
