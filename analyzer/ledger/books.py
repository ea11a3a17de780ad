"""Sums per pipeline stage, phase, kind, name and dtype, for each rank of the stage; then the ledger's entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

from analyzer.ledger.layout import Parallel
from analyzer.ledger.model import Basis, Entry, Kind, Phase
from analyzer.ledger.names import PhaseName

ORDER: tuple[PhaseName, ...] = ("embedding", "attention", "feed-forward", "head")


KINDS: tuple[Kind, ...] = get_args(Kind)


class Key(NamedTuple):
    """What one sum is of."""

    stage: int
    phase: PhaseName
    kind: Kind
    name: str
    dtype: str


@dataclass
class Sum:
    """Of one key: per place in the stage. ``flop``: None once a part of it is unknown."""

    basis: Basis
    source: str
    bytes: list[float]
    tensors: list[int]
    flop: list[float] | None
    flop_dtypes: set[str | None] = field(default_factory=set)


class Books:
    """Bytes and arithmetic as they are found, rank by rank."""

    def __init__(self, layout: Parallel) -> None:
        self.layout = layout
        self.sums: dict[Key, Sum] = {}

    def open(self, key: Key, basis: Basis, source: str) -> Sum:
        """The sum of ``key``; basis and source are those of whoever comes first."""
        found = self.sums.get(key)
        if found is None:
            places = self.layout.ranks_per_stage
            found = Sum(basis, source, [0.0] * places, [0] * places, [0.0] * places)
            self.sums[key] = found
        return found

    def phases(self) -> list[Phase]:
        """The ledger's phases in the order in which one batch passes them; a phase without bytes is left out."""
        entries: Mapping[tuple[int, PhaseName], list[Entry]] = defaultdict(list)
        for key, found in self.sums.items():
            entries[key.stage, key.phase].extend(_entries(key, found, self.layout))
        phases = []
        for phase in ORDER:
            for stage in range(self.layout.pipeline):
                if entries[stage, phase]:
                    phases.append((_place(stage, phase, self.layout.pipeline), stage, phase))
        phases.sort()
        many = self.layout.pipeline > 1
        return [
            Phase(
                name=f"stage {stage} {phase}" if many else phase,
                entry=sorted(entries[stage, phase], key=_entry_order),
            )
            for _, stage, phase in phases
        ]


def _entry_order(entry: Entry) -> tuple[int, str, str, list[int]]:
    return KINDS.index(entry.kind), entry.name, entry.dtype or "", entry.ranks


def _place(stage: int, phase: PhaseName, stages: int) -> tuple[int, int]:
    return (stages, 0) if phase == "head" else (stage, ORDER.index(phase))


def _entries(key: Key, found: Sum, layout: Parallel) -> list[Entry]:
    """One entry for all ranks with the same figures."""
    alike: dict[tuple[int, int, int | None], list[int]] = {}
    for place in range(layout.ranks_per_stage):
        flop = None if found.flop is None else round(found.flop[place])
        figures = (round(found.bytes[place]), found.tensors[place], flop)
        if figures[0] or flop:
            alike.setdefault(figures, []).append(layout.rank(key.stage, place))
    dtypes = found.flop_dtypes
    dtype = next(iter(dtypes)) if len(dtypes) == 1 else None
    return [
        Entry(
            kind=key.kind,
            ranks=sorted(ranks),
            bytes=size,
            basis=found.basis,
            source=found.source,
            name=key.name,
            dtype=key.dtype,
            tensors=tensors or None,
            flop=flop or None,
            flop_dtype=dtype if flop else None,
        )
        for (size, tensors, flop), ranks in alike.items()
    ]
