"""From an eager capture alone to its graph-captured twin: decode loops of two ranks that differ in what binds them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.predicted import PredictedChange
from fixtures.simulator import decode_loop
from fixtures.simulator.decode_loop import Shape
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.run import Run
from fixtures.simulator.windows import global_windows

RANKS, STEPS, LAYERS = 2, 8, 6
LAUNCH_BOUND = Shape(late_dispatches=1.0)
KERNEL_BOUND = Shape(kernels=12.0, late_dispatches=1.0)
COLLECTIVE_BOUND = Shape(transfers=40.0, late_dispatches=1.0)
LATE_RANK = Shape(late_rank=1, late_prepares=6.0, late_dispatches=1.0)


def analysis_of(shape: Shape, folder: Path, form: str = "nsys") -> Analysis:
    run = simulate(decode_loop.eager(RANKS, STEPS, LAYERS, shape))
    return pipeline.analyze(pipeline.read((write_kineto if form == "kineto" else write_nsys)(run, folder)))


def prediction_of(analysis: Analysis, change: str = "graph-capture") -> PredictedChange:
    (found,) = [row for row in analysis.diagnosis.whatif.changes if row.change == change]
    assert found.scope == "global"
    return found


def mean_step_ns(run: Run, analysis: Analysis) -> float:
    """Over the steps that the analysis used."""
    assert analysis.diagnosis.global_ is not None
    used = [
        window.index for window in analysis.diagnosis.global_.windows if not (window.warmup or window.empty)
    ]
    assert len(used) >= STEPS - 1
    windows = global_windows(run)
    return fmean(windows[at].end_ns - windows[at].start_ns for at in used)


@pytest.mark.parametrize("form", ["nsys", "kineto"])
@pytest.mark.parametrize(
    ("shape", "least_gain", "most_gain"),
    [
        pytest.param(LAUNCH_BOUND, 0.5, 0.7, id="launch-bound"),
        pytest.param(KERNEL_BOUND, 0.0, 0.02, id="kernel-bound"),
        pytest.param(COLLECTIVE_BOUND, 0.0, 0.15, id="collective-bound"),
        pytest.param(LATE_RANK, 0.4, 0.5, id="late-rank"),
    ],
)
def test_the_captured_twin_takes_a_time_within_the_range(
    shape: Shape, least_gain: float, most_gain: float, form: str, tmp_path: Path
) -> None:
    analysis = analysis_of(shape, tmp_path, form)
    found = prediction_of(analysis)
    assert found.predicted_step_ns is not None and found.step_ns is not None
    low, high = found.predicted_step_ns
    before, after = (
        mean_step_ns(simulate(loop(RANKS, STEPS, LAYERS, shape)), analysis)
        for loop in (decode_loop.eager, decode_loop.captured)
    )
    assert found.step_ns == round(before)
    assert low <= after <= high
    assert least_gain <= 1 - after / before <= most_gain  # the loop is what its name says
    assert high - low <= 0.1 * before
    assert least_gain - 0.05 <= 1 - high / before and 1 - low / before <= most_gain + 0.05


def test_of_the_kernel_bound_loop_it_says_little(tmp_path: Path) -> None:
    """At most 2 % of the step, though most launches would go: they are hidden behind kernels."""
    analysis = analysis_of(KERNEL_BOUND, tmp_path)
    found = prediction_of(analysis)
    assert found.predicted_step_ns is not None and found.step_ns is not None
    assert found.step_ns - found.predicted_step_ns[0] < 0.02 * found.step_ns
    bound = next(row for row in analysis.diagnosis.hypotheses if row.id == "kernel-bound")
    assert bound.verdict == "supported"
    faster = prediction_of(analysis, "kernel:.=0.5").predicted_step_ns
    assert faster is not None and faster[1] < 0.7 * found.step_ns
