from __future__ import annotations

import pytest

from analyzer.predict.bound import path_edges
from analyzer.predict.edges import EdgeKind
from analyzer.predict.steps import Steps, step_span
from analyzer.predict.validation import OddEven
from tests.predict.builders import EVERY, graph_of, loop, replayed

LATER = Steps(0, (1, 2, 3, 4, 5))


def most_us(spec: str) -> float | None:
    found = replayed(graph_of(loop()), spec).predict(LATER, OddEven(5, 0.0, 0.0, 0.0)).most_gain_ns
    return None if found is None else found / 1000


def test_the_path_is_the_one_that_the_loop_was_built_with() -> None:
    found = replayed(graph_of(loop()), "host=1")
    span = step_span(found.base.graph, EVERY, found.base.times[:, :1], found.base.scenarios.body_ns[:, :1])
    assert span is not None
    path = path_edges(found.base.graph, found.base.scenarios, found.base.times[:, 0], span.last_event)
    kinds = [EdgeKind(kind).name for kind in found.base.scenarios.edges.kind[path[:7]].tolist()]
    assert kinds == ["STREAM", "SUBMISSION", "HOST", "HOST", "HOST", "HELD", "STREAM"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("kernel:gemm=0.5", 20.0 + 6),  # the wait's return may fall away
        ("kernel:.=0.5", 30.0 + 6 + 10 / 5),  # with the norm that the first wait of five steps waited for
        ("kernel:gemm=2", 6.0),
        ("host=0.5", 11.5 + 6),
        ("dispatch=0", 6.0),
        ("turnaround=0", 1.0 + 6),
    ],
)
def test_no_more_is_gained_than_goes_from_the_path(spec: str, expected: float) -> None:
    assert most_us(spec) == pytest.approx(expected)


def test_without_an_edge_of_the_path_nothing_is_bounded() -> None:
    assert most_us("no-sync") is None
