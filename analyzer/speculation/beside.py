"""What two captures differ in besides speculation: the speedup between them holds it, too."""

from __future__ import annotations

from analyzer.comparison.sides import replayed, step_work_of
from analyzer.diagnosis import Diagnosis
from analyzer.speculation.result import Difference


def beside(baseline: Diagnosis, phase: str, cycle: Diagnosis, cycle_phase: str) -> list[Difference]:
    """Device, graph replay of these phases and profiler, as far as both captures tell them."""
    pairs = (
        ("device", _devices(baseline), _devices(cycle)),
        ("graph replay", _replay(baseline, phase), _replay(cycle, cycle_phase)),
        ("profiler", _profilers(baseline), _profilers(cycle)),
    )
    return [
        Difference(what=what, baseline=one, speculative=two)
        for what, one, two in pairs
        if one and two and one != two
    ]


def _devices(diagnosis: Diagnosis) -> str:
    names = {rank.device.name for rank in diagnosis.ranks if rank.device is not None and rank.device.name}
    return ", ".join(sorted(names))


def _replay(diagnosis: Diagnosis, phase: str) -> str:
    """Whether graph replays launched most of the phase's kernels; empty where none was recorded."""
    found = replayed([row for rank in diagnosis.ranks for row in step_work_of(diagnosis, phase, rank.rank)])
    if not found.kernels and not found.whole_replays:
        return ""
    most = found.whole_replays > 0 or 2 * found.in_graphs > found.kernels
    return "most kernels" if most else "few kernels or none"


def _profilers(diagnosis: Diagnosis) -> str:
    """Python frames slow the CPU down: captures with and without them are two kinds."""
    kinds = {
        f"{one.kind}{' with Python frames' if one.kind == 'kineto-json' and 'frame' in one.captured else ''}"
        for one in diagnosis.inputs
    }
    return ", ".join(sorted(kinds))
