"""Which collectives of two ranks are one, told by what they are and when they end."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.across.ends import Ends
from analyzer.across.sequences import Pairing, Unpaired, pair_up
from tests.across.builders import US, ends

Pairs = list[tuple[int, int]]
HOUR = 3_600_000_000


def pairs(found: Pairing | Unpaired) -> Pairs:
    assert isinstance(found, Pairing)
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True))


def matched(
    a: Ends, b: Ends, *, anchored: bool = True, together: bool = True, near: float | None = None
) -> Pairs:
    near_ns = None if near is None else round(near * US)
    return pairs(pair_up(a, b, anchored=anchored, together=together, near_ns=near_ns))


def irregular(n: int, seed: int = 1, low: int = 400, high: int = 5_000) -> list[float]:
    """Ends at random distances, in us."""
    draw = random.Random(seed)
    return np.cumsum([draw.uniform(low, high) for _ in range(n)]).tolist()


def without(values: list[float], *positions: int) -> list[float]:
    return [value for at, value in enumerate(values) if at not in {p % len(values) for p in positions}]


def true_pairs(n: int, lost_a: set[int], lost_b: set[int]) -> Pairs:
    """Positions of what both have, of n collectives of which each lost some."""
    a = {call: at for at, call in enumerate(c for c in range(n) if c not in lost_a)}
    b = {call: at for at, call in enumerate(c for c in range(n) if c not in lost_b)}
    return [(a[call], b[call]) for call in range(n) if call in a and call in b]


# -- literal cases --------------------------------------------------------------------------------


def test_equal_sequences_pair_one_by_one() -> None:
    times = irregular(12)
    found = pair_up(ends(times), ends([t + 700 for t in times]), anchored=True)
    assert found is not None
    assert pairs(found) == [(at, at) for at in range(12)]
    assert found.offset_ns == -700 * US


def test_nothing_pairs_with_nothing() -> None:
    assert pair_up(ends([]), ends([1, 2, 3]), anchored=True) is Unpaired.APART
    assert pair_up(ends([1, 2, 3]), ends([]), anchored=True) is Unpaired.APART


@pytest.mark.parametrize("lost", [0, 7, -1])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("off", [0, 4_000, -4_000])
def test_one_that_is_missing_shifts_nothing(lost: int, side: str, off: float) -> None:
    times = irregular(15)
    gone = {lost % 15}
    a = without(times, lost) if side == "a" else times
    b = [t + off for t in (without(times, lost) if side == "b" else times)]
    expected = true_pairs(15, gone if side == "a" else set(), gone if side == "b" else set())
    assert matched(ends(a), ends(b)) == expected


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_31_against_33_at_the_edges_find_the_right_shift(first: int, seed: int) -> None:
    """All alike, every millisecond give or take 50 us: only the jitter tells which two are too many."""
    draw = random.Random(seed)
    times = [1_000 * k + draw.uniform(-50, 50) for k in range(33)]
    other = [t + 3_000 + draw.uniform(0, 6) for t in times[first : first + 31]]
    assert matched(ends(times), ends(other)) == [(at + first, at) for at in range(31)]
    assert matched(ends(other), ends(times)) == [(at, at + first) for at in range(31)]


def test_one_missing_at_opposite_ends_is_not_taken_for_equal_sequences() -> None:
    times = irregular(40)
    assert matched(ends(times[1:]), ends([t + 5_000 for t in times[:-1]])) == [
        (k, k + 1) for k in range(39 - 1)
    ]


@pytest.mark.parametrize("drift", [50e-6, -50e-6, 0])
@pytest.mark.parametrize("off", [5_000, -5_000])
def test_one_percent_missing_on_both_sides_of_drifting_clocks(off: float, drift: float) -> None:
    draw = random.Random(f"{off}/{drift}")
    times = irregular(2_000)
    lost_a, lost_b = (set(draw.sample(range(2_000), 20)) for _ in range(2))
    a = [t for at, t in enumerate(times) if at not in lost_a]
    b = [t * (1 + drift) + off + draw.uniform(0, 8) for at, t in enumerate(times) if at not in lost_b]
    assert matched(ends(a), ends(b)) == true_pairs(2_000, lost_a, lost_b)


def test_dense_collectives_every_30_us() -> None:
    """Steps of 64 alike, with the pause between steps to tell them apart; one step's first is missing."""
    draw = random.Random(5)
    times = [10_000 * step + 30 * k + draw.uniform(0, 4) for step in range(20) for k in range(64)]
    times = [t + 1_500 * draw.random() * (at // 64 % 3 == 1) for at, t in enumerate(times)]
    times.sort()
    gone = {64 * 7}
    b = [t - 2_000 + draw.uniform(0, 2) for at, t in enumerate(times) if at not in gone]
    found = matched(ends(times), ends(sorted(b)))
    wrong = set(found) - set(true_pairs(len(times), set(), gone))
    assert len(wrong) <= 0.01 * len(times)
    assert len(found) >= 0.97 * len(times)


@pytest.mark.parametrize("spacing", [30, 100])
@pytest.mark.parametrize("seed", range(12))
def test_dense_collectives_of_which_both_ranks_lost_some(seed: int, spacing: float) -> None:
    """One that is missing leaves its neighbour in reach: that must not lead the rest astray."""
    draw = random.Random(seed)
    instant, times = 0.0, []
    for k in range(600):
        instant += spacing + draw.uniform(-2, 2) + (2_000 * draw.uniform(0.9, 1.1) if k % 64 == 0 else 0)
        times.append(instant)
    lost_a, lost_b = ({k for k in range(600) if draw.random() < 0.01} for _ in range(2))
    off, drift = draw.uniform(-5_000, 5_000), draw.uniform(-50e-6, 50e-6)
    a = [t + draw.uniform(0, 4) for k, t in enumerate(times) if k not in lost_a]
    b = [t * (1 + drift) + off + draw.uniform(0, 4) for k, t in enumerate(times) if k not in lost_b]
    found, true = set(matched(ends(a), ends(b))), set(true_pairs(600, lost_a, lost_b))
    assert len(found - true) <= 0.01 * len(true)
    assert len(found & true) >= 0.99 * len(true)


def dense(
    seed: int, spacing: float, jitter: float, wander: float, *, steps: int, off: float
) -> tuple[Ends, Ends, set[tuple[int, int]]]:
    """Steps of 50 alike with pauses of 1 ms, give or take 10 %; each rank lost 1 %; and the true pairs."""
    draw = random.Random(seed)
    instant, times = 0.0, []
    for k in range(50 * steps):
        instant += spacing * (1 + draw.uniform(-wander, wander))
        instant += 1_000 * draw.uniform(0.9, 1.1) if k % 50 == 0 and steps > 1 else 0
        times.append(instant)
    kept = [[k for k in range(len(times)) if draw.random() >= 0.01] for _ in range(2)]
    a = [times[k] + draw.uniform(0, jitter) for k in kept[0]]
    b = [times[k] * (1 + 20e-6) + off + draw.uniform(0, jitter) for k in kept[1]]
    lost = [set(range(len(times))) - set(rows) for rows in kept]
    return ends(sorted(a)), ends(sorted(b)), set(true_pairs(len(times), *lost))


@pytest.mark.parametrize(("spacing", "jitter"), [(30, 3), (30, 15), (60, 10), (100, 20), (250, 20)])
@pytest.mark.parametrize("seed", range(6))
def test_of_many_alike_the_pauses_tell_or_nobody_does(seed: int, spacing: float, jitter: float) -> None:
    """Distances that differ by 1 %, far less than the ends stray."""
    a, b, true = dense(seed, spacing, jitter, 0.01, steps=16, off=3_000)
    found = pair_up(a, b, anchored=True)
    if isinstance(found, Pairing):
        assert len(set(pairs(found)) - true) <= 0.01 * len(true)
        assert len(set(pairs(found)) & true) >= 0.98 * len(true)
    assert isinstance(found, Pairing) or (found is Unpaired.UNSURE and spacing <= 100)


def chained(seed: int, off: float) -> tuple[Ends, Ends, set[tuple[int, int]]]:
    """Rank 0 is always last: the next call follows the end of its call, so that its ends and the *next* ones of
    rank 1 stray less than two ends of one call. Each rank lost 1 %; and the true pairs."""
    draw = random.Random(seed)
    arrival, first, second = 0.0, [], []
    for _ in range(600):
        first.append(arrival + 10 + draw.uniform(0, 4))
        second.append(arrival + 10 + draw.uniform(0, 4) + off)
        arrival = first[-1] + 50 + draw.uniform(-0.5, 0.5)
    lost = [{k for k in range(600) if draw.random() < 0.01} for _ in range(2)]
    mine = [
        [t for k, t in enumerate(times) if k not in gone]
        for times, gone in zip((first, second), lost, strict=True)
    ]
    return ends(mine[0]), ends(mine[1]), set(true_pairs(600, *lost))


@pytest.mark.parametrize("seed", range(8))
def test_the_next_call_that_follows_an_end_is_not_taken_for_the_same(seed: int) -> None:
    a, b, true = chained(seed, 3_000)
    found = pair_up(a, b, anchored=True)
    assert found is Unpaired.UNSURE or len(set(pairs(found)) - true) <= 0.01 * len(true)


@pytest.mark.parametrize("seed", range(8))
def test_wall_clocks_that_may_be_one_are_an_assumption(seed: int) -> None:
    a, b, true = chained(seed, 0.4)
    found = pair_up(a, b, anchored=True, assume=True)
    assert isinstance(found, Pairing)
    assert found.assumed
    assert len(set(pairs(found)) - true) <= 0.01 * len(true)


@pytest.mark.parametrize("seed", range(1, 7))
def test_what_nothing_tells_apart_is_left_alone(seed: int) -> None:
    a, b, _ = dense(seed, 30, 15, 0.01, steps=1, off=-2_000)
    assert pair_up(a, b, anchored=True) is Unpaired.UNSURE


@pytest.mark.parametrize("seed", range(6))
def test_then_one_clock_tells(seed: int) -> None:
    """Both were recorded by one clock: an offset of 9 us is meant, not one of a whole distance more."""
    a, b, true = dense(seed, 100, 20, 0.01, steps=1, off=9)
    found = pair_up(a, b, anchored=True, one_clock=True)
    assert set(pairs(found)) <= true
    assert len(pairs(found)) >= 0.98 * len(true)


@pytest.mark.parametrize("apart", [3 * HOUR, -3 * HOUR])
def test_clocks_without_a_wall_clock_may_be_hours_apart(apart: float) -> None:
    times = irregular(60)
    a, b = ends(times), ends([t + apart for t in times[2:]])
    assert matched(a, b, anchored=False) == [(at + 2, at) for at in range(58)]
    assert pair_up(a, b, anchored=True) is Unpaired.APART  # wall clocks are not


@pytest.mark.parametrize("seed", range(8))
def test_ranks_that_have_nothing_to_do_with_each_other_do_not_pair(seed: int) -> None:
    a, b = ends(irregular(200, seed)), ends(irregular(200, seed + 1_000))
    assert pair_up(a, b, anchored=True, together=False) is Unpaired.APART


def test_ranks_that_a_capture_joins_are_paired_by_fewer_ends() -> None:
    a, b = ends([100, 5_000]), ends([100, 5_000])
    assert matched(a, b, together=True) == [(0, 0), (1, 1)]
    assert pair_up(a, b, anchored=True, together=False) is Unpaired.UNSURE  # two may end together by chance


def test_a_known_offset_is_the_only_one_tried() -> None:
    """All alike, every millisecond: the offset that other groups gave says which belong together."""
    regular = [1_000.0 * k for k in range(20)]
    a, b = ends(regular), ends([t + 2_000 for t in regular])
    assert matched(a, b, near=-2_000) == [(k, k) for k in range(20)]
    assert matched(a, b, near=0) == [(k + 2, k) for k in range(18)]
    assert pair_up(a, b, anchored=True, near_ns=500 * US) is Unpaired.APART


def test_contents_keep_apart_what_ends_together() -> None:
    a = ends([100, 200, 1_000, 1_100, 2_500], [0, 1, 0, 1, 2])
    b = ends([100, 200, 1_000, 1_101, 2_500], [0, 1, 0, 1, 3])
    assert matched(a, b) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_broadcast_between_two_others_is_found_by_its_place() -> None:
    """Its ends lie 700 us apart and tell nothing; what lies around it does."""
    a = ends([100, 900, 2_000, 3_700], [0, 1, 0, 0], apart=[1])
    b = ends([100, 1_600, 2_000, 3_700, 5_900], [0, 1, 0, 0, 0], apart=[1])
    assert matched(a, b) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_more_pairs_than_ends_that_tell_something_are_no_negative_loss() -> None:
    """Ten alike at one distance leave it open which belong together, and what follows does not tell."""
    regular = [554.0 * k for k in range(10)]
    tail = [12_000.0, 19_000, 22_000, 24_000, 29_000, 32_000, 34_000]
    keys = [0] * 10 + [1] * 7
    a = ends([*regular, *tail], keys, apart=[10, 12, 14, 16])
    b = ends([*regular, *tail], keys, apart=[11, 13, 15])
    assert pair_up(a, b, anchored=True) is Unpaired.UNSURE


def test_a_broadcast_that_only_one_rank_has_is_left_alone() -> None:
    a = ends([100, 900, 2_000, 3_700], [0, 1, 0, 0], apart=[1])
    b = ends([100, 2_000, 3_700, 5_900], [0, 0, 0, 0])
    assert matched(a, b) == [(0, 0), (2, 1), (3, 2)]


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    n=st.integers(5, 200),
    loss=st.sampled_from([0.0, 0.01, 0.05, 0.2]),
    kinds=st.integers(1, 3),
    off=st.integers(-5_000, 5_000),
    ppm=st.integers(-50, 50),
)
def test_every_pair_is_a_true_pair(seed: int, n: int, loss: float, kinds: int, off: int, ppm: int) -> None:
    """Irregular calls at least 400 us apart: then the ends tell for certain."""
    draw = random.Random(seed)
    times, content = irregular(n, seed), [draw.randrange(kinds) for _ in range(n)]
    lost_a, lost_b = ({at for at in range(n) if draw.random() < loss} for _ in range(2))
    kept_a, kept_b = ([at for at in range(n) if at not in lost] for lost in (lost_a, lost_b))
    a = ends([times[at] for at in kept_a], [content[at] for at in kept_a])
    b = ends(
        [times[at] * (1 + ppm * 1e-6) + off + draw.uniform(0, 8) for at in kept_b],
        [content[at] for at in kept_b],
    )
    found = pair_up(a, b, anchored=True)
    expected = true_pairs(n, lost_a, lost_b)
    if isinstance(found, Unpaired):
        assert len(expected) < 5
    elif len(expected) >= 5:
        assert pairs(found) == expected
