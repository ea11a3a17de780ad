"""One clock or not: what causality shows, what it bounds, and what is taken off then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.explain.service.clocks import compare
from analyzer.tokens import IntArray

MS = 1_000_000
T = 1_795_000_000_000_000_000


def at(*instants: int) -> IntArray:
    return np.array(instants, np.int64) + T


def test_one_clock_takes_nothing_off() -> None:
    offset = compare(at(0, 10, 20), at(3, 12, 29), ("a", "a"))
    assert offset.same and offset.smallest_ns == 2
    assert compare(at(0, 10, 20), at(3, 12, 29), ("a", None)).same is False


@pytest.mark.parametrize("names", [("a", "b"), (None, "a"), (None, None)])
def test_of_two_clocks_the_smallest_difference_is_taken_off(names: tuple[str | None, str | None]) -> None:
    """Worked by hand: differences 1003, 1002, 1009; what is left is 1, 0, 7."""
    emitted, received = at(0, 10, 20), at(1003, 1012, 1029)
    offset = compare(emitted, received, names, least=(received[:1], np.array([-500])))
    assert not offset.same and offset.why
    assert (received - offset.at(received) - emitted).tolist() == [1, 0, 7]
    assert offset.interval_ns == (-500, 1002)


def test_clocks_named_as_one_are_told_apart_by_what_contradicts_it() -> None:
    instants = np.arange(T, T + 1_000 * MS, 10 * MS)
    scatter = np.arange(len(instants)) % 7 * 1_000
    before = compare(instants, instants - 3 * MS + scatter, ("a", "a"))
    assert not before.same and "lie before their cause" in before.why and before.early == len(instants)
    sent_later = compare(
        instants, instants + 3 * MS + scatter, ("a", "a"), least=(instants[:1], np.array([2 * MS]))
    )
    assert not sent_later.same and "before their requests were sent" in sent_later.why
    never_shorter = compare(instants, instants + 60 * MS + scatter, ("a", "a"))
    assert not never_shorter.same and "hardly longer" in never_shorter.why
    assert compare(
        instants, instants + 8 * MS + scatter, ("a", "a")
    ).same  # a proxy, a delayed acknowledgement
    assert compare(instants, instants + 60 * MS + 2_000 * scatter, ("a", "a")).same  # it scatters as much


def test_a_few_instants_before_their_cause_are_counted_and_prove_nothing() -> None:
    emitted = np.arange(T, T + 1_000 * MS, MS)
    received = emitted + 5_000
    received[7] -= 10_000
    offset = compare(emitted, received, ("a", "a"))
    assert offset.same and offset.early == 1


def test_drift_is_taken_off_where_the_log_is_long() -> None:
    """50 ppm over 100 s are 5 ms; every third token comes without delay."""
    emitted = np.arange(0, 100_000 * MS, 10 * MS) + T
    delay = np.arange(len(emitted)) % 3 * MS
    received = emitted + 7 * MS + ((emitted - T) * 50e-6).astype(np.int64) + delay
    offset = compare(emitted, received, ("a", "b"))
    assert offset.slope * 1e6 == pytest.approx(50, abs=0.1)
    left = received - offset.at(received) - emitted
    assert np.abs(left - delay).max() < 2_000
    assert left.min() >= 0 and offset.drift_excess_ns < 2_000
    short = compare(emitted[:900], received[:900], ("a", "b"))  # 9 s
    assert short.slope == 0
    growing = compare(emitted, received + (emitted - T) // 1_000, ("a", "b"))  # 1,050 ppm is no clock
    assert growing.slope == 0


@pytest.mark.parametrize("ppm", [-100, 100])
def test_causality_bounds_the_offset_of_clocks_that_drift_at_the_begin(ppm: int) -> None:
    """6 ms over 60 s, 1 us after each request is sent its token is emitted: the offset is 3 ms at the begin."""
    emitted = np.arange(0, 60_000 * MS, 10 * MS) + T
    offset = 3 * MS + (emitted - T) * ppm // 1_000_000
    received = emitted + 200_000 + np.arange(len(emitted)) % 3 * 1_000 + offset
    sent = emitted - 1_000 + offset
    found = compare(emitted, received, ("a", "b"), least=(sent, sent - emitted))
    low, high = found.interval_ns
    assert low is not None and high is not None
    assert abs(low - (3 * MS - 1_000)) < 100 and abs(high - (3 * MS + 200_000)) < 2_000


def test_stamps_that_contradict_one_another_bound_nothing_from_below() -> None:
    found = compare(at(0, 10), at(5, 15), ("a", "b"), least=(at(0), np.array([1_000])))
    assert found.interval_ns == (None, 5)


@given(
    st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 1_000)), min_size=1, max_size=60),
    st.integers(-(10**12), 10**12),
)
def test_whatever_the_offset_what_is_left_is_a_delay_above_the_smallest(
    tokens: list[tuple[int, int]], offset_ns: int
) -> None:
    emitted = np.array([at_ms * MS for at_ms, _ in tokens], np.int64) + T
    delay = np.array([us * 1_000 for _, us in tokens], np.int64)
    received = emitted + delay + offset_ns
    found = compare(emitted, received, ("a", "b"))
    left = received - found.at(received) - emitted
    assert left.min() >= -1  # a line is rounded to ns
    if not found.slope:
        assert left.tolist() == (delay - delay.min()).tolist()
    assert found.interval_ns[1] is not None and found.interval_ns[1] >= offset_ns


def test_no_pair_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="no pair"):
        compare(at(), at(), ("a", "a"))
