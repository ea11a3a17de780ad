"""Predictions of the first run's diagnosis, held against the second run: those that the change tests."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from analyzer.comparison.result import PhasePair, Prediction, Replayed
from analyzer.diagnosis import Diagnosis
from analyzer.errors import UsageError
from analyzer.predicted import PredictedChange

CAPTURED = "graph-capture"
EAGER_BELOW, REPLAYED_FROM = 0.1, 0.5
"""A run whose replayed share of the kernels rises from below the one to at least the other captured graphs."""
UNPROVEN = "unverifiable"
DIFFERENT = "different"


def held_predictions(a: Diagnosis, head: PhasePair, tested: Collection[str]) -> list[Prediction]:
    """Every prediction for the headline phase. ``tested``: hypotheses or changes that the user says B made.

    Raises UsageError where one of those was not predicted.
    """
    rows = [row for row in _of(a) if (row.phase, row.scope, row.rank) == _scope(head)]
    known = {name for row in rows for name in (row.change, *row.hypotheses)}
    for name in sorted(set(tested) - known):
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(
            "--tested",
            name,
            "A's diagnosis predicts no such change for the compared phase",
            f"known are {listed}",
        )
    return [_held(row, head, tested) for row in rows if row.predicted_step_ns is not None]


def _of(a: Diagnosis) -> list[PredictedChange]:
    return [] if a.whatif is None else a.whatif.changes


def _scope(head: PhasePair) -> tuple[str, str, int | None]:
    return head.phase_a, head.scope, head.rank_a


def _held(row: PredictedChange, head: PhasePair, tested: Collection[str]) -> Prediction:
    assert row.predicted_step_ns is not None
    names = {row.change, *row.hypotheses}
    made = bool(names & set(tested)) or (
        row.change == CAPTURED and _captured(head.replayed_a, head.replayed_b)
    )
    because = _why_not(head) if made else "this pair is not known to make that change"
    result = {"hypothesis": row.hypotheses[0] if row.hypotheses else row.change, "change": row.change}
    if because or head.step_delta_ns.ci95 is None:
        return Prediction(
            **result, predicted_step_ns=row.predicted_step_ns, observed_step_ns=None, observed_ci95_ns=None,
            verdict="not-tested", because=because,
        )  # fmt: skip
    low, high = (head.a.mean + end for end in head.step_delta_ns.ci95)
    first, last = row.predicted_step_ns
    return Prediction(
        **result,
        predicted_step_ns=row.predicted_step_ns,
        observed_step_ns=head.b.mean,
        observed_ci95_ns=(low, high),
        verdict="confirmed" if low <= last and first <= high else "refuted",
        because="; ".join(_limits(row, head)),
    )


def _limits(row: PredictedChange, head: PhasePair) -> Iterator[str]:
    """What a verdict does not settle."""
    if head.work.same_work == UNPROVEN:
        yield "whether both runs did the same work cannot be shown"
    if row.windows < head.a.n:
        yield f"predicted from {row.windows} of A's {head.a.n} steps, whose mean may be another"


def _captured(a: Replayed, b: Replayed) -> bool:
    """Whether B replays graphs where A launched its kernels one by one."""
    eager = not a.whole_replays and (a.share or 0.0) < EAGER_BELOW
    return eager and (b.whole_replays > 0 or (b.share or 0.0) >= REPLAYED_FROM)


def _why_not(head: PhasePair) -> str:
    if head.work.same_work == DIFFERENT:
        return "the runs did different work"
    if head.step_delta_ns.ci95 is None:
        return head.step_delta_ns.because
    return ""
