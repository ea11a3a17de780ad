"""Order statistics."""

from __future__ import annotations

import msgspec


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Order statistics of ``count`` values, each one of the values itself (ns unless said otherwise)."""

    count: int
    p05: int
    median: int
    p95: int
    max: int
