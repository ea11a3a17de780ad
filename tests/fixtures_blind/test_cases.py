"""The generator: deterministic, within its limits, and of every kind that it promises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fixtures.blind import DEVELOPMENT, HELD_OUT, SPENT, __main__
from fixtures.blind.case import FEWEST_STEPS, blind_case
from fixtures.blind.scenario import CAUSES, MOST_TOGETHER, STRONGEST, Scenario, draw_scenario
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import kineto_text


def scenarios() -> list[Scenario]:
    return [draw_scenario(seed) for seed in DEVELOPMENT]


def test_the_halves_are_as_large_as_promised_and_apart() -> None:
    assert (len(DEVELOPMENT), len(SPENT), len(HELD_OUT)) == (240, 720, 240)
    assert len({*DEVELOPMENT, *SPENT, *HELD_OUT}) == 1200


@pytest.mark.parametrize("seed", [0, 12, 32])
def test_a_seed_gives_the_same_capture_again(seed: int) -> None:
    first, again = blind_case(seed), blind_case(seed)
    assert first == again
    text = kineto_text(simulate(first.program), 0, first.recording)
    assert text == kineto_text(simulate(again.program), 0, again.recording)


def test_every_cause_is_planted_often_and_some_captures_have_none() -> None:
    planted = Counter(plant.cause for scenario in scenarios() for plant in scenario.planted)
    assert set(planted) == set(CAUSES)
    assert min(planted.values()) >= 20
    assert sum(not scenario.planted for scenario in scenarios()) >= 15


def test_strengths_stay_within_their_limits() -> None:
    for scenario in scenarios():
        strengths = [plant.strength for plant in scenario.planted]
        assert all(0.01 < strength <= STRONGEST for strength in strengths)
        assert sum(strengths) <= MOST_TOGETHER + 1e-9
        assert scenario.filler not in {plant.cause for plant in scenario.planted}


def test_captures_vary_in_form_markers_threads_and_losses() -> None:
    drawn = scenarios()
    assert {scenario.form for scenario in drawn} == {"kineto", "nsys"}
    assert {scenario.flavour for scenario in drawn} == {"vllm", "sglang", "profiler", "nvtx"}
    assert {scenario.threads for scenario in drawn} == {"one", "scheduler", "backward", "background"}
    assert {bool(scenario.recording.drop_any) for scenario in drawn} == {True, False}
    assert {scenario.recording.sync_rows for scenario in drawn} == {True, False}
    assert {scenario.graph for scenario in drawn} == {True, False}


def test_a_program_has_at_least_its_fewest_steps() -> None:
    for seed in (2, 100, 147):
        run = simulate(blind_case(seed).program)
        assert FEWEST_STEPS <= len(run.steps[0]) <= 24


def test_a_development_capture_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    __main__.main(["147", str(tmp_path)])
    shown = capsys.readouterr().out
    assert (tmp_path / "rank0.pt.trace.json").exists()
    assert "planted: dependency-stalls 49%" in shown
    assert " 47.23 % dependency-stalls" in shown


def test_a_held_out_capture_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        __main__.main([str(HELD_OUT.start), str(tmp_path / "out")])
    assert "seeds 0 to 959 are for looking at" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
