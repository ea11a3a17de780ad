"""The byte floor of a step: the least time that a ledger's bytes take, and what of the measured step it leaves open.

``time >= max over ranks of (bytes of the rank / bandwidth of its device)`` for each phase of the ledger; serial phases
add; phases that overlap share each rank's bandwidth, so their bytes add before the slowest rank is taken. Bandwidths
of several devices are never added. A step far above its floor says how much is to be explained, not what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.diagnosis import ByteFloor, FloorPart
from analyzer.explain.bytes.step_mean import mean_step
from analyzer.ledger.model import Ledger, Phase, pipelined, together
from analyzer.reconstruct.windows import WHOLE

NS_PER_S = 1e9
_STAGES = (
    "the floor is that of one batch on its way through all pipeline stages; where each stage works on a batch of its"
    " own meanwhile, steps can follow one another faster, and the tokens/s are bounded by the busiest rank alone"
)


@dataclass(frozen=True)
class Steps:
    """Measured steps that a floor stands beside: their times, the ranks that took part, all ranks of the capture."""

    phase: str
    scope: str  # "global" | "rank"
    rank: int | None
    ranks: tuple[int, ...]
    captured: tuple[int, ...]
    times_ns: npt.NDArray[np.float64]


def bytes_of(phases: Sequence[Phase], rank: int) -> int:
    """Bytes of one rank per step in these phases."""
    return sum(entry.bytes for phase in phases for entry in phase.entry if rank in entry.ranks)


def ledger_ranks(ledger: Ledger) -> set[int]:
    """Ranks of which the ledger tells any bytes."""
    return {rank for phase in ledger.phase for entry in phase.entry for rank in entry.ranks}


def floor_parts(ledger: Ledger, ranks: Sequence[int], bytes_per_s: Mapping[int, float]) -> list[FloorPart]:
    """The floors of the parts over ``ranks``, all of known bandwidth; parts without bytes there are left out."""
    found = []
    for phases in together(ledger.phase):
        times = {rank: bytes_of(phases, rank) / bytes_per_s[rank] * NS_PER_S for rank in ranks}
        slowest = max(times, key=lambda rank: (times[rank], -rank), default=None)
        if slowest is not None and times[slowest] > 0:
            names = [phase.name for phase in phases]
            found.append(FloorPart(phases=names, floor_ns=times[slowest], rank=slowest))
    return found


def byte_floor(
    ledger: Ledger,
    steps: Steps,
    bytes_per_s: Mapping[int, float | None],
    copies: Mapping[int, float | None],
) -> ByteFloor | str:
    """The floor beside these steps, or why there is none.

    ``bytes_per_s``: most bandwidth of each rank's device; ``copies``: measured copy bandwidth; None: not known.
    """
    told = ledger_ranks(ledger)
    here = [rank for rank in steps.ranks if rank in told]
    known = {rank: speed for rank in here if (speed := bytes_per_s.get(rank)) is not None}
    if not here:
        return "the ledger holds nothing of the captured ranks"
    if not known:
        return (
            "the memory bandwidth of the devices is not known: give it in the ledger,"
            " [[device]] with ranks, bytes_per_s and source"
        )
    parts = floor_parts(ledger, sorted(known), known)
    floor = sum(part.floor_ns for part in parts)
    if not floor:
        return "the ledger moves no bytes on these ranks"
    measured = {rank: speed for rank in known if (speed := copies.get(rank)) is not None}
    achievable = None
    if len(measured) == len(known):
        achievable = sum(part.floor_ns for part in floor_parts(ledger, sorted(measured), measured))
    notes = _missing(steps, told, here, known)
    if steps.phase == WHOLE:
        notes.append("no steps were found: the whole capture counts as one, as the ledger's applies_to says")
    pace = floor
    if pipelined(ledger) and len(known) > 1:
        pace = max(bytes_of(ledger.phase, rank) / speed for rank, speed in known.items()) * NS_PER_S
        notes.append(_STAGES)
    return _beside(ledger, steps, sorted(known), parts, floor, pace, achievable, notes)


def _missing(steps: Steps, told: set[int], here: Sequence[int], known: Mapping[int, float]) -> list[str]:
    """Which ranks the floor leaves out: it holds over the others all the same."""
    found = []
    for ranks, why in (
        (sorted(told - set(steps.captured)), "in the ledger and not in the capture"),
        (sorted(set(steps.ranks) - told), "in the capture, and the ledger holds nothing of it"),
        (sorted(set(here) - set(known)), "the memory bandwidth of the device is not known"),
    ):
        if ranks:
            who = "rank" if len(ranks) == 1 else "ranks"
            found.append(f"left out: {who} {', '.join(map(str, ranks))}: {why}")
    return found


def _beside(
    ledger: Ledger,
    steps: Steps,
    ranks: list[int],
    parts: list[FloorPart],
    floor: float,
    pace: float,
    achievable: float | None,
    notes: list[str],
) -> ByteFloor:
    """``pace``: the least time from one step to the next, where stages of a pipeline work on several batches."""
    step, interval = mean_step(steps.times_ns)
    below = step < floor
    low, high = interval or (step, step)
    tokens = ledger.workload.tokens_per_step
    if below:
        notes = [*notes, "the step is shorter than its floor: caches served part of the bytes, or ledger, bandwidth "
                 "and step do not belong together"]  # fmt: skip
    return ByteFloor(
        phase=steps.phase,
        scope=steps.scope,
        rank=steps.rank,
        ranks=ranks,
        windows=len(steps.times_ns),
        step_ns=step,
        step_interval_ns=interval,
        floor_ns=floor,
        parts=parts,
        fraction=None if below else floor / step,
        fraction_interval=None
        if below or interval is None
        else (floor / high, min(floor / low, 1.0) if low else 1.0),
        unexplained_ns=None if below else step - floor,
        unexplained_interval_ns=None if below or interval is None else (max(low - floor, 0.0), high - floor),
        achievable_ns=achievable,
        fraction_of_achievable=None if below or achievable is None else achievable / step,
        tokens_per_step=tokens,
        ceiling_tokens_per_s=None if tokens is None else tokens * NS_PER_S / pace,
        observed_tokens_per_s=None if tokens is None else tokens * NS_PER_S / step,
        fraction_of_ceiling=None if tokens is None or step < pace else pace / step,
        notes=notes,
    )
