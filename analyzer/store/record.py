"""A diagnosis or a comparison as rows of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.comparison.result import Comparison
from analyzer.comparison.runs import WORK_PINS
from analyzer.comparison.sides import mean_ns, step_times_of
from analyzer.comparison.statistics import step_times
from analyzer.diagnosis import Budget, Diagnosis, Hypothesis
from analyzer.store import models
from analyzer.store.identity import capture_fingerprint, workload_key
from analyzer.store.text import storable

LARGEST_NS = 2**63 - 1


def run_row(diagnosis: Diagnosis, fingerprint: str, recorded_ns: int) -> models.Run:
    """The row of a diagnosis, with all rows that hang on it."""
    return models.Run(
        fingerprint=fingerprint,
        capture=capture_fingerprint(diagnosis),
        workload=workload_key(diagnosis),
        recorded_ns=recorded_ns,
        captured_ns=_captured_ns(diagnosis),
        tracebound_version=diagnosis.tracebound_version,
        boundary=diagnosis.step_boundary,
        steps_rule=diagnosis.steps.rule,
        run_id=None if diagnosis.run is None else diagnosis.run.run_id,
        ranks=len(diagnosis.ranks),
        inputs=list(_inputs(diagnosis)),
        pins=list(_pins(diagnosis)),
        budgets=[_budget(diagnosis, budget, place) for place, budget in enumerate(diagnosis.budget)],
        predictions=list(_predictions(diagnosis)),
    )


def _captured_ns(diagnosis: Diagnosis) -> int | None:
    """When the capture began; a clock that tells no moment a database can hold tells none."""
    if diagnosis.time_zero_ns is None:
        return None
    try:
        captured = int(diagnosis.time_zero_ns)
    except ValueError:
        return None
    return captured if 0 <= captured <= LARGEST_NS else None


def _inputs(diagnosis: Diagnosis) -> Iterator[models.Input]:
    for place, one in enumerate(diagnosis.inputs):
        yield models.Input(
            position=place,
            path=one.path,
            kind=one.kind,
            profiler_version=one.profiler_version,
            partial=one.partial,
        )


def _pins(diagnosis: Diagnosis) -> Iterator[models.Pin]:
    """Declared, found and undeclared pins, those of the workload first; the devices' names where no pin tells them."""
    known = (
        {} if diagnosis.run is None else {name: (p.value, p.source) for name, p in diagnosis.run.pins.items()}
    )
    devices = sorted({rank.device.name for rank in diagnosis.ranks if rank.device and rank.device.name})
    if devices and "hardware" not in known:
        known["hardware"] = (", ".join(devices), "capture")
    names = dict.fromkeys([*WORK_PINS, *known, *diagnosis.undeclared])
    for place, name in enumerate(names):
        value, source = known.get(name, (None, None))
        yield models.Pin(position=place, name=name, value=value, source=source, of_workload=name in WORK_PINS)


def _budget(diagnosis: Diagnosis, budget: Budget, place: int) -> models.Budget:
    times = step_times_of(diagnosis, budget)
    spread = step_times(times) if times else None
    means = mean_ns(budget)
    return models.Budget(
        position=place,
        phase=budget.phase,
        scope=budget.scope,
        rank=budget.rank,
        steps=budget.windows,
        steps_excluded=budget.windows_excluded,
        step_ns_total=budget.step_ns_total,
        mean_ns=sum(means.values()),
        median_ns=None if spread is None else spread.median,
        p05_ns=None if spread is None else spread.p05,
        p95_ns=None if spread is None else spread.p95,
        inferred_ns_total=budget.inferred_ns_total,
        categories=[
            models.BudgetCategory(position=at, category=name, total_ns=total, mean_ns=means[name])
            for at, (name, total) in enumerate(budget.path_ns_total.items())
        ],
    )


def _predictions(diagnosis: Diagnosis) -> Iterator[models.Prediction]:
    """Of every hypothesis that says what its change would give."""
    told = [row for row in diagnosis.hypotheses if _predicts(row)]
    for place, row in enumerate(told):
        low, high = row.predicted_step_ns or (None, None)
        share_low, share_high = (None, None) if row.share is None else row.share.interval
        yield models.Prediction(
            position=place,
            hypothesis=row.id,
            phase=row.phase,
            scope=row.scope,
            rank=row.rank,
            verdict=row.verdict,
            share=None if row.share is None else row.share.value,
            share_low=share_low,
            share_high=share_high,
            gain_upper_bound_ns=row.gain_upper_bound_ns,
            intervention=row.intervention,
            predicted_low_ns=low,
            predicted_high_ns=high,
            assumptions=_assumptions(diagnosis, row),
            disproof=row.disproof,
        )


def _assumptions(diagnosis: Diagnosis, row: Hypothesis) -> str | None:
    """What the prediction of a hypothesis rests on, as one line; None without a prediction."""
    if diagnosis.whatif is None or row.predicted_step_ns is None:
        return None
    known = {one.name: one for one in diagnosis.whatif.assumptions}
    for change in diagnosis.whatif.changes:
        if row.id in change.hypotheses and change.phase == row.phase:
            parts = [
                f"{name}={known[name].low}..{known[name].high} ({known[name].source})"
                for name in change.assumptions
            ]
            return "; ".join([change.change, *parts])
    return None


def _predicts(row: Hypothesis) -> bool:
    return row.predicted_step_ns is not None or row.gain_upper_bound_ns is not None


def comparison_row(
    comparison: Comparison, fingerprint: str, a: models.Run, b: models.Run, recorded_ns: int
) -> models.Comparison:
    """The row of a comparison of two stored runs, with the outcomes of A's predictions."""
    head, delta = comparison.pairs[0], comparison.step_delta_ns
    low, high = delta.ci95 or (None, None)
    speedup_low, speedup_high = comparison.speedup_ci95 or (None, None)
    return models.Comparison(
        fingerprint=fingerprint,
        run_a=a.id,
        run_b=b.id,
        recorded_ns=recorded_ns,
        tracebound_version=comparison.tracebound_version,
        phase_a=head.phase_a,
        phase_b=head.phase_b,
        scope=head.scope,
        rank_a=head.rank_a,
        rank_b=head.rank_b,
        same_work=comparison.same_work,
        same_work_because=comparison.same_work_because,
        mean_a_ns=head.a.mean,
        mean_b_ns=head.b.mean,
        delta_mean_ns=delta.mean,
        delta_median_ns=delta.median,
        ci95_low_ns=low,
        ci95_high_ns=high,
        shown=delta.shown,
        speedup=comparison.speedup,
        speedup_low=speedup_low,
        speedup_high=speedup_high,
        speedup_because=comparison.speedup_because,
        outcomes=list(_outcomes(comparison, a.predictions)),
    )


def _outcomes(comparison: Comparison, stored: Sequence[models.Prediction]) -> Iterator[models.Outcome]:
    """Each outcome beside the stored prediction that it is of, those of the phase compared first."""
    phase = storable(comparison.pairs[0].phase_a)
    left = sorted(stored, key=lambda row: storable(row.phase) != phase)
    for place, found in enumerate(comparison.predictions):
        low, high = found.predicted_step_ns
        mine = (storable(found.hypothesis), low, high)
        row = next((row for row in left if _key(row) == mine), None)
        if row is not None:
            left.remove(row)
        yield models.Outcome(
            position=place,
            prediction=None if row is None else row.id,
            hypothesis=found.hypothesis,
            predicted_low_ns=low,
            predicted_high_ns=high,
            observed_step_ns=found.observed_step_ns,
            verdict=found.verdict,
        )


def _key(row: models.Prediction) -> tuple[str, int | None, int | None]:
    return storable(row.hypothesis), row.predicted_low_ns, row.predicted_high_ns
