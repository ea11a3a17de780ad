"""What the manifest of a run adds to a capture: pins, clocks, how each rank's capture ended."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from analyzer.across.clocks import MOST_DRIFT_PPB
from analyzer.diagnosis import PinnedFact, RunFacts, RunRank
from analyzer.explain.rank_report import RankReport
from analyzer.model import Capture
from collectors.manifest import LEFT_BY, PINS, TOLD_BY_DIAGNOSIS, Interval, RankRecord


def with_records(reports: Sequence[RankReport], capture: Capture, zero_ns: int | None) -> list[RankReport]:
    """The reports with what the manifest knows of each rank's host and clock. ``zero_ns``: epoch of all times."""
    if capture.run is None:
        return list(reports)
    zero = next((record for record in capture.run.ranks if record.rank == 0), None)
    return [
        report if record is None else _with_record(report, record, zero, zero_ns)
        for report, record in zip(reports, capture.records, strict=True)
    ]


def _with_record(
    report: RankReport, record: RankRecord, zero: RankRecord | None, zero_ns: int | None
) -> RankReport:
    part, rank = report.part, report.rank
    if rank.host is None and record.host is not None:
        rank = msgspec.structs.replace(rank, host=record.host)
    if part.anchored:
        clock = f"kernel {record.boot_id}" if record.boot_id is not None else part.clock
        part = replace(part, clock=clock, bound_ns=_bound(record, zero, zero_ns))
    return replace(report, part=part, rank=rank)


def _bound(record: RankRecord, zero: RankRecord | None, zero_ns: int | None) -> tuple[int, int] | None:
    """How far the rank's wall clock lies from rank 0's for certain at the epoch of all times.

    Messages bound it when the collector began; the clocks may have drifted apart since.
    """
    if record.rank == 0 or (zero is not None and zero.boot_id is not None and zero.boot_id == record.boot_id):
        return 0, 0
    found = record.clock_bound
    if found is None or found.reference_rank != 0 or record.started_ns is None or zero_ns is None:
        return None
    drifted = MOST_DRIFT_PPB * abs(zero_ns - record.started_ns) // 1_000_000_000 + 1
    return found.low_ns - drifted, found.high_ns + drifted


def pin(capture: Capture, name: str) -> str | None:
    """What the manifest says of a pin, None where it says nothing."""
    found = None if capture.run is None else capture.run.pins.get(name)
    return None if found is None else str(found.value)


def facts(capture: Capture) -> RunFacts | None:
    """The run as the result shows it; None without a manifest."""
    if capture.run is None:
        return None
    return RunFacts(
        run_id=capture.run.run_id,
        manifest=capture.run_path,
        complete=capture.run.complete,
        pins={name: PinnedFact(value=pin.value, source=pin.source) for name, pin in capture.run.pins.items()},
        ranks=[_rank(record) for record in capture.run.ranks],
    )


def _rank(record: RankRecord) -> RunRank:
    cost = record.inflation
    return RunRank(
        rank=record.rank,
        host=record.host,
        collector=record.collector,
        status=record.status,
        exit_code=record.exit_code,
        profiled_step_ns=None if cost is None else cost.profiled_step_ns,
        plain_step_ns=None if cost is None else cost.plain_step_ns,
        profiled_steps=None if cost is None else cost.profiled_steps,
        plain_steps=None if cost is None else cost.plain_steps,
        profiled_interval_ns=_interval(None if cost is None else cost.profiled_interval),
        plain_interval_ns=_interval(None if cost is None else cost.plain_interval),
        notes=list(record.notes),
    )


def _interval(interval: Interval | None) -> tuple[int, int] | None:
    return None if interval is None else (interval.low_ns, interval.high_ns)


def undeclared(capture: Capture) -> list[str]:
    """Pins that neither the manifest nor the traces tell. The timing boundary is always known: the report names it."""
    known = {*TOLD_BY_DIAGNOSIS, *(capture.run.pins if capture.run is not None else ())}
    if any(trace.device_info is not None and trace.device_info.name for trace in capture.traces):
        known.add("hardware")
    return [pin for pin in PINS if pin not in known]


PARTIAL_RUN, FAILED_COMMAND = "partial-run", "failed-command"
"""What can be wrong with how a rank ended."""


def how_ranks_ended(capture: Capture) -> list[tuple[str, str]]:
    """What is wrong with how the ranks ended by the manifest: which of the two above, and a sentence."""
    found = []
    for record in [] if capture.run is None else capture.run.ranks:
        if record.status == "running":
            why = "its collector did not end: killed, or still at work. The run is partial."
            found.append((PARTIAL_RUN, f"Rank {record.rank}: {why}"))
        elif record.status != "complete":
            how = "its capture was cut off" if record.status == "killed" else "its capture failed"
            found.append((PARTIAL_RUN, f"Rank {record.rank}: {how}{_left_by(record)}; the run is partial."))
        if record.exit_code:
            why = f"the command ended with exit code {record.exit_code}{_signal(record.exit_code)}."
            found.append((FAILED_COMMAND, f"Rank {record.rank}: {why}"))
    return found


def _signal(exit_code: int) -> str:
    """The signal that an exit code above 128 stands for: 137 is often the kernel's, out of memory."""
    try:
        return f" (as after {signal.Signals(exit_code - 128).name})"
    except ValueError:
        return ""


def _left_by(record: RankRecord) -> str:
    """What ended the rank's loop, by its own record: torchrun tells no rank's exit code."""
    return "".join(f" ({note})" for note in record.notes if note.startswith(LEFT_BY))


def notes(capture: Capture) -> list[str]:
    """What a reader must know of how the capture came about, each a sentence."""
    if capture.run is None:
        return []
    return [sentence for _, sentence in how_ranks_ended(capture)]
