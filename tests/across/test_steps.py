"""Which windows of the ranks are one step, and the window of all ranks together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from analyzer.across.clocks import ClockMap, align
from analyzer.across.groups import find_groups
from analyzer.across.parts import RankPart
from analyzer.across.steps import GlobalWindow, global_windows, match_steps
from analyzer.reconstruct.windows import Window
from tests.across.builders import US, At, named, part


def windows(*edges: float, names: Sequence[str] = (), empty: Sequence[int] = ()) -> list[Window]:
    """Windows between consecutive edges, in us."""
    return [
        Window(
            index=at,
            step=names[at] if names else "decode",
            phase="decode",
            start_ns=round(low * US),
            end_ns=round(high * US),
            host_start_ns=None,
            host_end_ns=None,
            row=None if at in empty else at,
            thread=-1,
            empty=at in empty,
        )
        for at, (low, high) in enumerate(pairwise(edges))
    ]


def numbered(*numbers: int) -> list[Window]:
    return windows(*range(len(numbers) + 1), names=[f"ProfilerStep#{number}" for number in numbers])


def calls(rank: int, ranks: Sequence[int], of: Sequence[tuple[int, int]], shift: float = 0) -> RankPart:
    """One call per (number, window) of a group over all ranks, 1 ms apart."""
    group = named("1", *ranks)
    rows = [At(1_000.0 * n, 1_000.0 * n + 20, group=group, number=n, window=window) for n, window in of]
    return part(rank, rows, shift=shift)


def matched(parts: Sequence[RankPart], given: dict[int, list[Window]]) -> list[dict[int, int]]:
    return match_steps({p.rank: p for p in parts}, given, find_groups(parts))


def clock(rank: int, offset_us: float = 0, reference: int = 0) -> ClockMap:
    """A clock that is known to the nanosecond."""
    rows = [At(1_000.0 * k, 1_000.0 * k + 20, group=named("c", 0, 1), number=k) for k in range(4)]
    parts = [part(0, rows), part(1, rows)]
    known = align(parts, find_groups(parts)).maps[1]
    return replace(
        known, rank=rank, offset_ns=round(offset_us * US), drift_ppb=0, reference=reference, uncertainty_ns=0
    )


# -- which windows are one step -------------------------------------------------------------------


def test_step_numbers_match_whatever_the_calls_say() -> None:
    parts = [calls(0, (0, 1), [(0, 0), (1, 1)]), calls(1, (0, 1), [(0, 1), (1, 0)])]
    assert matched(parts, {0: numbered(3, 4, 5), 1: numbered(4, 5, 6)}) == [{0: 1, 1: 0}, {0: 2, 1: 1}]


def test_a_number_that_comes_twice_tells_nothing_and_calls_decide() -> None:
    parts = [calls(rank, (0, 1), [(0, 0), (1, 1)]) for rank in (0, 1)]
    assert matched(parts, {0: numbered(3, 3), 1: numbered(3, 4)}) == [{0: 0, 1: 0}, {0: 1, 1: 1}]


def test_common_calls_vote_for_the_windows_of_one_step() -> None:
    """Most calls of rank 1's windows meet those of rank 0 two windows later: it began two steps later."""
    of_first = [(n, n // 3) for n in range(15)]
    of_second = [(n, n // 3 - 2) for n in range(6, 15)]
    parts = [calls(0, (0, 1), of_first), calls(1, (0, 1), of_second)]
    given = {0: windows(0, 1, 2, 3, 4, 5), 1: windows(0, 1, 2, 3)}
    assert matched(parts, given) == [{0: 2, 1: 0}, {0: 3, 1: 1}, {0: 4, 1: 2}]


def test_calls_of_neighbouring_steps_are_outvoted() -> None:
    """The first call of each window of rank 1 still belongs to rank 0's window before."""
    of_first = [(n, n // 4) for n in range(16)]
    of_second = [(n, (n + 1) // 4) for n in range(16)]
    parts = [calls(0, (0, 1), of_first), calls(1, (0, 1), of_second)]
    given = {0: windows(0, 1, 2, 3, 4), 1: windows(0, 1, 2, 3, 4, 5)}
    assert matched(parts, given) == [{0: at, 1: at} for at in range(4)]


def test_a_step_that_one_rank_lacks_is_left_out() -> None:
    everything = [(n, n) for n in range(4)]
    lacking = [(n, n - (n > 1)) for n in (0, 1, 2, 3) if n != 1]
    parts = [calls(0, (0, 1, 2), everything), calls(1, (0, 1, 2), lacking), calls(2, (0, 1, 2), everything)]
    given = {0: windows(*range(5)), 1: windows(*range(4)), 2: windows(*range(5))}
    assert matched(parts, given) == [{0: 0, 1: 0, 2: 0}, {0: 2, 1: 1, 2: 2}, {0: 3, 1: 2, 2: 3}]


def test_ranks_are_reached_over_others() -> None:
    """Ranks 0 and 2 share nothing but rank 1."""
    low, high = named("a", 0, 1), named("b", 1, 2)

    def rows(group_of: Sequence[int], shift: int) -> list[At]:
        groups = [low if g == 0 else high for g in group_of]
        return [
            At(1_000.0 * n + 100 * g, 1_000.0 * n + 100 * g + 20, group=group, number=n, window=n - shift)
            for n in range(shift, 4)
            for g, group in zip(group_of, groups, strict=True)
        ]

    parts = [part(0, rows([0], 0)), part(1, rows([0, 1], 0)), part(2, rows([1], 1))]
    given = {0: windows(*range(5)), 1: windows(*range(5)), 2: windows(*range(4))}
    assert matched(parts, given) == [{0: n, 1: n, 2: n - 1} for n in range(1, 4)]


def test_ranks_without_common_calls_have_no_common_steps() -> None:
    parts = [calls(0, (0,), [(0, 0)]), calls(1, (1,), [(0, 0)])]
    assert matched(parts, {0: windows(0, 1), 1: windows(0, 1)}) == []


def test_steps_never_go_back_on_any_rank() -> None:
    crossed = [calls(0, (0, 1), [(0, 0), (1, 1), (2, 2)]), calls(1, (0, 1), [(0, 1), (1, 0), (2, 2)])]
    found = matched(crossed, {0: windows(*range(4)), 1: windows(*range(4))})
    for before, after in pairwise(found):
        assert all(after[rank] > before[rank] for rank in (0, 1))
    assert {0: 2, 1: 2} in found


# -- the window of all ranks ----------------------------------------------------------------------


def joined(
    given: dict[int, list[Window]],
    clocks: dict[int, ClockMap] | None = None,
    ended_by: dict[int, tuple[float, float]] | None = None,
    steps: list[dict[int, int]] | None = None,
) -> list[GlobalWindow]:
    """Windows of equal positions are one step; ``ended_by``: start and launch of the work that ends each window."""
    count = min(len(of) for of in given.values())
    last: dict[int, list[tuple[int, int]]] = {
        rank: [(w.end_ns - 1, w.end_ns - 2) for w in of] for rank, of in given.items()
    }
    for rank, (started, launched) in (ended_by or {}).items():
        last[rank] = [(round(started * US), round(launched * US))] * len(given[rank])
    chosen = steps or [dict.fromkeys(given, at) for at in range(count)]
    return global_windows(chosen, given, clocks or {rank: clock(rank) for rank in given}, last)


def edges(found: Sequence[GlobalWindow]) -> list[tuple[float, float, int]]:
    return [(w.start_ns / US, w.end_ns / US, w.last_rank) for w in found]


def test_a_step_ends_with_the_last_completion_and_begins_with_the_one_before() -> None:
    found = joined({0: windows(5, 100, 190), 1: windows(3, 110, 180)})
    assert edges(found) == [(3, 110, 1), (110, 190, 0)]


def test_windows_are_compared_on_the_reference_clock() -> None:
    """Rank 1's clock is 50 us ahead: its first completion at 110 is at 60."""
    found = joined({0: windows(5, 100, 190), 1: windows(53, 110, 250)}, {0: clock(0), 1: clock(1, -50)})
    assert edges(found) == [(3, 100, 0), (100, 200, 1)]


def test_an_empty_window_completes_nothing() -> None:
    found = joined({0: windows(5, 100, 190), 1: windows(3, 110, 300, empty=[1])})
    assert edges(found) == [(3, 110, 1), (110, 190, 0)]


def test_a_step_without_any_work_is_empty() -> None:
    found = joined({0: windows(5, 100, 100, 190, empty=[1]), 1: windows(3, 110, 110, 180, empty=[1])})
    assert [w.empty for w in found] == [False, True, False]
    assert edges(found)[1][:2] == (110, 110)


def test_a_step_that_was_over_before_the_one_before_is_empty() -> None:
    """Rank 0 does all of the second step while rank 1 is in the first, and rank 1 has no part in it."""
    found = joined({0: windows(5, 50, 90, 300), 1: windows(3, 200, 200, 250, empty=[1])})
    assert [w.empty for w in found] == [False, True, False]
    assert edges(found) == [(3, 200, 1), (200, 200, 0), (200, 300, 0)]


def test_of_ranks_that_complete_together_the_work_that_is_last_in_the_total_order_ends_the_step() -> None:
    given = {0: windows(5, 100), 1: windows(3, 100), 2: windows(3, 100)}
    assert edges(joined(given, ended_by={0: (80, 9), 1: (50, 9), 2: (20, 9)})) == [(3, 100, 0)]
    assert edges(joined(given, ended_by={0: (80, 9), 1: (80, 11), 2: (80, 10)})) == [(3, 100, 1)]
    assert edges(joined(given, ended_by={0: (80, 9), 1: (80, 9), 2: (80, 9)})) == [(3, 100, 2)]


def test_a_rank_that_joins_later_has_no_completion_before() -> None:
    """Its first window begins on its host, long before the others' steps end: that is no completion."""
    given = {0: windows(0, 100, 200, 300), 1: windows(150, 310)}
    assert edges(joined(given, steps=[{0: 2, 1: 0}])) == [(200, 310, 1)]


def test_windows_tile() -> None:
    draw = np.random.default_rng(1)
    given = {rank: windows(*np.cumsum(draw.integers(0, 100, 20)).tolist()) for rank in range(4)}
    found = joined(given)
    for before, after in pairwise(found):
        assert before.end_ns == after.start_ns <= after.end_ns
