"""What each change does to the edges and durations of a graph."""

from __future__ import annotations

from analyzer.predict import apply_collectives, apply_device, apply_host
from analyzer.predict.apply_ranks import even_ranks
from analyzer.predict.changes import (
    ByteFloor,
    Change,
    Collectives,
    CollectivesHidden,
    Copies,
    EvenRanks,
    GraphCapture,
    Host,
    Kernels,
    NoDependencies,
    NoSkew,
    NoSync,
    SmallGrids,
    Turnaround,
)
from analyzer.predict.draft import Draft
from analyzer.predict.graph_capture import capture_graphs


def apply(draft: Draft, change: Change) -> None:
    """Bring one change into the draft. Raises UsageError where the capture lacks what the change needs."""
    match change:
        case GraphCapture():
            capture_graphs(draft)
        case Host() | NoSync():
            apply_host.apply(draft, change)
        case Kernels() | SmallGrids() | Copies() | ByteFloor() | Turnaround() | NoDependencies():
            apply_device.apply(draft, change)
        case EvenRanks():
            even_ranks(draft)
        case Collectives() | CollectivesHidden() | NoSkew():
            apply_collectives.apply(draft, change)
