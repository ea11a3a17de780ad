"""The same text for the same capture, wherever it lies and whatever it was called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from analyzer.diagnosis import Rank


def fingerprint(time_zero_ns: str | None, ranks: Sequence[Rank]) -> str:
    """Of the capture's zero and of how much device work each rank has, when."""
    spans = [rank.device_span for rank in ranks]
    facts = [
        [rank.rank, rank.device_events, *([] if span is None else [span.start_ns, span.end_ns, span.busy_ns])]
        for rank, span in zip(ranks, spans, strict=True)
    ]
    return hashlib.blake2b(json.dumps([time_zero_ns, facts]).encode(), digest_size=16).hexdigest()
