"""Whether runs of different rank counts were asked for the same work: pins that must agree, and those that may not.

The work of one rank differs by design, so launched work is not compared. What must agree is what the group as a whole
was asked for, and by what; flags, hardware, clocks and topology change with the ranks and are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from analyzer.comparison.sides import replayed, step_work_of
from analyzer.diagnosis import Diagnosis, Input

MUST_AGREE = (
    "model",
    "precision",
    "weights",
    "runtime",
    "input",
    "context",
    "batch",
    "cache_initialization",
)
MAY_DIFFER = ("flags", "hardware", "clocks", "topology")
BOUNDARY, REPLAY, PROFILER = "timing_boundary", "graph replay", "profiler"
"""What each capture shows by itself: it is never undeclared."""
_FITTED_TOGETHER = (*MUST_AGREE, BOUNDARY, REPLAY)
_SHOWN = (*_FITTED_TOGETHER, *MAY_DIFFER, PROFILER)
Pins = Mapping[str, str]


def pins_of(diagnosis: Diagnosis, phase: str) -> Pins:
    """Declared and found pins, and what the capture itself shows of a phase: boundary, replays, profiler."""
    pins = {} if diagnosis.run is None else {name: pin.value for name, pin in diagnosis.run.pins.items()}
    profiler = ", ".join(sorted({_profiler(one) for one in diagnosis.inputs}))
    return {**pins, BOUNDARY: diagnosis.step_boundary, PROFILER: profiler, **_replay(diagnosis, phase)}


def _profiler(one: Input) -> str:
    """Python stacks slow the CPU down: captures with and without them are of two kinds."""
    return (
        f"{one.kind}{' with Python stacks' if one.kind == 'kineto-json' and 'frame' in one.captured else ''}"
    )


def _replay(diagnosis: Diagnosis, phase: str) -> dict[str, str]:
    """Whether graph replays launched most of the phase's kernels."""
    found = replayed([row for rank in diagnosis.ranks for row in step_work_of(diagnosis, phase, rank.rank)])
    if not found.kernels and not found.whole_replays:
        return {}
    most = found.whole_replays > 0 or 2 * found.in_graphs > found.kernels
    return {REPLAY: "most kernels" if most else "few kernels or none"}


def unlike(runs: Sequence[Pins]) -> list[list[str]]:
    """For each run the pins that are otherwise than in most (than in the first, where equally many are alike)."""
    usual = {name: _usual([one[name] for one in runs if name in one]) for name in _FITTED_TOGETHER}
    return [[name for name, value in usual.items() if name in one and one[name] != value] for one in runs]


def _usual(values: Sequence[str]) -> str | None:
    """The most frequent, of equally frequent ones the first."""
    return Counter(values).most_common(1)[0][0] if values else None


def shared(runs: Sequence[Pins]) -> dict[str, str]:
    """Pins that all runs have, equally."""
    first = runs[0]
    return {
        name: first[name] for name in _SHOWN if name in first and all(_same(one, first, name) for one in runs)
    }


def _same(one: Pins, other: Pins, name: str) -> bool:
    return one.get(name) == other[name]


def differing(runs: Sequence[Pins]) -> dict[str, list[str]]:
    """Pins with several values: of each run, "" where it does not declare one."""
    rows = {name: [one.get(name, "") for one in runs] for name in _SHOWN}
    return {name: values for name, values in rows.items() if len({*values} - {""}) > 1}


def undeclared(runs: Sequence[Pins]) -> list[str]:
    """Pins of which some run says nothing, so that nobody knows whether they agree."""
    return [name for name in (*MUST_AGREE, *MAY_DIFFER) if not all(name in one for one in runs)]
