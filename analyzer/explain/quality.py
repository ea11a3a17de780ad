"""The data-quality ledger: everything missing, repaired, inferred or contradictory, with its effect."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.diagnosis import Quality, Rank, Unmeasured
from analyzer.explain.absent_device import WHERE
from analyzer.explain.launches.unrecorded import unrecorded_launches
from analyzer.explain.verdicts.catalogue import COUNTERS, CUDA_EVENTS
from analyzer.model import Capture, HostKind, QualityEntry
from analyzer.reconstruct.rank import RankAccount

UNRECORDED_LAUNCHES = "launches-without-device-work"
UNRESOLVED_WAIT = "unresolved-stream-wait"


def ledger(capture: Capture, per_rank: Iterable[QualityEntry]) -> list[Quality]:
    """All entries: what reading cost, then what each rank's reconstruction could not use."""
    entries = [entry for source in capture.sources for entry in source.quality]
    entries += capture.quality
    entries += per_rank
    return [ledger_line(entry) for entry in entries if entry.count]


def ledger_line(entry: QualityEntry) -> Quality:
    """One entry as the result shows it; ``share`` None where there is nothing to divide by."""
    return Quality(
        reason=entry.reason,
        count=entry.count,
        share=entry.count / entry.total if entry.total else None,
        effect=entry.effect,
        place=entry.place,
    )


def rank_entries(rank: int, account: RankAccount) -> list[QualityEntry]:
    """What the reconstruction of one rank could not use, inferred or had to mend."""
    work, clock = account.work, account.clock
    place = f"rank {rank}"
    total = len(work)
    unlinked = int((~work.linked & ~work.prior & ~work.migration).sum())
    inferred = sum(int((p.end_ns - p.start_ns)[p.inferred].sum()) for p in account.paths)
    whole = sum(window.end_ns - window.start_ns for window in account.windows)
    crossings = sum(thread.crossings for thread in account.account.built.values())
    unlinked_ns = int((work.end_ns - work.start_ns)[~work.linked & ~work.prior & ~work.migration].sum())
    silent, launches = unrecorded_launches(account)
    prior_ns = int((work.end_ns - work.start_ns)[work.prior].sum())
    rows = (
        ("unlinked-device-work", unlinked, total,
         f"device work without a launch record ({unlinked_ns} ns in sum) keeps its time and category; "
         "why it started when it did is unknown"),
        (UNRECORDED_LAUNCHES, silent, launches,
         "kernel and graph launches without a device row: it was lost, or recording ended before the work did; "
         "device work is incomplete, and idle time too large where rows were lost"),
        ("prior-work", int(work.prior.sum()), total,
         f"submitted before the capture began ({prior_ns} ns in sum): inside the windows, no work of a step"),
        ("driver-migration", int(work.migration.sum()), total, "unified-memory migrations have no launch"),
        ("start-before-launch", clock.negative_latency_count, clock.pair_count,
         f"device clock contradicts the host clock; correction: {clock.correction} by {clock.shift_ns} ns"),
        ("return-before-end", clock.early_return_count, None,
         f"waits that return before their work ended; correction: {clock.correction}"),
        ("corrupt-duration-clipped", int((work.clipped_ns > 0).sum()), total,
         f"durations that overrun their stream were cut at its next start ({int(work.clipped_ns.sum())} ns)"),
        ("predecessor-discarded", account.bindings.discarded, total, "candidates that do not precede their event"),
        (UNRESOLVED_WAIT, account.bindings.unresolved_waits, None,
         "device-side waits whose event record is not in the capture: their order is unknown"),
        ("graph-launch-stream-inferred", int(account.replays.lane_inferred.sum()), len(account.replays),
         "the stream that these graph replays were launched on is not recorded and was inferred: "
         "what came before and after them on it is, too"),
        ("path-loop-cut", account.loops_cut, len(account.paths), "the rest of that window is unattributed"),
        ("crossing-host-records", crossings, None, "host records that do not nest were cut at the outer one's end"),
        ("python-frames-recorded", int((account.trace.process.host.kind == HostKind.FRAME).sum()), None,
         "recording Python frames slows the CPU down: host and launch shares are inflated"),
        ("inferred-path-time-ns", inferred, whole, "path time (ns) whose cause is inferred, not recorded"),
        ("held-by-full-launch-queue", account.held.queue_held, None,
         "launches over 100 us that a full launch queue held: waiting for the device, not CPU work"),
        ("zero-length-device-work", int((work.end_ns <= work.start_ns).sum()), total, "counted, without time"),
    )  # fmt: skip
    counted = {entry.reason for entry in account.trace.source.quality}  # some readers know it already
    return [
        QualityEntry(reason, count, of, effect, place)
        for reason, count, of, effect in rows
        if not (reason == UNRESOLVED_WAIT and reason in counted)
    ]


_RECORDS = (
    ("call", "CUDA API calls (who launched what, who waited)", "nsys `--trace=cuda`; torch.profiler with CPU activity"),
    ("kernel", "device kernels", "nsys `--trace=cuda`; torch.profiler with CUDA activity"),
    ("sync", "synchronization records (which stream or event a call waited for)",
     "nsys `--trace=cuda`; torch.profiler `_ExperimentalConfig(enable_cuda_sync_events=True)`"),
    ("event-record", "CUDA event records (cross-stream order)",
     f"{CUDA_EVENTS}; torch.profiler `enable_cuda_sync_events=True`"),
    ("copy", "memory copies", "nsys `--trace=cuda`"),
    ("nvtx", "host ranges (NVTX or record_function)", "nsys `--trace=nvtx`; record_function in the program"),
    ("os", "OS runtime waits", "nsys `--trace=osrt`"),
    ("overhead", "the profiler's own overhead", "nsys 2024 or later records it with `--trace=cuda`"),
    ("metrics", "hardware counters over time", COUNTERS),
)  # fmt: skip


_OF_DEVICES = frozenset({"call", "kernel", "sync", "event-record", "copy", "overhead", "metrics"})
"""Records that come with a device's work."""


def unmeasured(
    capture: Capture, ranks: list[Rank], *, whole_graphs: bool, no_device: str = ""
) -> list[Unmeasured]:
    """Record classes that no input holds, device figures that are null, and what would bring them.

    ``no_device``: why none was there; then nothing that comes with one can be captured there.
    """
    held = (
        frozenset().union(*(source.captured for source in capture.sources))
        if capture.sources
        else frozenset()
    )
    ranges = {"nvtx", "op", "frame"}
    lacking = [row for row in _RECORDS if row[0] not in held and not (row[0] == "nvtx" and held & ranges)]
    result = []
    if no_device:
        of_devices = ", ".join(what for record, what, _ in lacking if record in _OF_DEVICES)
        result.append(Unmeasured(what=f"all of a device: {of_devices}", how_to_measure=WHERE))
        lacking = [row for row in lacking if row[0] not in _OF_DEVICES]
    result += [Unmeasured(what=f"{what}: not captured", how_to_measure=how) for _, what, how in lacking]
    silent = [] if no_device else [rank.rank for rank in ranks if not rank.device_events]
    if silent:
        which = ", ".join(str(rank) for rank in silent)
        result.append(
            Unmeasured(
                what=f"device activity was not recorded for rank {which}: device figures are null",
                how_to_measure="record CUDA activity in that process (nsys `--trace=cuda` with "
                "`--trace-fork-before-exec=true`; torch.profiler with ProfilerActivity.CUDA)",
            )
        )
    if whole_graphs:
        result.append(
            Unmeasured(
                what="what ran inside CUDA graphs: replays were recorded as one row each",
                how_to_measure="nsys `--cuda-graph-trace=node` (each node is recorded, at a cost per replay)",
            )
        )
    return result
