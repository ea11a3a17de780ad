"""Mean step time over one axis of the grid, and what may be said of its growth.

Cells of one line share phase, cache initialization and the place on the other axis. Two places never establish how a
time grows, nor that it does not; three or more tell growth with its interval, never "constant" beyond that interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.special import fdtrc

from analyzer.fits import Estimate, FloatArray, RunLine, RunMean, fit_runs, run_mean, weights_of
from analyzer.sweep.cells import CellData
from analyzer.sweep.pins import mixed
from analyzer.swept import Axis, Estimated, Finding, Line, Piece

UNITS: Mapping[Axis, tuple[float, str]] = {
    "context": (1_000.0, "ns per 1,000 tokens"),
    "batch": (1.0, "ns per sequence"),
}
"""How many tokens or sequences a slope is per."""
WORDS: Mapping[Axis, str] = {"context": "tokens of context", "batch": "sequences"}
ATTENTION = frozenset({"attention", "kv_cache"})
"""Classes (by the part before the first dot) of attention, indexers among it, and of what writes its cache."""
UNDECLARED = (
    " CACHE INITIALIZATION UNDECLARED: what the caches held is not known, so this is no evidence of growth."
)
MISFIT_P = 0.01
"""Residuals less likely than this from the noise of the steps are no noise ..."""
MISFIT_SHARE = 0.01
"""... and matter where the largest is this share of the mean step."""


def attention_class(name: str) -> bool:
    """Whether a kernel class is attention or its cache."""
    return name.partition(".")[0] in ATTENTION


def lines(cells: Sequence[CellData], axis: Axis) -> list[Line]:
    """Every line along ``axis`` through cells at two places or more."""
    other: Axis = "batch" if axis == "context" else "context"
    groups: dict[tuple[int | None, str | None], list[CellData]] = {}
    for cell in cells:
        if cell.place(axis) is not None:
            groups.setdefault((cell.place(other), cell.cache), []).append(cell)
    order = sorted(groups, key=lambda key: (key[0] is None, key[0] or 0, key[1] is None, key[1] or ""))
    found = ((key, sorted(groups[key], key=lambda cell: (_at(cell, axis), cell.name))) for key in order)
    return [
        _line(mine, axis, at, cache)
        for (at, cache), mine in found
        if len({_at(cell, axis) for cell in mine}) > 1
    ]


def _at(cell: CellData, axis: Axis) -> int:
    place = cell.place(axis)
    assert place is not None
    return place


def _line(cells: Sequence[CellData], axis: Axis, at: int | None, cache: str | None) -> Line:
    per, unit = UNITS[axis]
    places = [_at(cell, axis) for cell in cells]
    xs = [place / per for place in places]
    whole = [run_mean(x, cell.steps) for x, cell in zip(xs, cells, strict=True)]
    of_rank = [run_mean(x, cell.rank_steps) for x, cell in zip(xs, cells, strict=True)]
    weights, rank_weights = weights_of(whole), weights_of(of_rank)
    line = fit_runs(whole, weights)

    def of_classes(chosen: Callable[[str], bool]) -> Estimated:
        parts = [cell.class_mean(x, chosen) for x, cell in zip(xs, cells, strict=True)]
        return _estimated(fit_runs(parts, rank_weights).slope)

    names = sorted({one.class_ for cell in cells for one in cell.classes})
    misfit, described = _described(whole, weights, line)
    finding = _finding(len({*places}), line.slope, described)
    return Line(
        axis=axis,
        at=at,
        cache_initialization=cache,
        cells=[cell.name for cell in cells],
        places=places,
        unit=unit,
        slope=_estimated(line.slope),
        intercept_ns=_estimated(line.intercept),
        categories={name: _estimated(part) for name, part in _categories(cells, xs, weights)},
        rank_slope=_estimated(fit_runs(of_rank, rank_weights).slope),
        classes={name: of_classes(lambda one, name=name: one == name) for name in names},  # type: ignore[misc]
        attention=of_classes(attention_class) if names else None,
        residuals_ns=list(line.residuals),
        misfit_p=misfit,
        described=described,
        between_runs=line.between_runs,
        pieces=_pieces(whole, places),
        finding=finding,
        statement=_statement(axis, finding, line, places, described, whole)
        + _mixed(mixed(cells))
        + (UNDECLARED if axis == "context" and cache is None else ""),
    )


def _categories(
    cells: Sequence[CellData], xs: Sequence[float], weights: FloatArray
) -> Iterator[tuple[str, Estimate]]:
    for name in cells[0].parts:
        parts = [run_mean(x, cell.parts[name]) for x, cell in zip(xs, cells, strict=True)]
        yield name, fit_runs(parts, weights).slope


def _estimated(estimate: Estimate) -> Estimated:
    return Estimated(value=estimate.value, ci95=estimate.ci95)


def _pieces(runs: Sequence[RunMean], places: Sequence[int]) -> list[Piece]:
    """The slope between each two neighbouring places, through all runs at both."""
    result = []
    for low, high in pairwise(sorted({*places})):
        mine = [run for run, place in zip(runs, places, strict=True) if place in (low, high)]
        result.append(Piece(low=low, high=high, slope=_estimated(fit_runs(mine).slope)))
    return result


def _described(
    runs: Sequence[RunMean], weights: FloatArray, line: RunLine
) -> tuple[float | None, bool | None]:
    """Chance of the misfit if a line were true, and whether it describes the means; repeats tell it best."""
    chance = _against_repeats(runs, weights)
    if chance is None:
        chance = line.misfit_p
    if chance is None:
        return None, None
    size = max(abs(value) for value in line.residuals) / float(np.mean([run.mean for run in runs]))
    return chance, chance >= MISFIT_P or size < MISFIT_SHARE


def _against_repeats(runs: Sequence[RunMean], weights: FloatArray) -> float | None:
    """F of the misfit of the means at each place against the scatter of repeats there; None without repeats."""
    x, y = np.array([run.x for run in runs]), np.array([run.mean for run in runs])
    places = np.unique(x)
    freedom, misfit_freedom = len(runs) - len(places), len(places) - 2
    if not freedom or misfit_freedom < 1:
        return None
    centre = np.array([np.average(y[x == one], weights=weights[x == one]) for one in x])
    pure = float(weights @ (y - centre) ** 2)
    rest = float(weights @ np.array(fit_runs(runs, weights).residuals) ** 2) - pure
    if pure <= 0:
        return None
    return float(fdtrc(misfit_freedom, freedom, max(rest, 0.0) / misfit_freedom / (pure / freedom)))


def _finding(places: int, slope: Estimate, described: bool | None) -> Finding:
    """What a line tells. An interval that includes 0 because no line fits is no sign that nothing grows."""
    if places < 3:
        return "two points"
    if slope.ci95 is None:
        return "no interval"
    low, high = slope.ci95
    if low <= 0 <= high:
        return "not told" if described is False else "no growth seen"
    return "grows" if low > 0 else "shrinks"


def _statement(
    axis: Axis,
    finding: Finding,
    line: RunLine,
    places: Sequence[int],
    described: bool | None,
    runs: Sequence[RunMean],
) -> str:
    low, high = min(places), max(places)
    between = f"between {low:,} and {high:,} {WORDS[axis]}"
    unit = UNITS[axis][1]
    if finding == "two points":
        return (
            f"Two points, {low:,} and {high:,} {WORDS[axis]}: {_told(line.slope, unit)} from the one to the other. Two"
            f" points establish no slope, and no constancy either: not O(1), however flat. {_third(axis)}"
        )
    if line.slope.ci95 is None:
        return f"{_told(line.slope, unit)} {between}; too few steps for an interval."
    if finding == "no growth seen":
        most = line.slope.ci95[1]
        text = (
            f"No growth seen beyond {most:,.0f} {unit} {between} ({_told(line.slope, unit)}); beyond these nothing is"
            " known"
        )
    elif finding == "not told":
        text = f"Neither growth nor its absence is shown {between}: {_told(line.slope, unit)}"
    else:
        text = f"The mean step {finding} {between}: {_told(line.slope, unit)}"
    if described is not False:
        return f"{text}."
    largest = max(abs(value) for value in line.residuals)
    repeated = len({run.x for run in runs}) < len(runs)
    why = (
        "beyond the scatter of repeats"
        if repeated
        else "beyond the noise of their steps: curvature, or runs that differ (repeats would tell)"
    )
    return (
        f"{text}. A line does not describe it: means lie up to {largest:,.0f} ns off, {why}. See the slopes piece by"
        " piece."
    )


def _told(slope: Estimate, unit: str) -> str:
    if slope.ci95 is None:
        return f"{slope.value:+,.0f} {unit}"
    return f"{slope.value:+,.0f} {unit} (95 % interval {slope.ci95[0]:+,.0f} to {slope.ci95[1]:+,.0f})"


def _mixed(pins: Sequence[str]) -> str:
    return f" Its cells differ in {', '.join(pins)}: what grows may be that." if pins else ""


def _third(axis: Axis) -> str:
    return (
        "Capture a third context, best well beyond these."
        if axis == "context"
        else "Capture a third batch size."
    )
