"""Delegations against a slow second implementation that looks at every pair of threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.reconstruct.delegation import (
    LAG_NS,
    MIN_COVER,
    MIN_HABIT,
    REST_NS,
    SHORT_SILENCE_NS,
    Activity,
    find_delegations,
)

QUIET_NS = 20_000
Found = tuple[int, int, int, int, int, int]

steps = st.sampled_from([1_000, 15_000, 25_000, 60_000, 110_000, 220_000, 450_000, 600_000])
threads = st.lists(st.lists(steps, min_size=0, max_size=12), min_size=2, max_size=4)


def slowly(activity: list[list[int]], works: list[bool]) -> list[Found]:
    found = []
    for waiter, mine in enumerate(activity):
        for silent, resumed in pairwise(mine):
            if resumed - silent < QUIET_NS:
                continue
            best: Found | None = None
            for helper, its in enumerate(activity):
                inside = [instant for instant in its if silent <= instant <= resumed]
                if helper == waiter or not works[helper] or len(inside) < 2:
                    continue
                first, last = inside[0], inside[-1]
                before = max((instant for instant in its if instant < first), default=None)
                after = min((instant for instant in its if instant > last), default=None)
                rest = REST_NS if resumed - silent < SHORT_SILENCE_NS else QUIET_NS
                if (
                    first - silent <= LAG_NS
                    and resumed - last <= LAG_NS
                    and last - first >= MIN_COVER * (resumed - silent)
                    and (before is None or first - before >= rest)
                    and (after is None or after - last >= rest)
                    and (best is None or last > best[5])
                ):
                    best = (waiter, helper, silent, resumed, first, last)
            if best is not None:
                found.append(best)
    return [entry for entry in found if share_inside(entry[:2], found, activity) >= MIN_HABIT]


def share_inside(pair: tuple[int, int], found: list[Found], activity: list[list[int]]) -> float:
    """Of the helper's instants, those inside its delegations from this waiter."""
    spans = [(first, last) for waiter, helper, _, _, first, last in found if (waiter, helper) == pair]
    its = activity[pair[1]]
    return sum(first <= instant <= last for instant in its for first, last in spans) / len(its)


@given(
    threads,
    st.lists(st.integers(0, 300_000), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_every_silence_has_the_delegate_that_a_look_at_all_pairs_finds(
    pauses: list[list[int]], starts: list[int], works: list[bool]
) -> None:
    activity = [
        (start + np.cumsum([0, *own])).tolist()
        for own, start in zip(pauses, starts[: len(pauses)], strict=True)
    ]
    owner = np.repeat(np.arange(len(activity)), [len(own) for own in activity])
    whole = Activity(owner, np.concatenate([np.array(own, np.int64) for own in activity]))
    found = find_delegations(
        whole, np.zeros(len(whole), bool), np.array(works[: len(activity)], bool), QUIET_NS
    )
    columns = (found.waiter, found.helper, found.silent_ns, found.resumed_ns, found.first_ns, found.last_ns)
    mine = list(zip(*(column.tolist() for column in columns), strict=True))
    assert mine == slowly(activity, works)


def test_a_silence_inside_a_call_is_no_delegation() -> None:
    activity = Activity(np.array([0, 0, 1, 1]), np.array([0, 900_000, 10_000, 890_000]))
    works = np.array([True, True])
    assert len(find_delegations(activity, np.array([False] * 4), works, QUIET_NS)) == 1
    assert len(find_delegations(activity, np.array([True, False, False, False]), works, QUIET_NS)) == 0


def test_a_thread_that_is_busy_all_the_time_is_nobodys_delegate() -> None:
    """
    waiter |0            |900
    helper    |10-890        |1500-1800, |2500-2800, ... work of its own
    """
    own = [10_000, 890_000]
    more = [instant for start in (1_500_000, 2_500_000, 3_500_000) for instant in (start, start + 300_000)]
    for helper, expected in ((own, 1), (own + more[:2], 1), (own + more, 0)):
        activity = Activity(np.array([0, 0] + [1] * len(helper)), np.array([0, 900_000, *helper]))
        found = find_delegations(activity, np.zeros(len(activity), bool), np.array([True, True]), QUIET_NS)
        assert len(found) == expected
