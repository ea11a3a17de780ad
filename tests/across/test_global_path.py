"""One path through all ranks: against the simulator's truth, and by hand where clocks contradict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from analyzer.across.clocks import ClockMap
from analyzer.across.global_path import BODY, CHAIN, NOTHING, Pieces, RankLinks, walk
from analyzer.across.waits import RankWaits
from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.reconstruct.work import NO_TIME
from fixtures.simulator.program import Group, Op, StreamSync
from fixtures.simulator.recording import CAPTURE_EPOCH_NS, Recording
from fixtures.simulator.run import Run
from fixtures.simulator.truth import truth_of
from tests.across.builders import US, At, part
from tests.across.programs import analyzed, host, meet, team, work
from tests.across.test_steps import clock

Stretch = tuple[int, int, int, str]


def joined(pieces: list[Stretch]) -> list[Stretch]:
    """Neighbours of one rank and category as one."""
    result: list[Stretch] = []
    for start, end, rank, category in pieces:
        if result and result[-1][1:] == (start, rank, category):
            result[-1] = (result[-1][0], end, rank, category)
        else:
            result.append((start, end, rank, category))
    return result


def path_of(analysis: Analysis, window: int, zero_us: int = 0) -> list[Stretch]:
    """The global path of one window on the simulator's clock."""
    table, zero = analysis.global_segments, analysis.diagnosis.time_zero_ns
    assert table is not None
    assert zero is not None
    away = int(zero) - CAPTURE_EPOCH_NS
    rows = np.flatnonzero(table.window == window)
    columns = (table.start_ns[rows] + away, table.end_ns[rows] + away, table.rank[rows], table.category[rows])
    return joined(
        [
            (start, end, rank, CATEGORY_NAMES[Category(category)])
            for start, end, rank, category in zip(*(c.tolist() for c in columns), strict=True)
        ]
    )


def true_paths(run: Run) -> list[list[Stretch]]:
    return [
        joined([(s.start_ns, s.end_ns, s.rank, CATEGORY_NAMES[s.category]) for s in path])
        for _, path in truth_of(run).global_paths
    ]


# -- against the truth ----------------------------------------------------------------------------


def relay(rank: int, step: int) -> tuple[Op, ...]:
    """Each rank is the late one in one of three collectives, and rank 2 has work left at the end."""
    ops: list[Op] = []
    for turn in range(3):
        ops += [host(150_000 + 200_000 * (turn == (rank + step) % 3)), work(20_000), meet(), StreamSync()]
    return (*ops, work(50_000, "sample")) if rank == 2 else tuple(ops)


def late_kernels(rank: int, _: int) -> tuple[Op, ...]:
    return (host(10_000), work(100_000 + 80_000 * rank), meet(), work(60_000 - 9_000 * rank, "tail"))


def halves(rank: int, step: int) -> tuple[Op, ...]:
    """Two groups of a pair, then all: lateness passes from one to the other."""
    mine = "low" if rank < 2 else "high"
    return (
        host(20_000 + 150_000 * (rank == (0, 3)[step % 2])), work(10_000), meet(mine), work(30_000), meet("all"),
        work(5_000 * (1 + rank), "tail"),
    )  # fmt: skip


PAIRS = (
    Group("low", (0, 1), "tp", "1"),
    Group("high", (2, 3), "tp", "2"),
    Group("all", (0, 1, 2, 3), "dp", "3"),
)
PROGRAMS: dict[str, Callable[[], Run]] = {
    "relay": lambda: team(3, relay, steps=4),
    "late kernels": lambda: team(3, late_kernels, steps=4),
    "halves": lambda: team(4, halves, steps=4, groups=PAIRS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_path_through_all_ranks_is_the_true_one(name: str, tmp_path: Path) -> None:
    run = PROGRAMS[name]()
    analysis = analyzed(run, tmp_path)
    expected = true_paths(run)
    assert len({rank for path in expected for _, _, rank, _ in path}) > 1
    account = analysis.diagnosis.global_
    assert account is not None
    assert len(account.windows) == len(expected)
    for at, path in enumerate(expected):
        assert path_of(analysis, at) == path, at


@pytest.mark.parametrize("name", PROGRAMS)
def test_clocks_that_are_off_change_nothing(name: str, tmp_path: Path) -> None:
    """Offsets only: the ends of each collective are the same instant, so the map is exact."""
    run = PROGRAMS[name]()
    recording = Recording(clock_offset_ns={1: 4_999_937, 2: -3_000_001, 3: 1_234_567})
    analysis = analyzed(run, tmp_path, "kineto", recording)
    for at, path in enumerate(true_paths(run)):
        assert path_of(analysis, at) == path, at


# -- by hand --------------------------------------------------------------------------------------


def links(
    *,
    arrivals: list[At],
    segments: list[list[tuple[int, int]]],
    reached: list[int],
    at: list[int],
    high: list[int],
    merged: list[int] | None = None,
    waits: list[tuple[int | None, int, int, bool]] | None = None,
    known: ClockMap | None = None,
    rank: int = 0,
    bodies: list[Category] | None = None,
) -> RankLinks:
    """Chains by hand, in us: first one per arrival, then one per window.

    ``waits``: (end, late rank, late arrival, certain) by arrival.
    """
    rows = [piece for chain in segments for piece in chain]
    given = waits or [(None, -1, -1, False)] * len(arrivals)
    none = np.full(len(arrivals), -1, np.int64)
    return RankLinks(
        arrivals=part(rank, arrivals).arrivals,
        waits=RankWaits(
            np.array([NO_TIME if t is None else t * US for t, *_ in given], np.int64),
            np.array([late for _, late, _, _ in given], np.int64),
            np.array([row for _, _, row, _ in given], np.int64),
            np.array([sure for *_, sure in given], bool),
            none,
            none,
        ),
        clock=known or clock(rank),
        start_ns=np.array([s for s, _ in rows], np.int64) * US,
        end_ns=np.array([e for _, e in rows], np.int64) * US,
        edges=np.cumsum([0, *(len(chain) for chain in segments)]),
        high_ns=np.array(high, np.int64) * US,
        reached=np.array(reached, np.int64),
        merged=np.array(merged or [-1] * len(segments), np.int64),
        at_ns=np.array(at, np.int64) * US,
        body_category=np.array(bodies or [Category.COLLECTIVE_UNSPLIT] * len(arrivals), np.int64),
    )


def shown(pieces: Pieces) -> list[tuple[float, float, int, int]]:
    return [(start / US, end / US, rank, kind) for start, end, rank, kind, *_ in pieces.rows]


def assert_partition(pieces: Pieces, low: int, high: int) -> None:
    cuts = [low * US, *(end for _, end, *_ in pieces.rows)]
    assert [start for start, *_ in pieces.rows] == cuts[:-1]
    assert cuts[-1] == high * US


def waiting(late: float = 60, *, certain: bool = True) -> dict[int, RankLinks]:
    """Rank 0 comes at 10, rank 1 at ``late``; both leave at 80 and rank 0 works until 100."""
    first = links(
        arrivals=[At(10, 80)], segments=[[(0, 10)], [(80, 100)]], reached=[-1, 0], at=[0, 80], high=[10, 100],
        waits=[(round(late), 1, 0, certain)],
    )  # fmt: skip
    second = links(
        rank=1, arrivals=[At(late, 80)], segments=[[(0, round(late))], []], reached=[-1, 0], at=[0, 80],
        high=[round(late), 80], waits=[(round(late), 1, 0, False)],
    )  # fmt: skip
    return {0: first, 1: second}


def test_the_path_goes_over_to_the_late_rank_where_it_came() -> None:
    pieces = walk(0, 100 * US, 0, 1, waiting())
    assert shown(pieces) == [(0, 60, 1, CHAIN), (60, 80, 0, BODY), (80, 100, 0, CHAIN)]
    assert pieces.rows[1][5] == Category.COLLECTIVE_TRANSFER
    assert pieces.visited == [1, 0]
    assert pieces.crossed == [(10 * US, 60 * US)]


def test_without_hops_it_names_the_wait_and_stays() -> None:
    pieces = walk(0, 100 * US, 0, 1, waiting(), hops=False)
    assert shown(pieces) == [(0, 10, 0, CHAIN), (10, 60, 0, BODY), (60, 80, 0, BODY), (80, 100, 0, CHAIN)]
    assert pieces.rows[1][5:] == (Category.COLLECTIVE_WAIT, 1)
    assert (pieces.visited, pieces.crossed) == ([0], [])


def test_a_wait_within_the_uncertainty_keeps_the_path_on_its_rank() -> None:
    pieces = walk(0, 100 * US, 0, 1, waiting(12, certain=False))
    assert shown(pieces) == [(0, 10, 0, CHAIN), (10, 12, 0, BODY), (12, 80, 0, BODY), (80, 100, 0, CHAIN)]
    assert pieces.rows[1][5] == Category.COLLECTIVE_UNSPLIT


def test_a_window_that_begins_within_the_transfer_ends_the_path_there() -> None:
    pieces = walk(70 * US, 100 * US, 0, 1, waiting())
    assert shown(pieces) == [(70, 80, 0, BODY), (80, 100, 0, CHAIN)]
    assert pieces.visited == [0]


def test_a_window_that_begins_within_the_wait_counts_only_what_lies_in_it() -> None:
    pieces = walk(40 * US, 100 * US, 0, 1, waiting())
    assert shown(pieces) == [(40, 60, 1, CHAIN), (60, 80, 0, BODY), (80, 100, 0, CHAIN)]
    assert pieces.crossed == [(40 * US, 60 * US)]


def test_times_move_to_the_reference_clock() -> None:
    """Rank 1's clock is 1 ms behind."""
    given = waiting()
    given[1] = links(
        rank=1, arrivals=[At(-940, -920)], segments=[[(-1_000, -940)], []], reached=[-1, 0], at=[-1_000, -920],
        high=[-940, -920], waits=[(-940, 1, 0, False)], known=clock(1, 1_000),
    )  # fmt: skip
    assert shown(walk(0, 100 * US, 0, 1, given)) == [
        (0, 60, 1, CHAIN),
        (60, 80, 0, BODY),
        (80, 100, 0, CHAIN),
    ]


def test_what_lies_before_a_ranks_first_record_is_unattributed() -> None:
    """The late rank's records begin at 30; nothing says what it did before."""
    given = waiting()
    given[1] = links(
        rank=1, arrivals=[At(60, 80)], segments=[[(30, 60)], []], reached=[-1, 0], at=[30, 80], high=[60, 80],
        waits=[(60, 1, 0, False)],
    )  # fmt: skip
    pieces = walk(0, 100 * US, 0, 1, given)
    assert shown(pieces)[:2] == [(0, 30, 1, NOTHING), (30, 60, 1, CHAIN)]
    assert pieces.rows[0][5] == Category.UNATTRIBUTED
    assert_partition(pieces, 0, 100)


def test_a_chain_that_meets_another_goes_on_there() -> None:
    """The window's own chain ends where that of the collective, walked before, had been."""
    given = links(
        arrivals=[At(10, 80)], segments=[[(0, 10)], [(5, 100)]], reached=[-1, -1], at=[0, 5], high=[10, 100],
        merged=[-1, 0],
    )  # fmt: skip
    pieces = walk(0, 100 * US, 0, 1, {0: given})
    assert shown(pieces) == [(0, 5, 0, CHAIN), (5, 100, 0, CHAIN)]


def test_a_body_that_is_no_collective_time_keeps_its_category() -> None:
    given = links(
        arrivals=[At(10, 80)], segments=[[(0, 10)], []], reached=[-1, 0], at=[0, 80], high=[10, 80],
        waits=[(60, 1, 0, True)], bodies=[Category.PROFILER],
    )  # fmt: skip
    pieces = walk(0, 80 * US, 0, 1, {0: given})
    assert [row[5] for row in pieces.rows if row[3] == BODY] == [Category.PROFILER]
    assert pieces.visited == [0]


@pytest.mark.parametrize("low", [0, 20, 45])
def test_clocks_that_contradict_one_another_lead_in_no_circle(low: int) -> None:
    """Each rank says that it waited for the other one, and until the same instant: there is no way down."""
    given = {
        rank: links(
            rank=rank, arrivals=[At(60, 80), At(60, 80)], segments=[[], [], [(80, 100)]], reached=[1, 0, 0],
            at=[60, 60, 80], high=[60, 60, 100], waits=[(60, 1 - rank, 1, True), (60, 1 - rank, 0, True)],
        )
        for rank in (0, 1)
    }  # fmt: skip
    pieces = walk(low * US, 100 * US, 0, 2, given)
    assert_partition(pieces, low, 100)
    assert pieces.rows[0][5] == Category.UNATTRIBUTED


def test_chains_that_lead_to_each_other_end() -> None:
    """Two collectives of one rank that claim to come from one another without any time between."""
    given = links(
        arrivals=[At(50, 50), At(50, 50)], segments=[[], [], [(50, 100)]], reached=[1, 0, 0], at=[50, 50, 50],
        high=[50, 50, 100],
    )  # fmt: skip
    pieces = walk(0, 100 * US, 0, 2, {0: given})
    assert_partition(pieces, 0, 100)
    assert pieces.rows[0][5] == Category.UNATTRIBUTED
