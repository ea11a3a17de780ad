"""A scaling study: runs of one workload at several rank counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.fits import run_mean
from analyzer.study.headline import Headline, common_phase, headline, phases, world_size
from analyzer.study.scaling_against import held_against
from analyzer.study.scaling_fit import CountedRun, fitted
from analyzer.study.scaling_pins import differing, shared, undeclared, unlike
from analyzer.study.scaling_points import last_improvement, points_of
from analyzer.study.scaling_result import CategoryFit, Scaling, ScalingFit, ScalingRun
from analyzer.uncertain import Uncertain, interval
from analyzer.version import __version__


@dataclass(frozen=True)
class Given:
    """One run as it was given. ``ranks``: declared rank count, None to take the capture's."""

    name: str
    diagnosis: Diagnosis
    ranks: int | None = None


@dataclass(frozen=True)
class _Run:
    given: Given
    ranks: int
    steps: Headline
    unlike: list[str]
    used: bool


def study(
    given: Sequence[Given],
    *,
    phase: str | None = None,
    keep_unlike: bool = False,
    against: tuple[str, Scaling] | None = None,
) -> Scaling:
    """Step times over rank counts. ``phase``: a pattern; else the leading phase that all runs share.

    ``keep_unlike``: fit also runs that were asked for other work than most. ``against``: an earlier study and its
    name.

    Raises UsageError where a run has no step, or all have one rank count.
    """
    runs = _runs(given, phase, keep_unlike=keep_unlike)
    counts = sorted({run.ranks for run in runs})
    if len(counts) < 2:
        raise UsageError(
            ", ".join(run.given.name for run in runs),
            "",
            f"{'a run' if len(runs) == 1 else f'{len(runs)} runs'} of {counts[0]} ranks: no scaling",
            "give runs of two rank counts or more, each with all its ranks; --ranks-of RUN=N declares one",
        )
    used = [run for run in runs if run.used]
    counted = [CountedRun(run.ranks, run.steps) for run in used]
    fit, categories, why = _fit(counted)
    points = points_of(counted, with_fit=fit is not None)
    stops_at, stops_because = last_improvement(points)
    diagnoses = [run.given.diagnosis for run in runs]
    result = Scaling(
        tracebound_version=__version__,
        runs=[_row(run) for run in runs],
        points=points,
        fit=fit,
        fit_because=why,
        categories=categories,
        stops_improving_at=stops_at,
        stops_because=stops_because,
        pins=shared([run.given.diagnosis for run in used]),
        differing=differing(diagnoses),
        undeclared=undeclared(diagnoses),
        against=None,
        notes=_notes(runs),
    )
    if against is None:
        return result
    return replace(result, against=held_against(result, *against))


def _fit(runs: Sequence[CountedRun]) -> tuple[ScalingFit | None, list[CategoryFit], str]:
    if len({run.ranks for run in runs}) < 2:
        return None, [], "runs that were asked for the same work have one rank count only"
    fit, categories = fitted(runs)
    return fit, categories, ""


def _runs(given: Sequence[Given], phase: str | None, *, keep_unlike: bool) -> list[_Run]:
    """In the order of their rank counts."""
    common = common_phase([(one.name, one.diagnosis) for one in given], phase)
    marks = unlike([one.diagnosis for one in given])
    runs = [
        _Run(
            one,
            one.ranks if one.ranks is not None else world_size(one.diagnosis),
            headline(one.diagnosis, common or phases(one.diagnosis, phase)[0]),
            marked,
            used=keep_unlike or not marked,
        )
        for one, marked in zip(given, marks, strict=True)
    ]
    return sorted(runs, key=lambda run: (run.ranks, run.given.name))


def _row(run: _Run) -> ScalingRun:
    diagnosis, steps = run.given.diagnosis, run.steps
    mean = run_mean(1 / run.ranks, steps.step_ns)
    return ScalingRun(
        name=run.given.name,
        inputs=[one.path for one in diagnosis.inputs],
        ranks=run.ranks,
        ranks_from="capture" if run.given.ranks is None else "declared",
        ranks_captured=len(diagnosis.ranks),
        boundary=diagnosis.boundary,
        steps_rule=diagnosis.steps.rule,
        phase=steps.phase,
        shape=steps.shape,
        scope=steps.scope,
        rank=steps.rank,
        steps=len(steps.step_ns),
        steps_excluded=steps.excluded,
        mean_step_ns=mean.mean,
        ci95_ns=interval(Uncertain(mean.mean, mean.variance, mean.dof)),
        mean_ns=steps.mean_ns,
        used=run.used,
        unlike=run.unlike,
    )


def _notes(runs: Sequence[_Run]) -> list[str]:
    notes = []
    names = {run.steps.phase for run in runs}
    if len(names) > 1:
        told = ", ".join(f"{run.steps.phase!r} at {run.ranks}" for run in runs)
        notes.append(
            f"No phase bears the same name in all runs: each is represented by its leading one ({told})."
        )
    shapes = {run.steps.shape for run in runs} - {None}
    if len(shapes) > 1:
        told = ", ".join(f"{run.steps.shape or 'not told'} at {run.ranks}" for run in runs)
        notes.append(f"The names of the steps tell different batch shapes ({told}): not the same work.")
    slowest = [run for run in runs if run.steps.rank is not None and run.ranks > 1]
    if slowest:
        counts = ", ".join(str(ranks) for ranks in sorted({run.ranks for run in slowest}))
        notes.append(
            f"Ranks are not aligned in the runs of {counts} ranks: a step is that of the slowest rank there, not of all"
            " ranks together."
        )
    for run in runs:
        captured = len(run.given.diagnosis.ranks)
        if captured < run.ranks:
            notes.append(
                f"Of the {run.ranks} ranks of {run.given.name}, {captured} were captured: what the others did is not"
                " in its step."
            )
        if captured > run.ranks:
            notes.append(f"{run.given.name} holds {captured} ranks, but is declared as {run.ranks}.")
    return notes
