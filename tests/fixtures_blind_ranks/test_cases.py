"""The generator: deterministic, within its limits, and of every kind that it promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.blind.scenario import STRONGEST, WEAKEST
from fixtures.blind_ranks import DEVELOPMENT, HELD_OUT, SPENT, __main__
from fixtures.blind_ranks.case import Measure, affordable_steps, blind_ranks_case, operations, solved
from fixtures.blind_ranks.forward import FILLER
from fixtures.blind_ranks.loop import build
from fixtures.blind_ranks.scenario import (
    CAUSES,
    FEWEST_STEPS,
    MOST_OPERATIONS,
    MOST_STEPS,
    Scenario,
    draw_scenario,
)
from fixtures.blind_ranks.shares import LATE_RANK, late_calls, true_shares, wait_shares, waited_for_share
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import kineto_text
from fixtures.simulator.windows import global_windows


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    return [draw_scenario(seed) for seed in (*DEVELOPMENT, *SPENT)]


def test_the_halves_are_as_large_as_promised_and_apart() -> None:
    sets = (DEVELOPMENT, SPENT, HELD_OUT)
    assert ([len(each) for each in sets], len(set().union(*sets))) == ([120, 480, 240], 840)


@pytest.mark.parametrize("seed", [3, 44, 93])
def test_a_seed_gives_the_same_capture_again(seed: int) -> None:
    first, again = blind_ranks_case(seed), blind_ranks_case(seed)
    assert first == again
    text = kineto_text(simulate(first.program), 1, first.recording)
    assert text == kineto_text(simulate(again.program), 1, again.recording)


def test_every_cause_is_planted_often(drawn: list[Scenario]) -> None:
    for part in (drawn[: len(DEVELOPMENT)], drawn[len(DEVELOPMENT) :]):
        planted = Counter(scenario.cause for scenario in part)
        assert set(planted) == set(CAUSES)
        assert min(planted.values()) >= len(part) // 12


def calls_of(scenario: Scenario) -> int:
    """Collectives of one rank in a step, at most."""
    layers = range(scenario.layers)
    if scenario.loop.graph:
        return len(layers) + scenario.pieces * (len(scenario.exchanges) - 1)
    return sum(exchange.called_after(at, len(layers)) for exchange in scenario.exchanges for at in layers)


def test_strengths_and_sizes_stay_within_their_limits(drawn: list[Scenario]) -> None:
    for scenario in drawn:
        strong = WEAKEST <= scenario.strength <= STRONGEST
        assert strong if scenario.cause != "none" else scenario.strength == 0
        assert 2 <= scenario.ranks <= 8
        assert 8 <= calls_of(scenario) <= 60
        assert FEWEST_STEPS <= scenario.loop.steps <= MOST_STEPS
        assert 0 <= scenario.loop.machine.collective_end_jitter_ns <= 15_000
        assert scenario.late_rank < scenario.ranks


def test_recordings_vary(drawn: list[Scenario]) -> None:
    recordings = [scenario.recording for scenario in drawn]
    assert Counter(scenario.form for scenario in drawn).keys() == {"kineto", "nsys", "nsys, one file"}
    for trait in ("clock_offset_ns", "drift_ppb", "device_shift_ns", "drop_any", "lost_ranks"):
        assert {bool(getattr(recording, trait)) for recording in recordings} == {True, False}
    offsets = [abs(ns) for recording in recordings for ns in recording.clock_offset_ns.values()]
    assert 4_000_000 < max(offsets) <= 5_000_000
    assert max(abs(ppb) for recording in recordings for ppb in recording.drift_ppb.values()) <= 50_000
    assert {recording.collective_metadata for recording in recordings} == {True, False}
    assert {scenario.loop.graph for scenario in drawn} == {True, False}


def test_whom_a_call_belongs_to_is_always_knowable(drawn: list[Scenario]) -> None:
    assert {len(scenario.exchanges) for scenario in drawn} == {1, 2}
    for scenario in drawn:
        halves = [exchange for exchange in scenario.exchanges if exchange.halves]
        assert len(halves) <= 1
        assert scenario.recording.collective_metadata or not halves
        assert not (scenario.exchanges[0].halves and scenario.loop.graph)
        assert any(len(group.ranks) == scenario.ranks for group in scenario.groups)
        if scenario.form == "nsys, one file":
            assert not scenario.recording.clock_offset_ns
        if scenario.recording.lost_ranks:
            assert scenario.form == "kineto"


def test_most_causes_come_near_their_strength() -> None:
    small = [
        scenario
        for scenario in map(draw_scenario, DEVELOPMENT)
        if scenario.strength and scenario.ranks * scenario.layers * scenario.kernels < 150
    ]
    assert {scenario.cause for scenario in small} == {*CAUSES} - {"none"}
    near = []
    for scenario in small:
        amounts = solved(scenario)
        measure = Measure(scenario, affordable_steps(scenario, amounts), plain=True)
        near.append(abs(measure(amounts) / scenario.strength - 1) < 0.2)
    assert sum(near) >= 0.9 * len(near)


@pytest.mark.parametrize("seed", [15, 29, 90])
def test_a_case_is_no_larger_than_can_be_simulated(seed: int) -> None:
    scenario = draw_scenario(seed)
    assert scenario.ranks >= 4
    for cause in (0.0, 1.0):
        amounts = {FILLER: scenario.loop.step_ns, scenario.cause: cause * scenario.loop.step_ns}
        steps = affordable_steps(scenario, amounts)
        assert steps >= FEWEST_STEPS
        assert operations(build(scenario, amounts, steps)) < 1.1 * MOST_OPERATIONS


def test_balanced_ranks_without_jitter_never_wait() -> None:
    for seed in (3, 44, 60):
        scenario = draw_scenario(seed)
        assert scenario.cause == "none"
        machine = replace(scenario.loop.machine, launch_jitter_ns=0, collective_end_jitter_ns=0)
        loop = replace(scenario.loop, cpu_jitter=0.0, kernel_jitter=0.0, machine=machine)
        exact = replace(scenario, loop=loop, start_spread_ns=0)
        run = simulate(build(exact, solved(exact), 4, plain=True))
        windows = global_windows(run)
        assert true_shares(run, windows, range(len(windows)))[LATE_RANK] == 0
        assert waited_for_share(run, windows, range(len(windows))) == 0
        assert not late_calls(run.meetings)
        assert set(wait_shares(run).values()) == {0.0}


def test_a_development_capture_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    __main__.main(["93", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.count("waits") == draw_scenario(93).ranks
    assert "planted: late-rank-work more kernels 9%" in shown
    assert "% collective-late-rank" in shown
    assert list(tmp_path.iterdir())


def test_a_held_out_capture_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main([str(HELD_OUT.start), str(tmp_path / "out")])
    assert "seeds 0 to 599 are for looking at" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_lost_rank_has_no_file(tmp_path: Path) -> None:
    seed = next(seed for seed in DEVELOPMENT if draw_scenario(seed).recording.lost_ranks)
    case = blind_ranks_case(seed)
    names = {path.name for path in case.write(simulate(case.program), tmp_path)}
    assert names == {f"rank{rank}.pt.trace.json" for rank in case.seen}
    assert len(case.seen) == case.scenario.ranks - 1
    assert not case.complete
