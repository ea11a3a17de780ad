"""Several ranks: the step is the path through all of them, the classes are the slowest rank's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.report.sweep import render_sweep
from analyzer.sweep import Given, sweep
from fixtures.simulator.decode_loop import Shape, captured, single_gpu
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto


def cell(folder: Path, context: int, kernels: float) -> Given:
    """Two ranks whose kernels take ``kernels`` times as long; the replay keeps the device busy."""
    where = folder / str(context)
    where.mkdir()
    program = captured(ranks=2, steps=6, layers=2, shape=Shape(kernels=kernels, late_rank=1))
    paths = write_kineto(simulate(program), where, compress=False)
    diagnosis = pipeline.analyze(pipeline.read([str(path) for path in paths]), own_changes=False).diagnosis
    return Given(f"c{context}", diagnosis, {"context": str(context), "cache_initialization": "seek"})


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("ranks")
    return sweep([cell(folder, at * 1_000, 1 + at) for at in (1, 2, 4)])


def test_the_step_is_that_of_all_ranks_and_its_categories_sum(found) -> None:
    assert {one.scope for one in found.cells} == {"global"}
    for one in found.cells:
        assert sum(one.mean_ns.values()) == pytest.approx(one.step_ns.value)
        assert one.batch.value == 8 and one.batch.source == "step names"
    (line,) = found.lines
    assert sum(part.value for part in line.categories.values()) == pytest.approx(line.slope.value)
    assert line.finding == "grows"
    assert line.described


def test_classes_are_of_one_rank_and_kv_context_names_it(found) -> None:
    (line,) = found.lines
    row = found.kv_context
    assert row.scope == "rank" and row.rank in (0, 1)
    largest = found.cells[2]
    assert row.rank == largest.rank
    assert row.share.value == pytest.approx(line.attention.value * 3 / largest.rank_step_ns)
    assert line.attention.value == pytest.approx(
        sum(part.value for name, part in line.classes.items() if name.startswith(("attention", "kv_cache")))
    )
    # two layers of split attention, its combination and the cache write: 22.7 us at 1 x, each 1,000 tokens once more
    assert line.attention.value == pytest.approx(2 * 22_700, rel=0.05)
    assert "path through all ranks" in render_sweep(found)


def test_runs_of_one_rank_among_them_are_their_slowest_ranks(found, tmp_path: Path) -> None:
    runs = [cell(tmp_path, at * 1_000, 1 + at) for at in (1, 2)]
    where = tmp_path / "alone"
    where.mkdir()
    program = single_gpu(steps=6)
    paths = write_kineto(simulate(program), where, compress=False)
    alone = pipeline.analyze(pipeline.read([str(path) for path in paths]), own_changes=False).diagnosis
    mixed = sweep([*runs, Given("alone", alone, {"context": "4000", "cache_initialization": "seek"})])
    assert {one.scope for one in mixed.cells} == {"rank"}
    assert any("slowest rank's own path" in note for note in mixed.notes)
    assert "ranks" in [one.pin for one in mixed.cells[2].unlike]
