"""Several ranks against the simulator's truth: paths, clocks, invariants (attribution contract, section 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.diagnosis import Clock
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.random_ranks import groups_are_told, random_ranks_program, ranks_recording
from fixtures.simulator.recording import Recording
from fixtures.simulator.run import Run
from fixtures.simulator.truth import Truth, truth_of
from tests.laws.joint_programs import (
    differences,
    global_path,
    inside,
    one_way,
    own_path,
    true_global,
    true_split,
    wrong_ns,
    zero_of,
)
from tests.laws.programs import COUNT, FIRST, SEEDS, analyzed, run_of


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_of_an_exact_program_are_the_true_ones(seed: int, tmp_path: Path) -> None:
    run, truth = run_of(seed, "exact", ranks=2 + seed % 4)
    analysis = analyzed(run, tmp_path, "kineto" if seed % 3 else "nsys")
    account = analysis.diagnosis.global_
    assert account is not None and len(account.windows) == len(truth.global_paths)
    for window in range(len(account.windows)):
        assert global_path(analysis, window) == true_global(truth, window), window
    for rank, windows in truth.ranks.items():
        for window in range(len(windows)):
            assert own_path(analysis, rank, window) == true_split(truth, rank, window), (rank, window)


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_graphs_and_stages_are_split_right_or_not_at_all(seed: int, tmp_path: Path) -> None:
    program = random_ranks_program(seed, "exact")
    run = simulate(program)
    truth = truth_of(run)
    analysis = analyzed(run, tmp_path, "kineto")
    exact = not one_way(run) and groups_are_told(program)
    for rank, windows in truth.ranks.items():
        for window in range(len(windows)):
            mine, true = own_path(analysis, rank, window), true_split(truth, rank, window)
            assert wrong_ns(mine, true) == 0, (rank, window)
            if exact:
                assert mine == true, (rank, window)
    if exact and analysis.diagnosis.global_ is not None:
        for window in range(len(truth.global_paths)):
            assert global_path(analysis, window) == true_global(truth, window), window


def test_wrong_clocks_mislabel_little(tmp_path: Path) -> None:
    """Skew up to 5 ms and drift up to 50 ppm: at most 2 % of a window in the median, 5 % at p95."""
    joint, own = [], []
    for seed, run, truth, analysis in wrong_clocks(tmp_path, loss=False):
        joint += list(_global_shares(analysis, truth))
        own += list(_own_shares(analysis, truth))
        del seed, run
    assert np.median(joint) <= 0.02 and np.quantile(joint, 0.95) <= 0.05, f"seeds {SEEDS}"
    assert np.median(own) <= 0.02 and np.quantile(own, 0.95) <= 0.05, f"seeds {SEEDS}"


def test_lost_records_mislabel_little(tmp_path: Path) -> None:
    """One record in a hundred lost besides. The path through all ranks may go another way from a lost wait on."""
    joint, own = [], []
    for _, _, truth, analysis in wrong_clocks(tmp_path, loss=True):
        joint += list(_global_shares(analysis, truth))
        own += list(_own_shares(analysis, truth))
    assert np.median(joint) <= 0.02, f"seeds {SEEDS}"
    assert np.median(own) <= 0.02 and np.quantile(own, 0.95) <= 0.05, f"seeds {SEEDS}"


def wrong_clocks(folder: Path, *, loss: bool) -> Iterator[tuple[int, Run, Truth, Analysis]]:
    """Programs without stages (senders are never called waiting), each with wrong clocks."""
    for seed in SEEDS:
        program = random_ranks_program(seed, "exact")
        run = simulate(program)
        if one_way(run) or not groups_are_told(program):
            continue
        recording = ranks_recording(seed, len(program.ranks), clocks=True, drift=True, loss=loss)
        if recording.collective_metadata:
            yield seed, run, truth_of(run), analyzed(run, folder / str(seed), "kineto", recording)


def _global_shares(analysis: Analysis, truth: Truth) -> Iterator[float]:
    if analysis.diagnosis.global_ is None:
        return
    whole = global_path(analysis)
    for window, (span, path) in enumerate(truth.global_paths):
        mine = inside(whole, span.start_ns, span.end_ns)
        if path and mine:
            yield wrong_ns(mine, true_global(truth, window)) / (span.end_ns - span.start_ns)


def _own_shares(analysis: Analysis, truth: Truth) -> Iterator[float]:
    for entry in analysis.diagnosis.ranks:
        if entry.clock.reference_rank != 0 or entry.clock.offset_ns is None:
            continue
        whole = own_path(analysis, entry.rank)
        for window, found in enumerate(truth.ranks[entry.rank]):
            low, high = found.window.start_ns, found.window.end_ns
            mine = inside(whole, low, high)
            if found.split and mine:
                yield wrong_ns(mine, true_split(truth, entry.rank, window)) / (high - low)


def test_clocks_hold_the_true_offsets(tmp_path: Path) -> None:
    """Inside the guaranteed interval always; inside the uncertainty in 95 of 100; no interval wider than need be."""
    within = total = 0
    for seed in SEEDS:
        run, _ = run_of(seed, "hard", ranks=2 + seed % 4)
        ranks = len(run.program.ranks)
        recording = ranks_recording(seed, ranks, clocks=True, drift=True, loss=seed % 2 == 1)
        analysis = analyzed(run, tmp_path / str(seed), "kineto", recording)
        for entry in analysis.diagnosis.ranks[1:]:
            clock = entry.clock
            if clock.offset_ns is None or clock.reference_rank != 0:
                continue
            assert clock.interval_ns is not None and clock.uncertainty_ns is not None
            low, high = clock.interval_ns
            true = _true_offset(recording, entry.rank, clock, zero_of(analysis))
            assert low <= true <= high, (seed, entry.rank)
            assert high - low <= 2 * _tightest(run, recording, entry.rank) + 4, (seed, entry.rank)
            total += 1
            within += abs(true - clock.offset_ns) <= clock.uncertainty_ns
    assert total and binomtest(within, total, 0.95, alternative="less").pvalue >= 0.01, f"{within} of {total}"


def _true_offset(recording: Recording, rank: int, clock: Clock, zero: int) -> int:
    assert clock.epoch_ns is not None
    drift = (clock.epoch_ns + zero) * recording.drift_ppb.get(rank, 0) // 1_000_000_000
    return -(recording.clock_offset_ns.get(rank, 0) + drift)


def _tightest(run: Run, recording: Recording, rank: int) -> int:
    """Width that the narrowest single call of both ranks allows, ns. Lost rows can only widen it."""
    if recording.drop_any:
        return 1 << 60
    widths = []
    for meeting in run.meetings:
        if 0 in meeting.works and rank in meeting.works:
            a, b = meeting.works[0], meeting.works[rank]
            widths.append((a.end_ns - b.start_ns) + (b.end_ns - a.start_ns))
    return min(widths)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT // 10, 1)))
def test_shifting_a_clock_changes_only_its_offset(seed: int, tmp_path: Path) -> None:
    run, _ = run_of(seed, "exact", ranks=3)
    before = analyzed(run, tmp_path / "a", "kineto")
    after = analyzed(run, tmp_path / "b", "kineto", Recording(clock_offset_ns={1: 1_234_567, 2: -7_654}))
    assert _essence(before, offsets=False) == _essence(after, offsets=False)
    offsets = [rank.clock.offset_ns for rank in after.diagnosis.ranks]
    was = [rank.clock.offset_ns for rank in before.diagnosis.ranks]
    assert [a - b for a, b in zip(offsets, was, strict=True) if a is not None and b is not None] == [
        0, -1_234_567, 7_654,
    ]  # fmt: skip


def _essence(analysis: Analysis, *, offsets: bool) -> object:
    """The diagnosis without what may differ: files, their own times, and (unless asked for) offsets."""
    found = json.loads(analysis.to_json())
    found.pop("inputs")
    for rank in found["ranks"]:
        rank.pop("source")
        if not offsets:
            for name in ("offset_ns", "interval_ns"):
                rank["clock"].pop(name)
    for row in found["hypotheses"]:
        for entry in row["evidence"]:
            entry.pop("input")
            entry.pop("event_start_ns")
    return found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT // 10, 1)))
def test_the_order_of_files_and_the_executor_do_not_matter(seed: int, tmp_path: Path) -> None:
    run = simulate(random_ranks_program(seed, "hard"))
    files = write_kineto(run, tmp_path)
    first = pipeline.analyze(pipeline.read(files)).to_json()
    assert pipeline.analyze(pipeline.read(files[::-1])).to_json() == first
    with ThreadPoolExecutor(2) as executor, pipeline.opened(files, executor=executor) as capture:
        assert pipeline.analyze(capture, executor=executor).to_json() == first


def test_a_difference_is_seen() -> None:
    true = [(0, 10, "kernel@0"), (10, 30, "collective.wait@0")]
    assert differences([(0, 30, "kernel@0")], true) == [(20, "collective.wait@0", "kernel@0")]
    assert wrong_ns([(0, 10, "kernel@0"), (10, 30, "collective.unsplit@0")], true) == 0
