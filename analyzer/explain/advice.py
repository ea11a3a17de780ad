"""Advice on how to measure, as it fits a capture: its profiler's version, its ranks, its devices.

The catalogue's words are those for a capture of which nothing is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from analyzer.diagnosis import Collective, Hypothesis, Unmeasured
from analyzer.explain.absent_device import WHERE, no_device
from analyzer.explain.check_up.remedies import EVENT_OPTION_SINCE, METRIC_DEVICES_SINCE, NSYS, Tool
from analyzer.explain.verdicts.catalogue import ALL_RANKS, COUNTERS, CUDA_EVENTS, PLAIN_STEPS
from analyzer.model import Capture


@dataclass(frozen=True)
class Advice:
    """``no_device``: why there is none, "" where that is not known. ``swaps``: general words and those that fit."""

    no_device: str
    swaps: tuple[tuple[str, str], ...]

    def text(self, words: str) -> str:
        """The words as they fit this capture."""
        for general, fitting in self.swaps:
            words = words.replace(general, fitting)
        return words

    def verdict(self, row: Hypothesis) -> Hypothesis:
        """An unmeasured hypothesis with what would measure it."""
        if row.verdict != "unmeasured":
            return row
        note = self.text(row.verdict_note)
        if self.no_device:
            note = PLAIN_STEPS if row.id == "profiler-distortion" else f"no GPU was there: {WHERE}"
        return msgspec.structs.replace(row, verdict_note=note)

    def unmeasured(self, rows: Sequence[Unmeasured]) -> list[Unmeasured]:
        """The questions with what would answer them."""
        return [msgspec.structs.replace(row, how_to_measure=self.text(row.how_to_measure)) for row in rows]


def advice_for(capture: Capture, collectives: Sequence[Collective], *, whole_graphs: bool) -> Advice:
    """``collectives``: those found on devices. ``whole_graphs``: replays stand as one row each."""
    return Advice(
        no_device=no_device(capture),
        swaps=(
            (ALL_RANKS, _between_ranks(capture, collectives, whole_graphs)),
            *_options([Tool.of(source) for source in capture.sources]),
        ),
    )


def _between_ranks(capture: Capture, collectives: Sequence[Collective], whole_graphs: bool) -> str:
    """What would tell transfer from waiting: files only where files are missing."""
    if not collectives:
        none = "no collective was recorded on a device"
        return none + (" outside graph replays, which are one row each" if whole_graphs else "")
    if capture.missing_ranks or len(capture.traces) < 2:
        return ALL_RANKS
    reasons: Counter[str] = Counter()
    for row in collectives:
        reasons.update(row.unsplit)
    if not reasons:
        return ALL_RANKS
    most = min(reasons, key=lambda reason: (-reasons[reason], reason))
    return f"all ranks are here, yet no call could be split: {most}"


def _options(tools: Sequence[Tool]) -> tuple[tuple[str, str], ...]:
    """Options of nsys as the oldest version among the files spells them; unknown: with the version that has them."""
    mine = [tool for tool in tools if tool.kind == NSYS]
    if not mine:
        return (
            (CUDA_EVENTS, f"{CUDA_EVENTS} (2025.3 and later; before, `--trace=cuda`)"),
            (COUNTERS, f"{COUNTERS} (before 2024.5 `--gpu-metrics-device=all`)"),
        )
    oldest = min(mine, key=lambda tool: tool.version or (0, 0))
    events = oldest.since(EVENT_OPTION_SINCE)
    counters = oldest.since(METRIC_DEVICES_SINCE)
    return (
        (CUDA_EVENTS, CUDA_EVENTS if events else "nsys `--trace=cuda`"),
        (COUNTERS, COUNTERS if counters else "nsys `--gpu-metrics-device=all`"),
    )
