"""What a rank's device can do at most, and where that is known from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from analyzer.hardware import floor_bandwidth, look_up
from analyzer.ledger.model import Ledger
from analyzer.model import DeviceInfo

Basis = Literal["ledger", "driver", "datasheet"]


@dataclass(frozen=True)
class Roof:
    """Memory bandwidth (bytes/s) and dense arithmetic peaks by dtype (FLOP/s); None and absent: not known."""

    bytes_per_s: float | None = None
    basis: Basis | None = None
    source: str = ""
    peak_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    peak_source: str = ""


def roof_of(ledger: Ledger | None, rank: int, info: DeviceInfo | None) -> Roof:
    """The user's own figures first; else the larger of the trace's record and the table of devices.

    Of a rank that several tables of the ledger name, the last table that tells a figure wins.
    """
    row = (
        None
        if info is None
        else look_up(info.name, info.compute_capability, info.sm_count, info.total_memory_bytes)
    )
    known = floor_bandwidth(row, None if info is None else info.memory_bytes_per_s)
    roof = Roof() if known is None else Roof(known.bytes_per_s, known.basis, known.source)
    peaks = {} if row is None else dict(row.peak_flop_per_s)
    source = "" if row is None else f"{row.name}: {row.sources[0]}"
    for table in ledger.device if ledger is not None else ():
        if rank not in table.ranks:
            continue
        if table.bytes_per_s is not None:
            roof = Roof(table.bytes_per_s, "ledger", table.source)
        if table.peak_flop_per_s:
            peaks |= table.peak_flop_per_s
            source = table.source
    return Roof(roof.bytes_per_s, roof.basis, roof.source, peaks, source if peaks else "")
