"""Small statistics, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.stats import bootstrap_mean_interval, quantile, robust_z


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([7], 0.95, 7),
        ([3, 1, 2], 0.5, 2),
        ([4, 1, 3, 2], 0.5, 2),  # the lower of the two in the middle
        (list(range(101)), 0.05, 5),
        (list(range(101)), 0.95, 95),
        (list(range(20)), 0.95, 18),
        ([5, 5, 5], 0.0, 5),
        ([5, 9], 1.0, 9),
    ],
)
def test_a_quantile_is_one_of_the_values(values: list[int], q: float, expected: int) -> None:
    assert quantile(np.array(values), q) == expected


@given(st.lists(st.integers(0, 2**60), min_size=1, max_size=30), st.floats(0, 1))
def test_quantiles_are_exact_members_in_any_order(values: list[int], q: float) -> None:
    found = quantile(np.array(values), q)
    assert found in values
    assert found == quantile(np.array(values[::-1]), q)


def test_robust_z_by_hand() -> None:
    """Median 3; deviations 2, 1, 0, 1, 97, their median 1: the unit is 1.4826."""
    found = robust_z(np.array([1.0, 2, 3, 4, 100]))
    assert found.tolist() == pytest.approx([-2 / 1.4826, -1 / 1.4826, 0, 1 / 1.4826, 97 / 1.4826])


def test_robust_z_without_any_spread() -> None:
    assert robust_z(np.array([5.0, 5, 5, 6])).tolist() == [0, 0, 0, np.inf]


def test_the_bootstrap_of_equal_ratios_is_a_point() -> None:
    values, weights = np.array([10.0, 20, 30]), np.array([100.0, 200, 300])
    assert bootstrap_mean_interval(values, weights) == pytest.approx((0.1, 0.1))


def test_the_bootstrap_of_one_row_is_that_row_and_of_nothing_zero() -> None:
    assert bootstrap_mean_interval(np.array([3.0]), np.array([4.0])) == (0.75, 0.75)
    assert bootstrap_mean_interval(np.empty(0), np.empty(0)) == (0.0, 0.0)


def test_the_bootstrap_of_two_rows_reaches_both() -> None:
    """Resamples of (0, 1): both 0 and both 1 come up a quarter of the time each."""
    assert bootstrap_mean_interval(np.array([0.0, 1]), np.array([1.0, 1])) == (0.0, 1.0)


def test_the_bootstrap_narrows_with_more_rows_and_repeats_itself() -> None:
    few, many = np.array([0.0, 1] * 5), np.array([0.0, 1] * 500)
    narrow, wide = (bootstrap_mean_interval(v, np.ones(len(v))) for v in (many, few))
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]
    assert narrow == bootstrap_mean_interval(many, np.ones(1000))
