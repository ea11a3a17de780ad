"""The last lines of a collector, from literal records."""

from __future__ import annotations

import pytest

from collectors import closing


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([3], "rank 3"),
        ([1, 0], "ranks 0 and 1"),
        ([0, 2], "ranks 0 and 2"),
        (list(range(8)), "ranks 0-7"),
        ([0, 1, 2, 5, 7, 8], "ranks 0-2, 5, 7 and 8"),
    ],
)
def test_ranks_in_words(ranks: list[int], words: str) -> None:
    assert closing.ranks_in_words(ranks) == words


def test_the_last_line_says_how_the_command_ended_and_what_comes_next() -> None:
    assert closing.captured("rank 0 captured", "my run", 0) == (
        "rank 0 captured; next: tracebound diagnose 'my run'\n"
    )
    assert closing.captured("rank 0 captured", "run", 7) == (
        "rank 0 captured; the command ended with exit code 7; next: tracebound diagnose run\n"
    )


def test_a_note_names_its_ranks_unless_all_have_it() -> None:
    said = {0: ["slow", "no GPU"], 1: ["no GPU"], 2: ["slow", "no GPU"]}
    assert closing.notes(said) == "note: ranks 0 and 2: slow\nnote: no GPU\n"
    assert closing.notes({4: ["slow"]}) == "note: slow\n"
    assert closing.notes({4: ["slow"]}, named=True) == "note: rank 4: slow\n"


def test_many_notes_are_left_to_the_manifest() -> None:
    lines = closing.notes({rank: [f"took {rank}"] for rank in range(64)}).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "note: 44 more in manifest.json"


@pytest.mark.parametrize(
    ("ended_ns", "sure_ns", "said"),
    [
        (
            {0: 2_500_000_000, 1: 1_000_000_000, 2: 9_000_000_000},
            0,
            "rank 1 was the first to end, 1.500 s before",
        ),
        ({0: 1_100_000_000, 1: 1_000_000_000}, 400_000_000, ""),
        ({0: 1_000_000_000, 1: None}, 0, ""),
        ({0: 1_000_000_000}, 0, ""),
        ({}, 0, ""),
    ],
)
def test_the_first_to_end_is_told_where_it_is_certain(
    ended_ns: dict[int, int | None], sure_ns: int, said: str
) -> None:
    assert closing.first_to_end(ended_ns, sure_ns=sure_ns).startswith(f"note: {said}" if said else "")
    assert bool(closing.first_to_end(ended_ns, sure_ns=sure_ns)) == bool(said)


def test_variables_that_were_held_back_are_named_once() -> None:
    assert closing.withheld({0: ["VLLM_API_KEY"], 1: ["NCCL_TOKEN", "VLLM_API_KEY"]}) == (
        "note: not recorded, as their values look like credentials: NCCL_TOKEN, VLLM_API_KEY\n"
    )
    assert closing.withheld({0: [], 1: []}) == ""
