"""The clock of each rank against a reference: offset, drift, interval, uncertainty, from literal collectives."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.across.clocks import ASSUMED_NS, Alignment, ClockMap, align
from analyzer.across.groups import find_groups
from analyzer.across.parts import RankPart
from analyzer.across.waits import LEFT_EARLY, UNALIGNED, Calls
from tests.across.builders import US, At, Joined, joined, named, part

PAIR = named("1", 0, 1)


def aligned(*parts: RankPart) -> Alignment:
    return align(parts, find_groups(parts))


def numbered(
    rows: list[tuple[float, float]], ranks: tuple[int, ...] = (0, 1), op: str = "all_reduce"
) -> list[At]:
    group = named("".join(map(str, ranks)), *ranks)
    return [At(start, end, op, group, number=at) for at, (start, end) in enumerate(rows)]


# -- offset against skew --------------------------------------------------------------------------


@pytest.mark.parametrize("off", [5_000, -5_000, 0])
def test_a_clock_that_is_off_is_told_from_a_rank_that_is_late(off: int) -> None:
    """Rank 1 comes 3 ms late to each call; its clock shows ``off`` us more. The wait is 3 ms whatever that is."""
    first = part(0, numbered([(10_000 * k, 10_000 * k + 3_020) for k in range(6)]))
    second = part(1, numbered([(10_000 * k + 3_000, 10_000 * k + 3_020) for k in range(6)]), shift=off)
    result = joined(first, second)
    clock = result.alignment.maps[1]
    assert (clock.offset_ns, clock.drift_ppb) == (-off * US, 0)
    assert clock.uncertainty_ns < 10 * US  # the ends agree; how the clocks drift is not known from six calls
    assert result.only.wait_ns.tolist() == [[3_000 * US, 0]] * 6
    assert result.only.transfer_ns.tolist() == [[20 * US, 20 * US]] * 6


def test_each_call_bounds_the_offset_from_both_sides() -> None:
    """Rank 1's clock is right. It cannot have left before rank 0 came, nor rank 0 before rank 1 came."""
    first = part(0, numbered([(0, 100), (1_000, 1_100), (2_000, 2_100)]))
    second = part(1, numbered([(20, 100), (1_030, 1_100), (2_010, 2_100)]))
    clock = aligned(first, second).maps[1]
    assert clock.interval_ns is not None
    low, high = clock.interval_ns
    # the second call: 1,000 - 1,100 = -100 at least, 1,100 - 1,030 = 70 at most; drift widens little
    assert (low, high) == (pytest.approx(-100_000, abs=20), pytest.approx(70_000, abs=20))
    assert low <= -100_000
    assert high >= 70_000
    assert clock.offset_ns == 0


def test_the_estimate_stays_inside_the_bounds() -> None:
    """Four calls end together; in the fifth rank 1 has left 15 us before rank 0 comes, by its own clock."""
    first = part(0, numbered([(1_000 * k, 1_000 * k + 30) for k in range(5)]))
    rows = [(1_000 * k, 1_000 * k + 30) for k in range(4)] + [(3_975, 3_985)]
    clock = aligned(first, part(1, numbered(rows))).maps[1]
    assert clock.interval_ns is not None
    low, high = clock.interval_ns
    assert (low, high) == (pytest.approx(15_000, abs=5), pytest.approx(30_000, abs=150))
    assert low <= clock.offset_ns <= low + 5
    assert clock.uncertainty_ns == pytest.approx(15_000, abs=150)  # as far as the bounds reach


def contradictory() -> tuple[list[At], list[At]]:
    """An offset of -50 us in one call and of +50 us in the next, 1 ms later: no clock does that."""
    first = [(1_000 * k, 1_000 * k + 10) for k in range(8)]
    second = [(1_000 * k + (-1) ** k * 50, 1_000 * k + 10 + (-1) ** k * 50) for k in range(8)]
    return numbered(first), numbered(second)


def test_clocks_that_contradict_themselves_have_no_interval() -> None:
    first, second = contradictory()
    clock = aligned(part(0, first), part(1, second)).maps.get(1)
    assert clock is None or clock.interval_ns is None
    assert clock is None or clock.uncertainty_ns >= 50_000


def test_over_a_clock_without_bounds_nothing_is_known_for_certain() -> None:
    """Rank 1's clock contradicts itself against rank 0's; rank 2 agrees with rank 1, and that is all."""
    first, second = contradictory()
    other = numbered([(1_000 * k + 500, 1_000 * k + 530) for k in range(8)], (1, 2))
    found = aligned(part(0, first), part(1, second + other), part(2, other))
    clock = found.maps[2]
    assert clock.reference != 0 or clock.interval_ns is None or clock.uncertainty_ns >= 50_000


def test_one_straggling_end_does_not_move_the_clock() -> None:
    first = part(0, numbered([(1_000 * k, 1_000 * k + 100) for k in range(41)]))
    rows = [(1_000.0 * k, 1_000.0 * k + 100 + (500 if k == 7 else 0)) for k in range(41)]
    clock = aligned(first, part(1, numbered(rows))).maps[1]
    assert clock.offset_ns == 0
    assert clock.uncertainty_ns < 5 * US


@pytest.mark.parametrize(("calls", "uncertainty"), [(1, ASSUMED_NS), (2, ASSUMED_NS), (3, 0)])
def test_few_calls_do_not_tell_how_well_ends_agree(calls: int, uncertainty: int) -> None:
    rows = numbered([(10_000 * k, 10_000 * k + 5_000) for k in range(calls)])
    clock = aligned(part(0, rows), part(1, rows)).maps[1]
    assert clock.shared_calls == calls
    assert uncertainty <= clock.uncertainty_ns <= uncertainty + 3 * US


def test_few_short_calls_are_no_less_certain_than_their_bounds() -> None:
    """One call of 4 us: the offset lies within 4 us of the estimate, so 50 us would be too much."""
    rows = numbered([(100, 104)])
    clock = aligned(part(0, rows), part(1, rows)).maps[1]
    assert clock.uncertainty_ns == pytest.approx(4_000, abs=2)


# -- whom a rank is compared with -----------------------------------------------------------------


def test_ranks_reach_the_reference_over_others() -> None:
    """0 and 1 share a group, 1 and 2 another: rank 2's map adds up, its uncertainty and its interval, too."""
    first = part(0, numbered([(1_000 * k, 1_000 * k + 30) for k in range(4)]))
    rows = numbered([(1_000 * k + 3, 1_000 * k + 30) for k in range(4)])
    other = numbered([(1_000 * k + 500, 1_000 * k + 530) for k in range(4)], (1, 2))
    second = part(1, rows + other, shift=100)
    third = part(2, other, shift=-200)
    maps = aligned(first, second, third).maps
    assert {rank: clock.offset_ns for rank, clock in maps.items()} == {0: 0, 1: -100_000, 2: 200_000}
    assert {rank: clock.parent for rank, clock in maps.items()} == {0: None, 1: 0, 2: 1}
    assert {clock.reference for clock in maps.values()} == {0}
    assert maps[1].interval_ns is not None
    assert maps[2].interval_ns is not None
    one, two = (high - low for low, high in (maps[1].interval_ns, maps[2].interval_ns))
    assert two == pytest.approx(one + 60_000, abs=10_000)


def test_ranks_that_nothing_links_have_references_of_their_own() -> None:
    low, high = ([(1_000 * k, 1_000 * k + 30) for k in range(4)] for _ in range(2))
    parts = (
        part(0, numbered(low, (0, 1))),
        part(1, numbered(low, (0, 1)), shift=70),
        part(2, numbered(high, (2, 3))),
        part(3, numbered(high, (2, 3)), shift=-40),
        part(4, []),
    )
    found = aligned(*parts)
    assert found.references == (0, 2)
    assert {rank: clock.reference for rank, clock in found.maps.items()} == {0: 0, 1: 0, 2: 2, 3: 2}
    assert {rank: clock.offset_ns for rank, clock in found.maps.items()} == {
        0: 0,
        1: -70_000,
        2: 0,
        3: 40_000,
    }
    assert found.alone == (4,)
    assert found.comparable((0, 1))
    assert found.comparable((2, 3))
    assert not found.comparable((1, 2))
    assert not found.comparable((3, 4))


def test_a_receiver_bounds_its_own_side_only() -> None:
    """It cannot leave before the sender has come; the sender may leave whenever it likes."""
    pair = named("pp", 0, 1)
    first = part(0, [At(1_000 * k, 1_000 * k + 5, "send", pair, target=1, number=k) for k in range(4)])
    second = part(
        1, [At(1_000 * k - 400, 1_000 * k + 20, "recv", pair, source=0, number=k) for k in range(4)]
    )
    clock = aligned(first, second).maps[1]
    assert clock.interval_ns is not None
    low, high = clock.interval_ns
    assert low == pytest.approx(-20_000, abs=50)
    assert high > 10**15


def test_broadcasts_alone_align_nobody() -> None:
    rows = [At(1_000 * k, 1_000 * k + 30, "broadcast", PAIR, number=k) for k in range(4)]
    found = aligned(part(0, rows), part(1, rows))
    assert (found.maps, found.alone) == ({}, (0, 1))


# -- operations that do not hold what they promise ------------------------------------------------


def left_early(calls: int, by: float) -> tuple[Joined, Calls]:
    """Forty all-reduces as they should be, and as many exchanges, of which rank 0 leaves some ``by`` us early."""
    world = named("01", 0, 1)
    first = [At(1_000 * k, 1_000 * k + 10, group=world, number=k) for k in range(40)]
    second = list(first)
    for k in range(40):
        start = 10_000 * k + 500.0
        first.append(At(start, start + 20, "exchange", PAIR, number=k))
        late = start + (20 + by if k < calls else 5)
        second.append(At(late, late + 15, "exchange", PAIR, number=k))
    found = joined(part(0, first), part(1, second))
    (exchanges,) = [calls for calls in found.calls if calls.group.label == "1"]
    return found, exchanges


@pytest.mark.parametrize("by", [30, 2_000])
@pytest.mark.parametrize(("calls", "told"), [(0, False), (1, False), (3, True)])
def test_an_operation_that_ranks_leave_early_does_not_synchronize(calls: int, told: bool, by: float) -> None:
    """In one of 40 calls it is no matter; in three (7.5 %) it counts."""
    found, exchanges = left_early(calls, by)
    assert found.alignment.unsynchronized == ({("1", "exchange")} if told else set())
    assert set(exchanges.why) == ({LEFT_EARLY} if told else {""})


def test_where_every_other_call_contradicts_the_rest_nothing_is_split() -> None:
    _, exchanges = left_early(40, 2_000)
    assert not exchanges.split.any()
    assert set(exchanges.why) <= {LEFT_EARLY, UNALIGNED}


# -- laws -----------------------------------------------------------------------------------------


class Team:
    """Random true calls, and what crooked clocks make of them."""

    def __init__(self, seed: int, ranks: int, calls: int) -> None:
        draw = random.Random(seed)
        self.ranks = ranks
        self.offset = [0] + [draw.randint(-5_000_000, 5_000_000) for _ in range(ranks - 1)]
        self.drift = [0] + [draw.randint(-50_000, 50_000) for _ in range(ranks - 1)]
        instant, self.rows = 0, []
        for _ in range(calls):
            instant += draw.randint(100_000, 3_000_000)
            starts = [instant + draw.choice((0, draw.randint(0, 80_000))) for _ in range(ranks)]
            instant = max(starts) + draw.randint(5_000, 60_000)
            self.rows.append([(start, instant + draw.randint(0, 6_000)) for start in starts])

    def shown(self, rank: int, instant: int) -> int:
        return instant + self.offset[rank] + round(instant * self.drift[rank] / 1e9)

    def parts(self, moved: int = -1, by_ns: int = 0) -> list[RankPart]:
        group = named("1", *range(self.ranks))
        result = []
        for rank in range(self.ranks):
            extra = by_ns if rank == moved else 0
            rows = [
                At(
                    (self.shown(rank, s) + extra) / US,
                    (self.shown(rank, e) + extra) / US,
                    group=group,
                    number=n,
                )
                for n, (s, e) in enumerate(call[rank] for call in self.rows)
            ]
            result.append(part(rank, rows))
        return result

    def true_offset(self, rank: int, at_ns: int) -> float:
        """What must be added to the rank's clock where it shows ``at_ns``."""
        true = (at_ns - self.offset[rank]) / (1 + self.drift[rank] / 1e9)
        return true - at_ns


def tightest(team: Team, rank: int) -> int:
    """Width of the narrowest of all single constraints between a rank and the reference, ns."""
    widths = []
    for call in team.rows:
        (p_start, p_end), (q_start, q_end) = call[0], call[rank]
        widths.append((p_end - q_start) - (p_start - q_end))
    return min(widths)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), ranks=st.integers(2, 4), calls=st.integers(1, 60))
def test_the_interval_holds_the_truth_and_the_estimate_and_is_narrow(
    seed: int, ranks: int, calls: int
) -> None:
    team = Team(seed, ranks, calls)
    maps = aligned(*team.parts()).maps
    for rank in range(1, ranks):
        clock = maps[rank]
        assert clock.interval_ns is not None
        low, high = clock.interval_ns
        assert low <= team.true_offset(rank, clock.epoch_ns) <= high
        assert low <= clock.offset_ns <= high
        assert high - low <= 2 * tightest(team, rank) * (1 + 1e-4) + 2


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), calls=st.integers(1, 40), shift=st.integers(-(10**9), 10**9))
def test_a_shifted_clock_changes_its_own_offset_by_just_that(seed: int, calls: int, shift: int) -> None:
    team = Team(seed, 3, calls)
    before, after = aligned(*team.parts()), aligned(*team.parts(moved=1, by_ns=shift))
    one, other = before.maps[1], after.maps[1]
    assert one.interval_ns is not None
    moved = (one.interval_ns[0] - shift, one.interval_ns[1] - shift)
    assert other == replace(
        one, offset_ns=one.offset_ns - shift, epoch_ns=one.epoch_ns + shift, interval_ns=moved
    )
    assert before.maps[2] == after.maps[2]
    assert before.maps[0] == after.maps[0]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32), shift=st.integers(-(10**9), 10**9))
def test_waits_do_not_depend_on_clocks(seed: int, shift: int) -> None:
    team = Team(seed, 3, 20)
    before, after = joined(*team.parts()), joined(*team.parts(moved=1, by_ns=shift))
    for rank in range(3):
        mine, other = before.waits(rank), after.waits(rank)
        moved = shift if rank == 1 else 0
        assert (other.until_ns - mine.until_ns).tolist() == [moved] * 20
        assert other.late_rank.tolist() == mine.late_rank.tolist()
        assert other.certain.tolist() == mine.certain.tolist()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_drift_is_found_and_followed(seed: int) -> None:
    """50 ppm over a minute move the ends by 3 ms; the map stays within what the ends themselves stray."""
    draw = random.Random(seed)
    drift, offset = draw.choice((-50_000, 50_000, 20_000)), draw.randint(-5_000_000, 5_000_000)
    times = np.cumsum([draw.randint(100_000_000, 1_000_000_000) for _ in range(100)])
    true = [(int(t), int(t) + 50_000) for t in times]
    group = named("1", 0, 1)
    first = part(0, [At(s / US, e / US, group=group, number=n) for n, (s, e) in enumerate(true)])

    def shown(t: int) -> float:
        return (t + offset + round(t * drift / 1e9) + draw.randint(-1_000, 1_000)) / US

    second = part(1, [At(shown(s), shown(e), group=group, number=n) for n, (s, e) in enumerate(true)])
    clock = aligned(first, second).maps[1]
    assert clock.drift_ppb == pytest.approx(-drift, abs=300)
    back = clock.to_reference(second.arrivals.end_ns) - first.arrivals.end_ns
    assert np.abs(back).max() <= 3_000
    assert clock.uncertainty_ns <= 3_000


def test_no_drift_is_claimed_without_evidence() -> None:
    first = part(0, numbered([(1_000 * k, 1_000 * k + 30) for k in range(50)]))
    rows = [(1_000.0 * k, 1_000.0 * k + 30 + (0.4, 0, 0.1, 0.3)[k % 4]) for k in range(50)]
    assert aligned(first, part(1, numbered(rows))).maps[1].drift_ppb == 0


@given(
    offset=st.integers(-(10**10), 10**10),
    drift=st.integers(-100_000, 100_000),
    t=st.integers(-(10**13), 10**13),
)
def test_there_and_back_is_off_by_at_most_a_nanosecond(offset: int, drift: int, t: int) -> None:
    clock = ClockMap(
        rank=1, offset_ns=offset, drift_ppb=drift, drift_unsure_ppb=0, epoch_ns=12_345, interval_ns=None,
        uncertainty_ns=0, parent=0, shared_calls=1, reference=0,
    )  # fmt: skip
    there = clock.to_reference(np.array([t], np.int64))
    assert abs(int(clock.from_reference(there)[0]) - t) <= 1
