"""Collectives: what a number of calls amounts to, and a local fit of latency over size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from analyzer.calculators.checks import positive, together, whole
from analyzer.calculators.least_squares import fit_line
from analyzer.calculators.result import Kind, Result, figure
from analyzer.errors import UsageError

FIT_CONTEXT = ("topology", "ranks", "dtype", "synchronization", "concurrency")
"""What a fit of latencies holds for; whatever is not given is listed as undeclared."""


@dataclass(frozen=True, kw_only=True)
class Collective(Result):
    """Result of ``collective``."""

    calculator: ClassVar[str] = "collective"
    kind: ClassVar[Kind] = "model"
    total_ns: float = figure("all calls together", "ns")
    share_of_step: float | None = figure("share of the step", "share")
    payload_bytes: float | None = figure("payload of one call", "bytes")
    payload_total_bytes: float | None = figure("payload of all calls", "bytes")


def collective(
    calls: int,
    latency_ns: float,
    *,
    step_ns: float | None = None,
    elements: int | None = None,
    bytes_per_element: float | None = None,
) -> Collective:
    """``calls x latency``, its share of a step, and the payload ``elements x bytes_per_element``."""
    total = whole("calls", calls, 1) * positive("latency_ns", latency_ns)
    step = None if step_ns is None else positive("step_ns", step_ns)
    payload = None
    if together(("elements", "bytes_per_element"), (elements, bytes_per_element)):
        payload = whole("elements", elements or 0, 1) * positive("bytes_per_element", bytes_per_element or 0)
    too_long = step is not None and total > step
    return Collective(
        total_ns=total,
        share_of_step=None if step is None or too_long else total / step,
        payload_bytes=payload,
        payload_total_bytes=None if payload is None else payload * calls,
        assumptions=(
            "every call takes the same time, and the calls do not overlap one another",
            "a latency that measures the whole call already holds its payload: do not add payload / bandwidth",
            "a call that runs under other work costs the step less; one whose participants come late, more",
            "the price of a call holds for this sharding only: another number of calls is measured anew",
        ),
        cautions=("the calls are longer than the step: they overlap, or the figures do not belong together",)
        if too_long
        else (),
    )


@dataclass(frozen=True, kw_only=True)
class AlphaBeta(Result):
    """Result of ``alpha_beta``."""

    calculator: ClassVar[str] = "alpha-beta"
    kind: ClassVar[Kind] = "fit"
    alpha_ns: float = figure("latency at no payload (alpha)", "ns")
    beta_bytes_per_s: float | None = figure("bandwidth (beta)", "bytes/s")
    smallest_bytes: float = figure("fitted from", "bytes", kind="measurement")
    largest_bytes: float = figure("fitted to", "bytes", kind="measurement")
    size_ratio: float = figure("largest size / smallest", kind="measurement")
    latency_ratio: float = figure("latency there / latency here", kind="measurement")
    residuals_ns: tuple[float, ...] | None = figure("measured - fitted", "ns")
    rms_residual_ns: float | None = figure("root mean square of it", "ns")
    predicted_ns: float | None = figure("latency at the size asked for", "ns")


def alpha_beta(
    points: Sequence[tuple[float, float]],
    *,
    at_bytes: float | None = None,
    context: Mapping[str, str] | None = None,
) -> AlphaBeta:
    """Fit ``latency = alpha + bytes / beta`` to (bytes, latency in ns): exact through two points.

    More points: least squares, with residuals. One size cannot be fitted, and a size outside the fitted
    range is not answered. ``context`` holds what the fit belongs to, by the names in ``FIT_CONTEXT``.
    """
    checked = [(positive("points", size), positive("points", latency)) for size, latency in points]
    sizes = sorted({size for size, _ in checked})
    if len(sizes) < 2:
        raise UsageError(
            "points", "", f"latencies of {len(sizes)} size are no line", "give points of two sizes or more"
        )
    line = fit_line([Fraction(size) for size, _ in checked], [latency for _, latency in checked])
    exact = len(checked) == 2
    return AlphaBeta(
        alpha_ns=line.intercept,
        beta_bytes_per_s=_beta(line.slope),
        smallest_bytes=sizes[0],
        largest_bytes=sizes[-1],
        size_ratio=sizes[-1] / sizes[0],
        latency_ratio=_mean_latency(checked, sizes[-1]) / _mean_latency(checked, sizes[0]),
        residuals_ns=None if exact else line.residuals,
        rms_residual_ns=None if exact else line.rms_residual,
        predicted_ns=None if at_bytes is None else _inside(at_bytes, sizes, line.intercept, line.slope),
        assumptions=_fit_assumptions(len(sizes) == 2, context or {}),
        cautions=_fit_cautions(line.intercept, line.slope),
    )


def _beta(slope: float) -> float | None:
    return 1e9 / slope if slope > 0 else None


def _mean_latency(points: Sequence[tuple[float, float]], at: float) -> float:
    latencies = [latency for size, latency in points if size == at]
    return sum(latencies) / len(latencies)


def _inside(at_bytes: float, sizes: Sequence[float], alpha_ns: float, slope: float) -> float:
    size = positive("at_bytes", at_bytes)
    if not sizes[0] <= size <= sizes[-1]:
        raise UsageError(
            "at_bytes",
            "",
            f"{size:.15g} bytes lie outside the fitted range, {sizes[0]:.15g} to {sizes[-1]:.15g} bytes",
            "measure a size there; a fit says nothing outside its range",
        )
    return alpha_ns + slope * size


def _fit_assumptions(two_sizes: bool, context: Mapping[str, str]) -> tuple[str, ...]:
    unknown = sorted(set(context) - set(FIT_CONTEXT))
    if unknown:
        raise UsageError("context", "", f"{unknown[0]!r} is not known", f"known are {', '.join(FIT_CONTEXT)}")
    declared = [f"{name} {context[name]}" for name in FIT_CONTEXT if context.get(name)]
    undeclared = [name for name in FIT_CONTEXT if not context.get(name)]
    return (
        "two sizes fix a line whatever the truth is: there is no residual to judge it by"
        if two_sizes
        else "least squares: every point counts alike",
        f"holds between the smallest and the largest size, for: {', '.join(declared) or 'nothing declared'}",
        *([f"undeclared: {', '.join(undeclared)}"] if undeclared else []),
    )


def _fit_cautions(alpha_ns: float, slope: float) -> tuple[str, ...]:
    found = []
    if slope <= 0:
        found.append("latency does not rise with size here: no bandwidth can be read from it")
    if alpha_ns < 0:
        found.append("alpha is negative: the line does not describe small messages")
    return tuple(found)
