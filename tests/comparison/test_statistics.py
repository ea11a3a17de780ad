"""Step times and their difference: by hand, against SciPy's Welch interval, and how often chance is shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analyzer.comparison.result import StepDelta, StepTimes
from analyzer.comparison.statistics import (
    BOOTSTRAP_STEPS,
    LEAST_ERROR,
    speedup_interval,
    step_delta,
    step_times,
)

Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]  # that many step times, 1.0 being usual

USUAL_NS = 20_000_000
PAIRS = 400

steps = st.lists(st.integers(0, 10**10), min_size=1, max_size=12)
five_steps = st.lists(st.integers(0, 10**10), min_size=5, max_size=5)


def normal(generator: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    return generator.normal(1, 0.03, n)


def lognormal(generator: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    return generator.lognormal(0, 0.03, n)


def heavy(generator: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """One step in 25, by chance, takes five times as long."""
    return lognormal(generator, n) * np.where(generator.random(n) < 1 / 25, 5.0, 1.0)


def correlated(generator: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """AR(1) of rho 0.5, in its steady state from the first step on."""
    steps = generator.normal(size=n)
    for i in range(1, n):
        steps[i] = 0.5 * steps[i - 1] + math.sqrt(0.75) * steps[i]
    return np.asarray(1 + 0.03 * steps)


def nanoseconds(times: npt.NDArray[np.float64], usual_ns: float = USUAL_NS) -> list[int]:
    return [round(time) for time in (times * usual_ns).tolist()]


def drawn(draw: Draw, n: int, seed: int, usual_ns: float = USUAL_NS) -> list[int]:
    return nanoseconds(draw(np.random.default_rng(seed), n), usual_ns)


def share_shown(draw: Draw, n: int, n_b: int | None = None, times_longer: float = 1) -> float:
    """Of 400 pairs of runs, how many are shown to differ."""
    generator = np.random.default_rng(11)
    shown = 0
    for _ in range(PAIRS):
        a = nanoseconds(draw(generator, n))
        b = nanoseconds(draw(generator, n_b or n), USUAL_NS * times_longer)
        shown += step_delta(a, b).shown
    return shown / PAIRS


def interval(delta: StepDelta) -> tuple[int, int]:
    assert delta.ci95 is not None
    return delta.ci95


def margin(delta: StepDelta) -> float:
    low, high = interval(delta)
    return (high - low) / 2


def welch(a: list[int], b: list[int]) -> tuple[float, float]:
    found = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    return float(found.low), float(found.high)


# Step times


def test_step_times_by_hand() -> None:
    assert step_times([7, 1, 4, 2]) == StepTimes(n=4, median=2, mean=4, p05=1, p95=4)
    assert step_times(range(101)) == StepTimes(n=101, median=50, mean=50, p05=5, p95=95)
    assert step_times([9]) == StepTimes(n=1, median=9, mean=9, p05=9, p95=9)


@pytest.mark.parametrize(
    ("times", "mean"), [([1, 2], 2), ([2, 3], 2), ([3, 4], 4), ([1, 1, 2], 1), ([1, 2, 2], 2)]
)
def test_the_mean_is_rounded_half_to_even(times: list[int], mean: int) -> None:
    assert step_times(times).mean == mean


def test_the_mean_is_exact_beyond_a_float() -> None:
    assert step_times([2**60 + 1, 2**60 + 3]).mean == 2**60 + 2


def test_no_step_is_an_error() -> None:
    for call in (lambda: step_times([]), lambda: step_delta([], [1]), lambda: step_delta([1], [])):
        with pytest.raises(ValueError, match="no step"):
            call()


# The difference, by hand


def test_constant_steps_differ_to_the_point() -> None:
    assert step_delta([100] * 5, [90] * 6) == StepDelta(
        mean=-10,
        median=-10,
        ci95=(-10, -10),
        shown=True,
        because="the 95 % interval of the difference, -10.0 % to -10.0 %, lies below 0",
    )
    assert step_delta([100] * 5, [101] * 5).because.endswith("+1.0 % to +1.0 %, lies above 0")


def test_equal_constants_do_not_differ() -> None:
    delta = step_delta([100] * 5, [100] * 9)
    assert delta.ci95 == (0, 0)
    assert not delta.shown
    assert delta.because == "the 95 % interval of the difference, 0 % to 0 %, includes 0"


@pytest.mark.parametrize(
    ("n_a", "n_b", "sides"), [(4, 5, "one side"), (50, 1, "one side"), (4, 4, "both sides")]
)
def test_too_few_steps_claim_nothing(n_a: int, n_b: int, sides: str) -> None:
    assert step_delta([100] * n_a, [50] * n_b) == StepDelta(
        mean=-50, median=-50, ci95=None, shown=False, because=f"fewer than 5 steps on {sides}"
    )


def test_the_mean_is_the_difference_of_exact_means() -> None:
    """1.4 and 2.6 apart by 1.2: the rounded means, 1 and 3, would differ by 2."""
    delta = step_delta([1, 1, 1, 2, 2], [2, 2, 3, 3, 3])
    assert (delta.mean, delta.median) == (1, 2)


def test_because_gives_the_interval_in_per_cent_of_a() -> None:
    a, b = drawn(normal, 50, 1), drawn(normal, 50, 2)
    delta = step_delta(a, b)
    low, high = (f"{100 * end * len(a) / sum(a):+.1f} %" for end in interval(delta))
    assert low.startswith("-")
    assert high.startswith("+")
    assert delta.because == f"the 95 % interval of the difference, {low} to {high}, includes 0"


def test_because_never_rounds_an_end_to_0() -> None:
    assert "+0.0004 % to +0.0004 %, lies above 0" in step_delta([10**6] * 5, [10**6 + 4] * 5).because
    assert "+7 ns to +7 ns" in step_delta([0] * 5, [7] * 5).because


# The interval, against Welch's


@pytest.mark.parametrize(("n_a", "n_b"), [(5, 5), (5, 40), (50, 30)])
def test_the_interval_is_at_least_welchs(n_a: int, n_b: int) -> None:
    a, b = drawn(normal, n_a, 3), drawn(normal, n_b, 4)
    low, high = interval(step_delta(a, b))
    expected_low, expected_high = welch(a, b)
    assert low <= math.floor(expected_low)
    assert high >= math.ceil(expected_high)
    assert high - low < 2 * (expected_high - expected_low)


def test_the_interval_of_many_steps_is_welchs_rounded_outward() -> None:
    """A skew sample: the bootstrap would widen it."""
    a, b = drawn(normal, BOOTSTRAP_STEPS + 1, 5, 1000), drawn(normal, BOOTSTRAP_STEPS + 1, 6, 1000)
    b[3] *= 50
    low, high = welch(a, b)
    assert step_delta(a, b).ci95 == (math.floor(low), math.ceil(high))


@pytest.mark.parametrize("draw", [normal, correlated])
def test_a_side_too_long_to_resample_counts_as_before(draw: Draw) -> None:
    """One step more ends the resampling of that side; the other still has its few long steps."""
    a, b = drawn(draw, BOOTSTRAP_STEPS, 7), drawn(draw, 25, 8)
    b[3] = round(b[3] * 1.05)
    assert margin(step_delta([*a, a[0]], b)) == pytest.approx(margin(step_delta(a, b)), rel=0.03)
    b[3] *= 5
    low, high = welch(a, b)
    assert margin(step_delta([*a, a[0]], b)) > 1.3 * (high - low) / 2


def test_where_the_bootstrap_ends_the_interval_hardly_changes() -> None:
    """With as many steps, both are the normal distribution's."""
    a, b = drawn(normal, BOOTSTRAP_STEPS, 7), drawn(normal, BOOTSTRAP_STEPS, 8)
    resampled = margin(step_delta(a, b))
    assert margin(step_delta([*a, a[0]], b)) == pytest.approx(resampled, rel=0.04)
    assert margin(step_delta([*a, a[0]], [*b, b[0]])) == pytest.approx(resampled, rel=0.04)


def test_long_steps_on_one_side_widen_the_interval_beyond_welchs() -> None:
    a, b = drawn(normal, 200, 9), drawn(normal, 25, 10)
    b[3] *= 5
    low, high = welch(a, b)
    assert margin(step_delta(a, b)) > 1.3 * (high - low) / 2


@pytest.mark.parametrize("b", [[1000, 1300, 1800, 2400, 3700], [1000, 1100, 1300, 1900, 3700]])
def test_the_bootstrap_against_all_resamples_there_are(b: list[int]) -> None:
    """Five steps have 3,125 of them; the other side, constant, adds nothing."""
    error = stats.sem(b)
    every = np.array(list(itertools.product(b, repeat=5)))
    errors = np.maximum(stats.sem(every, axis=1), LEAST_ERROR * error)
    factor = np.quantile(np.abs(every.mean(axis=1) - np.mean(b)) / errors, 0.95)
    assert factor > 1.1 * stats.t.ppf(0.975, 4)
    assert margin(step_delta([1000] * 5, b)) == pytest.approx(factor * error, rel=0.04)


def test_one_stray_step_does_not_hide_a_large_difference() -> None:
    """Its resamples without the stray step have next to no spread, and may not count for everything."""
    a, b = drawn(normal, 50, 11, 1000_000), drawn(normal, 50, 12, 1500_000)
    a[20] *= 5
    delta = step_delta(a, b)
    error = math.hypot(float(stats.sem(a)), float(stats.sem(b)))
    assert delta.shown
    assert margin(delta) < 6 * error


def test_steps_all_alike_but_one() -> None:
    """Most resamples have no spread at all: no division by 0, and an interval about the difference."""
    delta = step_delta([100_000] * 20, [90_000] * 19 + [91_000])
    assert delta.shown
    low, high = interval(delta)
    assert -10_250 < low < -10_050 < delta.mean < -9_850 < high < -9_650


# Laws


@given(steps, steps)
def test_the_other_way_round_is_the_mirror_image(a: list[int], b: list[int]) -> None:
    assert_mirrored(a, b)


@pytest.mark.parametrize("draw", [normal, heavy, correlated])
@pytest.mark.parametrize("n_b", [50, 20])
def test_longer_runs_are_mirrored_too(draw: Draw, n_b: int) -> None:
    assert_mirrored(drawn(draw, 50, 13), drawn(draw, n_b, 14))


def test_the_same_steps_in_another_order_are_mirrored() -> None:
    steps = drawn(correlated, 50, 15)
    assert_mirrored(steps, sorted(steps))


def assert_mirrored(a: list[int], b: list[int]) -> None:
    there, back = step_delta(a, b), step_delta(b, a)
    assert (there.mean, there.median, there.shown) == (-back.mean, -back.median, back.shown)
    mirrored = None if back.ci95 is None else (-back.ci95[1], -back.ci95[0])
    assert there.ci95 == mirrored


@given(steps)
def test_a_run_does_not_differ_from_itself(a: list[int]) -> None:
    delta = step_delta(a, a)
    assert (delta.mean, delta.median, delta.shown) == (0, 0, False)


@given(steps, steps)
def test_shown_is_an_interval_on_one_side_of_0_about_the_mean(a: list[int], b: list[int]) -> None:
    delta = step_delta(a, b)
    if delta.ci95 is None:
        assert min(len(a), len(b)) < 5
        assert not delta.shown
        return
    low, high = delta.ci95
    assert low <= delta.mean <= high
    assert delta.shown == (low > 0 or high < 0)


@given(five_steps, five_steps)
def test_the_order_of_independent_steps_does_not_matter(a: list[int], b: list[int]) -> None:
    """Five steps never pass for correlated: their r is at most 0.87, below 2 / sqrt(5)."""
    assert step_delta(sorted(a), sorted(b)) == step_delta(a, b) == step_delta(a[::-1], b)


def test_again_is_the_same() -> None:
    a, b = drawn(heavy, 50, 16), drawn(heavy, 60, 17)
    first = step_delta(a, b)
    np.random.default_rng().random()
    assert step_delta(a, b) == first


# Correlation, by hand: 100 steps, half of them long. r is (pairs alike - pairs unlike) / 100.


def runs(*lengths: int) -> list[int]:
    """Short and long steps by turns: how many in a row."""
    return [1_000_000 * (1 + i % 2) for i, length in enumerate(lengths) for _ in range(length)]


@pytest.mark.parametrize(
    ("in_order", "r"),
    [
        (runs(50, 50), 0.9),  # 98 - 1: 0.97, capped
        (runs(*[5] * 20), 0.61),  # 80 - 19
        (runs(*[2] * 38, 12, 12), 0.21),  # 60 - 39, just above 2 / sqrt(100)
        (runs(*[2] * 41, 10, 8), 0.0),  # 57 - 42: 0.15 may be chance
        (runs(*[1] * 100), 0.0),  # never narrower, although 0 - 99 is below 0
    ],
)
def test_steps_that_follow_one_another_widen_the_interval(in_order: list[int], r: float) -> None:
    shuffled = runs(*[2] * 50)  # 50 - 49: as good as independent
    assert sorted(in_order) == sorted(shuffled)
    plain = margin(step_delta(shuffled, shuffled))
    widened = plain * math.sqrt((1 + r) / (1 - r))
    assert margin(step_delta(in_order, in_order)) == pytest.approx(widened, rel=1e-5)


def test_each_side_is_widened_by_its_own_correlation() -> None:
    """Variances of the means 1 : 19 instead of 1 : 1: the error is sqrt(10) times as long, Welch's t a little too."""
    plain, ordered = runs(*[2] * 50), runs(50, 50)
    grown = margin(step_delta(plain, ordered)) / margin(step_delta(plain, plain))
    assert grown == pytest.approx(math.sqrt(10), rel=0.03)


# How often chance is shown, and how often a difference is


@pytest.mark.parametrize("draw", [lognormal, heavy])
def test_chance_is_rarely_shown(draw: Draw) -> None:
    assert share_shown(draw, 50) <= 0.07


@pytest.mark.parametrize(("n_a", "n_b"), [(5, 5), (8, 8), (20, 20), (5, 50)])
def test_chance_is_rarely_shown_in_few_steps(n_a: int, n_b: int) -> None:
    assert share_shown(normal, n_a, n_b) <= 0.07


def test_chance_is_rarely_shown_in_correlated_steps() -> None:
    """Without the allowance for correlation it is shown in one pair of four."""
    assert share_shown(correlated, 50) <= 0.10


def test_the_interval_is_no_wider_than_it_must_be() -> None:
    """One that never shows chance would be useless: some 5 % are due."""
    assert share_shown(lognormal, 50) >= 0.02


def test_three_per_cent_is_nearly_always_shown() -> None:
    assert share_shown(lognormal, 50, times_longer=1.03) >= 0.90


# The ratio of the means


def ratio(a: list[int], b: list[int]) -> tuple[float, float]:
    found = speedup_interval(a, b)
    assert found is not None
    return found


def test_the_ratio_of_constant_steps_is_a_point() -> None:
    assert speedup_interval([100] * 5, [80] * 6) == (1.25, 1.25)
    assert speedup_interval([100] * 5, [100] * 6) == (1.0, 1.0)


def test_the_ratio_by_hand() -> None:
    """B constant: the interval of A's mean, 100 +- 20, over B's 80."""
    a, b = [80, 90, 100, 110, 120], [80] * 5
    reach = margin(step_delta([one * 10**9 for one in a], [one * 10**9 for one in b])) / 10**9
    low, high = ratio(a, b)
    assert (low, high) == pytest.approx(((100 - reach) / 80, (100 + reach) / 80))


def test_no_ratio_of_few_steps_or_of_a_mean_that_may_be_0() -> None:
    assert speedup_interval([100] * 4, [80] * 9) is None
    assert speedup_interval([100] * 9, [80] * 4) is None
    assert speedup_interval([100] * 5, [0, 0, 0, 0, 400]) is None
    assert speedup_interval([0, 0, 0, 0, 400], [100] * 5) is None
    assert speedup_interval([0] * 5, [100] * 5) is None


@given(st.lists(st.integers(1, 10**7), min_size=5, max_size=9), five_steps)
def test_the_ratio_contains_1_exactly_where_no_difference_is_shown(a: list[int], b: list[int]) -> None:
    for one, two in ((a, b), (a, [step + 1 for step in a]), (a, [step * 3 for step in a])):
        found = speedup_interval(one, two)
        if found is not None:
            low, high = found
            assert 0 < low <= high
            assert (low <= 1 <= high) == (not step_delta(one, two).shown)
            back_low, back_high = ratio(two, one)
            assert (back_low, back_high) == pytest.approx((1 / high, 1 / low))


@pytest.mark.parametrize("draw", [normal, heavy, correlated])
def test_the_ratio_holds_the_true_one_mostly(draw: Draw) -> None:
    """A's steps are 1.3 times as long: outside in about 1 of 20 pairs. Of few long steps there may be no interval."""
    generator = np.random.default_rng(11)
    found = []
    for _ in range(PAIRS // 2):
        a = nanoseconds(draw(generator, 50), USUAL_NS * 1.3)
        found.append(speedup_interval(a, nanoseconds(draw(generator, 50))))
    missed = sum(one is not None and not one[0] <= 1.3 <= one[1] for one in found)
    assert missed / len(found) <= 0.10
    assert found.count(None) / len(found) <= 0.05
