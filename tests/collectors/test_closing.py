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


def test_many_notes_are_left_to_the_manifest() -> None:
    lines = closing.notes({rank: [f"took {rank}"] for rank in range(64)}).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "note: 44 more in manifest.json"


def test_variables_that_were_held_back_are_named_once() -> None:
    assert closing.withheld({0: ["VLLM_API_KEY"], 1: ["NCCL_TOKEN", "VLLM_API_KEY"]}) == (
        "note: not recorded, as their values look like credentials: NCCL_TOKEN, VLLM_API_KEY\n"
    )
    assert closing.withheld({0: [], 1: []}) == ""
