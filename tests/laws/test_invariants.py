"""Invariants of the attribution contract on simulated captures with wrong clocks and missing rows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from analyzer.categories import DEVICE_CATEGORIES, Category
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.random_programs import random_recording
from fixtures.simulator.recording import Recording
from tests.laws.programs import COUNT, FIRST, analyzed, run_of

SEEDS = range(FIRST, FIRST + max(COUNT // 2, 1))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_windows_tile_and_both_partitions_sum(seed: int, form: str, tmp_path: Path) -> None:
    run, _ = run_of(seed, "hard", ranks=1 + seed % 2)
    analysis = analyzed(run, tmp_path, form, random_recording(seed, ranks=1 + seed % 2))
    check_partitions(analysis)


def check_partitions(analysis: Analysis) -> None:
    """Segments are sorted, disjoint, gapless; windows tile; sums hold; busy time is never inferred."""
    table = analysis.segment_table
    assert table is not None
    for rank in analysis.diagnosis.ranks:
        previous = None
        for window in rank.windows:
            rows = (table.rank == rank.rank) & (table.window == window.index)
            start, end = table.start_ns[rows], table.end_ns[rows]
            assert int((end - start).sum()) == window.end_ns - window.start_ns == sum(window.path_ns.values())
            if len(start):
                assert (start[0], end[-1]) == (window.start_ns, window.end_ns)
                assert np.array_equal(start[1:], end[:-1])
                assert (end > start).all()
            if window.exposed_ns is not None:
                assert sum(window.exposed_ns.values()) == window.end_ns - window.start_ns
            if analysis.diagnosis.boundary == "device" and previous is not None:
                assert window.start_ns == previous
            previous = window.end_ns
    busy = np.isin(table.category, [int(category) for category in DEVICE_CATEGORIES])
    assert not table.inferred[busy].any()
    assert not table.inferred[table.category == Category.PROFILER].any()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT // 5, 1)))
def test_order_of_events_and_names_of_streams_do_not_matter(seed: int, tmp_path: Path) -> None:
    run, _ = run_of(seed, "hard")
    (path,) = write_kineto(run, tmp_path)
    before = pipeline.analyze(pipeline.read([path]))
    trace = json.loads(path.read_text())
    random.Random(seed).shuffle(trace["traceEvents"])
    trace["traceEvents"] = [_with_stream(event, 500) for event in trace["traceEvents"]]
    path.write_text(json.dumps(trace))
    after = pipeline.analyze(pipeline.read([path]))
    assert _essence(before) == _essence(after)


def _with_stream(event: dict[str, object], shift: int) -> dict[str, object]:
    """The event with every stream that it names renamed."""
    arguments = event.get("args")
    if not isinstance(arguments, dict):
        return event
    changed = {
        key: int(value) + shift if key in ("stream", "wait_on_stream") and int(value) >= 0 else value
        for key, value in arguments.items()
    }
    on_stream = str(event.get("cat")).startswith(("kernel", "gpu_mem"))
    return {**event, "args": changed, **({"tid": changed["stream"]} if on_stream else {})}


def _essence(analysis: Analysis) -> object:
    """Everything that must not change: windows, budgets, segments without stream names."""
    table = analysis.segment_table
    assert table is not None
    columns = (table.window, table.start_ns, table.end_ns, table.category, table.binding, table.inferred)
    names = [table.names[code] if code >= 0 else "" for code in table.name.tolist()]
    return (
        analysis.diagnosis.budget,
        [rank.windows for rank in analysis.diagnosis.ranks],
        [column.tolist() for column in columns],
        names,
        [(entry.id, entry.verdict, entry.share) for entry in analysis.diagnosis.hypotheses],
    )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(COUNT // 5, 1)))
def test_two_runs_and_two_jobs_give_the_same_bytes(seed: int, tmp_path: Path) -> None:
    run, _ = run_of(seed, "exact", ranks=2)
    files = write_kineto(run, tmp_path)
    first = pipeline.analyze(pipeline.read(files)).to_json()
    assert pipeline.analyze(pipeline.read(files)).to_json() == first
    if seed == FIRST:  # starting worker processes is slow; one program shows it
        assert pipeline.analyze(pipeline.read(files, jobs=2), jobs=2).to_json() == first


OPPOSITE = {("supported", "contradicted"), ("contradicted", "supported")}


@pytest.mark.parametrize("seed", SEEDS)
def test_removing_records_never_turns_a_verdict_into_the_opposite(seed: int, tmp_path: Path) -> None:
    run, _ = run_of(seed, "hard" if seed % 2 else "exact")
    whole = _verdicts(analyzed(run, tmp_path / "whole", "nsys"))
    for name, recording in (
        ("sync", Recording(sync_rows=False)),
        ("events", Recording(event_rows=False)),
        ("both", Recording(sync_rows=False, event_rows=False)),
    ):
        less = _verdicts(analyzed(run, tmp_path / name, "nsys", recording))
        flipped = {key for key in whole if (whole[key], less.get(key, whole[key])) in OPPOSITE}
        assert not flipped, (name, flipped)


def _verdicts(analysis: Analysis) -> dict[tuple[str, str], str]:
    return {(entry.id, entry.phase): entry.verdict for entry in analysis.diagnosis.hypotheses}
