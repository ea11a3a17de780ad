"""Waiting and transfer in literal calls, what is not split and why, and path segments cut in two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.across.split import split_segments
from analyzer.across.waits import (
    ALONE,
    COMPUTES,
    MISSING_RANK,
    MISSING_RECORD,
    ONE_WAY_CALL,
    UNALIGNED,
    Calls,
    RankWaits,
    lateness,
)
from analyzer.categories import Binding, Category
from analyzer.model import IntArray
from analyzer.reconstruct.arrivals import GroupName
from analyzer.reconstruct.work import NO_TIME
from analyzer.tables import NO_EVENT, SegmentTable
from tests.across.builders import US, At, Joined, joined, named, part

WAIT, TRANSFER, UNSPLIT, KERNEL = (
    int(category)
    for category in (
        Category.COLLECTIVE_WAIT, Category.COLLECTIVE_TRANSFER, Category.COLLECTIVE_UNSPLIT, Category.KERNEL
    )
)  # fmt: skip
CALM = [(10_000.0 * k, 10_000.0 * k + 50) for k in range(1, 5)]
"""Calls to which all ranks come together and which they leave together: the clocks are sure to the nanosecond."""


def ranks_of(*of_rank: list[At], missing: tuple[int, ...] = (), calm: bool = True) -> Joined:
    """Calls of one group, ranks from 0, after four calm ones of another group over all ranks."""
    everybody = named("calm", *range(len(of_rank) + len(missing)))
    parts = []
    for rank, rows in enumerate(of_rank):
        before = [At(s, e, group=everybody, number=n) for n, (s, e) in enumerate(CALM)] if calm else []
        parts.append(part(rank, before + rows))
    return joined(*parts, missing=missing)


def call(start: float, end: float, op: str = "all_reduce", n: int = 0, **more: object) -> At:
    group = more.pop("group", named("1", 0, 1))
    return At(100_000 + start, 100_000 + end, op, group, number=n, **more)  # type: ignore[arg-type]


def its(found: Joined, label: str = "1") -> Calls:
    (calls,) = [calls for calls in found.calls if calls.group.label.startswith(label)]
    return calls


def until(found: Joined, rank: int, at: int = 4) -> tuple[int | None, int, bool]:
    """(end of the wait after 100 ms in us, late rank, certain) of one arrival, the first after the calm ones."""
    waits = found.waits(rank)
    instant = int(waits.until_ns[at])
    shown = None if instant == NO_TIME else instant // US - 100_000
    return shown, int(waits.late_rank[at]), bool(waits.certain[at])


# -- who waited how long --------------------------------------------------------------------------


def test_the_wait_ends_with_the_latest_arrival_and_transfer_with_each_end() -> None:
    group = named("1", 0, 1, 2)
    found = ranks_of([call(0, 120, group=group)], [call(100, 122, group=group)], [call(40, 121, group=group)])
    calls = its(found)
    assert calls.wait_ns.tolist() == [[100 * US, 0, 60 * US]]
    assert calls.transfer_ns.tolist() == [[20 * US, 22 * US, 21 * US]]
    assert calls.group.members[calls.late[0]] == 1
    assert calls.margin_ns.tolist() == [60 * US]
    assert until(found, 0) == (100, 1, True)
    assert until(found, 1) == (100, 1, False)  # it waited for nobody
    assert until(found, 2) == (100, 1, True)


def test_a_wait_ends_at_the_latest_with_the_rank_itself() -> None:
    """A rank that has left before the last one came, by a little, waited until it left."""
    found = ranks_of([call(0, 99)], [call(100, 122)])
    assert its(found).wait_ns.tolist() == [[99 * US, 0]]
    assert its(found).transfer_ns.tolist() == [[0, 22 * US]]


def test_of_ranks_that_come_together_the_highest_is_named_and_nobody_waits() -> None:
    group = named("1", 0, 1, 2)
    found = ranks_of(*[[call(start, 50, group=group)] for start in (0, 10, 10)])
    calls = its(found)
    assert calls.group.members[calls.late[0]] == 2
    assert (calls.margin_ns.tolist(), calls.wait_ns.tolist()) == ([0], [[10 * US, 0, 0]])
    assert until(found, 1) == (10, 2, False)
    assert until(found, 0) == (10, 2, True)


@pytest.mark.parametrize(("more_ns", "certain"), [(-1_000, False), (-1, False), (0, True), (20_000, True)])
def test_a_wait_below_the_uncertainty_of_the_clocks_is_none(more_ns: int, certain: bool) -> None:
    """Ends of the calm calls stray by 8 us: less than that, or a little more, nobody can call late."""
    everybody = named("calm", 0, 1)
    stray = (8, 0, 0, -8)
    first = [At(s, e, group=everybody, number=n) for n, (s, e) in enumerate(CALM)]
    second = [At(s, e + stray[n], group=everybody, number=n) for n, (s, e) in enumerate(CALM)]

    def late_by(late: float) -> Joined:
        return joined(part(0, [*first, call(0, 90)]), part(1, [*second, call(late, 90)]))

    unsure = its(late_by(0)).uncertainty_ns
    assert 8 * US <= unsure <= 25 * US
    found = late_by((unsure + more_ns) / US)
    assert its(found).uncertainty_ns == unsure
    assert found.waits(0).until_ns[4] == 100_000 * US + unsure + more_ns
    assert bool(found.waits(0).certain[4]) == certain
    assert lateness([its(found)]).late_rank.tolist() == [1] * certain


# -- what is not split ----------------------------------------------------------------------------


def reason(found: Joined, label: str = "1") -> str:
    calls = its(found, label)
    assert len(set(calls.why)) == 1
    assert bool(calls.split.any()) == (calls.why[0] == "")
    return str(calls.why[0])


def test_what_synchronizes_is_split() -> None:
    for op in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange", "barrier", "dispatch"):
        assert reason(ranks_of([call(0, 50, op)], [call(20, 50, op)])) == ""


@pytest.mark.parametrize("op", ["broadcast", "reduce", "unheard_of"])
def test_what_ranks_may_leave_early_is_not(op: str) -> None:
    found = ranks_of([call(0, 50, op)], [call(20, 50, op)])
    assert reason(found) == ONE_WAY_CALL
    assert until(found, 0) == (None, -1, False)


def test_an_unknown_operation_is_not_split() -> None:
    rows = [At(100_000 + s, 100_050, None, named("1", 0, 1), number=0) for s in (0, 20)]
    assert reason(ranks_of([rows[0]], [rows[1]])) == ONE_WAY_CALL


def test_one_rank_that_knows_the_operation_tells_it_for_all() -> None:
    first = At(100_000, 100_050, None, named("1", 0, 1))
    found = ranks_of([first], [call(20, 50, n=-1)])
    # numbers are not recorded on both, contents differ: the two cannot be matched by what they are
    assert all(not calls.split.any() for calls in found.calls if calls.group.label == "1")


def test_a_rank_of_the_group_without_a_file_leaves_its_calls_whole() -> None:
    group = named("1", 0, 1, 2)
    found = ranks_of([call(0, 50, group=group)], [call(20, 50, group=group)], missing=(2,))
    assert reason(found) == MISSING_RANK
    assert its(found).latest_ns.tolist() == [(100_000 + 20) * US]  # of those observed
    assert until(found, 0) == (None, -1, False)


def test_a_missing_rank_only_matters_to_its_own_groups() -> None:
    found = ranks_of([call(0, 50)], [call(20, 50)], missing=(2,), calm=True)
    assert reason(found, "calm") == MISSING_RANK
    assert reason(found) in ("", UNALIGNED)


def test_where_nothing_names_the_ranks_any_missing_rank_matters() -> None:
    loose = GroupName(unnamed="custom")
    rows = [[At(1_000 * k + s, 1_000 * k + 50, group=loose) for k in range(5)] for s in (0, 20)]
    whole, lacking = (joined(part(0, rows[0]), part(1, rows[1]), missing=gone) for gone in ((), (2,)))
    assert set(whole.only.why) == {""}
    assert set(lacking.only.why) == {MISSING_RANK}


def test_a_rank_without_a_record_leaves_that_call_whole() -> None:
    first = [call(1_000 * k, 1_000 * k + 50, n=k) for k in range(3)]
    second = [call(1_000 * k + 20, 1_000 * k + 50, n=k) for k in (0, 2)]
    calls = its(ranks_of(first, second))
    assert calls.why == ("", MISSING_RECORD, "")
    assert calls.present.tolist() == [[True, True], [True, False], [True, True]]
    assert calls.wait_ns.tolist() == [[20 * US, 0], [0, 0], [20 * US, 0]]


def test_a_kernel_that_computes_on_any_rank_leaves_the_call_whole() -> None:
    assert reason(ranks_of([call(0, 50)], [call(20, 50, fused=True)])) == COMPUTES


def test_a_group_of_one_waits_for_nobody() -> None:
    found = ranks_of([call(0, 50, group=named("1", 0))], [])
    assert reason(found) == ALONE


def test_unmatched_groups_and_ranks_without_a_clock_split_nothing() -> None:
    broken = ranks_of([call(0, 50)], [call(20, 50, "all_gather")])
    assert its(broken).group.problem
    assert not broken.waits(0).split[4:].any()
    apart = joined(part(0, [call(0, 50, "broadcast")]), part(1, [call(20, 50, "broadcast")]))
    assert reason(apart) == UNALIGNED


def test_of_a_send_only_the_receiver_is_split() -> None:
    """The sender comes 40 us late: the receiver waits. Where the receiver is late, the sender may have left."""
    for sent, received, wait in ((40, 0, (40, 0)), (0, 40, (40, 1))):
        found = ranks_of([call(sent, 60, "send", target=1)], [call(received, 60, "recv", source=0)])
        calls = its(found, "1: rank 0 to 1")
        assert calls.operation == ("send/recv",)
        assert until(found, 0) == (None, -1, False)
        assert until(found, 1) == (wait[0], wait[1], wait[1] == 0)


# -- late ranks -----------------------------------------------------------------------------------


def test_lateness_counts_from_the_lower_median_of_the_others() -> None:
    group = named("1", 0, 1, 2, 3)
    rows = [[call(start, 90, group=group)] for start in (0, 10, 30, 70)]
    late = lateness([its(ranks_of(*rows))])
    assert (late.late_rank.tolist(), late.since_ns.tolist(), late.until_ns.tolist()) == (
        [3],
        [100_010 * US],
        [100_070 * US],
    )


# -- path segments --------------------------------------------------------------------------------


def table(*rows: tuple[int, int, int]) -> SegmentTable:
    """Segments (start, end, category) in us, one after the other."""
    n = len(rows)
    none = np.full(n, -1, np.int32)
    starts, ends, categories = (np.array(c, np.int64) for c in zip(*rows, strict=True))
    return SegmentTable(
        rank=np.zeros(n, np.int32), window=np.zeros(n, np.int32), start_ns=starts * US, end_ns=ends * US,
        category=categories.astype(np.int8), binding=np.full(n, Binding.WORK, np.int8),
        inferred=np.zeros(n, bool), name=none, place=none, correlation=np.arange(n, dtype=np.int64),
        event_start_ns=np.full(n, NO_EVENT, np.int64), late_rank=none, names=(), places=(),
    )  # fmt: skip


def waited(*rows: tuple[int | None, int, bool]) -> RankWaits:
    """(end of the wait in us, late rank, certain) by arrival."""
    n = len(rows)
    return RankWaits(
        until_ns=np.array([NO_TIME if t is None else t * US for t, _, _ in rows], np.int64),
        late_rank=np.array([rank for _, rank, _ in rows], np.int64),
        late_arrival=np.zeros(n, np.int64),
        certain=np.array([sure for _, _, sure in rows], bool),
        group=np.zeros(n, np.int64),
        call=np.zeros(n, np.int64),
    )


def pieces(found: tuple[SegmentTable, IntArray]) -> list[tuple[int, int, int, int, int]]:
    """(start, end, category, late rank, old row)."""
    result, old = found
    columns = (result.start_ns // US, result.end_ns // US, result.category, result.late_rank, old)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_segment_is_cut_where_the_wait_ends() -> None:
    found = split_segments(
        table((0, 10, KERNEL), (10, 50, UNSPLIT), (50, 60, KERNEL)),
        np.array([-1, 0, -1]),
        waited((40, 3, True)),
    )
    assert pieces(found) == [
        (0, 10, KERNEL, -1, 0), (10, 40, WAIT, 3, 1), (40, 50, TRANSFER, -1, 1), (50, 60, KERNEL, -1, 2)
    ]  # fmt: skip
    assert found[0].correlation.tolist() == [0, 1, 1, 2]  # both pieces are of the same event


@pytest.mark.parametrize(
    ("until", "certain", "expected"),
    [
        (40, False, [(10, 40, UNSPLIT, -1, 0), (40, 50, TRANSFER, -1, 0)]),  # within the uncertainty
        (10, True, [(10, 50, TRANSFER, -1, 0)]),  # arrived last, or the window begins after the last one
        (5, True, [(10, 50, TRANSFER, -1, 0)]),
        (50, True, [(10, 50, WAIT, 3, 0)]),
        (70, True, [(10, 50, WAIT, 3, 0)]),  # the window ends before the last rank comes
        (None, False, [(10, 50, UNSPLIT, -1, 0)]),
    ],
)
def test_where_a_wait_ends_outside_a_segment_it_stays_one(
    until: int | None, certain: bool, expected: list[tuple[int, ...]]
) -> None:
    found = split_segments(table((10, 50, UNSPLIT)), np.array([0]), waited((until, 3, certain)))
    assert pieces(found) == expected


def test_only_the_body_of_a_collective_is_cut() -> None:
    """A gap in front of it names it too, and is no waiting."""
    given = table((10, 50, int(Category.GAP_DISPATCH)))
    assert pieces(split_segments(given, np.array([0]), waited((40, 3, True)))) == [
        (10, 50, int(Category.GAP_DISPATCH), -1, 0)
    ]


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from([UNSPLIT, KERNEL]), st.booleans(), st.integers(-5, 40)),
        min_size=1,
        max_size=12,
    )
)
def test_pieces_partition_their_segments(drawn: list[tuple[int, int, bool, int]]) -> None:
    instant, rows, waits = 0, [], []
    for length, category, certain, wait in drawn:
        rows.append((instant, instant + length, category))
        waits.append((instant + wait if wait < 35 else None, 2, certain))
        instant += length
    given_table = table(*rows)
    arrival = np.array([at if row[2] == UNSPLIT else -1 for at, row in enumerate(rows)])
    result, old = split_segments(given_table, arrival, waited(*waits))
    assert (result.end_ns > result.start_ns).all()
    assert result.start_ns.tolist() == [0, *result.end_ns.tolist()[:-1]]
    assert int(result.end_ns[-1]) == instant * US
    assert (np.diff(old) >= 0).all()
    for at, row in enumerate(rows):
        mine = np.flatnonzero(old == at)
        assert int((result.end_ns - result.start_ns)[mine].sum()) == (row[1] - row[0]) * US
        if row[2] == KERNEL:
            assert result.category[mine].tolist() == [KERNEL]
    assert ((result.late_rank >= 0) == (result.category == WAIT)).all()
