"""The bars of docs/accuracy.md on a sample of the development set of several ranks."""

from __future__ import annotations

from fixtures.blind.figures import denied, invented, missed, rows_of, score
from fixtures.blind_ranks import DEVELOPMENT
from fixtures.blind_ranks.figures import all_clocks, misnamed, split_anyway, with_late_rank
from fixtures.blind_ranks.outcomes import outcome_of

SAMPLE = DEVELOPMENT[::9]


def test_the_sample_clears_every_bar() -> None:
    """One test, so that parallel runs make the captures once."""
    outcomes = [outcome_of(seed) for seed in SAMPLE]
    assert [outcome.problem for outcome in outcomes if outcome.problem] == []
    rows = rows_of(outcomes)
    found = score(rows)
    assert found.holding > 25
    assert found.right >= 0.95 * found.holding, missed(rows)
    assert found.inside >= 0.9 * found.intervals
    assert invented(rows) == []
    assert denied(rows) == []
    assert split_anyway(outcomes) == []
    assert misnamed(with_late_rank(outcomes, turns=False)) == []
    bounded = [clock for clock in all_clocks(outcomes) if clock.interval_ns is not None]
    assert bounded and all(clock.guaranteed for clock in bounded)
