"""Another thread is quiet and then launches; nothing recorded says who woke it."""

from __future__ import annotations

import numpy as np

from analyzer.predict.edges import EdgeKind
from tests.builders import Schedule
from tests.predict.builders import graph_of, loop, replayed, two_kernels


def another_launches(built: Schedule, at: int) -> Schedule:
    """Three launches 10 us apart, 70 us into every step."""
    two_kernels(built.thread("main"), at).thread("other")
    for begin in (at + 70, at + 80, at + 90):
        built.launch(begin, begin + 4, runs=(begin + 6, begin + 9), name="theirs", stream=9)
    return built.thread("main")


def starts_us(spec: str) -> list[list[float]]:
    """By variant, when the first of their kernels starts in the second and in the third step."""
    found = replayed(graph_of(loop(another_launches)), spec)
    (place,) = found.base.graph.ranks
    theirs = np.flatnonzero(place.graph.rows.name == place.graph.names.index("theirs"))
    return (found.times[place.rows(theirs[[3, 6]])] / 1000).T.tolist()


def test_the_wait_is_an_inference_beside_that_on_the_thread_that_steps() -> None:
    graph = graph_of(loop(another_launches))
    into = graph.edges.take(graph.at_ns[graph.edges.target] == 270_000)
    found = {
        (EdgeKind(kind).name, int(graph.at_ns[source] // 1000)): (bool(inferred), int(least // 1000))
        for kind, source, inferred, least in zip(
            into.kind, into.source, into.inferred, into.least_ns, strict=True
        )
    }
    assert found == {("HOST", 190): (True, 4), ("HANDOVER", 222): (False, 48)}


def test_it_keeps_its_own_time_or_moves_with_the_thread_that_steps() -> None:
    """The second step's begins 170 us into the capture; the gemm takes 20 us less in either step."""
    assert starts_us("host=1") == [[176, 276]] * 4
    assert starts_us("kernel:gemm=0.5") == [[176, 276], [156, 236], [176, 276], [156, 236]]
