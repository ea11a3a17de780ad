from __future__ import annotations

from analyzer.predict.likely_meetings import Unmatched, likely_meetings

US = 1_000


def part(rank: int, start: int, end: int, name: str = "nccl", nbytes: int = -1) -> Unmatched:
    return Unmatched(rank, 100 * rank + start, name, start * US, end * US, nbytes)


def met(*parts: Unmatched, uncertainty_us: int = 0) -> list[list[tuple[int, int]]]:
    """(rank, end in us) of the members of each meeting."""
    return [
        [(one.rank, one.end_ns // US) for one in members]
        for members in likely_meetings(parts, uncertainty_us * US)
    ]


def test_what_ends_together_on_two_ranks_is_one_call() -> None:
    assert met(part(0, 10, 50), part(1, 30, 51)) == [[(0, 50), (1, 51)]]
    assert met(part(0, 10, 50), part(1, 30, 55)) == []
    assert met(part(0, 10, 50), part(1, 30, 55), uncertainty_us=3) == [[(0, 50), (1, 55)]]


def test_names_and_sizes_keep_calls_apart() -> None:
    assert met(part(0, 10, 50, "a"), part(1, 30, 50, "b")) == []
    assert met(part(0, 10, 50, nbytes=8), part(1, 30, 50, nbytes=16)) == []


def test_one_rank_twice_is_no_call_nor_are_parts_that_do_not_overlap() -> None:
    assert met(part(0, 10, 50), part(0, 20, 50), part(1, 30, 50)) == []
    assert met(part(0, 10, 50), part(1, 50, 51)) == []


def test_few_that_coincide_among_many_met_by_chance() -> None:
    mine = [part(0, at, at + 9) for at in range(0, 100, 20)]
    theirs = [part(1, at + 7 * (at > 0), at + 9 + 7 * (at > 0)) for at in range(0, 100, 20)]
    assert met(*mine, *theirs) == []
    assert met(mine[0], theirs[0], theirs[1]) == [[(0, 9), (1, 9)]]
