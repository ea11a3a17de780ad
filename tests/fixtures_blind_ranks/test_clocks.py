"""Clocks of a diagnosis beside the recorded ones: literal clocks, offsets by hand."""

from __future__ import annotations

from typing import Any

from analyzer.diagnosis import Clock
from fixtures.blind_ranks.clocks import ClockAnswer, FoundClock, clock_answers, found_clock
from fixtures.simulator.recording import Recording


def clock(**other: Any) -> Clock:
    fields: dict[str, Any] = dict.fromkeys(Clock.__struct_fields__)
    return Clock(**fields | {"reference_rank": 0, "device_shift_ns": 0} | other)


def answer(**other: Any) -> ClockAnswer:
    fields: dict[str, Any] = {"rank": 1, "truth_ns": 1_000, "rest_ns": 0, "offset_ns": 1_200}
    return ClockAnswer(**fields | {"interval_ns": (900, 1_500), "uncertainty_ns": 200} | other)


def test_the_instant_of_an_offset_is_on_the_ranks_own_clock() -> None:
    found = clock(
        offset_ns=-700, epoch_ns=5_000, interval_ns=(-800, -600), uncertainty_ns=50, device_shift_ns=4
    )
    assert found_clock(3, found, 100) == FoundClock(3, 0, 5_800, -700, (-800, -600), 50, 4)


def test_a_clock_that_was_compared_with_none_has_no_answer() -> None:
    assert found_clock(3, clock(), 0) is None


def test_the_true_offset_follows_the_drift() -> None:
    recording = Recording(clock_offset_ns={1: 3_000_000, 2: -500}, drift_ppb={1: 50_000})
    at_ns = 2_003_100_000  # the rank's clock 2 s after t = 0: 2 s + 3 ms + 100 us
    found = [FoundClock(rank, 2, at, 0, None, 0, 0) for rank, at in ((1, at_ns), (2, 0))]
    (only,) = clock_answers(recording, found)
    assert (only.rank, only.truth_ns, only.rest_ns) == (1, -3_100_500, 0)
    assert not only.guaranteed


def test_what_is_left_of_device_shifts_is_told_apart() -> None:
    recording = Recording(device_shift_ns={0: -9_000, 1: 2_000})
    found = [FoundClock(0, 0, 0, 0, None, 0, 6_000), FoundClock(1, 0, 0, -4_800, (-5_100, -4_000), 300, 0)]
    (only,) = clock_answers(recording, found)
    assert (only.truth_ns, only.rest_ns, only.error_ns) == (0, -3_000 - 2_000, 200)
    assert only.guaranteed and only.near
    assert not only.of_hosts().guaranteed and not only.of_hosts().near


def test_an_interval_and_an_estimate_hold_up_to_rounding() -> None:
    assert answer().guaranteed and answer().near
    assert answer(uncertainty_ns=198).near and not answer(uncertainty_ns=197).near
    assert answer(interval_ns=(1_002, 1_500)).guaranteed
    assert not answer(interval_ns=(1_003, 1_500)).guaranteed
    assert not answer(interval_ns=(0, 997)).guaranteed
