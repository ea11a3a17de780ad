"""A ledger in sums: bytes per phase and kind over the ranks, arithmetic per byte, and the floor of a bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from analyzer.calculators.memory import Phase as FloorPhase
from analyzer.calculators.memory import phase_floor_ns
from analyzer.errors import UsageError
from analyzer.hardware import DEVICES, floor_bandwidth, look_up
from analyzer.ledger.model import Entry, Kind, Layout, Ledger, Phase, Uncounted, Workload, pipelined, together

FORMAT = "tracebound.ledger-summary"
FORMAT_VERSION = 1
NS_PER_S = 1e9


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Of the ranks that a phase has: the least and the most that one of them moves per step, and its arithmetic."""

    ranks: list[int]
    bytes_min: int
    bytes_max: int
    flop_max: int | None  # of one rank, as far as entries tell it
    flop_per_byte: float | None  # of the first rank with the most bytes
    flop_complete: bool  # False: some entries do not tell theirs, and what the others tell is the least


class KindRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind within a phase; a rank of the phase without it moves 0 bytes of it."""

    phase: str
    kind: Kind
    basis: list[str]
    sums: Sums


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """All kinds of a phase."""

    phase: str
    overlaps_previous: bool
    sums: Sums


class FloorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bound: the least time of phases that run at the same time (mostly of one)."""

    phases: list[str]
    floor_ns: float
    rank: int  # the first that sets it
    bytes: int  # that it moves


class Bandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """Device memory bandwidth of ranks, and where the figure comes from."""

    ranks: list[int]
    bytes_per_s: float
    source: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """``floors`` and what follows from them are null where no bandwidth is known for some rank.

    ``ceiling_tokens_per_s``: steps follow one another; of several pipeline stages each works on a batch of its own.
    """

    format: str
    format_version: int
    workload: Workload
    layout: Layout | None
    kinds: list[KindRow]
    phases: list[PhaseRow]
    total: Sums
    bandwidth: list[Bandwidth]
    floors: list[FloorRow] | None
    floor_ns: float | None
    ceiling_tokens_per_s: float | None
    uncounted: list[Uncounted]


def device_bandwidth(name: str) -> tuple[float, str]:
    """Bytes/s of the device that a driver calls ``name``, for a floor, with the source. UsageError: not one device."""
    row = look_up(name, None, None, None)
    found = floor_bandwidth(row, None)
    if found is None:
        known = ", ".join(row.name for row in DEVICES)
        raise UsageError(
            "--device", "", f"{name!r} is not one device of the table", f"give --bandwidth; known: {known}"
        )
    return found.bytes_per_s, found.source


def summarize(ledger: Ledger, bytes_per_s: float | None = None, source: str = "") -> Summary:
    """``bytes_per_s``: of every rank for which the ledger itself has no figure; ``source`` says whose figure it is."""
    ranks = _ranks(entry for phase in ledger.phase for entry in phase.entry)
    bandwidth = _bandwidth(ledger, ranks, bytes_per_s, source)
    speeds = {rank: row.bytes_per_s for row in bandwidth for rank in row.ranks}
    floors = _floors(ledger.phase, speeds) if all(rank in speeds for rank in ranks) else None
    floor_ns = None if floors is None else sum(row.floor_ns for row in floors)
    tokens, pace_ns = ledger.workload.tokens_per_step, floor_ns
    if floor_ns and pipelined(ledger):
        sizes = _per_rank((entry for phase in ledger.phase for entry in phase.entry), ranks)
        pace_ns = max(sizes[rank] / speeds[rank] for rank in ranks) * NS_PER_S
    return Summary(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        workload=ledger.workload,
        layout=ledger.layout,
        kinds=[row for phase in ledger.phase for row in _kinds(phase)],
        phases=[
            PhaseRow(
                phase=phase.name,
                overlaps_previous=phase.overlaps_previous,
                sums=_sums(phase.entry, _ranks(phase.entry)),
            )
            for phase in ledger.phase
        ],
        total=_sums([entry for phase in ledger.phase for entry in phase.entry], ranks),
        bandwidth=bandwidth,
        floors=floors,
        floor_ns=floor_ns,
        ceiling_tokens_per_s=tokens * NS_PER_S / pace_ns if tokens and pace_ns else None,
        uncounted=ledger.uncounted,
    )


def _ranks(entries: Iterable[Entry]) -> list[int]:
    return sorted({rank for entry in entries for rank in entry.ranks})


def _kinds(phase: Phase) -> list[KindRow]:
    ranks = _ranks(phase.entry)
    rows = []
    for kind in get_args(Kind):
        entries = [entry for entry in phase.entry if entry.kind == kind]
        if entries:
            basis = sorted({entry.basis for entry in entries})
            rows.append(KindRow(phase=phase.name, kind=kind, basis=list(basis), sums=_sums(entries, ranks)))
    return rows


def _sums(entries: Sequence[Entry], ranks: list[int]) -> Sums:
    sizes = _per_rank(entries, ranks)
    flop = dict.fromkeys(ranks, 0)
    told = False
    for entry in entries:
        told |= entry.flop is not None
        for rank in entry.ranks:
            flop[rank] += entry.flop or 0
    busiest = max(ranks, key=lambda rank: sizes[rank])
    return Sums(
        ranks=ranks,
        bytes_min=min(sizes.values()),
        bytes_max=sizes[busiest],
        flop_max=max(flop.values()) if told else None,
        flop_per_byte=flop[busiest] / sizes[busiest] if told and sizes[busiest] else None,
        flop_complete=all(entry.flop is not None for entry in entries),
    )


def _per_rank(entries: Iterable[Entry], ranks: list[int]) -> dict[int, int]:
    sizes = dict.fromkeys(ranks, 0)
    for entry in entries:
        for rank in entry.ranks:
            sizes[rank] += entry.bytes
    return sizes


def _bandwidth(ledger: Ledger, ranks: list[int], bytes_per_s: float | None, source: str) -> list[Bandwidth]:
    """The ledger's own figures go before all others."""
    rows = [
        Bandwidth(ranks=device.ranks, bytes_per_s=device.bytes_per_s, source=f"ledger: {device.source}")
        for device in ledger.device
        if device.bytes_per_s is not None
    ]
    told = {rank for row in rows for rank in row.ranks}
    rest = [rank for rank in ranks if rank not in told]
    if rest and bytes_per_s is not None:
        rows.append(Bandwidth(ranks=rest, bytes_per_s=bytes_per_s, source=source))
    return rows


def _floors(phases: Sequence[Phase], speeds: dict[int, float]) -> list[FloorRow]:
    """Phases that overlap share each rank's bandwidth: their bytes add before the slowest rank is looked for."""
    rows = []
    for group in together(phases):
        entries = [entry for phase in group for entry in phase.entry]
        ranks = _ranks(entries)
        sizes = _per_rank(entries, ranks)
        if not any(sizes.values()):
            continue
        floor_ns, place = phase_floor_ns(FloorPhase(list(sizes.values()), [speeds[rank] for rank in ranks]))
        rows.append(
            FloorRow(
                phases=[phase.name for phase in group],
                floor_ns=floor_ns,
                rank=ranks[place],
                bytes=sizes[ranks[place]],
            )
        )
    return rows
