"""Slopes of literal grids: hand-worked, and what two points, flat lines and bent ones allow to say."""

from __future__ import annotations

import pytest

from analyzer.sweep import sweep
from analyzer.swept import Line, Sweep
from tests.sweep.builder import run


def over_context(times: dict[int, int], batch: int = 1, **more: object) -> list:
    return [run(f"c{context}", mean, context=context, batch=batch, **more) for context, mean in times.items()]


def line(found: Sweep, axis: str = "context") -> Line:
    (only,) = (one for one in found.lines if one.axis == axis)
    return only


def test_the_slope_of_a_straight_grid_is_that_of_its_attention() -> None:
    # attention takes 20 us and 10 us more per 1,000 tokens; everything else is constant
    found = line(sweep(over_context({1_000: 30, 2_000: 40, 4_000: 60, 8_000: 100})))
    assert found.places == [1_000, 2_000, 4_000, 8_000]
    assert found.unit == "ns per 1,000 tokens"
    assert found.slope.value == pytest.approx(10_000)
    assert found.slope.ci95[0] < 10_000 < found.slope.ci95[1]
    assert found.classes["attention"].value == pytest.approx(10_000)
    assert found.attention.value == pytest.approx(10_000)
    assert found.classes["gemm"].value == pytest.approx(0, abs=1e-6)
    assert found.categories["kernel"].value == pytest.approx(10_000)
    assert (found.finding, found.described, found.between_runs) == ("grows", True, True)
    assert [round(piece.slope.value) for piece in found.pieces] == [10_000, 10_000, 10_000]


def test_slopes_of_categories_sum_to_that_of_the_step() -> None:
    runs = [
        run("a", [30, 33, 29, 31, 34, 30], context=1_000, gemm_us=40),
        run("b", [50, 41, 49, 47, 52, 45], context=3_000, gemm_us=52),
        run("c", [60, 69, 77, 71, 68, 66], context=5_000, gemm_us=47),
        run("d", [90, 101, 96, 99, 97], context=9_000, gemm_us=55),
    ]
    found = line(sweep(runs))
    assert sum(part.value for part in found.categories.values()) == pytest.approx(found.slope.value)


@pytest.mark.parametrize("times", [{1_000: 60, 64_000: 60}, {1_000: 30, 64_000: 90}])
def test_two_points_flat_or_not_establish_nothing(times: dict[int, int]) -> None:
    found = line(sweep(over_context(times)))
    assert found.finding == "two points"
    assert not found.between_runs
    assert "no slope, and no constancy" in found.statement
    assert "not O(1)" in found.statement


def test_two_places_stay_two_points_however_often_they_are_repeated() -> None:
    runs = [
        run(f"{context}-{at}", [60 + at, 61, 59, 60, 60], context=context)
        for context in (1_000, 64_000)
        for at in range(3)
    ]
    assert line(sweep(runs)).finding == "two points"


def test_three_flat_points_show_no_growth_beyond_a_number_between_two_contexts() -> None:
    found = line(sweep(over_context({1_000: 60, 16_000: 60, 64_000: 60})))
    assert found.finding == "no growth seen"
    assert (
        f"beyond {found.slope.ci95[1]:,.0f} ns per 1,000 tokens between 1,000 and 64,000" in found.statement
    )
    assert "O(1)" not in found.statement and "constant" not in found.statement


def test_a_bent_grid_is_not_described_by_a_line_and_shows_its_pieces() -> None:
    found = line(sweep(over_context({1_000: 20, 2_000: 22, 4_000: 30, 8_000: 110, 16_000: 500})))
    assert found.described is False
    assert "A line does not describe it" in found.statement
    slopes = [piece.slope.value for piece in found.pieces]
    assert slopes == sorted(slopes)
    assert slopes[-1] == pytest.approx(390_000 / 8)


def test_repeats_that_differ_as_much_as_the_misfit_take_its_blame() -> None:
    runs = [
        *over_context({1_000: 60, 2_000: 80, 4_000: 90}),
        run("again-1", 75, context=1_000),
        run("again-2", 66, context=2_000),
        run("again-4", 104, context=4_000),
    ]
    found = line(sweep(runs))
    assert found.described is True
    assert len(found.cells) == 6
    alone = line(sweep(over_context({1_000: 60, 2_000: 80, 4_000: 90})))
    assert alone.described is False


def test_lines_over_batch_and_context_are_apart() -> None:
    runs = [
        run(f"c{context}b{batch}", 20 + context // 100 * batch, context=context, batch=batch)
        for context in (1_000, 2_000, 4_000)
        for batch in (1, 2, 4)
    ]
    found = sweep(runs)
    slopes = {(one.axis, one.at): one.slope.value for one in found.lines}
    assert slopes[("context", 4)] == pytest.approx(40_000)
    assert slopes[("batch", 4_000)] == pytest.approx(40_000)
    assert len(slopes) == 6


def test_caches_initialized_otherwise_are_never_on_one_line() -> None:
    runs = over_context({1_000: 30, 2_000: 40, 4_000: 60}) + over_context(
        {3_000: 50, 8_000: 100}, cache="synthetic"
    )
    found = sweep(runs)
    assert [(one.cache_initialization, one.places) for one in found.lines] == [
        ("real-prefix", [1_000, 2_000, 4_000]),
        ("synthetic", [3_000, 8_000]),
    ]
    assert any("several ways" in note for note in found.notes)


def test_the_order_of_the_runs_changes_no_line() -> None:
    runs = over_context({1_000: 30, 2_000: 43, 4_000: 58, 8_000: 103})
    found, again = sweep(runs), sweep(runs[::-1])
    assert found.lines == again.lines
    assert found.kv_context == again.kv_context


def test_an_interval_that_includes_0_as_no_line_fits_is_no_flatness():
    """100, 200 and 400 us of attention at 1k, 4k and 16k: one degree of freedom, far from any line."""
    runs = [run(f"c{at}", us, context=at) for at, us in ((1_024, 100), (4_096, 200), (16_384, 400))]
    (found,) = sweep(runs).lines
    assert found.slope.ci95 is not None and found.slope.ci95[0] < 0 < found.slope.ci95[1]
    assert found.described is False and found.finding == "not told"
    assert found.statement.startswith(
        "Neither growth nor its absence is shown between 1,024 and 16,384 tokens"
    )
    assert all(piece.slope.ci95 is not None and piece.slope.ci95[0] > 0 for piece in found.pieces)
