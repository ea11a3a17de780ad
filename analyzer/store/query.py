"""The rows of a store as its history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session, selectinload

from analyzer.history import (
    CheckedPrediction,
    StoredBudget,
    StoredComparison,
    StoredInput,
    StoredOutcome,
    StoredPin,
    StoredPrediction,
    StoredRun,
    StoredWorkload,
)
from analyzer.store import models

Number = TypeVar("Number", int, float)

_WHOLE_RUN = (
    selectinload(models.Run.inputs),
    selectinload(models.Run.pins),
    selectinload(models.Run.budgets).selectinload(models.Budget.categories),
    selectinload(models.Run.predictions)
    .selectinload(models.Prediction.outcomes)
    .joinedload(models.Outcome.compared),
)


def workload_pins(session: Session) -> dict[str, dict[str, str | None]]:
    """The pins that identify each workload, in the order in which the workloads were first recorded."""
    pins: dict[str, dict[str, str | None]] = {}
    query = (
        sa.select(models.Run.workload, models.Pin.name, models.Pin.value)
        .join(models.Pin, models.Pin.run == models.Run.id)
        .where(models.Pin.of_workload)
        .order_by(models.Run.id, models.Pin.position)
    )
    for workload, name, value in session.execute(query):
        pins.setdefault(workload, {}).setdefault(name, value)
    return pins


def workload(session: Session, key: str, pins: dict[str, str | None]) -> StoredWorkload:
    """All runs of one workload in order of time, and the comparisons that begin with one of them."""
    rows = session.scalars(
        sa.select(models.Run).where(models.Run.workload == key).options(*_WHOLE_RUN).order_by(models.Run.id)
    ).all()
    first = _first_of_each_capture(session, {row.capture for row in rows})
    ordered = sorted(rows, key=lambda row: (moment_ns(row.captured_ns, row.recorded_ns), row.id))
    return StoredWorkload(
        workload=key,
        pins={name: value for name, value in pins.items() if value is not None},
        undeclared=[name for name, value in pins.items() if value is None],
        runs=[_run(row, first[row.capture]) for row in ordered],
        comparisons=_comparisons(session, key),
    )


def moment_ns(captured_ns: int | None, recorded_ns: int) -> int:
    """Where a run stands in time: when it was captured, or, where nothing tells that, when it was recorded."""
    return recorded_ns if captured_ns is None else captured_ns


def _first_of_each_capture(session: Session, captures: set[str]) -> dict[str, int]:
    query = sa.select(models.Run.capture, sa.func.min(models.Run.id)).group_by(models.Run.capture)
    return {capture: first for capture, first in session.execute(query) if capture in captures}


def _run(row: models.Run, first: int) -> StoredRun:
    return StoredRun(
        run=row.id,
        recorded_ns=str(row.recorded_ns),
        captured_ns=None if row.captured_ns is None else str(row.captured_ns),
        same_capture_as=None if first == row.id else first,
        tracebound_version=row.tracebound_version,
        boundary=row.boundary,
        steps_rule=row.steps_rule,
        run_id=row.run_id,
        ranks=row.ranks,
        inputs=[
            StoredInput(
                path=one.path, kind=one.kind, profiler_version=one.profiler_version, partial=one.partial
            )
            for one in row.inputs
        ],
        pins=_pins(row.pins),
        undeclared=[pin.name for pin in row.pins if pin.value is None],
        budgets=[_budget(budget) for budget in row.budgets],
        predictions=[_prediction(prediction) for prediction in row.predictions],
    )


def _pins(rows: Iterable[models.Pin]) -> dict[str, StoredPin]:
    return {
        pin.name: StoredPin(value=pin.value, source=pin.source or "") for pin in rows if pin.value is not None
    }


def _budget(row: models.Budget) -> StoredBudget:
    return StoredBudget(
        phase=row.phase,
        scope=row.scope,
        rank=row.rank,
        steps=row.steps,
        steps_excluded=row.steps_excluded,
        step_ns_total=row.step_ns_total,
        mean_ns=row.mean_ns,
        median_ns=row.median_ns,
        p05_ns=row.p05_ns,
        p95_ns=row.p95_ns,
        inferred_ns_total=row.inferred_ns_total,
        path_ns_total={part.category: part.total_ns for part in row.categories},
        path_ns={part.category: part.mean_ns for part in row.categories},
    )


def _prediction(row: models.Prediction) -> StoredPrediction:
    return StoredPrediction(
        hypothesis=row.hypothesis,
        phase=row.phase,
        scope=row.scope,
        rank=row.rank,
        verdict=row.verdict,
        share=row.share,
        share_interval=_pair(row.share_low, row.share_high),
        gain_upper_bound_ns=row.gain_upper_bound_ns,
        intervention=row.intervention,
        predicted_step_ns=_pair(row.predicted_low_ns, row.predicted_high_ns),
        assumptions=row.assumptions,
        disproof=row.disproof,
        outcomes=[
            StoredOutcome(
                comparison=outcome.comparison,
                run=outcome.compared.run_b,
                observed_step_ns=outcome.observed_step_ns,
                verdict=outcome.verdict,
            )
            for outcome in row.outcomes
        ],
    )


def _pair(low: Number | None, high: Number | None) -> tuple[Number, Number] | None:
    return None if low is None or high is None else (low, high)


def _comparisons(session: Session, key: str) -> list[StoredComparison]:
    query = (
        sa.select(models.Comparison)
        .join(models.Run, models.Run.id == models.Comparison.run_a)
        .where(models.Run.workload == key)
        .options(selectinload(models.Comparison.outcomes))
        .order_by(models.Comparison.id)
    )
    return [_comparison(row) for row in session.scalars(query)]


def _comparison(row: models.Comparison) -> StoredComparison:
    return StoredComparison(
        comparison=row.id,
        a=row.run_a,
        b=row.run_b,
        recorded_ns=str(row.recorded_ns),
        tracebound_version=row.tracebound_version,
        phase_a=row.phase_a,
        phase_b=row.phase_b,
        scope=row.scope,
        rank_a=row.rank_a,
        rank_b=row.rank_b,
        same_work=row.same_work,
        same_work_because=row.same_work_because,
        mean_a_ns=row.mean_a_ns,
        mean_b_ns=row.mean_b_ns,
        delta_mean_ns=row.delta_mean_ns,
        delta_median_ns=row.delta_median_ns,
        ci95_ns=_pair(row.ci95_low_ns, row.ci95_high_ns),
        shown=row.shown,
        speedup=row.speedup,
        speedup_ci95=_pair(row.speedup_low, row.speedup_high),
        speedup_because=row.speedup_because,
        predictions=_checked(row.outcomes),
    )


def _checked(rows: Sequence[models.Outcome]) -> list[CheckedPrediction]:
    return [
        CheckedPrediction(
            hypothesis=row.hypothesis,
            predicted_step_ns=(row.predicted_low_ns, row.predicted_high_ns),
            observed_step_ns=row.observed_step_ns,
            verdict=row.verdict,
        )
        for row in rows
    ]
