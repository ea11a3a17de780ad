"""The token log: when each token was complete on the device, emitted by the server, received by the client.

Instants are epoch ns as the clock named beside them tells them; clocks of different names have nothing in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.model import QualityEntry

IntArray = npt.NDArray[np.int64]

ABSENT = int(np.iinfo(np.int64).min)
"""Stands for "not logged" in every column of instants."""


@dataclass(frozen=True)
class Clocks:
    """The name of the clock that each column was read from, by its host; None: the log does not tell."""

    device: str | None = None
    server: str | None = None
    client: str | None = None


@dataclass(frozen=True)
class TokenLog:
    """One log. Columns (n,) int64, sorted by (request, token); instants are epoch ns, ABSENT where not logged.

    Tokens of a request with one ``emission_ns`` were emitted together; those with one ``receipt_ns`` were read
    together. ``arrival_ns``: when the client's kernel had them. ``sent_ns``: (r,) per request, when the client sent
    it. ``resolution_ns``: the last digit of the server's times; the true instant lies within so much after them.
    ``receipt_resolution_ns``: that of the receipts.
    """

    path: str
    kind: str  # "csv" | "jsonl" | "parquet" | "client"
    clocks: Clocks
    requests: tuple[str, ...]
    request: IntArray  # index into requests
    token: IntArray
    completion_ns: IntArray
    emission_ns: IntArray
    arrival_ns: IntArray
    receipt_ns: IntArray
    sent_ns: IntArray
    resolution_ns: int = 1
    receipt_resolution_ns: int = 1
    quality: tuple[QualityEntry, ...] = ()
    partial: bool = False
    same_host: bool = False  # the client reached the server over the loopback interface of its own host

    def __len__(self) -> int:
        return len(self.request)
