"""The way of a token and the gap before it: worked by hand, and a partition whatever the log holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.explain.service.gaps import gaps_of, not_back, way_of
from analyzer.tables import TOKEN_PARTS
from analyzer.tokens import ABSENT, IntArray


def column(*values: int | None) -> IntArray:
    return np.array([ABSENT if value is None else value for value in values], np.int64)


def split_of(
    completion: IntArray, emission: IntArray, receipt: IntArray, arrival: IntArray | None = None
) -> list[dict[str, int]]:
    request = np.zeros(len(receipt), np.int64)
    arrived = np.full(len(receipt), ABSENT) if arrival is None else arrival
    gaps = gaps_of(way_of(request, completion, emission, arrived, receipt))
    return [
        {name: ns for name, ns in zip(TOKEN_PARTS, row, strict=True) if ns} for row in gaps.part_ns.tolist()
    ]


def test_a_gap_is_cut_at_completion_emission_and_arrival() -> None:
    """From 40 to 140: complete at 100, emitted at 112, in the kernel at 133, read at 140."""
    parts = split_of(column(0, 100), column(12, 112), column(40, 140), column(33, 133))
    assert parts == [{"device": 60, "output": 12, "transport": 21, "buffering": 7}]


def test_tokens_read_together_wait_for_the_last_of_them() -> None:
    """Emitted at 112 and 212, both read at 240: the first was held for 100, the second has no gap."""
    parts = split_of(column(0, 100, 200), column(12, 112, 212), column(40, 240, 240))
    assert parts == [{"device": 60, "output": 12, "buffering": 100, "transport": 28}, {}]


def test_tokens_emitted_together_wait_for_the_last_of_them() -> None:
    """Complete at 100 and 200, emitted together at 212: the first was held in the server for 100."""
    parts = split_of(column(0, 100, 200), column(12, 212, 212), column(40, 240, 240))
    assert parts == [{"device": 60, "buffering": 100, "output": 12, "transport": 28}, {}]


def test_what_passed_before_the_last_receipt_is_in_no_gap_twice() -> None:
    """The token before was read at 120, when this one was complete and emitted already."""
    assert split_of(column(0, 100), column(12, 112), column(120, 140)) == [{"transport": 20}]


def test_instants_that_were_not_logged_leave_their_sides_together() -> None:
    none = column(None, None)
    assert split_of(none, column(12, 112), column(40, 140)) == [{"transport": 28, "unsplit": 72}]
    assert split_of(column(0, 100), none, column(40, 140)) == [{"device": 60, "unsplit": 40}]
    assert split_of(none, none, column(40, 140)) == [{"unsplit": 100}]
    assert split_of(column(0, 100), column(12, 112), column(None, 140)) == []


def test_times_that_contradict_one_another_are_cut_at_the_later_one() -> None:
    assert split_of(column(0, 130), column(12, 112), column(40, 140)) == [{"device": 72, "transport": 28}]
    assert split_of(column(0, 100), column(12, 112), column(140, 40)) == [{}]


instants = st.one_of(st.none(), st.integers(0, 60))


@given(st.lists(st.tuples(st.integers(0, 2), instants, instants, instants, instants), max_size=40))
def test_parts_are_not_negative_and_sum_to_every_gap(rows: list[tuple[int, ...]]) -> None:
    rows.sort(key=lambda row: row[0])
    request = np.array([row[0] for row in rows], np.int64)
    way = way_of(request, *(column(*(row[at] for row in rows)) for at in range(1, 5)))
    gaps = gaps_of(way)
    assert (gaps.part_ns >= 0).all()
    assert gaps.part_ns.sum(axis=1).tolist() == gaps.gap_ns.tolist()
    chain = [
        way.completion_ns,
        way.held_ns,
        way.emission_ns,
        way.last_emission_ns,
        way.arrival_ns,
        way.receipt_ns,
    ]
    for at in range(len(rows)):
        known = [int(one[at]) for one in chain if one[at] != ABSENT]
        assert known == sorted(known)


EPOCH_NS = 1_795_000_000_000_000_000


@given(st.lists(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=5), max_size=5))
def test_known_instants_do_not_go_back_within_their_request(requests: list[list[int | None]]) -> None:
    expected: list[int] = []
    for times in requests:
        latest = 0
        for time in times:
            latest = max(latest, time or 0)
            expected.append(ABSENT if time is None else EPOCH_NS + latest)
    request = np.repeat(np.arange(len(requests)), [len(times) for times in requests])
    values = column(*(None if time is None else EPOCH_NS + time for times in requests for time in times))
    assert not_back(request, values).tolist() == expected
