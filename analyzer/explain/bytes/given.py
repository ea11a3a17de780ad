"""What a user gives beside the traces: a byte ledger, and counters of Nsight Compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer.errors import UsageError
from analyzer.ledger import files
from analyzer.ledger.model import Ledger
from analyzer.readers.ncu_csv import CounterFile, read_counters

_OF_RANK = re.compile(r"(\d{1,7})=(.+)", re.DOTALL)


@dataclass(frozen=True)
class BoundCounters:
    """A file of counters; ``rank`` None: it stands for every rank."""

    file: CounterFile
    rank: int | None


@dataclass(frozen=True)
class Given:
    """Both as read."""

    ledger: Ledger | None = None
    ledger_path: str = ""
    counters: tuple[BoundCounters, ...] = ()

    def of_rank(self, rank: int) -> Given:
        """What one rank's analysis needs: its own counters, else those that stand for every rank."""
        own = tuple(one for one in self.counters if one.rank == rank)
        return Given(
            self.ledger, self.ledger_path, own or tuple(one for one in self.counters if one.rank is None)
        )


NOTHING = Given()


def given(ledger: str | Path | None, counters: Sequence[str | Path], ranks: Sequence[int]) -> Given:
    """Read the files. ``counters``: FILE or RANK=FILE.

    Raises TraceError for a file that cannot be used, UsageError for a rank that the capture does not hold.
    """
    bound = []
    for text in map(str, counters):
        found = _OF_RANK.fullmatch(text)
        rank = int(found[1]) if found else None
        if rank is not None and rank not in ranks:
            held = ", ".join(map(str, sorted(ranks)[:8])) + (", ..." if len(ranks) > 8 else "")
            raise UsageError("--counters", text, f"there is no rank {rank}", f"the capture holds {held}")
        bound.append(BoundCounters(read_counters(found[2] if found else text), rank))
    path = "" if ledger is None else str(ledger)
    return Given(None if ledger is None else files.read(ledger), path, tuple(bound))
