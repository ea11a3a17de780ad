"""Laws of the replay: it is the capture where nothing changes, whatever the order of files, and bounds hold."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest

from analyzer import pipeline
from analyzer.across.joint import join_ranks
from analyzer.errors import UsageError
from analyzer.predict.changes import parse
from analyzer.predict.cut import cut
from analyzer.predict.event_graph import event_graph
from analyzer.predict.prediction import Predictor, Replayed, assumptions_of
from analyzer.predict.steps import Steps, covered_steps, step_lengths
from analyzer.predict.validation import OddEven
from fixtures.predictions.case import Case, case_of, graph_of
from fixtures.predictions.interventions import INTERVENTIONS
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.program import Program
from fixtures.simulator.random_programs import random_program
from fixtures.simulator.random_ranks import random_ranks_program
from tests.laws.programs import SEEDS

SOME = SEEDS[::5]
FACTORS = ("kernel:.", "small-grids", "copies", "turnaround", "collective")
HOST_FACTORS = ("host", "host-work", "dispatch", "output")
NOTHING_CHECKED = OddEven(6, 0.0, 0.0, 0.0)


def predictor_of(case: Case) -> tuple[Predictor, Steps]:
    graph, steps = graph_of(simulate(case.program), case.form)
    return Predictor(graph, assumptions_of(graph, {})), steps


def gains(replayed: Replayed, steps: Steps) -> np.ndarray:
    """(m,) what the steps gain in the mean in every variant, ns."""
    was = step_lengths(replayed.base.graph, steps, replayed.base.times, replayed.base.scenarios.body_ns)
    now = step_lengths(replayed.base.graph, steps, replayed.times, replayed.scenarios.body_ns)
    return (was - now).mean(axis=0)


@pytest.mark.parametrize("seed", SOME)
def test_without_a_change_the_replay_is_the_capture(seed: int) -> None:
    predictor, steps = predictor_of(case_of(seed))
    graph = predictor.graph
    assert graph.dropped == 0
    replayed = predictor.replay(())
    assert (replayed.base.times[:, 0] == graph.at_ns).all()
    assert (replayed.times == replayed.base.times).all()
    found = replayed.predict(steps, NOTHING_CHECKED)
    assert found.middle_ns == pytest.approx(found.observed_ns)


@pytest.mark.parametrize("seed", SOME)
def test_a_factor_of_one_changes_nothing(seed: int) -> None:
    predictor, _ = predictor_of(case_of(seed))
    for name in (*FACTORS, *HOST_FACTORS):
        try:
            replayed = predictor.replay(parse(f"{name}=1"))
        except UsageError:
            assert name in FACTORS  # the capture may have no such work; every capture has a host
            continue
        assert (replayed.times == replayed.base.times).all(), name


@pytest.mark.timeout(300 + 20 * len(SOME))
def test_an_exact_program_gains_no_more_than_the_bound() -> None:
    """Those whose path goes through a wait for another thread's work have none."""
    bounded = 0
    exact = [seed for seed in SOME if seed % 2 == 0]
    for seed in exact:
        predictor, steps = predictor_of(case_of(seed))
        for one in INTERVENTIONS:
            try:
                replayed = predictor.replay(parse(one.spec))
            except UsageError:
                continue
            most = replayed.predict(steps, NOTHING_CHECKED).most_gain_ns
            if most is not None:
                bounded += 1
                assert gains(replayed, steps)[0] <= most, (seed, one.spec)
    assert bounded > 5 * len(exact)


@pytest.mark.parametrize("form", ["nsys", "kineto"])
@pytest.mark.parametrize("seed", SOME[:3])
def test_predictions_do_not_depend_on_the_order_of_the_files(seed: int, form: str, tmp_path: Path) -> None:
    run = simulate(random_ranks_program(seed, "hard", 4))
    files = (write_kineto if form == "kineto" else write_nsys)(run, tmp_path)
    asked = {"changes": ["host=0.5", "no-skew"]}
    first, again, reverse = (
        pipeline.analyze(pipeline.read(paths), **asked).diagnosis.whatif
        for paths in (files, files, files[::-1])
    )
    assert first == again == reverse
    assert len(first.changes) > 2 or first.withheld


def one_thread(seed: int) -> Program:
    """Two threads that run beside each other meet elsewhere once something was cut off."""
    programs = (random_program(seed + 10_000 * attempt, "exact", steps=14) for attempt in count())
    return next(program for program in programs if len(program.ranks[0].threads) == 1)


@pytest.mark.parametrize("seed", SOME[:6])
def test_a_cut_capture_predicts_the_same_steps(seed: int) -> None:
    """Within 2 % of the step: what came before the cut does not move."""
    graph, _ = graph_of(simulate(one_thread(seed)), "nsys")
    (place,) = graph.ranks
    part = cut(place.graph, 3, (len(place.graph.host) + len(place.graph.rows)) // 2)
    assert part is not None and len(part.rows) < len(place.graph.rows)
    cut_graph = event_graph([part], join_ranks([], ()))
    steps = covered_steps(cut_graph, Steps(0, tuple(range(14))))
    assert 4 <= len(steps) < 14
    for spec in ("kernel:.=0.5", "host=0.5", "graph-capture"):
        whole, less = (
            Predictor(one, assumptions_of(one, {})).replay(parse(spec)).predict(steps, NOTHING_CHECKED)
            for one in (graph, cut_graph)
        )
        assert less.observed_ns == whole.observed_ns
        assert less.middle_ns == pytest.approx(whole.middle_ns, abs=0.02 * whole.observed_ns), spec
