"""What the amount of work proves of kernels near a peak, against kernels whose rates are known."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.explain.bytes.bounds import KernelTimes, exceeded, near_peak

AT = 0.6


def times(
    total: float, path: float | None = None, own: float | None = None, hidden: float = 0.0
) -> KernelTimes:
    path = total if path is None else path
    return KernelTimes(*(np.array([x]) for x in (total, path if own is None else own, path, hidden)))


def ends(
    floor: float, known: KernelTimes, *, complete: bool = True, at: float = AT
) -> tuple[float, float, float]:
    near = near_peak(floor, known, at, complete=complete)
    return tuple(round(float(end.sum()), 9) for end in (near.low, near.value, near.high))  # type: ignore[return-value]


def test_kernels_at_the_peak_are_near_it_for_certain() -> None:
    assert ends(10.0, times(10.0)) == (10, 10, 10)


def test_kernels_of_which_nothing_is_moved_are_not() -> None:
    assert ends(0.0, times(10.0)) == (0, 0, 0)


def test_the_ends_by_hand() -> None:
    """F = 8 of K = 10: at least (8 - 6) / 0.4 = 5, at most 8 / 0.6, which is more than all of it."""
    assert ends(8.0, times(10.0)) == (5, 7.5, 10)
    """F = 3: at least nothing, at most 3 / 0.6 = 5."""
    assert ends(3.0, times(10.0)) == (0, 2.5, 5)


def test_what_lies_off_the_path_can_be_what_is_near_the_peak() -> None:
    """5 of 10 near the peak at least; 3 of 10 off the path: 2 at least."""
    assert ends(8.0, times(10.0, path=7.0)) == (2, 4.5, 7)


def test_kernels_of_other_steps_on_the_path_are_no_part_of_the_proof() -> None:
    """7 on the path, 2 of them of the step before: 5 of its own, so 5 off the path."""
    assert ends(3.0, times(10.0, path=7.0, own=5.0)) == (0, 3.5, 7)
    assert ends(9.0, times(10.0, path=7.0, own=5.0)) == (2.5, 4.75, 7)


def test_work_that_is_not_told_leaves_the_upper_end_open() -> None:
    assert ends(3.0, times(10.0), complete=False) == (0, 5, 10)
    assert ends(8.0, times(10.0), complete=False) == (5, 7.5, 10)


def test_kernels_inside_rows_of_whole_replays_prove_nothing() -> None:
    assert ends(8.0, times(2.0, hidden=8.0)) == (0, 5, 10)
    assert not exceeded(20.0, times(2.0, hidden=8.0))


def test_a_share_of_nothing_and_of_all_are_no_division_by_zero() -> None:
    assert ends(8.0, times(10.0), at=0.0) == (8, 9, 10)
    assert ends(8.0, times(10.0), at=1.0) == (0, 4, 8)


def test_more_work_than_the_time_holds_is_a_contradiction() -> None:
    assert exceeded(10.1, times(10.0))
    assert not exceeded(10.0, times(10.0))


RATES = st.floats(0, 1)
KERNEL = st.tuples(RATES, st.floats(0.1, 100), st.floats(0, 1))


@given(st.lists(st.lists(KERNEL, min_size=1, max_size=8), min_size=1, max_size=5), st.floats(0.05, 0.95))
def test_the_ends_hold_for_any_kernels(steps: list[list[tuple[float, float, float]]], at: float) -> None:
    """Each kernel: its share of the peak, its duration, the part of it that lies on the path."""
    moved = sum(rate * length for step in steps for rate, length, _ in step) / len(steps)
    total = np.array([sum(length for _, length, _ in step) for step in steps])
    path = np.array([sum(length * part for _, length, part in step) for step in steps])
    truth = sum(length * part for step in steps for rate, length, part in step if rate >= at)
    known = KernelTimes(total, path, path, np.zeros_like(path))
    near = near_peak(moved, known, at)
    slack = 1e-9 * float(total.sum())
    assert max(float(near.low.sum()), 0.0) <= truth + slack
    assert truth <= float(near.high.sum()) + slack
    assert near.low.sum() - slack <= near.value.sum() <= near.high.sum() + slack
    assert near.high.sum() <= path.sum() + slack
    assert not exceeded(moved, known)


@given(st.floats(0.05, 0.95), st.floats(0.0, 1.0))
def test_the_ends_are_reached(at: float, part: float) -> None:
    """No narrower interval holds: there are kernels with this very total at either end."""
    floor = at * (1 - part) + part  # a part of them at the peak, the rest just below the share
    near = near_peak(floor, times(1.0), at)
    assert np.isclose(max(float(near.low.sum()), 0.0), part, atol=1e-6)
