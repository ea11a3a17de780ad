"""What a category of a budget is in words: where the CPU was blocked, by name."""

from __future__ import annotations

import pytest

from analyzer.report.category_words import WAIT, category_words
from analyzer.report.labels import CATEGORY_WORDS
from analyzer.report.markdown import render
from tests.report.builder import MS, budget, culprit, diagnosis, path


def blocked(*held: tuple[str, int], **changes: object) -> str:
    """Words of ``host.wait`` where the CPU was blocked in these calls for so many ms."""
    rows = [culprit(name, category=WAIT, path_ns=time * MS, **changes) for name, time in held]
    return category_words(diagnosis(host_culprits=rows), budget())[WAIT]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([("poll", 3)], "CPU blocked in `poll`"),
        ([("poll", 3), ("futex", 1)], "CPU blocked, most of it in `poll`"),
        ([("poll", 3), ("futex", 2), ("read", 2)], "CPU blocked, the largest part in `poll`"),
        ([("(nothing recorded)", 3)], "CPU blocked, with no call recorded"),
        ([("(nothing recorded)", 3), ("poll", 1)], "CPU blocked, most of it with no call recorded"),
        ([("a|b", 3)], "CPU blocked in `a⟨U+007C⟩b`"),
        ([], CATEGORY_WORDS[WAIT]),
    ],
)
def test_a_wait_is_named_by_its_call(held: list[tuple[str, int]], words: str) -> None:
    assert blocked(*held) == words


def test_calls_of_other_ranks_and_phases_do_not_count() -> None:
    assert blocked(("poll", 3), rank=7) == CATEGORY_WORDS[WAIT]
    assert blocked(("poll", 3), phase="prefill") == CATEGORY_WORDS[WAIT]


def test_both_tables_of_the_report_name_the_call() -> None:
    waits = budget(step_ns_total=60 * MS, path_ns_total=path(host_wait=60 * MS))
    held = [culprit("clock_nanosleep", category=WAIT, path_ns=60 * MS)]
    assert (
        render(diagnosis(budget=[waits], host_culprits=held)).count("CPU blocked in `clock_nanosleep`") == 2
    )
