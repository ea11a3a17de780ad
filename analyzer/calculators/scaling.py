"""Serial and parallel shares: one phase made faster, and times at several rank counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from analyzer.calculators.checks import positive, share, whole
from analyzer.calculators.least_squares import fit_line
from analyzer.calculators.result import Kind, Result, figure
from analyzer.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Amdahl(Result):
    """Result of ``amdahl``. Times are relative to the time before the change."""

    calculator: ClassVar[str] = "amdahl"
    kind: ClassVar[Kind] = "model"
    new_time: float = figure("new time / old time")
    overall_speedup: float = figure("speedup of the whole", "x")
    serial_share: float = figure("share of the new time outside the phase", "share")
    scaling_speedup: float | None = figure("ideal speedup when only the phase is spread", "x", kind="bound")


def amdahl(phase_share: float, speedup: float, *, ways: int | None = None) -> Amdahl:
    """One phase of ``phase_share`` of the time gets ``speedup`` times faster; then is spread over ``ways``.

    ``scaling_speedup`` compares the time after the change on one with that on ``ways``.
    """
    part, factor = share("phase_share", phase_share), positive("speedup", speedup)
    outside = 1 - part
    new_time = outside + part / factor
    spread = None if ways is None else outside + part / factor / whole("ways", ways, 2)
    return Amdahl(
        new_time=new_time,
        overall_speedup=1 / new_time,
        serial_share=outside / new_time,
        scaling_speedup=None if spread is None else new_time / spread,
        assumptions=(
            "the phase and the rest do not overlap, and the rest takes as long as before",
            "spreading is free of communication and perfectly even: real scaling is worse",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Scaling(Result):
    """Result of ``scaling``."""

    calculator: ClassVar[str] = "scaling"
    kind: ClassVar[Kind] = "fit"
    serial_ns: float = figure("serial time S", "ns")
    parallel_ns: float = figure("parallel time P", "ns")
    serial_share: float | None = figure("serial share of the time on one rank", "share")
    speedup: float = figure("fewest ranks against most: speedup", "x", kind="measurement")
    efficiency: float = figure("speedup / ratio of ranks", "share", kind="measurement")
    residuals_ns: tuple[float, ...] | None = figure("measured - fitted", "ns")
    rms_residual_ns: float | None = figure("root mean square of it", "ns")


def scaling(points: Sequence[tuple[int, float]]) -> Scaling:
    """Fit ``T(N) = S + P / N`` to (ranks, time in ns): exact through two points, else least squares."""
    checked = [(whole("points", ranks, 1), positive("points", time)) for ranks, time in points]
    counts = sorted({ranks for ranks, _ in checked})
    if len(counts) < 2:
        raise UsageError(
            "points",
            "",
            f"times of {len(counts)} rank count are no scaling",
            "give times of two rank counts or more, such as 1 and 8",
        )
    line = fit_line([Fraction(1, ranks) for ranks, _ in checked], [time for _, time in checked])
    serial, parallel = line.intercept, line.slope
    exact = len(checked) == 2
    two = "two rank counts always fit: S and P absorb communication and everything else that changed with the ranks"
    speedup = _mean_time(checked, counts[0]) / _mean_time(checked, counts[-1])
    return Scaling(
        serial_ns=serial,
        parallel_ns=parallel,
        serial_share=serial / (serial + parallel) if serial >= 0 and parallel >= 0 else None,
        speedup=speedup,
        efficiency=speedup * counts[0] / counts[-1],
        residuals_ns=None if exact else line.residuals,
        rms_residual_ns=None if exact else line.rms_residual,
        assumptions=(
            "the work is the same at every rank count",
            two
            if len(counts) == 2
            else "S and P absorb communication and whatever else changed with the ranks; judge by the residuals",
            "the fit holds between the rank counts given; less time can go with worse scaling, so compare times too",
        ),
        cautions=_cautions(serial, parallel, counts[0]),
    )


def _mean_time(points: Sequence[tuple[int, float]], ranks: int) -> float:
    times = [time for count, time in points if count == ranks]
    return sum(times) / len(times)


def _cautions(serial: float, parallel: float, fewest: int) -> tuple[str, ...]:
    found = []
    if parallel < 0:
        found.append("more ranks are slower: no split into serial and parallel time describes this")
    if serial < 0:
        found.append("faster than the ranks account for (caches, other shapes): there is no serial share")
    if fewest > 1:
        found.append("one rank was not measured: the serial share is a share of the fitted time there")
    return tuple(found)
