"""A line through runs: hand-worked, linear in its parts, and with intervals that hold what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, linregress
from scipy.stats import t as student

from analyzer.fits import RunMean, fit_runs, run_mean, weights_of


def _exact(points: list[tuple[float, float]]) -> list[RunMean]:
    return [RunMean(x, y, None, 0) for x, y in points]


def test_a_line_through_three_runs_by_hand():
    # y = 10 + 2 x met within (+1, -2, +1): slope 2, intercept 10; residual squares 6, one degree of freedom
    line = fit_runs(_exact([(0, 11), (1, 10), (2, 15)]))
    assert line.slope.value == pytest.approx(2)
    assert line.intercept.value == pytest.approx(10)
    assert line.residuals == pytest.approx((1, -2, 1))
    margin = student.ppf(0.975, 1) * np.sqrt(6 / 1 / 2)
    assert line.slope.ci95 == pytest.approx((2 - margin, 2 + margin))
    assert line.between_runs


def test_equal_weights_give_the_ordinary_line_and_its_error():
    x, y = [1, 2, 4, 8, 8], [3.1, 4.9, 9.2, 16.8, 17.3]
    line, oracle = fit_runs(_exact(list(zip(x, y, strict=True)))), linregress(x, y)
    margin = student.ppf(0.975, 3) * oracle.stderr
    assert line.slope.ci95 == pytest.approx((oracle.slope - margin, oracle.slope + margin))
    margin = student.ppf(0.975, 3) * oracle.intercept_stderr
    assert line.intercept.ci95 == pytest.approx((oracle.intercept - margin, oracle.intercept + margin))


def test_two_runs_rest_on_their_steps_and_say_so():
    line = fit_runs([RunMean(0, 100, 4.0, 19), RunMean(10, 150, 4.0, 19)])
    margin = student.ppf(0.975, 38) * np.sqrt(8) / 10
    assert line.slope.ci95 == pytest.approx((5 - margin, 5 + margin))
    assert not line.between_runs
    assert line.misfit_p is None
    assert fit_runs(_exact([(0, 100), (10, 150)])).slope.ci95 is None


def test_residuals_that_happen_to_be_small_make_no_narrower_interval_than_the_steps_do():
    line = fit_runs([RunMean(x, 10 + x, 1.0, 19) for x in (0, 1, 2)])
    margin = student.ppf(0.975, 2 * 19) * np.sqrt(1 / 2)  # the middle run says nothing of the slope
    assert line.slope.ci95 == pytest.approx((1 - margin, 1 + margin))


def test_residuals_beyond_the_steps_noise_are_told_and_even_out_the_weights():
    bent = [RunMean(x, y, v, 19) for x, y, v in ((0, 0, 0.01), (1, 50, 0.04), (2, 40, 0.01), (3, 90, 0.01))]
    line = fit_runs(bent)
    assert line.misfit_p is not None and line.misfit_p < 1e-6
    weights = weights_of(bent)
    assert weights.max() / weights.min() == pytest.approx(1, abs=1e-3)
    straight = fit_runs([RunMean(x, 10 + x, 1.0, 19) for x in (0, 1, 2, 3)])
    assert straight.misfit_p == pytest.approx(1)


def test_a_mean_of_few_steps_has_no_known_noise():
    assert run_mean(1, [10, 12, 14, 16]).variance is None
    assert run_mean(1, [10, 12, 14, 12, 12]).variance == pytest.approx(8 / 4 / 5)
    with pytest.raises(ValueError, match="no step"):
        run_mean(1, [])


def test_runs_at_one_place_are_refused():
    with pytest.raises(ValueError, match="one place"):
        fit_runs(_exact([(1, 2), (1, 3)]))


_parts = st.lists(
    st.tuples(st.integers(0, 9), st.floats(0, 1e9), st.floats(0, 1e9), st.floats(1, 1e6), st.integers(4, 50)),
    min_size=2,
    max_size=8,
).filter(lambda rows: len({row[0] for row in rows}) > 1)


@given(_parts)
def test_lines_of_parts_sum_to_the_line_of_their_sum(rows):
    whole = [RunMean(x, a + b, v, n) for x, a, b, v, n in rows]
    weights = weights_of(whole)
    lines = [
        fit_runs(runs, weights)
        for runs in (
            whole,
            [RunMean(x, a, v, n) for x, a, _, v, n in rows],
            [RunMean(x, b, v, n) for x, _, b, v, n in rows],
        )
    ]
    size = max(run.mean for run in whole) + 1
    assert lines[0].slope.value == pytest.approx(lines[1].slope.value + lines[2].slope.value, abs=1e-9 * size)


@given(_parts)
def test_what_never_changes_has_no_slope_and_a_sum_that_is_zero_is_zero_on_every_processor(rows):
    """A residue of rounding is no growth: it would be told, and differ from machine to machine."""
    weights = weights_of([RunMean(x, a, v, n) for x, a, _, v, n in rows])
    flat = fit_runs([RunMean(x, 1234567.1, 0.0, n) for x, _, _, _, n in rows], weights)
    assert flat.slope.value == 0
    assert flat.slope.ci95 == (0, 0)
    rising = fit_runs([RunMean(x, 1234.1 * x, 0.0, n) for x, _, _, _, n in rows], weights)
    assert rising.intercept.value == 0
    assert rising.slope.value == pytest.approx(1234.1)


@pytest.mark.parametrize("between", [0.0, 2.0])
@pytest.mark.parametrize("places", [(1, 2, 4), (1, 2, 4, 8), (1, 1, 2, 2, 4, 4)])
def test_intervals_hold_the_planted_slope(places, between):
    generator = np.random.default_rng(7)
    held, n = 0, 1_000
    for _ in range(n):
        runs = []
        for x in places:
            noise = 1 + x  # longer steps scatter more
            steps = 1_000 + 30 * x + generator.normal(0, between) + generator.normal(0, noise, 20)
            runs.append(run_mean(x, steps))
        low, high = fit_runs(runs).slope.ci95
        held += low <= 30 <= high
    assert binomtest(held, n, 0.95, alternative="less").pvalue >= 0.01, held
