"""What a user gives beside the traces, read before the analysis begins: a slip shows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.explain.bytes.given import NOTHING, Given
from analyzer.swept import Sweep
from analyzer.tokens import TokenLog


@dataclass(frozen=True)
class Beside:
    """Ledger and counters, a sweep with its path, token logs. ``clocks``: name of the clock by end of a token's way."""

    bytes: Given = NOTHING
    sweep: tuple[str, Sweep] | None = None
    logs: tuple[TokenLog, ...] = ()
    clocks: Mapping[str, str] = field(default_factory=dict)
