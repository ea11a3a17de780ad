from __future__ import annotations

import pytest

from analyzer.errors import UsageError
from analyzer.predict.assumptions import DEFAULTS, MEANINGS, Assumption, given, resolve


def test_an_assumption_is_one_figure_or_two_ends() -> None:
    assert given(["graph_turnaround_ns=1200", "call_ns=1000..2000"]) == {
        "graph_turnaround_ns": (1_200, 1_200),
        "call_ns": (1_000, 2_000),
    }


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("1200", "is no assumption", "write NAME=NS or NAME=LOW..HIGH"),
        ("graph_turnaround_ns=1us", "is no assumption", "write NAME=NS"),
        ("warp_ns=5", "is no assumption", "known are graph_launch_ns"),
        ("call_ns=5..4", "ends before it begins", "write the lower end first"),
    ],
)
def test_what_is_none_is_refused_with_the_next_step(text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        given([text])
    assert says in refused.value.why
    assert hint in refused.value.hint


def test_the_users_word_comes_before_the_captures_and_that_before_the_default() -> None:
    found = resolve({"graph_latency_ns": (7_000, 8_000), "call_ns": (1, 2)}, {"call_ns": (3, 4)})
    assert found["graph_latency_ns"] == Assumption("graph_latency_ns", 7_000, 8_000, "measured")
    assert found["call_ns"] == Assumption("call_ns", 3, 4, "given")
    assert found["graph_launch_ns"] == Assumption("graph_launch_ns", *DEFAULTS["graph_launch_ns"], "assumed")


def test_every_assumption_has_a_meaning() -> None:
    assert set(MEANINGS) == set(DEFAULTS)
    assert all(low <= high for low, high in DEFAULTS.values())
