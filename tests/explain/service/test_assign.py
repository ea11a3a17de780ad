"""Tokens and steps: by completion, by emission, with an output path longer than a step, and where nothing tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.explain.service.assign import (
    EVER,
    NO_STEP,
    Assignment,
    better_shift,
    by_completion,
    by_emission,
    latest_steps,
    scatter_of,
)
from analyzer.tokens import ABSENT, IntArray

ENDS = np.array([100, 211, 309, 425, 508, 619, 731, 806, 917, 1013], np.int64)
"""Ten steps of about 100."""


def request(n: int, number: int = 0) -> IntArray:
    return np.full(n, number, np.int64)


def emitted(number: IntArray, emission_ns: IntArray, ends: IntArray = ENDS, whole: bool = True) -> Assignment:
    return by_emission(number, emission_ns, ends, whole_requests=whole)


def test_a_completion_belongs_to_the_step_that_ends_nearest() -> None:
    found = by_completion(np.array([101, 309, 261, 1060, 1100, ABSENT]), ENDS)
    assert found.step.tolist() == [0, 2, 2, 9, NO_STEP, NO_STEP]
    assert (found.method, found.ambiguous, found.outside) == (
        "completion",
        1,
        1,
    )  # the one without an instant


def test_a_completion_inside_the_capture_is_of_no_step_outside() -> None:
    """Far from both ends: the step before is short, the one that it lies in is long."""
    ends = np.array([100, 200, 300, 1_300, 1_400], np.int64)
    found = by_completion(np.array([100, 380, 1_300]), ends)
    assert found.step.tolist() == [0, NO_STEP, 3]
    assert (found.ambiguous, found.outside) == (1, 0)


def test_completions_of_other_steps_scatter_between_the_ends() -> None:
    def scatter(completion: IntArray) -> int | None:
        return scatter_of(completion, by_completion(completion, ENDS).step, ENDS)

    assert scatter(ENDS + np.arange(10) % 4 * 10) is None  # by up to 30 of 102
    assert scatter(ENDS[:5] + np.array([40, -40, 40, -40, 0])) == 80
    others = 90 + 37 * np.arange(20)  # steps of 37
    found = scatter(others)
    assert found is not None and found > 60
    assert scatter(np.repeat(others[:2], 8)) is None  # two completions tell nothing


@pytest.mark.parametrize("off", [310, -290])
def test_completions_by_a_clock_that_is_off_fit_other_steps_far_better(off: int) -> None:
    rng = np.random.default_rng(4)
    ends = np.cumsum(100 + rng.integers(-6, 7, 40)).astype(np.int64)
    found = by_completion(ends + off, ends)
    assert better_shift(ends + off, found.step, ends, earlier=True) == off
    own = by_completion(ends + 20, ends)
    assert better_shift(ends + 20, own.step, ends, earlier=True) is None


def test_jitter_of_some_tokens_speaks_against_no_step() -> None:
    """Steps all alike: the first third scatters, and at other steps it would not be there at all."""
    ends = np.arange(100, 4_100, 100)
    times = ends + 30 + np.where(np.arange(40) < 14, np.arange(40) % 4 * 8, 0)
    step = np.arange(40)
    assert better_shift(times, step, ends, earlier=True) is None


def test_emissions_that_fit_steps_that_were_not_complete_are_not_by_that_clock() -> None:
    rng = np.random.default_rng(4)
    ends = np.cumsum(100 + rng.integers(-9, 10, 40)).astype(np.int64)
    times = ends - 130
    found = emitted(request(40), times, ends, whole=False)
    assert better_shift(times, found.step, ends, earlier=False) == -130


def test_an_emission_follows_the_last_complete_step() -> None:
    found = emitted(request(10), ENDS + 30)
    assert found.step.tolist() == list(range(10))
    assert (found.method, found.ambiguous, found.outside) == ("fit", 0, 0)


def test_a_last_token_that_is_very_late_has_its_step_all_the_same() -> None:
    times = ENDS + 30
    times[-1] += 500
    found = emitted(request(10), times)
    assert (found.step.tolist(), found.method) == (list(range(10)), "fit")


@pytest.mark.parametrize("later", [5_000, 86_400_000_000_000])
def test_as_many_tokens_as_steps_after_the_last_of_them_are_another_runs(later: int) -> None:
    found = emitted(request(10), ENDS + later)
    assert (found.step == NO_STEP).all()
    assert (found.method, found.outside) == ("latest", 10)


def test_emissions_that_bunch_go_back_to_their_own_steps() -> None:
    """Token 3 is emitted late, after step 4 was complete: 4 itself follows at once."""
    times = ENDS + 30
    times[3], times[4] = 530, 540
    assert emitted(request(10), times).step.tolist() == list(range(10))


@pytest.mark.parametrize("late", [150, 260, 390])
def test_an_output_path_longer_than_a_step_is_found_where_all_tokens_have_a_step(late: int) -> None:
    found = emitted(request(10), ENDS + late)
    assert (found.step.tolist(), found.method) == (list(range(10)), "fit")


def test_a_log_cut_to_the_capture_decides_nothing_by_its_ends() -> None:
    """Ten tokens and ten steps, but requests that began before: the first may be of a step before the capture."""
    alike = np.arange(100, 1_100, 100)
    assert emitted(request(10), alike + 30, alike).method == "fit"
    assert emitted(request(10), alike + 30, alike, whole=False).method == "latest"


def test_inside_a_longer_run_the_scatter_decides() -> None:
    """Tokens of steps before and after the capture are there, too: nothing but the scatter of the delays tells."""
    every = np.cumsum(np.array([100, 140, 80, 120, 95, 160, 70, 110, 130, 90] * 6))
    capture = every[20:40]
    found = emitted(request(len(every)), every + 130 + np.arange(len(every)) % 4, capture)
    expected = np.full(len(every), NO_STEP)
    expected[20:40] = np.arange(20)
    assert found.method == "fit"
    assert found.step.tolist() == expected.tolist()
    assert found.outside == 40


def test_where_steps_are_all_alike_the_last_one_is_assumed_and_said() -> None:
    every = np.arange(100, 6_100, 100)
    found = emitted(request(len(every)), every + 130, every[20:40])
    assert found.method == "latest"
    assert found.step[19:39].tolist() == list(range(20))  # one step late, and nothing tells


def test_tokens_emitted_together_are_from_as_many_steps_or_from_one() -> None:
    held = np.repeat(ENDS[1::2] + 20, 2)  # every second emission holds two tokens
    assert emitted(request(10), held).step.tolist() == list(range(10))
    guessed = np.repeat(
        ENDS + 20, 3
    )  # three tokens of every step; how many steps the first three took is not told
    found = emitted(request(30), guessed)
    assert found.step.tolist() == [NO_STEP, NO_STEP, *np.repeat(np.arange(10), 3).tolist()[2:]]
    assert (found.ambiguous, found.outside) == (2, 0)


def test_several_tokens_a_step_are_not_laid_on_steps_that_others_took() -> None:
    """Two tokens a step (a draft), but step 3 was another request's: both of the next emission are of step 4."""
    draft = np.repeat(np.delete(ENDS, 3) + 20, 2)
    found = emitted(request(18), draft, whole=False)
    assert found.step.tolist() == [
        NO_STEP,
        0,
        1,
        1,
        2,
        2,
        NO_STEP,
        4,
        *np.repeat(np.arange(5, 10), 2).tolist(),
    ]
    assert (found.ambiguous, found.outside) == (2, 0)


def test_fewer_tokens_than_steps_in_one_emission_leave_open_which_steps() -> None:
    """Two tokens held over three steps, one of which was another request's: only the last one's step is known."""
    times = np.array([ENDS[0], ENDS[1], ENDS[4], ENDS[4], ENDS[5]]) + 20
    found = emitted(request(5), times, whole=False)
    assert found.step.tolist() == [0, 1, NO_STEP, 4, 5]


def test_tokens_without_an_instant_are_of_no_step_outside() -> None:
    times = ENDS + 30
    times[4] = ABSENT
    found = emitted(request(10), times, whole=False)
    assert found.step.tolist() == [0, 1, 2, 3, NO_STEP, 5, 6, 7, 8, 9]
    assert (found.ambiguous, found.outside) == (1, 0)


def test_requests_have_steps_of_their_own() -> None:
    two = np.concatenate([request(10), request(6, 1)])
    assert emitted(two, np.concatenate([ENDS + 30, ENDS[2:8] + 40])).step.tolist() == [
        *range(10),
        *range(2, 8),
    ]


def test_without_two_steps_nothing_is_assigned() -> None:
    assert emitted(request(3), ENDS[:3], ENDS[:1]).step.tolist() == [NO_STEP] * 3


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=6).map(sorted), min_size=1, max_size=5),
    st.lists(st.integers(1, 50), min_size=2, max_size=6, unique=True).map(sorted),
    st.integers(0, 20),
    st.sampled_from([0, 5, EVER]),
)
def test_each_request_goes_back_alone(
    emissions: list[list[int]], ends: list[int], delay: int, after_end: int
) -> None:
    expected: list[int] = []
    pushed_out = 0
    for times in emissions:
        of_request: list[int] = []
        bound = len(ends)
        for due in (time - delay for time in reversed(times)):
            if due - ends[-1] > after_end:
                of_request.append(NO_STEP)
                continue
            latest = sum(end <= due for end in ends) - 1
            bound = min(latest, bound - 1)
            of_request.append(max(bound, NO_STEP))
            pushed_out += bound < 0 <= latest
        expected += reversed(of_request)
    number = np.repeat(np.arange(len(emissions)), [len(times) for times in emissions]) * 3
    found, ambiguous = latest_steps(number, np.concatenate(emissions), np.array(ends), delay, after_end)
    assert (found.tolist(), ambiguous) == (expected, pushed_out)
