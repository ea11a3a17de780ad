"""What profiling cost by the run's own steps: claimed only where the intervals lie apart, and one answer everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis, Hypothesis, Share
from analyzer.explain.check_up.examine import examine
from analyzer.explain.profiling_cost import ID, Cost, cost_of, distorts, notes, with_cost
from analyzer.report.markdown import render
from collectors.manifest import Inflation, Interval
from collectors.run_folder import RunFolder
from fixtures.simulator.program import Op
from tests.across.programs import host, team, written
from tests.explain.test_run import BASE, diagnosed, on_device
from tests.report.builder import diagnosis, hypothesis

LIMITS = {"supported_share": 0.1, "contradicted_share": 0.02, "distortion_share": 0.1}
US = 1_000


def told(profiled: int, plain: int, *spread: tuple[int, int], steps: int = 20, rank: int = 0) -> Cost:
    """Medians in us; ``spread``: the intervals of the profiled and of the plain one."""
    intervals = [Interval(low * US, high * US) for low, high in spread] or [None, None]
    return cost_of(rank, Inflation(profiled * US, plain * US, 20, steps, *intervals))


APART = told(1500, 1000, (1450, 1550), (950, 1050))
OVERLAPPING = told(1500, 1000, (1000, 1550), (950, 1050))
FEW = told(1500, 1000, steps=4)
SAME = told(1000, 1000, (998, 1002), (995, 1005))


def test_a_share_has_the_interval_that_both_medians_leave() -> None:
    assert APART.value == pytest.approx(1 / 3)
    assert APART.low == pytest.approx(1 - 1050 / 1450)
    assert APART.high == pytest.approx(1 - 950 / 1550)
    assert (FEW.low, FEW.high) == (0.0, 1.0)
    assert SAME.low == 0.0


def test_only_intervals_that_lie_apart_make_a_claim() -> None:
    assert notes([APART]) == [
        "Profiling made steps longer: 1.500 ms (median of 20, 95 % interval 1.450 to 1.550) with the profiler, 1.000 ms"
        " (median of 20, 95 % interval 0.950 to 1.050) without it, rank 0. It takes 27.6 to 38.7 % of a profiled step,"
        " and CPU shares are inflated."
    ]
    (overlap,) = notes([OVERLAPPING])
    assert overlap.startswith("Profiling may have made steps longer: 1.500 ms")
    assert overlap.endswith("The intervals overlap, so this is not told from chance.")
    (few,) = notes([FEW])
    assert "1.000 ms (median of 4, no interval) without it" in few
    assert few.endswith("there is no interval (it takes 6 steps of each), and the difference may be chance.")
    assert notes([SAME]) == notes([]) == []
    assert "rank 3" in notes([told(1500, 1000, steps=4), replace(APART, rank=3)])[0]  # a claim before a doubt


@pytest.mark.parametrize(
    ("cost", "verdict"),
    [(APART, "supported"), (OVERLAPPING, "inconclusive"), (FEW, "inconclusive"), (SAME, "contradicted")],
)
def test_the_verdict_says_what_the_note_says(cost: Cost, verdict: str) -> None:
    row = with_cost(hypothesis(ID, verdict="unmeasured", share=None, measured=None), [cost], LIMITS)
    assert row.verdict == verdict
    assert row.share == Share(value=cost.value, interval=(cost.low, cost.high))
    assert cost.words in row.verdict_note
    assert row.measured is not None
    assert (row.measured.value, row.measured.unit) == (
        (cost.of.profiled_step_ns - cost.of.plain_step_ns),
        "ns",
    )
    assert row.gain_upper_bound_ns is None


def test_other_hypotheses_and_a_stronger_case_stay() -> None:
    other, strong = hypothesis("host-bound"), hypothesis(ID, verdict="supported")
    assert with_cost(other, [APART], LIMITS) is other
    assert with_cost(strong, [FEW], LIMITS) is strong
    assert with_cost(strong, [], LIMITS) is strong
    assert with_cost(hypothesis(ID, verdict="contradicted"), [FEW], LIMITS).verdict == "inconclusive"


def test_a_certain_cost_weakens_all_verdicts() -> None:
    assert (
        distorts([APART], LIMITS) == "profiling takes at least 27.6 % of a step, by the run's own plain steps"
    )
    assert distorts([OVERLAPPING], LIMITS) == distorts([FEW], LIMITS) == distorts([], LIMITS) == ""


def row_of(found: Diagnosis) -> Hypothesis:
    return next(row for row in found.hypotheses if row.id == ID)


def test_a_run_says_it_once_and_everywhere_alike(tmp_path: Path) -> None:
    records = [BASE, replace(BASE, rank=1, inflation=replace(APART.of))]
    found = diagnosed(tmp_path, records, on_device)
    assert row_of(found).verdict == "supported"
    assert row_of(found).rank == 1
    assert any(note.startswith("Profiling made steps longer") for note in found.notes)
    assert any("under distortion: profiling takes" in row.verdict_note for row in found.hypotheses)
    assert found.run is not None
    assert found.run.ranks[1].profiled_interval_ns == (1_450_000, 1_550_000)
    assert (found.run.ranks[1].plain_steps, found.run.ranks[0].plain_steps) == (20, None)


def on_the_cpu(rank: int, _: int) -> tuple[Op, ...]:
    return (host(50_000 * (1 + rank)),)


def test_it_needs_no_device(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, [replace(BASE, inflation=FEW.of), replace(BASE, rank=1)], on_the_cpu)
    assert row_of(found).verdict == "inconclusive"
    assert {row.verdict for row in found.hypotheses if row.id != ID} == {"unmeasured"}


def test_the_check_up_does_not_say_that_it_cannot_be_answered(tmp_path: Path) -> None:
    home = RunFolder(tmp_path / "run")
    (file,) = written(team(1, on_the_cpu), home.path, "kineto")
    found = [home.describe(file, "kineto-json")]
    home.write(replace(BASE, world_size=None, inflation=FEW.of, files=found))
    capture = pipeline.read(home.path)
    answers = {
        row.id: row.answer
        for row in examine(capture, pipeline.analyze(capture).diagnosis, version="0").hypotheses
    }
    assert (answers[ID], answers["kernel-bound"]) == ("partly", "cannot")


def test_the_finding_shows_medians_as_such() -> None:
    row = with_cost(hypothesis(ID), [APART], LIMITS)
    text = render(msgspec.structs.replace(diagnosis(), hypotheses=[row]))
    assert "- **Measured**: 0.500 ms (measurement, rank 0, over 20 steps): median profiled step less" in text
