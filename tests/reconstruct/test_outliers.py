"""Which steps lie far outside their group, and which of those belong to a slow start."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.reconstruct.outliers import judge
from tests.builders import Schedule, account_of, schedule

ORDINARY = [100, 101, 99, 100, 102, 98]


def judged(times: list[int], *, warmup: tuple[int, ...] = (), phases: str = "") -> str:
    """One letter per step: s of a slow start, o an outlier, - an ordinary one."""
    found = judge(
        np.array(times, np.int64),
        phases or "d" * len(times),
        [at in warmup for at in range(len(times))],
    )
    return "".join(
        "s" if start else "o" if outlier else "-"
        for start, outlier in zip(found.slow_start.tolist(), found.outlier.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (ORDINARY, "------"),
        ([400, *ORDINARY], "s------"),
        ([900, 400, *ORDINARY], "ss------"),
        ([*ORDINARY, 400], "------o"),
        ([400, 100, 400, *ORDINARY], "s-o------"),
        ([20, *ORDINARY], "o------"),  # fast: not because something was still warming up
        ([20, 400, *ORDINARY], "os------"),
        ([100, 100, 400], "---"),  # too few to tell
    ],
)
def test_only_before_the_first_ordinary_step_is_slow_a_warm_up(times: list[int], expected: str) -> None:
    assert judged(times) == expected


def test_known_warm_up_is_no_ordinary_step() -> None:
    """Step 0 loads code in ordinary time: the slow step after it is still the start."""
    assert judged([100, 400, *ORDINARY], warmup=(0,)) == "-s------"
    assert judged([100, 400, *ORDINARY]) == "-o------"


def test_phases_are_judged_apart() -> None:
    times = [400, 100, 401, 101, 399, 99, 400, 900, 100, 400]
    assert judged(times, phases="pdpdpdpddp") == "-------o--"


def warmed_up(*extra: tuple[int, int]) -> Schedule:
    """Steps of 100 us on the CPU, and some that take longer: (index, us)."""
    built, at = schedule(), 0
    for index in range(8):
        length = dict(extra).get(index, 100 + index % 3)
        built.range(at, at + length, "s")
        at += length + 5
    return built


def test_a_slow_first_step_is_warm_up_and_a_slow_later_one_an_outlier() -> None:
    windows = account_of(warmed_up((0, 700), (5, 900)), steps="^s$", boundary="host").windows
    assert [window.warmup_reasons for window in windows if window.warmup_reasons] == [
        ("slow before the first ordinary step",)
    ]
    assert [window.index for window in windows if window.outlier] == [5]
