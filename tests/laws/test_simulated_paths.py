"""The path against the simulator's truth: exact where the contract says exact, close elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analyzer.analysis import Analysis
from analyzer.categories import EXPOSURE_NAMES
from fixtures.simulator.recording import Recording
from fixtures.simulator.truth import Truth
from tests.laws.joint_programs import own_path, true_split
from tests.laws.programs import (
    COUNT,
    FIRST,
    SEEDS,
    analyzed,
    mislabelled,
    path_of,
    rank_of,
    run_of,
    true_path,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_exact_program_gives_the_true_path_and_exposure(seed: int, tmp_path: Path) -> None:
    run, truth = run_of(seed, "exact")
    analysis = analyzed(run, tmp_path, "kineto")
    windows = rank_of(analysis, 0).windows
    assert len(windows) == len(truth.ranks[0])
    for window, true in zip(windows, truth.ranks[0], strict=True):
        assert path_of(analysis, 0, window.index) == true_path(truth, 0, window.index)
        expected: dict[str, int] = {}
        for piece in true.exposed:
            label = EXPOSURE_NAMES[piece.label]
            expected[label] = expected.get(label, 0) + piece.end_ns - piece.start_ns
        assert window.exposed_ns is not None
        assert {label: ns for label, ns in window.exposed_ns.items() if ns} == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_both_formats_give_the_same_analysis(seed: int, tmp_path: Path) -> None:
    run, _ = run_of(seed, "exact")
    kineto = analyzed(run, tmp_path / "kineto", "kineto")
    nsys = analyzed(run, tmp_path / "nsys", "nsys")
    for mine, other in zip(kineto.diagnosis.ranks, nsys.diagnosis.ranks, strict=True):
        assert len(mine.windows) == len(other.windows)
        for window, twin in zip(mine.windows, other.windows, strict=True):
            assert path_of(kineto, mine.rank, window.index) == path_of(nsys, other.rank, twin.index)
            assert window.exposed_ns == twin.exposed_ns
            assert (window.phase, window.kernels, window.launches) == (
                twin.phase,
                twin.kernels,
                twin.launches,
            )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT // 5, 1)))
def test_every_rank_of_an_exact_program_gives_its_true_path(seed: int, tmp_path: Path) -> None:
    run, truth = run_of(seed, "exact", ranks=3)
    analysis = analyzed(run, tmp_path, "kineto")
    for rank, windows in truth.ranks.items():
        for at in range(len(windows)):
            assert own_path(analysis, rank, at) == true_split(truth, rank, at), (rank, at)


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(None, id="complete"),
        pytest.param(Recording(sync_rows=False), id="without sync rows"),
        pytest.param(Recording(sync_rows=False, event_rows=False), id="without sync and event rows"),
    ],
)
def test_hard_programs_are_mislabelled_little(recording: Recording | None, tmp_path: Path) -> None:
    """Branches, joins, jitter, hand-overs: at most 2 % of a window in the median, 5 % at p95."""
    shares = []
    for seed in SEEDS:
        run, truth = run_of(seed, "hard")
        analysis = analyzed(run, tmp_path / str(seed), "kineto", recording)
        shares += _shares(analysis, truth)
    assert np.median(shares) <= 0.02, f"seeds {SEEDS}"
    assert np.quantile(shares, 0.95) <= 0.05, f"seeds {SEEDS}"


def _shares(analysis: Analysis, truth: Truth) -> list[float]:
    result = []
    for at, true in enumerate(truth.ranks[0]):
        length = true.window.end_ns - true.window.start_ns
        if length:
            result.append(mislabelled(path_of(analysis, 0, at), true_path(truth, 0, at)) / length)
    return result
