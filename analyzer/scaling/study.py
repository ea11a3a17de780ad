"""A scaling study: runs of one workload at several rank counts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from analyzer.comparison.headline import common_phase, headline, phases, world_size
from analyzer.errors import UsageError
from analyzer.explain.fingerprint import fingerprint
from analyzer.fits import run_mean
from analyzer.reconstruct.phases import kind_of
from analyzer.scaling.against import held_against
from analyzer.scaling.fit import CountedRun, fitted
from analyzer.scaling.notes import notes_on
from analyzer.scaling.pins import differing, pins_of, shared, undeclared, unlike
from analyzer.scaling.points import last_improvement, points_of
from analyzer.scaling.result import CategoryFit, Scaling, ScalingFit, ScalingRun
from analyzer.scaling.runs import Given, StudyRun
from analyzer.uncertain import Uncertain, interval
from analyzer.version import __version__

__all__ = ["Given", "study"]

UNKNOWN_KIND = "step"
"""What a phase is called where nothing tells prefill from decode."""


def study(
    given: Sequence[Given],
    *,
    phase: str | None = None,
    keep_unlike: bool = False,
    against: tuple[str, Scaling] | None = None,
) -> Scaling:
    """Step times over rank counts. ``phase``: a pattern; else the leading phase that all runs share.

    ``keep_unlike``: fit also runs that are unlike most of the others. ``against``: an earlier study and its
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
    pins = [run.pins for run in runs]
    result = Scaling(
        tracebound_version=__version__,
        runs=[_row(run) for run in runs],
        points=points,
        fit=fit,
        fit_because=why,
        categories=categories,
        stops_improving_at=stops_at,
        stops_because=stops_because,
        pins=shared([run.pins for run in used]),
        differing=differing(pins),
        undeclared=undeclared(pins),
        against=None,
        notes=notes_on(runs),
    )
    if against is None:
        return result
    return replace(result, against=held_against(result, *against))


def _fit(runs: Sequence[CountedRun]) -> tuple[ScalingFit | None, list[CategoryFit], str]:
    if len({run.ranks for run in runs}) < 2:
        return None, [], "runs that are alike have one rank count only"
    fit, categories = fitted(runs)
    return fit, categories, ""


def _runs(given: Sequence[Given], phase: str | None, *, keep_unlike: bool) -> list[StudyRun]:
    """In the order of their rank counts."""
    _refuse_copies(given)
    common = common_phase([(one.name, one.diagnosis) for one in given], phase)
    named = [(one, common or phases(one.diagnosis, phase)[0]) for one in given]
    _refuse_other_kinds(named)
    pins = [pins_of(one.diagnosis, leading) for one, leading in named]
    runs = [
        StudyRun(
            one,
            one.ranks if one.ranks is not None else world_size(one.diagnosis),
            headline(one.diagnosis, leading),
            own,
            marked,
            used=keep_unlike or not marked,
        )
        for (one, leading), own, marked in zip(named, pins, unlike(pins), strict=True)
    ]
    return sorted(runs, key=lambda run: (run.ranks, run.given.name))


def _refuse_copies(given: Sequence[Given]) -> None:
    """One capture under two names has one rank count, whatever is declared."""
    seen: dict[str, str] = {}
    for one in given:
        other = seen.setdefault(fingerprint(one.diagnosis.time_zero_ns, one.diagnosis.ranks), one.name)
        if other != one.name:
            why = f"holds the same capture as {other!r}"
            raise UsageError(one.name, "", why, "name each capture once: a copy is no repeat")


def _refuse_other_kinds(named: Sequence[tuple[Given, str]]) -> None:
    """Batch shapes may differ, and are told; from prefill to decode nothing scales."""
    kinds = {kind_of(phase): (one.name, phase) for one, phase in reversed(named)}
    if sum(not kind.startswith(UNKNOWN_KIND) for kind in kinds) > 1:
        why = ", ".join(f"{phase!r} of {name}" for name, phase in kinds.values())
        raise UsageError(
            "--phase",
            "",
            f"the runs share no phase, and their leading ones are not of one kind: {why}",
            "give runs that share a phase, or choose one that all have with --phase",
        )


def _row(run: StudyRun) -> ScalingRun:
    diagnosis, steps = run.given.diagnosis, run.steps
    mean = run_mean(1 / run.ranks, steps.step_ns)
    return ScalingRun(
        name=run.given.name,
        inputs=[one.path for one in diagnosis.inputs],
        ranks=run.ranks,
        ranks_from="capture" if run.given.ranks is None else "declared",
        ranks_captured=len(diagnosis.ranks),
        boundary=diagnosis.step_boundary,
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
