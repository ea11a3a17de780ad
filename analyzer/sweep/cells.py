"""What one run brings to a sweep: its place, its pins, and the step times of one phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.comparison.sides import budget_of, replayed, step_work_of
from analyzer.diagnosis import Budget, Diagnosis, GlobalWindow, Input, Window
from analyzer.errors import UsageError
from analyzer.explain.focus import mean_step
from analyzer.explain.windows import chosen_windows, used_windows
from analyzer.fits import FloatArray, RunMean
from analyzer.sweep.grid import cache_kind, number_in
from analyzer.sweep.phases import batch_in
from analyzer.swept import ClassMean, Place, Source

AXES = ("context", "batch")


@dataclass(frozen=True)
class Given:
    """A run with its diagnosis; ``declared``: pins that the grid file says, ``where`` the file and line."""

    name: str
    diagnosis: Diagnosis
    declared: Mapping[str, str] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True)
class CellData:
    """One run in one phase.

    ``steps``: (n,) float64, step times in ns in order of time; ``parts``: category -> (n,), summing to ``steps``.
    ``rank_steps``, ``rank_parts``: the same of the own path of ``rank``, the slowest, whose classes ``classes`` are.
    """

    given: Given
    context: Place
    batch: Place
    batch_in_names: int | None
    cache: str | None
    cache_source: Source
    pins: Mapping[str, str]
    phase: str
    scope: str
    rank: int
    left_out: int
    steps: FloatArray
    parts: Mapping[str, FloatArray]
    rank_steps: FloatArray
    rank_parts: Mapping[str, FloatArray]
    classes: Sequence[ClassMean]

    @property
    def name(self) -> str:
        """As the user gave the run."""
        return self.given.name

    @property
    def replays_unresolved(self) -> bool:
        """Whether replays were recorded as one row each: what ran inside is in no class."""
        return any(one.class_ == "graph" for one in self.classes)

    def place(self, axis: str) -> int | None:
        """Where the cell lies on one axis."""
        return (self.context if axis == "context" else self.batch).value

    def class_mean(self, x: float, chosen: Callable[[str], bool]) -> RunMean:
        """Mean path time of the chosen classes on the slowest rank. Errors add up as though classes varied together."""
        mine = [one for one in self.classes if chosen(one.class_)]
        errors = [one.error_ns for one in mine if one.error_ns is not None]
        variance = sum(errors) ** 2 if len(errors) == len(mine) else None
        return RunMean(x, sum(one.mean_ns for one in mine), variance, max(1, len(self.rank_steps) - 1))

    def rank_mean_ns(self, categories: frozenset[str]) -> float:
        """Mean time per step of categories on the slowest rank's own path."""
        return float(sum(self.rank_parts[name].mean() for name in categories))


def cell_of(given: Given, phase: str, *, joint: bool) -> CellData:
    """The cell of one run. ``joint``: on the path through all ranks, else on that of the slowest rank."""
    diagnosis = given.diagnosis
    of_ranks = [row for row in diagnosis.budget if row.phase == phase and row.rank is not None]
    slowest = max(of_ranks, key=lambda row: (mean_step(row), -(row.rank or 0)))
    budget = budget_of(diagnosis, phase, None) if joint else slowest
    assert budget is not None and slowest.rank is not None
    windows = _windows(diagnosis, budget)
    of_rank = _windows(diagnosis, slowest)
    cache, cache_source = _cache(given)
    in_names = batch_in(diagnosis, phase)
    return CellData(
        given,
        _place(given, "context", None),
        _place(given, "batch", in_names),
        in_names,
        cache,
        cache_source,
        _pins(given, phase),
        phase,
        budget.scope,
        slowest.rank,
        budget.windows_excluded,
        _lengths(windows),
        _parts(windows),
        _lengths(of_rank),
        _parts(of_rank),
        _classes(diagnosis, slowest),
    )


def declared_batch(given: Given) -> int | None:
    """The batch that grid or manifest declares, as a number."""
    return _place(given, "batch", None).value


def has_joint(diagnosis: Diagnosis, phase: str) -> bool:
    """Whether a run has the account of all ranks together for a phase."""
    return budget_of(diagnosis, phase, None) is not None


def _windows(diagnosis: Diagnosis, budget: Budget) -> Sequence[Window | GlobalWindow]:
    if budget.rank is None:
        joint = [] if diagnosis.global_ is None else diagnosis.global_.windows
        return chosen_windows(joint, budget.phase).used
    rank = next(rank for rank in diagnosis.ranks if rank.rank == budget.rank)
    return used_windows(rank, budget.phase)


def _lengths(windows: Sequence[Window | GlobalWindow]) -> FloatArray:
    return np.array([one.end_ns - one.start_ns for one in windows], np.float64)


def _parts(windows: Sequence[Window | GlobalWindow]) -> dict[str, FloatArray]:
    return {name: np.array([one.path_ns[name] for one in windows], np.float64) for name in windows[0].path_ns}


def _classes(diagnosis: Diagnosis, budget: Budget) -> list[ClassMean]:
    rows = [row for row in diagnosis.classes if (row.rank, row.phase) == (budget.rank, budget.phase)]
    return [
        ClassMean(class_=row.class_, mean_ns=row.path_ns / budget.windows, error_ns=row.path_error_ns)
        for row in sorted(rows, key=lambda row: (-row.path_ns, row.class_))
    ]


def _pins(given: Given, phase: str) -> dict[str, str]:
    """What the manifest pins, what the grid declares on top of it, and what the capture itself shows."""
    diagnosis = given.diagnosis
    pins = {} if diagnosis.run is None else {name: pin.value for name, pin in diagnosis.run.pins.items()}
    devices = sorted({rank.device.name for rank in diagnosis.ranks if rank.device and rank.device.name})
    if devices:
        pins.setdefault("hardware", ", ".join(devices))
    return {
        **pins,
        **given.declared,
        "timing_boundary": diagnosis.step_boundary,
        "ranks": str(len(diagnosis.ranks)),
        "steps found by": diagnosis.steps.rule,
        "profiler": ", ".join(sorted({_profiler(one) for one in diagnosis.inputs})),
        **_replay(diagnosis, phase),
    }


def _profiler(one: Input) -> str:
    """Python frames slow the CPU down: captures with and without them are two kinds."""
    frames = " with Python frames" if one.kind == "kineto-json" and "frame" in one.captured else ""
    return f"{one.kind}{frames}"


def _replay(diagnosis: Diagnosis, phase: str) -> dict[str, str]:
    """Whether the phase is replayed: a batch beyond the captured sizes falls back to launching one by one."""
    found = replayed([row for rank in diagnosis.ranks for row in step_work_of(diagnosis, phase, rank.rank)])
    if not found.kernels and not found.whole_replays:
        return {}
    most = found.whole_replays > 0 or 2 * found.in_graphs > found.kernels
    return {"graph replay": "most kernels" if most else "few kernels or none"}


def _told(given: Given, pin: str) -> tuple[str | None, Source]:
    """A pin and who says it. Raises UsageError where grid and manifest contradict one another."""
    run = given.diagnosis.run
    mine = given.declared.get(pin)
    manifest = run.pins[pin].value if run is not None and pin in run.pins else None
    if mine is None:
        return manifest, "undeclared" if manifest is None else "manifest"
    if manifest is not None and _spelled(pin, mine) != _spelled(pin, manifest):
        why = f"says {pin} {mine!r} of {given.name!r}, the run's manifest says {manifest!r}"
        raise UsageError(
            given.where or "--grid", pin, why, "leave the field empty, or name the run that it is of"
        )
    return mine, "grid"


def _spelled(pin: str, text: str) -> object:
    if pin == "cache_initialization":
        return cache_kind(text)
    number = number_in(text)
    return text.strip() if number is None else number


def _place(given: Given, axis: str, in_names: int | None) -> Place:
    told, source = _told(given, axis)
    if told is not None:
        return Place(value=number_in(told), source=source, told=told)
    if in_names is not None:
        return Place(value=in_names, source="step names", told=None)
    return Place(value=None, source="undeclared")


def _cache(given: Given) -> tuple[str | None, Source]:
    told, source = _told(given, "cache_initialization")
    return (None if told is None else cache_kind(told)), source
