"""Ledgers of test checkpoints, and sums over their entries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analyzer.ledger.build import Built, Request, build
from analyzer.ledger.model import Entry, Ledger
from tests.ledger.families import Shapes, write_headers


def built(
    folder: Path, config: Mapping[str, Any], shapes: Shapes, *, shards: int = 1, **request: Any
) -> Built:
    write_headers(folder, config, shapes, shards)
    return again(folder, **request)


def again(folder: Path, **request: Any) -> Built:
    return build(folder, Request(**{"batch": 1, "context": 0, "activations": False} | request))


def entries(
    ledger: Ledger, *, phase: str = "", kind: str = "", name: str = "", rank: int | None = None
) -> list[Entry]:
    return [
        entry
        for part in ledger.phase
        for entry in part.entry
        if part.name.endswith(phase)
        and entry.kind.startswith(kind)
        and entry.name.startswith(name)
        and (rank is None or rank in entry.ranks)
    ]


def size(ledger: Ledger, rank: int = 0, **which: str) -> int:
    """Bytes of one rank."""
    return sum(entry.bytes for entry in entries(ledger, rank=rank, **which))


def flop(ledger: Ledger, rank: int = 0, **which: str) -> int:
    return sum(entry.flop or 0 for entry in entries(ledger, rank=rank, **which))
