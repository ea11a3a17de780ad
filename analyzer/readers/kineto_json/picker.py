"""Which events of a block are usable, and when they were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.model import IntArray
from analyzer.readers.kineto_json.cuts import Block
from analyzer.readers.kineto_json.events import TIMES, Event, proven_ns, text_ns


@dataclass(frozen=True)
class Picked:
    """Some events of a block: their index in it, and their times in ns as the file has them."""

    index: IntArray
    events: list[Event]
    start_ns: IntArray
    end_ns: IntArray


@dataclass
class Picker:
    """Picks complete events and counts those that are none."""

    negative_durations: int = 0
    unusable: int = 0

    def pick(self, block: Block, index: IntArray) -> Picked | None:
        """The events at ``index`` that have a start and a duration; negative durations count as 0."""
        events = [block.events[i] for i in index.tolist()]
        start = proven_ns([event.ts for event in events])
        duration = proven_ns([event.dur for event in events])
        if start is None or duration is None or {event.ph for event in events} != {"X"}:
            index, start, duration = self._from_text(block, index)
            events = [block.events[i] for i in index.tolist()]
        if not events:
            return None
        negative = int((duration < 0).sum())
        if negative:
            self.negative_durations += negative
            duration = np.maximum(duration, 0)
        return Picked(index, events, start, start + duration)

    def _from_text(self, block: Block, index: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Index, start and duration of the usable rows, read from the digits of the text."""
        texts = TIMES.decode(block.text)
        kept: list[tuple[int, int, int]] = []
        for i in index.tolist():
            start, duration = text_ns(bytes(texts[i].ts)), text_ns(bytes(texts[i].dur))
            if start is not None and duration is not None and block.events[i].ph == "X":
                kept.append((i, start, duration))
        self.unusable += len(index) - len(kept)
        table = np.array(kept, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]
