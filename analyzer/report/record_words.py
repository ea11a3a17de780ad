"""Classes of records in words; files and options keep their short names."""

from __future__ import annotations

from collections.abc import Iterable

RECORD_WORDS = {
    "kernel": "kernels",
    "copy": "memory copies",
    "set": "memory sets",
    "graph": "whole graph replays",
    "graph-node": "kernels inside graphs",
    "call": "CUDA API calls",
    "sync": "synchronization records",
    "event-record": "CUDA event records",
    "nvtx": "ranges",
    "op": "ops",
    "frame": "Python frames",
    "os": "OS runtime calls",
    "overhead": "profiler overhead",
    "collective-metadata": "collective metadata",
    "metrics": "hardware counters",
    "stream-flags": "stream flags",
    "flow": "hand-overs between threads",
}
"""By the names of ``analyzer.model.RECORD_CLASSES``."""


def records_in_words(names: Iterable[str]) -> str:
    """``kernels, ranges``; empty for none."""
    return ", ".join(RECORD_WORDS.get(name, name) for name in names)
