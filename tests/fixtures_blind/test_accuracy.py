"""The bars of docs/accuracy.md on a sample of the development set."""

from __future__ import annotations

from fixtures.blind import DEVELOPMENT
from fixtures.blind.figures import denied, invented, missed, rows_of, score
from fixtures.blind.outcomes import outcome_of

SAMPLE = DEVELOPMENT[::10]


def test_the_sample_clears_every_bar() -> None:
    """One test, so that parallel runs make the captures once."""
    outcomes = [outcome_of(seed) for seed in SAMPLE]
    assert [outcome.problem for outcome in outcomes if outcome.problem] == []
    assert all(outcome.windows >= 3 for outcome in outcomes)
    rows = rows_of(outcomes)
    found = score(rows)
    assert found.holding > 40
    assert found.right >= 0.95 * found.holding, missed(rows)
    assert found.inside >= 0.9 * found.intervals
    assert invented(rows) == []
    assert denied(rows) == []
