"""Memory bandwidth: the least time that bytes take, and how much arithmetic a byte carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from analyzer.calculators.checks import finite, not_negative, positive, together, whole
from analyzer.calculators.result import Kind, Result, figure
from analyzer.errors import UsageError

NS_PER_S = 1e9


class Phase(NamedTuple):
    """What each rank moves from and to device memory in one phase, and how fast it can."""

    bytes_per_rank: Sequence[float]
    bytes_per_s: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Floor(Result):
    """Result of ``floor``."""

    calculator: ClassVar[str] = "floor"
    kind: ClassVar[Kind] = "bound"
    floor_ns: float = figure("least time of a step", "ns")
    phase_floors_ns: tuple[float, ...] = figure("least time of each phase", "ns")
    slowest_ranks: tuple[int, ...] = figure("first rank that sets it, by position")
    ceiling_tokens_per_s: float = figure("most tokens per second", "tokens/s")
    observed_tokens_per_s: float | None = figure("observed tokens per second", "tokens/s", kind="measurement")
    share_of_ceiling: float | None = figure("share of the ceiling reached", "share")
    unexplained_ns: float | None = figure("time above the floor, to be explained", "ns")


def phase_floor_ns(phase: Phase) -> tuple[float, int]:
    """Max over ranks of bytes / bandwidth in ns, and the position of the rank that sets it.

    Ranks move their bytes at the same time, so the slowest sets the phase; their bandwidths are not added.
    """
    if not phase.bytes_per_rank or len(phase.bytes_per_rank) != len(phase.bytes_per_s):
        raise UsageError(
            "bytes_per_s",
            "",
            f"{len(phase.bytes_per_s)} bandwidths for {len(phase.bytes_per_rank)} ranks",
            "give one bandwidth for each rank",
        )
    times = [
        not_negative("bytes_per_rank", size) / positive("bytes_per_s", speed) * NS_PER_S
        for size, speed in zip(phase.bytes_per_rank, phase.bytes_per_s, strict=True)
    ]
    slowest = max(range(len(times)), key=times.__getitem__)
    if times[slowest] == 0:
        raise UsageError("bytes_per_rank", "", "no rank moves a byte", "give more than 0 bytes for a rank")
    return times[slowest], slowest


def floor(phases: Sequence[Phase], *, observed_ns: float | None = None, tokens: float = 1) -> Floor:
    """The least time that the phases' bytes take, and what of an observed time it leaves unexplained.

    Args:
        phases: one after the other; their floors add.
        observed_ns: a measured time of the same step.
        tokens: tokens that one step yields (the batch size in ordinary decode).

    """
    if not phases:
        raise UsageError("phases", "", "there is none", "give the bytes of at least one phase")
    tokens = positive("tokens", tokens)
    floors = [phase_floor_ns(phase) for phase in phases]
    total = sum(time for time, _ in floors)
    observed = None if observed_ns is None else positive("observed_ns", observed_ns)
    below = observed is not None and observed < total
    return Floor(
        floor_ns=total,
        phase_floors_ns=tuple(time for time, _ in floors),
        slowest_ranks=tuple(rank for _, rank in floors),
        ceiling_tokens_per_s=tokens * NS_PER_S / finite("phases", total, "phases of finite time"),
        observed_tokens_per_s=None if observed is None else tokens * NS_PER_S / observed,
        share_of_ceiling=None if observed is None or below else total / observed,
        unexplained_ns=None if observed is None or below else observed - total,
        assumptions=(
            "every byte given crosses the memory bus once, at the bandwidth given",
            "the ranks of a phase work at the same time: the slowest sets the phase; phases follow one another",
            "being far above the floor locates no bottleneck; it names an amount of time to explain",
        ),
        cautions=(
            "the observed time is below the floor: caches served part of the bytes, or bytes, bandwidth or "
            "time do not belong together",
        )
        if below
        else (),
    )


@dataclass(frozen=True, kw_only=True)
class Intensity(Result):
    """Result of ``intensity``."""

    calculator: ClassVar[str] = "intensity"
    kind: ClassVar[Kind] = "model"
    flop_per_byte: float = figure("arithmetic per byte of weights", "FLOP/byte")
    ridge_flop_per_byte: float | None = figure("where memory and arithmetic take equally long", "FLOP/byte")
    roof_flop_per_s: float | None = figure("most arithmetic per second", "FLOP/s", kind="bound")
    roof: str | None = figure("what sets it", kind="bound")


def intensity(
    stored_bytes_per_weight: float,
    *,
    batch: int = 1,
    flop_per_weight: float = 2,
    peak_flop_per_s: float | None = None,
    bytes_per_s: float | None = None,
) -> Intensity:
    """FLOP per byte of weights read: ``batch x flop_per_weight / stored_bytes_per_weight``.

    Args:
        stored_bytes_per_weight: with scales and zero points, so 0.5 and more for 4 bits.
        batch: tokens that one read of the weights serves.
        flop_per_weight: a multiplication and an addition.
        peak_flop_per_s: dense peak for the dtype; with ``bytes_per_s`` gives the roof.
        bytes_per_s: memory bandwidth.

    """
    per_byte = (
        whole("batch", batch, 1)
        * positive("flop_per_weight", flop_per_weight)
        / positive("stored_bytes_per_weight", stored_bytes_per_weight)
    )
    ridge = roof = None
    if together(("peak_flop_per_s", "bytes_per_s"), (peak_flop_per_s, bytes_per_s)):
        peak, speed = (
            positive("peak_flop_per_s", peak_flop_per_s or 0),
            positive("bytes_per_s", bytes_per_s or 0),
        )
        ridge, roof = peak / speed, min(peak, per_byte * speed)
    return Intensity(
        flop_per_byte=per_byte,
        ridge_flop_per_byte=ridge,
        roof_flop_per_s=roof,
        roof=None if ridge is None else ("memory" if per_byte < ridge else "arithmetic"),
        assumptions=(
            "weights only: activations, KV cache and outputs add bytes and lower the figure",
            "each weight is read once from memory for the whole batch",
            "a roof is what cannot be exceeded; being below it does not say that it is what holds the work up",
        ),
    )
