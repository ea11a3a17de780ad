"""Where ledger, counters and trace do not fit one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from analyzer.diagnosis import Hypothesis, MeasuredBytes, RankBytes
from analyzer.explain.bytes.evidence import BANDWIDTH, COMPUTE
from analyzer.explain.bytes.launch_counters import MOST_OF_PEAK
from analyzer.explain.rank_report import RankReport
from analyzer.explain.windows import used_windows

APART = 0.20
"""Modelled and counted bytes that differ by more than this share of the modelled ones are a finding."""

_WORDS = {"nsight-compute": "Nsight Compute", "gpu-metrics": "sampled DRAM throughput"}


def apart(measured: MeasuredBytes, modelled: int | None) -> bool:
    """Whether counters contradict the ledger: more than ``APART`` away, and the ledger outside what they leave open."""
    if modelled is None or measured.disagreement is None or abs(measured.disagreement) <= APART:
        return False
    low, high = measured.interval
    return not low <= modelled <= (modelled if high is None else high)


def _sentence(row: RankBytes, measured: MeasuredBytes) -> str:
    less = (measured.disagreement or 0) < 0
    why = (
        "caches serve part of what the ledger counts, or its routing, context or layout is not that of the run"
        if less
        else "the step moves what the ledger lacks (activations, workspace, repeated reads), or its routing, context"
        " or layout is not that of the run"
    )
    return (
        f"rank {row.rank}, phase {row.phase}: {_WORDS[measured.by]} counted {measured.bytes / 1e9:.3f} GB per step, the"
        f" ledger models {(row.modelled_bytes or 0) / 1e9:.3f} GB"
        f" ({100 * (measured.disagreement or 0):+.0f} %): {why}"
    )


def findings_of(
    reports: Sequence[RankReport], rows: Sequence[RankBytes], applies: Mapping[str, bool]
) -> list[str]:
    """Sentences: ledgers that do not fit the kernels, counters that do not fit ledger or trace."""
    found = []
    for report in reports:
        for phase, rates in report.rates.ledger.items():
            for judged in (rates.bandwidth, rates.compute) if applies.get(phase) else ():
                if judged.contradicted:
                    found.append(f"rank {report.rank.rank}, phase {phase}: {judged.why}")
    found += [
        _sentence(row, measured)
        for row in rows
        for measured in row.measured
        if apart(measured, row.modelled_bytes)
    ]
    found += [text for report in reports for row in rows if (text := _at_once(report, row))]
    beyond = {report.rank.rank: report.rates.beyond_peak for report in reports if report.rates.beyond_peak}
    if beyond:
        ranks = ", ".join(map(str, beyond))
        found.append(
            f"rank {ranks}: more bytes under Nsight Compute than the duration in the trace allows, in"
            f" {sum(beyond.values()):,} of its kernels' launches; they count as not measured. Its runs flush the caches"
            " unless told not to: --cache-control none"
        )
    return found


def _at_once(report: RankReport, row: RankBytes) -> str:
    """What is wrong where a step's counted bytes do not fit its time, though each launch's fit its own; else ""."""
    used = used_windows(report.rank, row.phase) if report.rank.rank == row.rank else []
    if not used or row.bandwidth_bytes_per_s is None:
        return ""
    seconds = sum(window.end_ns - window.start_ns for window in used) / len(used) / 1e9
    most = row.bandwidth_bytes_per_s * seconds
    for measured in row.measured:
        if measured.by == "nsight-compute" and measured.bytes > MOST_OF_PEAK * most:
            return (
                f"rank {row.rank}, phase {row.phase}: Nsight Compute counted {measured.bytes / 1e9:.3f} GB per step,"
                f" but its time lets {most / 1e9:.3f} GB through at most. Kernels that run at once here did not all"
                " move what each moved alone, so that too many of them count as near the bandwidth"
            )
    return ""


def with_disagreement(rows: Sequence[Hypothesis], ranks: Sequence[RankBytes]) -> list[Hypothesis]:
    """The hypotheses about peaks with what the ledger says beside counters, and where the two contradict each other."""
    apart_in = {
        row.phase: _sentence(row, m) for row in ranks for m in row.measured if apart(m, row.modelled_bytes)
    }
    modelled = {
        (id_, row.phase, row.rank): share
        for row in ranks
        for id_, share in ((BANDWIDTH, row.near_bandwidth_modelled), (COMPUTE, row.near_peak_modelled))
        if share is not None
    }
    result = []
    for row in rows:
        notes = [row.verdict_note]
        share = modelled.get((row.id, row.phase, row.rank)) if row.rank is not None else None
        if share is not None and row.measured is not None and row.measured.kind == "measurement":
            low, high = (100 * end for end in share.interval)
            notes.append(
                f"by the ledger alone (a model) {low:.1f} to {high:.1f} % of rank {row.rank}'s own step"
            )
        if row.id == BANDWIDTH:
            notes.append(apart_in.get(row.phase, ""))
        result.append(msgspec.structs.replace(row, verdict_note="; ".join(filter(None, notes))))
    return result
