"""Which torch releases write files like this one. No file says it; keys and categories came and went."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.readers.kineto_json.metadata import Metadata


def infer_era(
    metadata: Metadata, categories: Iterable[str | None], has_graph_nodes: bool, base_first: bool
) -> str:
    """A phrase such as "torch 2.4 or later", "" where nothing tells.

    From the dates of changes in libkineto: ac2g 2022-10, baseTimeNanoseconds 2024-05, trace_id 2024-11,
    the time base before the events 2025-03, host_name and graph node ids 2026-02/03 (some internal builds
    wrote host_name earlier, after the events).
    """
    found = set(categories)
    if metadata.base_ns is not None:
        if has_graph_nodes or (metadata.hostname and base_first):
            return "torch 2.11 or later"
        if base_first:
            return "torch 2.7 or later"
        return "torch 2.6 or later" if "trace_id" in metadata.values else "torch 2.4 or later"
    if found & {"Operator", "Runtime", "Kernel"} and "async" in found:
        return "torch 1.8"
    if "async_cpu_to_gpu" in found:
        return "torch 1.9 to 1.13"
    return "torch 2.0 to 2.3" if "ac2g" in found else ""
