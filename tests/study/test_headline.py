"""The steps that speak for a run are those of its budget."""

from __future__ import annotations

import pytest

from analyzer.comparison.sides import budget_of
from analyzer.diagnosis import Diagnosis
from analyzer.study.headline import headline, phases, world_size
from fixtures.planted.scaling import Plan, diagnosed, program
from tests.study.runs import MS


@pytest.fixture(scope="module")
def two_ranks() -> Diagnosis:
    plan = Plan(2 * MS, 2 * MS, 0.1 * MS, (1, 2), 6)
    return diagnosed(program(plan, 2, [1.0, 1.1, 1.0, 0.9, 1.0, 1.2]), "kineto")


def test_steps_and_categories_sum_to_the_budget(two_ranks: Diagnosis) -> None:
    (phase,) = phases(two_ranks)
    found, budget = headline(two_ranks, phase), budget_of(two_ranks, phase, None)
    assert budget is not None
    assert (found.scope, found.rank) == ("global", None)
    assert (len(found.step_ns), sum(found.step_ns)) == (budget.windows, budget.step_ns_total)
    assert {name: sum(values) for name, values in found.path_ns.items()} == budget.path_ns_total
    assert [sum(parts) for parts in zip(*found.path_ns.values(), strict=True)] == found.step_ns
    assert found.shape == "batch 8"


def test_ranks_of_the_run(two_ranks: Diagnosis) -> None:
    assert world_size(two_ranks) == 2
