"""One rank's bytes in one phase: what the ledger models beside what counters counted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analyzer.diagnosis import KindBytes, MeasuredBytes, RankBytes, Share
from analyzer.explain.bytes.floors import floor_parts
from analyzer.explain.bytes.ledger_rates import Judged, LedgerRates
from analyzer.explain.bytes.rank_rates import Counted
from analyzer.explain.bytes.roofs import Roof
from analyzer.explain.rank_report import RankReport
from analyzer.explain.verdicts.shares import share_of
from analyzer.ledger.model import Entry, Ledger

COUNTED_ENOUGH = 0.95
"""Counters of fewer of the kernels' durations are no total that a ledger could be held against."""


def rank_bytes(
    report: RankReport, phase: str, ledger: Ledger | None, copy_bytes_per_s: float | None
) -> RankBytes:
    """``ledger``: None where it does not apply to the phase."""
    rank, roof = report.rank.rank, report.rates.roof
    rates = report.rates.ledger.get(phase) if ledger is not None else None
    entries = [] if ledger is None else [e for p in ledger.phase for e in p.entry if rank in e.ranks]
    total = sum(entry.bytes for entry in entries) if entries else None
    flop = [entry.flop for entry in entries if entry.flop is not None]
    dtype, ridge = _ridge(entries, roof)
    counted = report.rates.counted.get(phase, ())
    return RankBytes(
        phase=phase,
        rank=rank,
        windows=report.evidence[phase].windows,
        bandwidth_bytes_per_s=roof.bytes_per_s,
        bandwidth_basis=roof.basis,
        bandwidth_source=roof.source,
        copy_bytes_per_s=copy_bytes_per_s,
        modelled_bytes=total,
        modelled=[] if ledger is None else _by_kind(ledger, rank),
        floor_ns=_own_floor(ledger, rank, roof) if total else None,
        kernel_ns=None if rates is None else _kernel_ns(rates),
        measured=[_measured(one, total) for one in counted],
        flop=sum(flop) if flop else None,
        flop_complete=len(flop) == len(entries) if flop else None,
        flop_per_byte=sum(flop) / total if flop and total else None,
        ridge_flop_per_byte=ridge,
        ridge_dtype=dtype,
        peak_source=None if ridge is None else roof.peak_source,
        near_bandwidth_modelled=None if rates is None else _share(rates.bandwidth),
        near_peak_modelled=None if rates is None else _share(rates.compute),
    )


def _own_floor(ledger: Ledger | None, rank: int, roof: Roof) -> float | None:
    if ledger is None or roof.bytes_per_s is None:
        return None
    return sum(part.floor_ns for part in floor_parts(ledger, [rank], {rank: roof.bytes_per_s}))


def _kernel_ns(rates: LedgerRates) -> float | None:
    """None where replays that were recorded as one row hide some of them."""
    if any(group.times.hidden.any() for group in rates.groups):
        return None
    return sum(float(group.times.total.mean()) for group in rates.groups if len(group.times.total))


def _share(judged: Judged) -> Share | None:
    if judged.shares is None:
        return None
    value, low, high = share_of(judged.shares)
    return Share(value=value, interval=(low, high))


def _by_kind(ledger: Ledger, rank: int) -> list[KindBytes]:
    found = []
    for phase in ledger.phase:
        kinds: dict[str, list[Entry]] = {}
        for entry in phase.entry:
            if rank in entry.ranks:
                kinds.setdefault(entry.kind, []).append(entry)
        found += [
            KindBytes(
                phase=phase.name,
                kind=kind,
                bytes=sum(entry.bytes for entry in entries),
                basis=list(dict.fromkeys(entry.basis for entry in entries)),
                sources=list(dict.fromkeys(entry.source for entry in entries)),
            )
            for kind, entries in kinds.items()
        ]
    return found


def _measured(counted: Counted, modelled: int | None) -> MeasuredBytes:
    value, high = float(counted.value.mean()), float(counted.high.mean())
    enough = counted.of_kernel_time >= COUNTED_ENOUGH
    return MeasuredBytes(
        by="nsight-compute" if counted.by == "nsight-compute" else "gpu-metrics",
        bytes=value,
        interval=(float(counted.low.mean()), high if math.isfinite(high) else None),
        of_kernel_time=counted.of_kernel_time,
        disagreement=value / modelled - 1 if modelled and enough else None,
    )


def _ridge(entries: Sequence[Entry], roof: Roof) -> tuple[str | None, float | None]:
    """The type with most of the arithmetic, and the FLOP per byte at which its peak and the bandwidth meet."""
    by_type: dict[str, int] = {}
    for entry in entries:
        if entry.flop and entry.flop_dtype:
            by_type[entry.flop_dtype] = by_type.get(entry.flop_dtype, 0) + entry.flop
    dtype = max(sorted(by_type), key=lambda name: by_type[name], default=None)
    peak = roof.peak_flop_per_s.get(dtype or "")
    return dtype, peak / roof.bytes_per_s if peak and roof.bytes_per_s else None
