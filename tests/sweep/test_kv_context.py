"""``kv-context`` from a sweep: the share by hand, its verdicts, and what a diagnosis takes of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from analyzer.errors import InvariantError, TraceError
from analyzer.explain.swept_context import read_sweep, sweep_use, with_sweep
from analyzer.sweep import Given, sweep
from analyzer.sweep.kv_context import TWO
from analyzer.swept import Estimated, Sweep
from tests.sweep.builder import diagnosis, manifested, run, steps_of

HELD = {
    pin: pin
    for pin in ("model", "precision", "weights", "runtime", "flags", "hardware", "clocks", "topology")
}


def grown(
    slope_us: int, contexts: tuple[int, ...] = (1_000, 2_000, 4_000, 8_000), **more: str
) -> list[Given]:
    """Attention takes 20 us and ``slope_us`` more per 1,000 tokens."""
    return [
        run(f"c{context}", 20 + slope_us * context // 1_000, context=context, **more) for context in contexts
    ]


def test_the_share_is_what_grew_over_the_step_at_the_largest_context() -> None:
    found = sweep(grown(10))
    step = found.cells[3].step_ns.value
    row = found.kv_context
    assert row.share is not None and row.measured is not None
    assert row.share.value == pytest.approx(70_000 / step)
    assert row.measured.value == 70_000
    low, high = row.share.interval
    assert low < row.share.value < high
    # no more than all of attention at the largest context: 100 us
    assert high < 103_000 / step
    assert row.verdict == "supported"
    assert row.measured.kind == "fit"


def test_kernels_of_no_known_class_that_grow_contradict_nothing() -> None:
    """They may be attention; flat ones are as good as none."""
    unknown = sweep(grown(10, kernel="my_mixer_v7")).kv_context
    assert unknown.share is not None and unknown.share.value == 0.0
    assert unknown.share.interval[1] > 0.4
    assert (unknown.verdict, unknown.verdict_note.count("kernels of no known class grow")) == (
        "inconclusive",
        1,
    )
    flat = [run(f"c{at}", 20, context=1_000 * at, gemm_us=3_000, kernel="my_mixer_v7") for at in (1, 2, 4, 8)]
    assert sweep(flat).kv_context.verdict == "contradicted"


def test_each_cell_has_the_share_of_its_own_step() -> None:
    found = sweep(grown(10))
    step = found.cells[1].step_ns.value
    own = found.kv_by_cell["c2000"]
    assert own.share is not None
    assert own.share.value == pytest.approx(10_000 / step)
    assert found.kv_by_cell["c1000"].share.value == 0  # type: ignore[union-attr]


def test_no_growth_contradicts_and_two_contexts_decide_nothing() -> None:
    flat = [run(f"c{at}", 20, context=1_000 * at, gemm_us=3_000) for at in (1, 2, 4, 8)]
    assert sweep(flat).kv_context.verdict == "contradicted"
    two = sweep(grown(10, (1_000, 8_000))).kv_context
    assert two.verdict == "inconclusive"
    assert TWO in two.verdict_note


def test_without_a_second_context_it_is_unmeasured() -> None:
    runs = [run(f"b{batch}", 20 * batch, context=1_000, batch=batch) for batch in (1, 2, 4)]
    found = sweep(runs)
    assert found.kv_context.verdict == "unmeasured"
    assert found.kv_context.share is None


def used(found: Sweep, given: Given, boundary: str = "device") -> tuple[str, msgspec.Struct]:
    facts = given.diagnosis.run
    use = sweep_use(found, "sweep.json", given.diagnosis.time_zero_ns, given.diagnosis.ranks, facts)
    rows = with_sweep(given.diagnosis.hypotheses, found, use, boundary)
    (row,) = (row for row in rows if row.id == "kv-context")
    return use.relation, row


def test_a_cell_of_the_sweep_takes_its_own_row() -> None:
    runs = grown(10)
    found = sweep(runs)
    relation, row = used(found, runs[3])
    assert (relation, row.verdict) == ("cell", "supported")
    assert row.share == found.kv_context.share
    _, row = used(found, runs[0])
    assert row.share.value == 0


def test_a_sweep_of_steps_that_end_elsewhere_decides_nothing() -> None:
    runs = grown(10)
    relation, row = used(sweep(runs), runs[3], "host")
    assert (relation, row.verdict, row.share) == ("cell", "inconclusive", None)
    assert "make the sweep with `--boundary host`" in row.verdict_note


def test_a_cell_that_was_left_out_takes_nothing() -> None:
    runs = [*grown(10, model="m"), run("odd", 90, context=6_000, model="other")]
    relation, row = used(sweep(runs), runs[4])
    assert (relation, row.verdict) == ("other pins", "unmeasured")
    assert "differ in model" in row.verdict_note


def test_another_run_with_equal_pins_takes_the_share_but_no_times() -> None:
    runs = [manifested(one, **HELD, **one.declared) for one in grown(10)]
    found = sweep(runs)
    other = Given("x", diagnosis([100] * 6, zero_us=500))
    place = {"context": "8000", "batch": "1", "cache_initialization": "real-prefix"}
    relation, row = used(found, manifested(other, **HELD, **place))
    assert (relation, row.verdict, row.measured, row.gain_upper_bound_ns) == (
        "equal pins",
        "supported",
        None,
        None,
    )
    relation, row = used(found, manifested(other, **HELD, **{**place, "context": "16000"}))
    assert (relation, row.verdict, row.share) == ("equal pins", "inconclusive", None)


def test_a_run_of_undeclared_or_other_pins_takes_no_verdict() -> None:
    runs = [manifested(one, **HELD, **one.declared) for one in grown(10)]
    found = sweep(runs)
    other = Given("x", diagnosis([100] * 6, zero_us=500))
    relation, row = used(found, other)
    assert (relation, row.verdict, row.share) == ("undeclared pins", "inconclusive", None)
    assert "precision" in row.verdict_note
    relation, row = used(found, manifested(other, **{**HELD, "precision": "fp8"}))
    assert (relation, row.verdict) == ("other pins", "unmeasured")


def test_rows_of_other_phases_stay() -> None:
    runs = grown(10)
    found = msgspec.structs.replace(sweep(runs), phase="prefill")
    _, row = used(found, runs[3])
    assert row.verdict == "unmeasured"


def test_a_sweep_is_read_back_equal_and_other_files_are_refused(tmp_path: Path) -> None:
    found = sweep(grown(10))
    path = tmp_path / "sweep.json"
    path.write_bytes(found.to_json())
    assert read_sweep(path) == found
    assert read_sweep(path).to_json() == found.to_json()
    path.write_bytes(found.to_json().replace(b"tracebound.sweep", b"tracebound.other"))
    with pytest.raises(TraceError, match=r"sweep\.json"):
        read_sweep(path)
    with pytest.raises(TraceError, match="No such file"):
        read_sweep(tmp_path / "none.json")


def test_a_classes_error_is_that_of_its_mean_over_the_steps() -> None:
    # steps of 100 us and -1, 2, 0, -2, 1, 1, -1, 0: squares sum to 12, of 8 steps; neighbours are not correlated
    rows = {row.class_: row for row in diagnosis(steps_of(100)).classes}
    assert rows["attention"].path_error_ns == pytest.approx(1_000 * (12 / 7 / 8) ** 0.5)
    assert rows["gemm"].path_error_ns == 0
    assert {row.path_error_ns for row in diagnosis([100, 101, 99, 100]).classes} == {None}


def test_a_number_that_is_none_is_never_written() -> None:
    found = sweep(grown(10))
    line = msgspec.structs.replace(found.lines[0], slope=Estimated(value=float("nan"), ci95=None))
    with pytest.raises(InvariantError):
        msgspec.structs.replace(found, lines=[line]).to_json()


def test_what_grew_is_never_more_than_all_of_it() -> None:
    """Curved growth has a wide slope: its upper end stops at the path time of attention in the cell."""
    found = sweep([run(f"c{at}", 20 + 5 * at * at, context=1_000 * at) for at in (1, 2, 4, 8)])
    row, cell = found.kv_context, found.cells[3]
    assert found.lines[0].described is False
    assert row.share is not None and cell.attention_ns is not None
    assert row.share.value < row.share.interval[1] <= 1.02 * cell.attention_ns / cell.rank_step_ns < 1
