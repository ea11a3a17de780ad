from __future__ import annotations

import numpy as np

from analyzer.across.joint import join_ranks
from analyzer.predict.cut import cut
from analyzer.predict.event_graph import event_graph
from analyzer.predict.prediction import Predictor, assumptions_of
from analyzer.predict.rank_graph import RankGraph, rank_graph
from analyzer.predict.steps import Steps, covered_steps
from tests.builders import account_of
from tests.predict.builders import loop

PER_STEP = 6 + 2  # two marks, three calls and a return; two kernels


def whole(steps: int = 20) -> RankGraph:
    found = rank_graph(account_of(loop(steps=steps), steps="^step$"), 0)
    assert found is not None
    return found


def test_a_small_graph_stays_whole() -> None:
    graph = whole(6)
    assert cut(graph, 0, PER_STEP * 6) is graph


def test_a_long_one_begins_a_step_before_the_first_that_counts() -> None:
    graph = whole()
    part = cut(graph, 5, PER_STEP * 9)
    assert part is not None
    assert (part.first, part.last, part.windows) == (4, 12, 20)
    assert (len(part.host), len(part.rows)) == (9 * 6, 9 * 2)
    assert int(part.host.at_ns[0]) == int(graph.host.at_ns[4 * 6])
    assert part.step_events is not None
    assert part.step_events[4:13].min() >= 0 and (part.step_events[:4] == -1).all()
    assert part.rows.entry.min() >= 0


def test_six_steps_are_kept_however_large_but_not_beyond_twice_the_limit() -> None:
    part = cut(whole(), 0, PER_STEP * 3)
    assert part is not None and part.last - part.first + 1 == 6
    assert cut(whole(), 0, PER_STEP * 3 - 1) is None


def test_what_is_left_replays_as_it_was_and_only_its_steps_count() -> None:
    part = cut(whole(), 5, PER_STEP * 9)
    assert part is not None
    graph = event_graph([part], join_ranks([], ()))
    assert graph.dropped == 0
    before = Predictor(graph, assumptions_of(graph, {})).replay(()).base.times[:, 0]
    assert np.array_equal(before, graph.at_ns)
    assert covered_steps(graph, Steps(0, tuple(range(20)))).windows == tuple(range(5, 13))
