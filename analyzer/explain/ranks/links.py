"""What one rank hands over for a path through all ranks: its chains as readable segments, with their facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import numpy as np

from analyzer.across.clocks import ClockMap
from analyzer.across.global_path import RankLinks
from analyzer.across.waits import RankWaits
from analyzer.categories import Binding
from analyzer.explain.bytes.codes import NO_CODES, RowCodes
from analyzer.explain.segments import as_table
from analyzer.explain.verdicts.path_facts import PathFacts, path_facts
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import Arrivals
from analyzer.reconstruct.chains import Chains
from analyzer.reconstruct.critical_path import ON_DEVICE, Path
from analyzer.reconstruct.rank import RankAccount
from analyzer.stored import Aside, lay_aside
from analyzer.tables import SegmentTable


@dataclass(frozen=True)
class LinkRows:
    """The chains of one rank and the bodies of its collectives, as rows of segment tables."""

    segments: SegmentTable  # of all chains, in chain order
    facts: PathFacts  # of the same rows
    bodies: SegmentTable  # one row per collective


@dataclass(frozen=True)
class Links:
    """What a walk needs of the chains of one rank (see ``RankLinks``), and where what it finds can be read."""

    rows: LinkRows | Aside[LinkRows]
    start_ns: IntArray
    end_ns: IntArray
    body_category: IntArray
    edges: IntArray
    high_ns: IntArray
    reached: IntArray
    merged: IntArray
    at_ns: IntArray

    def on(self, arrivals: Arrivals, waits: RankWaits, clock: ClockMap) -> RankLinks:
        """The same for the walk through all ranks."""
        return RankLinks(
            arrivals=arrivals,
            waits=waits,
            clock=clock,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            edges=self.edges,
            high_ns=self.high_ns,
            reached=self.reached,
            merged=self.merged,
            at_ns=self.at_ns,
            body_category=self.body_category,
        )

    def load(self) -> LinkRows:
        """The rows, from wherever they are."""
        return self.rows.load() if isinstance(self.rows, Aside) else self.rows

    def laid_aside(self, path: FilePath) -> Links:
        """The same with its rows on disk."""
        return replace(self, rows=lay_aside(self.load(), path))


def find_links(
    account: RankAccount, rank: int, thresholds: Mapping[str, float], codes: RowCodes = NO_CODES
) -> Links | None:
    """The chains of a rank in readable form; None where no other rank will ask for them."""
    chains = account.chains
    if chains is None:
        return None
    rows = account.arrivals.arrivals.row
    parts = [_part(chains, at) for at in range(len(chains))]
    bodies = as_table(account, rank, _bodies(account, rows), np.arange(len(rows), dtype=np.int32))
    return Links(
        rows=LinkRows(
            segments=as_table(account, rank, chains.path, _owner(chains)),
            facts=path_facts(account, parts, thresholds["small_grid_coverage"], codes),
            bodies=bodies,
        ),
        start_ns=chains.path.start_ns.copy(),
        end_ns=chains.path.end_ns.copy(),
        body_category=bodies.category.astype(np.int64),
        edges=chains.edges,
        high_ns=chains.high_ns,
        reached=chains.reached,
        merged=chains.merged,
        at_ns=chains.at_ns,
    )


def _owner(chains: Chains) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.repeat(np.arange(len(chains), dtype=np.int32), np.diff(chains.edges))


def _part(chains: Chains, at: int) -> Path:
    rows = slice(int(chains.edges[at]), int(chains.edges[at + 1]))
    return Path(**{name: column[rows] for name, column in vars(chains.path).items()})


def _bodies(account: RankAccount, rows: IntArray) -> Path:
    work, n = account.work, len(rows)
    return Path(
        start_ns=work.start_ns[rows],
        end_ns=work.end_ns[rows],
        category=work.label[rows],
        binding=np.full(n, Binding.WORK, np.int8),
        inferred=np.zeros(n, bool),
        side=np.full(n, ON_DEVICE, np.int8),
        ref=rows,
        thread=np.full(n, -1, np.int64),
    )


def arrival_of_segment(account: RankAccount) -> IntArray:
    """(s,) position among the rank's collectives of the one that runs in each path segment, -1 none."""
    position = np.full(len(account.work), -1, np.int64)
    rows = account.arrivals.arrivals.row
    position[rows] = np.arange(len(rows))
    found = [np.empty(0, np.int64)]
    for path in account.paths:
        mine = np.full(len(path), -1, np.int64)
        body = np.flatnonzero((path.side == ON_DEVICE) & (path.binding == Binding.WORK) & (path.ref >= 0))
        mine[body] = position[path.ref[body]]
        found.append(mine)
    return np.concatenate(found)
