"""S + P / N by hand: two runs exactly, more with residuals, categories that sum to the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.calculators import scaling as calculated
from analyzer.scaling.fit import CountedRun, fitted
from tests.scaling.runs import MS, counted


def flat(ranks: int, kernel: int, transfer: int = 0, n: int = 6) -> CountedRun:
    """Steps that differ by 2 us, and whose mean is exact."""
    kernels = [kernel + 1_000, kernel - 1_000] * (n // 2)
    return counted(ranks, kernel=kernels, collective_transfer=[transfer] * n)


def test_two_runs_solve_exactly() -> None:
    fit, _ = fitted([flat(1, 10 * MS), flat(4, 4 * MS)])
    assert (fit.method, fit.residuals_ns, fit.rms_residual_ns) == ("exact", None, None)
    assert fit.serial_ns == pytest.approx(2 * MS)  # (4 x 4 - 10) / 3
    assert fit.parallel_ns == pytest.approx(8 * MS)
    assert fit.serial_share == pytest.approx(0.2)
    assert fit.limit_speedup == pytest.approx(5)
    assert any("two rank counts always fit" in one for one in fit.cautions)
    assert not fit.between_runs


def test_it_is_the_calculators_line() -> None:
    times = {1: 10 * MS, 2: 7 * MS, 4: 5 * MS}
    fit, _ = fitted([flat(ranks, ns) for ranks, ns in times.items()])
    by_hand = calculated(list(times.items()))
    assert fit.serial_ns == pytest.approx(by_hand.serial_ns, rel=1e-3)
    assert by_hand.residuals_ns is not None and fit.residuals_ns is not None
    assert fit.residuals_ns == pytest.approx(by_hand.residuals_ns, rel=0.05)


def test_the_interval_of_the_share_is_that_of_its_parts() -> None:
    """Two runs: S = (4 T4 - T1) / 3 and T1 have the errors of the means, so that of S / T1 follows by hand."""
    fit, _ = fitted([flat(1, 10 * MS), flat(4, 4 * MS)])
    assert fit.serial_share_ci95 is not None and fit.serial_ci95_ns is not None
    # d(S / T1) = 4/3 dT4 / T1 - 4/3 T4 / T1^2 dT1; both means have a standard error of 1000 / sqrt(5) ns
    error = 4 / 3 * (1_000 / 5**0.5) / (10 * MS) * (1 + 0.4**2) ** 0.5
    half = (fit.serial_share_ci95[1] - fit.serial_share_ci95[0]) / 2
    assert half / error == pytest.approx(2.4, abs=0.3)  # Student's t of 5 to 10 degrees of freedom


def test_what_only_several_ranks_have_grows_with_them() -> None:
    fit, categories = fitted([flat(1, 10 * MS), flat(4, 4 * MS, transfer=3 * MS)])
    kernel, transfer = categories
    assert (kernel.category, kernel.behaviour) == ("kernel", "spreads")
    assert (transfer.category, transfer.behaviour) == ("collective.transfer", "grows")
    assert transfer.mean_ns == {1: 0, 4: 3 * MS}
    assert transfer.parallel_ns == pytest.approx(-4 * MS)  # T(1) = S + P = 0, T(4) = S + P / 4 = 3
    assert fit.growing_ns == pytest.approx(4 * MS)
    assert fit.serial_share == pytest.approx(0.6)  # S = (4 x 7 - 10) / 3 = 6
    assert fit.own_serial_share == pytest.approx(0.2)


def test_collectives_that_grow_as_no_curve_does_grow_all_the_same() -> None:
    """5, 10 and 20 ms at 2, 4 and 8 ranks: far off S + P / N, whose interval of P holds 0."""
    transfers = {1: 0, 2: 5, 4: 10, 8: 20}
    fit, categories = fitted([flat(n, 15 * MS + 85 * MS // n, ms * MS) for n, ms in transfers.items()])
    (transfer,) = (one for one in categories if one.category == "collective.transfer")
    assert transfer.parallel_ci95_ns is not None and transfer.parallel_ci95_ns[1] > 0
    assert transfer.behaviour == "grows"
    assert fit.growing_ns == pytest.approx(-transfer.parallel_ns)
    assert fit.own_serial_share is not None and fit.serial_share is not None
    assert fit.own_serial_share < fit.serial_share / 2


def test_growth_that_outweighs_s_leaves_no_share_of_its_own() -> None:
    """Kernels of 16 and 3 ms have S = -4 / 3, a transfer of 3 ms grows to 4: S = 8 / 3 in all."""
    fit, _ = fitted([flat(1, 16 * MS), flat(4, 3 * MS, transfer=3 * MS)])
    assert fit.serial_ns == pytest.approx(8 / 3 * MS)
    assert fit.serial_share is not None
    assert fit.own_serial_share is None


def test_what_differs_by_next_to_nothing_does_not_grow() -> None:
    _, categories = fitted([flat(1, 10 * MS, transfer=100), flat(4, 4 * MS, transfer=200)])
    assert categories[1].behaviour == "not told"


def test_more_ranks_that_are_slower_have_no_serial_share() -> None:
    fit, _ = fitted([flat(1, 4 * MS), flat(4, 5 * MS)])
    assert fit.parallel_ns < 0
    assert (fit.serial_share, fit.serial_share_ci95, fit.limit_speedup, fit.own_serial_share) == (None,) * 4
    assert any("more ranks are slower" in one for one in fit.cautions)


def test_faster_than_the_ranks_account_for_has_no_serial_share() -> None:
    fit, _ = fitted([flat(1, 16 * MS), flat(4, 3 * MS)])
    assert fit.serial_ns < 0
    assert fit.serial_share is None
    assert any("faster than the ranks account for" in one for one in fit.cautions)


def test_a_curve_that_does_not_describe_the_runs_is_told() -> None:
    fit, _ = fitted([flat(1, 10 * MS), flat(2, 5 * MS), flat(4, 5 * MS), flat(8, 9 * MS)])
    assert fit.misfit_p is not None and fit.misfit_p < 0.01
    assert any("lie further from the curve" in one for one in fit.cautions)


def test_few_steps_have_no_interval() -> None:
    fit, categories = fitted([counted(1, kernel=[10 * MS] * 3), counted(2, kernel=[6 * MS] * 3)])
    assert (fit.serial_ci95_ns, fit.parallel_ci95_ns, fit.serial_share_ci95) == (None, None, None)
    assert categories[0].behaviour == "not told"


def test_a_serial_program_has_a_share_of_one() -> None:
    fit, _ = fitted([flat(1, 4 * MS), flat(4, 4 * MS)])
    assert fit.serial_share == pytest.approx(1)
    assert fit.serial_share_ci95 is not None


@given(
    runs=st.lists(
        st.tuples(
            st.integers(1, 64),
            st.lists(st.tuples(*[st.integers(0, 10**9)] * 3), min_size=1, max_size=8),
        ),
        min_size=2,
        max_size=5,
    ).filter(lambda runs: len({ranks for ranks, _ in runs}) > 1)
)
def test_categories_sum_to_the_whole(runs: list[tuple[int, list[tuple[int, int, int]]]]) -> None:
    made = []
    for ranks, steps in runs:
        kernel, transfer, framework = ([step[at] for step in steps] for at in range(3))
        made.append(counted(ranks, kernel=kernel, collective_transfer=transfer, host_framework=framework))
    fit, categories = fitted(made)
    assert sum(one.serial_ns for one in categories) == pytest.approx(fit.serial_ns, abs=1, rel=1e-6)
    assert sum(one.parallel_ns for one in categories) == pytest.approx(fit.parallel_ns, abs=1, rel=1e-6)
    assert fit.growing_ns >= 0


def test_equal_steps_are_all_serial_and_not_slower_with_more_ranks() -> None:
    """What floating point leaves of P has a sign, and is nothing."""
    for counts in ((1, 2, 4), (1, 3, 7), (2, 3, 5, 11)):
        fit, _ = fitted([counted(ranks, kernel=[5_019_333] * 12) for ranks in counts])
        assert (fit.parallel_ns, fit.serial_share) == (0.0, pytest.approx(1))
        assert not any("slower" in one or "negative" in one for one in fit.cautions)


def test_a_negative_part_within_chance_is_no_slowdown() -> None:
    noisy = [[5_000_000, 5_200_000, 4_900_000, 5_100_000, 4_800_000, 5_060_000]] * 2
    fit, _ = fitted([counted(1, kernel=noisy[0]), counted(4, kernel=[ns + 1_000 for ns in noisy[1]])])
    assert fit.parallel_ns < 0 and fit.serial_share is None
    assert any(one.startswith("P comes out negative, and is not told from 0") for one in fit.cautions)
    assert not any("slower" in one for one in fit.cautions)
