"""The price of a message: lines by hand, what moves them and what does not, and intervals that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binomtest

from analyzer.latency_fit import MISFIT, LatencyLine, Samples, fit_latency, median_line
from analyzer.least_deviations import scale_of


def samples(points: list[tuple[int, int]], blocks: int | None = None) -> Samples:
    """Calls as (bytes, ns), one after the other; ``blocks``: each call in the next of them."""
    size, latency = np.array(points, np.int64).T
    return Samples(size, latency, np.arange(len(points)) % (blocks or len(points)))


def noisy(
    alpha: float, slope: float, sizes: list[int], calls: int, seed: int, noise: float = 0.05
) -> Samples:
    draw = np.random.default_rng(seed)
    size = np.tile(sizes, calls)
    latency = (alpha + slope * size) * np.exp(noise * draw.standard_normal(len(size)))
    return Samples(size, np.rint(latency).astype(np.int64), np.repeat(np.arange(calls), len(sizes)))


def test_the_published_pair_of_points_by_hand() -> None:
    """14 KiB at 58.7 us and 7 MiB at 85 us: 26,300 ns for 7,325,696 bytes more."""
    small, large = 14_336, 7_340_032
    line = fit_latency(samples([(small, 58_700), (large, 85_000)] * 6))
    assert line.ns_per_byte == pytest.approx(26_300 / (large - small), rel=1e-4)
    assert line.alpha_ns == pytest.approx(58_700 - small * 26_300 / (large - small), rel=1e-5)
    assert line.misfit == 0.0
    assert line.at(np.array([large]))[0] == pytest.approx(85_000, rel=1e-5)


def test_a_line_goes_through_medians_whatever_the_slowest_calls_take() -> None:
    quiet = [(1_000, 11_000), (10_000, 20_000), (100_000, 110_000)] * 9
    for slow in (2, 100):
        stalled = [(1_000, 11_000 * slow), (10_000, 20_000 * slow), (100_000, 110_000 * slow)] * 3
        line = fit_latency(samples(quiet + stalled))
        assert line.alpha_ns == pytest.approx(10_000, rel=1e-4)
        assert line.ns_per_byte == pytest.approx(1.0, rel=1e-4)
        assert (~line.kept).sum() == 9


def test_calls_that_differ_by_less_than_a_hundredth_all_count() -> None:
    line = fit_latency(samples([(1_000, 11_000), (100_000, 110_000)] * 9 + [(1_000, 11_050)]))
    assert line.kept.all()


def test_latency_that_falls_with_size_has_no_slope() -> None:
    line = fit_latency(noisy(20_000, 0.0, [100, 1_000, 10_000], 30, seed=1))
    assert line.ns_per_byte_ci95[0] == 0.0 and line.ns_per_byte_ci95[1] > 0
    assert line.alpha_ci95[0] < 20_000 < line.alpha_ci95[1]
    falling = fit_latency(samples([(100, 30_000), (1_000, 20_000), (10_000, 25_000)] * 9))
    assert (falling.ns_per_byte, falling.alpha_ns) == (0.0, pytest.approx(25_000))


@pytest.mark.parametrize("calls", [1, 3, 4])
@pytest.mark.parametrize(("large", "ns"), [(100_000, 10_000), (2_000, 90_000)])
def test_a_size_of_few_calls_counts_however_far_from_any_line(calls: int, large: int, ns: int) -> None:
    """Faster than a small message, or three times as long at twice the size: no line has both ends at 0 or more."""
    points = [(1_000, 30_000 + 100 * at) for at in range(20)] + [(large, ns + 50 * at) for at in range(calls)]
    line = fit_latency(samples(points))
    assert line.kept.all()
    assert math.isfinite(line.alpha_ns) and math.isfinite(line.ns_per_byte)
    assert line.misfit > MISFIT  # two sizes, and no line that is allowed meets both


def test_what_is_all_bandwidth_has_no_alpha() -> None:
    line = fit_latency(samples([(1_000, 500), (2_000, 2_500), (4_000, 6_500)] * 9))
    assert line.alpha_ns == 0.0
    assert line.ns_per_byte == pytest.approx(1.25)  # the middle of 0.5, 1.25 and 1.625


def test_a_switch_of_protocol_is_no_line() -> None:
    """From 64 KiB on another protocol with half the slope and twice the latency."""
    sizes = [2**at for at in range(10, 22, 2)]
    draw = np.random.default_rng(7)
    points = [
        (
            size,
            round(
                float((5_000 + size / 20 if size < 2**16 else 20_000 + size / 200) * draw.uniform(0.98, 1.03))
            ),
        )
        for _ in range(20)
        for size in sizes
    ]
    assert fit_latency(samples(points)).misfit > MISFIT
    assert fit_latency(noisy(5_000, 0.05, sizes, 20, seed=3)).misfit == 0.0


def test_two_sizes_are_met_by_every_line() -> None:
    assert fit_latency(noisy(9_000, 0.1, [1_000, 500_000], 12, seed=2)).misfit == 0.0


def test_few_blocks_widen_and_two_bound_nothing() -> None:
    few, many = (width(fit_latency(noisy(9_000, 0.1, [1_000, 500_000], n, seed=5))) for n in (5, 80))
    assert few > 3 * many
    none = fit_latency(samples([(1_000, 10_000), (500_000, 60_000)], blocks=2))
    assert none.alpha_ci95 == (0.0, math.inf)


def width(line: LatencyLine) -> float:
    return line.ns_per_byte_ci95[1] - line.ns_per_byte_ci95[0]


def test_the_interval_at_a_size_is_narrower_than_those_of_its_parts() -> None:
    line = fit_latency(noisy(20_000, 0.05, [10_000, 100_000, 1_000_000], 25, seed=9))
    low, high = line.interval_at(100_000)
    assert low < line.at(np.array([100_000]))[0] < high
    parts = line.alpha_ci95[1] + 100_000 * line.ns_per_byte_ci95[1]
    assert high < parts


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(100, 10**6)), min_size=4, max_size=30).filter(
        lambda points: len({size for size, _ in points}) > 1
    )
)
def test_no_line_has_less_absolute_deviation(points: list[tuple[int, int]]) -> None:
    """Oracle: the linear program of least relative deviations."""
    size, latency = np.array(points, np.float64).T
    alpha, slope = median_line(size, latency)
    scale = scale_of(size, latency, np.ones((1, len(size))))
    found = float((np.abs(latency - alpha - slope * size) / scale).sum())
    n = len(size)
    program = linprog(
        np.concatenate(([0, 0], np.ones(n))),
        A_ub=np.block([
            [-1 / scale[:, None], -size[:, None] / scale[:, None], -np.eye(n)],
            [1 / scale[:, None], size[:, None] / scale[:, None], -np.eye(n)],
        ]),
        b_ub=np.concatenate((-latency / scale, latency / scale)),
        bounds=[(0, None)] * (n + 2),
    )  # fmt: skip
    assert found <= program.fun * (1 + 1e-6) + 1e-6


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.25, 2.0, 8.0]), st.sampled_from([2, 1_024]))
def test_units_do_not_matter(seed: int, of_time: float, of_size: int) -> None:
    base = noisy(40_000, 0.01, [4_096, 65_536, 4_194_304], 10, seed=seed)
    line = fit_latency(base)
    other = fit_latency(
        Samples(base.bytes * of_size, (base.latency_ns * of_time).astype(np.int64), base.block)
    )
    assert other.alpha_ns == pytest.approx(line.alpha_ns * of_time, rel=2e-3)
    assert other.ns_per_byte == pytest.approx(line.ns_per_byte * of_time / of_size, rel=2e-3)


def test_intervals_hold_what_was_planted() -> None:
    held = [0, 0]
    for seed in range(80):
        line = fit_latency(noisy(12_000, 0.02, [8_192, 262_144, 4_194_304], 9, seed=seed))
        held[0] += line.alpha_ci95[0] <= 12_000 <= line.alpha_ci95[1]
        held[1] += line.ns_per_byte_ci95[0] <= 0.02 <= line.ns_per_byte_ci95[1]
    for count in held:
        assert binomtest(count, 80, 0.95, alternative="less").pvalue >= 0.01, held


def of_steps(
    seed: int, noise: dict[int, float], steps_of_large: int = 12, step_noise: float = 0.0
) -> Samples:
    """12 steps with calls of four sizes; those above 1 MB occur in the first ``steps_of_large`` of them."""
    draw = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    for step in range(12):
        common = math.exp(step_noise * draw.standard_normal())
        for size, spread in noise.items():
            for _ in range(3 if size < 2**20 or step < steps_of_large else 0):
                latency = (20_000 + 0.02 * size) * common * math.exp(spread * draw.standard_normal())
                rows.append((size, round(latency), step))
    size, latency, step = np.array(rows, np.int64).T
    return Samples(size, latency, step)


SIZES = (2**14, 2**17, 2**20, 2**23)


@pytest.mark.parametrize("noisy_sizes", [SIZES[:2], SIZES[2:]])
def test_intervals_hold_where_sizes_scatter_differently(noisy_sizes: tuple[int, ...]) -> None:
    """A size that scatters ten times as much as others is not cut to their spread: its calls are no outliers."""
    noise = {size: 0.2 if size in noisy_sizes else 0.02 for size in SIZES}
    fits = [fit_latency(of_steps(seed, noise)) for seed in range(60)]
    assert np.mean([line.kept.mean() for line in fits]) > 0.97
    for held in (
        sum(line.alpha_ci95[0] <= 20_000 <= line.alpha_ci95[1] for line in fits),
        sum(line.ns_per_byte_ci95[0] <= 0.02 <= line.ns_per_byte_ci95[1] for line in fits),
    ):
        assert binomtest(held, 60, 0.95, alternative="less").pvalue >= 0.01, held


def test_large_sizes_of_a_few_steps_widen_the_slope_and_not_alpha() -> None:
    """A prefill or three among many decode steps: the slope rests on those steps, however many calls each makes."""
    noise = dict.fromkeys(SIZES, 0.03)
    few = [fit_latency(of_steps(seed, noise, 3, 0.05)) for seed in range(60)]
    held = sum(line.ns_per_byte_ci95[0] <= 0.02 <= line.ns_per_byte_ci95[1] for line in few)
    assert binomtest(held, 60, 0.95, alternative="less").pvalue >= 0.01, held
    every = [fit_latency(of_steps(seed, noise, 12, 0.05)) for seed in range(60)]
    wider = np.median([width(line) for line in few]) / np.median([width(line) for line in every])
    assert wider > 2
    of_alpha = [
        np.median([line.alpha_ci95[1] - line.alpha_ci95[0] for line in lines]) for lines in (few, every)
    ]
    assert of_alpha[0] < 1.5 * of_alpha[1]
