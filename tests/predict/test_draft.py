from __future__ import annotations

import numpy as np
import pytest

from analyzer.predict.changes import HostKind
from analyzer.predict.draft import VARIANTS, Draft, Variant, removable, unchanged
from analyzer.predict.edges import EdgeKind
from analyzer.predict.forward import NEVER, replay
from analyzer.predict.prediction import assumptions_of
from tests.builders import Schedule
from tests.predict.builders import Step, graph_of, loop, two_kernels


def draft_of(step: Step = two_kernels) -> Draft:
    graph = graph_of(loop(step))
    return unchanged(graph, assumptions_of(graph, {}))


def unseen(built: Schedule, at: int) -> Schedule:
    """The last kernel starts 25 us after the one before, and nothing recorded says why."""
    built.range(at, at + 99, "step")
    for begin, end, name in ((10, 30, "a"), (31, 40, "b"), (41, 45, "c"), (70, 80, "late")):
        launched = at + begin // 4
        built.launch(launched, launched + 2, runs=(at + begin, at + end), name=name)
    return built.sync(at + 20, at + 85, stream=7)


def test_the_first_variant_is_the_capture() -> None:
    assert VARIANTS[0] == Variant(high=False, dropped=False)
    assert len(set(VARIANTS)) == 4
    draft = draft_of(unseen)
    assert (replay(draft.graph, draft.scenarios())[:, 0] == draft.graph.at_ns).all()
    assert not draft.added and not draft.notes and not draft.assumed


def test_what_is_inferred_holds_in_some_variants_and_not_in_others() -> None:
    draft = draft_of(unseen)
    table = draft.edges
    guessed = np.flatnonzero(table.kind == EdgeKind.UNSEEN)
    assert len(guessed) == 6 and table.inferred[guessed].all() and removable(draft.graph)[guessed].all()
    lags = draft.lag_ns[guessed]
    assert (lags[:, :2] == 25_000).all() and (lags[:, 2:] == NEVER).all()


def test_host_time_is_kept_by_kind() -> None:
    """Of every step 24 us but for the last one's end: 2 of dispatch, the rest other work."""
    draft = draft_of()
    total = {kind: spent[:, 0].sum() for kind, spent in draft.host_ns.items()}
    assert total[HostKind.DISPATCH] == 6 * 2_000
    assert total[HostKind.OUTPUT] == total[HostKind.PROFILER] == 0
    assert total[HostKind.WORK] == 6 * (10_000 + 2_000 + 12_000) + 5 * 1_000


def test_lags_are_set_only_where_an_edge_holds() -> None:
    draft = draft_of(unseen)
    guessed = np.flatnonzero(draft.edges.kind == EdgeKind.UNSEEN)
    draft.set_lags(guessed, draft.by_end(1, 2))
    assert draft.lag_ns[guessed[0]].tolist() == [1, 2, NEVER, NEVER]


def test_an_assumption_that_is_used_is_remembered() -> None:
    draft = draft_of()
    assert draft.assume("call_ns") == (2_000, 6_000)
    assert draft.assumed == {"call_ns"}
    with pytest.raises(KeyError):
        draft.assume("nothing")
