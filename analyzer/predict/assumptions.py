"""What a prediction assumes beyond the capture: named, with both ends, and the user's to override."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analyzer.errors import UsageError

DEFAULTS: dict[str, tuple[int, int]] = {
    "graph_launch_ns": (2_500, 12_000),
    "graph_launch_node_ns": (1, 200),
    "graph_latency_ns": (5_000, 12_000),
    "graph_turnaround_ns": (500, 1_500),
    "graph_least_launches": (8, 8),
    "call_ns": (2_000, 6_000),
}
"""Where the capture shows none.

``graph_launch_ns`` and ``graph_launch_node_ns``: a graph launch call takes the one and, for each node, the other: 2 us
and 200 ns before CUDA 12.6, 2.5 us and 1 ns since (NVIDIA, "Constant Time Launch for Straight-Line CUDA Graphs");
the upper end is an eager launch's under a profiler twice. ``graph_latency_ns``: from its start to the first node.
``graph_turnaround_ns``: between two nodes; where the capture shows stream turnaround, half of that to all of it.
``graph_least_launches``: shorter bursts stay eager. ``call_ns``: a call that no longer waits.
"""

MEANINGS = {
    "graph_launch_ns": "duration of a graph launch call, without its nodes",
    "graph_launch_node_ns": "what each node adds to a graph launch call",
    "graph_latency_ns": "from the start of a graph launch call to its first node",
    "graph_turnaround_ns": "between two nodes of a replay",
    "graph_least_launches": "bursts of fewer launches stay eager (a count)",
    "call_ns": "duration of a call that no longer waits",
}


@dataclass(frozen=True)
class Assumption:
    """One figure that a prediction rests on, at its two ends. ``source``: assumed, measured here, or given."""

    name: str
    low: int
    high: int
    source: str  # "assumed" | "measured" | "given"


_FORM = re.compile(r"^(?P<name>[a-z_]+)=(?P<low>\d+)(?:\.\.(?P<high>\d+))?$")


def given(texts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """What a user wrote: ``graph_turnaround_ns=1200`` or ``graph_turnaround_ns=800..1500``, ns.

    Raises UsageError for a form or a name that is not known.
    """
    found: dict[str, tuple[int, int]] = {}
    for text in texts:
        match = _FORM.match(text)
        if match is None:
            raise UsageError(
                "--assume",
                text,
                "is no assumption",
                "write NAME=NS or NAME=LOW..HIGH, such as graph_turnaround_ns=1200",
            )
        if match["name"] not in DEFAULTS:
            raise UsageError(
                "--assume", match["name"], "is no assumption", "known are " + ", ".join(DEFAULTS)
            )
        low, high = int(match["low"]), int(match["high"] or match["low"])
        if high < low:
            raise UsageError("--assume", text, "ends before it begins", "write the lower end first")
        found[match["name"]] = (low, high)
    return found


def resolve(
    measured: Mapping[str, tuple[int, int] | None], overrides: Mapping[str, tuple[int, int]]
) -> dict[str, Assumption]:
    """Every assumption by name: the user's, else the capture's, else the default."""
    result = {}
    for name, default in DEFAULTS.items():
        seen = measured.get(name)
        low, high = overrides.get(name) or seen or default
        source = "given" if name in overrides else "measured" if seen else "assumed"
        result[name] = Assumption(name, low, high, source)
    return result
