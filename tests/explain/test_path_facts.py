"""What is measured of path segments, against reading one path after another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from analyzer import pipeline
from analyzer.categories import Category
from analyzer.explain.verdicts import path_facts
from analyzer.explain.verdicts.amounts import amounts
from analyzer.explain.verdicts.catalogue import MEASURABLE
from analyzer.reconstruct.critical_path import ON_DEVICE
from analyzer.reconstruct.critical_path import Path as Segments
from analyzer.reconstruct.rank import RankAccount, RankOptions, reconstruct_rank
from fixtures.simulator.kineto_writer import write_kineto
from tests.laws.programs import run_of


@pytest.fixture(scope="module", params=range(3))
def account(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RankAccount:
    run, _ = run_of(request.param, "hard")
    (trace,) = pipeline.read(write_kineto(run, tmp_path_factory.mktemp("facts"))).traces
    return reconstruct_rank(trace, RankOptions(), sole_device=True)


def after_returns(account: RankAccount, path: Segments) -> list[int]:
    """By segment: ns between an instant at which the host came back from a wait and the next device work."""
    rows = list(zip(path.start_ns.tolist(), path.end_ns.tolist(), path.category.tolist(), path.side.tolist()))  # noqa: B905
    back, was_on_host = [], True
    for start, end, category, side in rows:
        on_host = side != ON_DEVICE or category == Category.LAUNCH_LATENCY
        if on_host and not was_on_host:
            back.append(start)
        if category == Category.HOST_SYNC_RETURN:
            back.append(end)
        was_on_host = on_host
    begins = account.work.start_ns
    spans = [(instant, begins[begins >= instant].min()) for instant in back if (begins >= instant).any()]
    return [
        sum(
            any(low <= t < high for low, high in spans) * (until - t) for t, until in _cuts(start, end, spans)
        )
        for start, end, _, _ in rows
    ]


def _cuts(start: int, end: int, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    edges = sorted({start, end, *(edge for span in spans for edge in span if start < edge < end)})
    return list(pairwise(edges))


@pytest.mark.parametrize("most_ns", [path_facts.MOST_NS, 1, 50_000_000])
def test_time_after_a_wait_is_that_of_each_path_alone(
    account: RankAccount, most_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many paths are laid end to end at once."""
    monkeypatch.setattr(path_facts, "MOST_NS", most_ns)
    facts = path_facts.path_facts(account, account.paths, 0.5)
    expected = [ns for path in account.paths for ns in after_returns(account, path)]
    assert facts.after_wait.tolist() == expected
    assert sum(expected) > 0
    assert (facts.after_certain_wait <= facts.after_wait).all()
    assert (facts.after_wait <= facts.after_possible_wait).all()


def test_no_path_no_facts(account: RankAccount) -> None:
    facts = path_facts.path_facts(account, [], 0.5)
    assert len(facts) == 0 and facts.after_wait.dtype == np.int64


def test_dispatch_after_a_call_that_may_have_waited_could_be_host_time() -> None:
    """A wait would end the burst: until its next launch the CPU does other work."""
    (host_bound,) = [entry for entry in MEASURABLE if entry.id == "host-bound"]
    zero, flags = np.zeros(3, np.int64), np.zeros(3, bool)
    facts = path_facts.PathFacts(
        length=np.array([10, 20, 30]),
        category=np.array([Category.LAUNCH_DISPATCH, Category.HOST_FRAMEWORK, Category.LAUNCH_API], np.int8),
        inferred=flags, on_host=~flags, small=zero.astype(np.int8),
        bandwidth=zero.astype(np.int8), arithmetic=zero.astype(np.int8), unseen_under_overhead=zero, overhead=zero,
        kernels_behind=zero, copies_behind=zero, small_behind=zero, after_wait=zero, after_certain_wait=zero,
        after_possible_wait=np.array([7, 0, 5]), later=zero, earlier=zero,
    )  # fmt: skip
    found = amounts(host_bound, facts)
    assert (found.mine.tolist(), found.certain.tolist(), found.possible.tolist()) == (
        [0, 20, 0],
        [0, 20, 0],
        [7, 20, 0],
    )
