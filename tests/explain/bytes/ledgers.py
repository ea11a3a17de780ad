"""Ledger files of a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyzer.ledger import files
from analyzer.ledger.model import (
    FORMAT,
    FORMAT_VERSION,
    DeviceBandwidth,
    Entry,
    Ledger,
    Phase,
    Uncounted,
    Workload,
)

GB, TB_PER_S = 1_000_000_000, 1e12


def entry(size: int, ranks: Sequence[int] = (0,), **more: Any) -> Entry:
    return Entry(**{"kind": "dense-weights", "basis": "declared", "source": "by hand", **more,
                    "ranks": list(ranks), "bytes": size})  # fmt: skip


def phase(name: str, *entries: Entry, kernels: str | None = None, beside: bool = False) -> Phase:
    return Phase(name=name, entry=list(entries), kernels=kernels, overlaps_previous=beside)


def device(bytes_per_s: float | None, ranks: Sequence[int] = (0,), **peaks: float) -> DeviceBandwidth:
    return DeviceBandwidth(
        ranks=list(ranks), source="by hand", bytes_per_s=bytes_per_s, peak_flop_per_s=peaks
    )


def ledger(
    *phases: Phase,
    devices: Sequence[DeviceBandwidth] = (),
    uncounted: Sequence[Uncounted] = (),
    **workload: Any,
) -> Ledger:
    return Ledger(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        workload=Workload(name="by hand", **workload),
        phase=list(phases),
        device=list(devices),
        uncounted=list(uncounted),
    )


def of_capture(*phases: Phase, **more: Any) -> Ledger:
    """Of schedules without steps: each of them is one."""
    return ledger(*phases, **{"applies_to": "^whole capture$"} | more)


def written(folder: Path, made: Ledger) -> Path:
    path = folder / "ledger.toml"
    files.write(made, path)
    return path
