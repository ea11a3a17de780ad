"""The price of collectives on real captures: a fit or the reason for none, and costs that partition nothing twice."""

from __future__ import annotations

import pytest

from tests.captures.results import analysis_of, capture_names

every_capture = pytest.mark.parametrize("name", capture_names())


@every_capture
def test_every_kind_of_collective_has_a_fit_or_a_reason(name: str) -> None:
    diagnosis = analysis_of(name).diagnosis
    calls = sum(row.calls_total for row in diagnosis.collectives)
    assert sum(row.calls for row in diagnosis.alpha_beta) == calls
    for row in diagnosis.alpha_beta:
        assert (row.alpha_ns is None) == (row.reason_if_absent is not None) == (row.remedy is not None)
        assert (row.ci95 is None) == (row.alpha_ns is None)
        assert sum(point.calls for point in row.points) <= row.calls_split <= row.calls
        if row.alpha_ns is not None and row.ci95 is not None:
            assert row.ci95.alpha_ns[0] <= row.alpha_ns <= row.ci95.alpha_ns[1]


@every_capture
def test_costs_on_the_path_are_those_of_the_budget(name: str) -> None:
    """Path time of collectives by group and operation adds up to the budget's, wherever their groups are known."""
    diagnosis = analysis_of(name).diagnosis
    for budget in diagnosis.budget:
        rows = [
            row for row in diagnosis.collective_costs
            if (row.phase, row.scope, row.rank) == (budget.phase, budget.scope, budget.rank)
        ]  # fmt: skip
        for kind in ("collective.transfer", "collective.wait", "collective.unsplit"):
            assert sum(row.path_ns_total[kind] for row in rows) <= budget.path_ns_total[kind], kind
        if rows:
            whole = sum(ns for row in rows for ns in row.path_ns_total.values())
            parts = [ns for name, ns in budget.path_ns_total.items() if name in rows[0].path_ns_total]
            assert whole == sum(parts), budget.phase
