"""Ledger and counters of all ranks put together for the diagnosis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from analyzer.diagnosis import ByteFloor, Bytes, CounterSource, Hypothesis, Unmeasured
from analyzer.explain.bytes.disagreement import findings_of, with_disagreement
from analyzer.explain.bytes.evidence import with_ledgers
from analyzer.explain.bytes.floors import Steps, byte_floor, ledger_ranks
from analyzer.explain.bytes.given import Given
from analyzer.explain.bytes.ledger_rates import applicable, unplaced
from analyzer.explain.bytes.rank_bytes import rank_bytes
from analyzer.explain.bytes.rank_rates import NEAR_PEAK
from analyzer.explain.rank_report import RankReport
from analyzer.explain.ranks.joint_report import JointReport, used_globally
from analyzer.explain.windows import phases_of, used_windows
from analyzer.model import Capture
from analyzer.reconstruct.windows import WHOLE
from collectors.manifest import RankRecord

NO_LEDGER = Unmeasured(
    what="byte floor of a step: no ledger was given",
    how_to_measure="`tracebound ledger build` from the checkpoint's headers, then `--ledger FILE`",
)


def with_ledger(
    reports: Sequence[RankReport], given: Given, thresholds: Mapping[str, float]
) -> list[RankReport]:
    """The reports with what the ledger proves in the phases that it applies to."""
    if given.ledger is None:
        return list(reports)
    phases = phases_of([report.rank for report in reports])
    applies = applicable(given.ledger, phases)
    why_not = _why_not(given, phases, applies)
    at = thresholds[NEAR_PEAK]
    return [
        replace(report, evidence=with_ledgers(report.evidence, report.rates, applies, why_not, at))
        for report in reports
    ]


def _why_not(given: Given, phases: Sequence[str], applies: Mapping[str, bool]) -> str:
    """Why the ledger does not apply to a phase."""
    assert given.ledger is not None
    if given.ledger.workload.applies_to is None and len(phases) > 1:
        return (
            f"the ledger does not say which of the {len(phases)} phases its steps are: give workload.applies_to,"
            " a pattern of phase names"
        )
    if given.ledger.workload.applies_to is None and WHOLE in phases:
        return (
            "no steps were found, and the ledger's bytes are those of one step, not of the whole capture: name the"
            f" steps (--steps), or, if the capture is one step, give workload.applies_to = '^{WHOLE}$'"
        )
    if not any(applies.values()):
        return f"no phase matches the ledger's applies_to ({given.ledger.workload.applies_to})"
    return "this phase does not match the ledger's applies_to"


def bytes_account(
    joint: JointReport, capture: Capture, given: Given, rows: Sequence[Hypothesis]
) -> tuple[Bytes | None, list[Hypothesis]]:
    """Bytes of the diagnosis, None where nothing is known of any; and the hypotheses, with what contradicts them."""
    reports = joint.reports
    counted = any(report.rates.metrics or report.rates.names for report in reports)
    if given.ledger is None and not counted:
        return None, list(rows)
    phases = phases_of([report.rank for report in reports])
    applies = {} if given.ledger is None else applicable(given.ledger, phases)
    copies = _copies(capture)
    floors, why = _floors(joint, given, phases, applies, copies)
    ranks = [
        rank_bytes(report, phase, given.ledger if applies.get(phase) else None, copies.get(report.rank.rank))
        for phase in phases
        for report in reports
        if phase in report.evidence and (applies.get(phase) or report.rates.counted.get(phase))
    ]
    uncounted = unplaced(given.ledger) if given.ledger is not None else []
    result = Bytes(
        ledger=given.ledger_path or None,
        ledger_name=None if given.ledger is None else given.ledger.workload.name,
        floors=floors,
        ranks=ranks,
        counters=_sources(reports, given),
        uncounted=sum(tensor.tensors for tensor in uncounted),
        uncounted_bytes=sum(tensor.bytes for tensor in uncounted),
        why_no_floor=why if given.ledger is not None and not floors else "",
        findings=[*findings_of(reports, ranks, applies), *_left_out(given)],
    )
    return result, with_disagreement(rows, ranks)


def _left_out(given: Given) -> list[str]:
    tensors = unplaced(given.ledger) if given.ledger is not None else []
    if not tensors:
        return []
    number, size = sum(tensor.tensors for tensor in tensors), sum(tensor.bytes for tensor in tensors)
    return [
        f"{number:,} {'tensor' if number == 1 else 'tensors'} of the checkpoint ({size:,} bytes): in no entry of the"
        " ledger. Floors and modelled bytes are too low by what of them a step reads"
    ]


def unmeasured(given: Given, account: Bytes | None) -> list[Unmeasured]:
    """What stays unmeasured without a ledger, or with one that gives no floor."""
    if given.ledger is None:
        return [NO_LEDGER]
    if account is not None and account.why_no_floor:
        return [
            Unmeasured(
                what=f"byte floor of a step: {account.why_no_floor}", how_to_measure="see docs/bytes.md"
            )
        ]
    return []


def _copies(capture: Capture) -> dict[int, float]:
    """Copy bandwidth that the manifest holds of each rank's device, bytes/s."""
    found = {}
    for rank, record in zip(capture.ranks, capture.records, strict=False):
        speed = _copy_bandwidth(record)
        if speed is not None:
            found[rank] = speed
    return found


def _copy_bandwidth(record: RankRecord | None) -> float | None:
    told = (record.device or {}).get("copy_bandwidth") if record is not None else None
    speed = told.get("bytes_per_s") if isinstance(told, dict) else None
    usable = (
        isinstance(speed, int | float) and not isinstance(speed, bool) and math.isfinite(speed) and speed > 0
    )
    return float(speed) if usable and speed is not None else None


def _floors(
    joint: JointReport,
    given: Given,
    phases: Sequence[str],
    applies: Mapping[str, bool],
    copies: Mapping[int, float],
) -> tuple[list[ByteFloor], str]:
    """The floors of all phases that the ledger applies to, and why there is none where there is none."""
    if given.ledger is None:
        return [], ""
    speeds = {report.rank.rank: report.rates.roof.bytes_per_s for report in joint.reports}
    found: list[ByteFloor] = []
    why = _why_not(given, phases, applies)
    if not any(report.rates.device_work for report in joint.reports):
        return [], "no device work was recorded, and a step's bytes are moved by none other"
    told = ledger_ranks(given.ledger)
    for phase in phases:
        here: list[ByteFloor] = []
        without: list[str] = []
        for steps in _steps(joint, phase) if applies[phase] else ():
            floor = byte_floor(given.ledger, steps, speeds, copies)
            if isinstance(floor, str):
                why = floor
                nothing = "the ledger holds nothing of it"
                without.append(f"no floor of rank {steps.rank}: {floor if steps.rank in told else nothing}")
            else:
                here.append(floor)
        if here and without:  # ranks that are not on one clock have a floor each, or none
            here[-1] = msgspec.structs.replace(here[-1], notes=[*here[-1].notes, *without])
        found += here
    return found, why


def _steps(joint: JointReport, phase: str) -> list[Steps]:
    """Steps of all ranks on one clock where there are any; else those of each rank alone."""
    captured = tuple(report.rank.rank for report in joint.reports)
    windows = used_globally(joint.paths, phase)
    if windows:
        times = np.array([window.end_ns - window.start_ns for window in windows], np.float64)
        members = sorted({rank for window in windows for rank in window.windows})
        return [Steps(phase, "global", None, tuple(members), captured, times)]
    found = []
    for report in joint.reports:
        used = used_windows(report.rank, phase)
        if used:
            times = np.array([window.end_ns - window.start_ns for window in used], np.float64)
            found.append(Steps(phase, "rank", report.rank.rank, (report.rank.rank,), captured, times))
    return found


def _sources(reports: Sequence[RankReport], given: Given) -> list[CounterSource]:
    """Files with the kernels that no rank ran, and sampled metrics."""
    found = []
    for one in given.counters:
        using = [report for report in reports if one in given.of_rank(report.rank.rank).counters]
        absent = [set(report.rates.absent) for report in using]
        names = dict.fromkeys(launch.name for launch in one.file.launches)
        found.append(
            CounterSource(
                kind="nsight-compute",
                path=one.file.path,
                rank=one.rank,
                names=[name for name in names if absent and all(name in each for each in absent)],
                kernels=len(names),
                launches=len(one.file.launches),
            )
        )
    for report in reports:
        if report.rates.metrics:
            found.append(
                CounterSource(
                    kind="gpu-metrics",
                    path=report.rank.source,
                    rank=report.rank.rank,
                    names=list(report.rates.metrics),
                    kernels=0,
                    launches=0,
                )
            )
    return found
