"""Every step is shown or counted, and both distributions share one axis of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes

from analyzer.comparison.result import Comparison
from analyzer.report.comparison_figures import step_times
from analyzer.report.comparison_figures.step_times import A_FILL, B_FILL, axis_range
from analyzer.report.figures.sheet import Sheet, drawing
from tests.report.comparison_builder import MS, US, comparison, times_about, work_check
from tests.report.comparison_figures.cases import CASES, one_spike
from tests.report.figures.test_palette import too_alike


def sheet_of(compared: Comparison) -> Sheet:
    with drawing():
        sheet = step_times.draw(compared)
        assert isinstance(sheet, Sheet)
        sheet.finish()
    return sheet


def marked(ax: Axes, marker: str) -> list[tuple[float, float]]:
    lines = (line for line in ax.lines if line.get_marker() == marker)
    return [
        (float(x), float(y))
        for line in lines
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
    ]


def test_each_step_is_a_dot_in_order_of_time() -> None:
    a_times, b_times = [9 * MS, 9_200 * US, 8_900 * US, 9_100 * US, 9 * MS], [8 * MS]
    a, b, _ = sheet_of(comparison(a_times=a_times, b_times=b_times)).figure.axes
    assert marked(a, "o") == [(1, 9), (2, 9.2), (3, 8.9), (4, 9.1), (5, 9)]
    assert marked(b, "o") == [(1, 8)]
    assert [label.get_text() for label in b.get_xticklabels()] == ["1"]
    assert a.get_title("left") == "A: 5 steps\nmedian 9.000 ms"
    assert b.get_title("left") == "B: 1 step\nmedian 8.000 ms"


def test_the_curves_rise_by_one_step_at_a_time_and_cross_50_percent_at_the_median() -> None:
    compared = comparison(a_times=[9 * MS, 11 * MS, 10 * MS, 12 * MS], b_times=[8 * MS])
    *_, both = sheet_of(compared).figure.axes
    a, b = both.lines[:2]
    shares = np.asarray(a.get_xdata()).tolist()
    assert shares == [0, 25, 25, 50, 50, 75, 75, 100]
    assert np.asarray(a.get_ydata()).tolist() == [9, 9, 10, 10, 11, 11, 12, 12]
    assert np.asarray(b.get_xdata()).tolist() == [0, 100]
    assert (a.get_linestyle(), b.get_linestyle()) == ("-", "--")
    assert both.get_xlim() == (0, 100)


def test_one_extreme_step_is_beyond_the_axis_and_said() -> None:
    sheet = sheet_of(one_spike())
    a, b, _ = sheet.figure.axes
    top = a.get_ylim()[1]
    assert top < 12
    assert len(marked(a, "o")) == 49
    ((x, y),) = marked(a, "^")
    assert x == 31
    assert top * 0.98 < y < top
    assert marked(b, "^") == []
    assert sheet.note.startswith(
        "Triangles are steps beyond the axis: 1 of A above (95.000 ms). The axis of time"
    )


def test_steps_below_the_axis_are_said_too() -> None:
    times = times_about(9 * MS, 200)
    times[3], times[7] = 2 * MS, 3 * MS
    sheet = sheet_of(comparison(a_times=times, b_times=times_about(9 * MS, 200)))
    assert [x for x, _ in marked(sheet.figure.axes[0], "v")] == [4, 8]
    assert "2 of A below (the shortest 2.000 ms)" in sheet.note


def test_a_second_mode_is_no_outlier() -> None:
    times = [*times_about(9 * MS, 90), *times_about(30 * MS, 10)]
    sheet = sheet_of(comparison(a_times=times))
    assert "Triangles" not in sheet.note
    assert len(marked(sheet.figure.axes[0], "o")) == 100


def test_very_many_steps_are_an_image_in_the_svg_and_all_there() -> None:
    sheet = sheet_of(CASES["10,000 steps"]())
    a, _, both = sheet.figure.axes
    assert len(marked(a, "o")) == 10_000
    assert "1 of B above (900.000 ms)" in sheet.note
    assert len(both.lines[0].get_xdata()) == 1_000  # type: ignore[arg-type]
    with drawing():
        assert len(sheet.svg()) < 400_000


step_lists = st.lists(st.integers(0, 100 * MS), min_size=1, max_size=60)


@given(step_lists, step_lists)
def test_any_axis_holds_the_middle_of_both_sides(a: list[int], b: list[int]) -> None:
    sides = [np.array(one, np.int64) for one in (a, b)]
    low, high = axis_range(sides)
    assert 0 <= low < high
    for side in sides:
        inside = ((side >= low) & (side <= high)).sum()
        assert len(side) - inside <= 0.05 * len(side) + 2
        if len(side) < 5:
            assert inside == len(side)


def test_an_axis_far_from_0_says_so_and_one_close_to_it_starts_there() -> None:
    assert sheet_of(comparison()).note == "The axis of time starts at 7.885 ms, not at 0."
    wide = sheet_of(comparison(a_times=[MS, 5 * MS], b_times=[3 * MS]))
    assert wide.figure.axes[0].get_ylim()[0] == 0
    assert wide.note == ""


def test_steps_that_hardly_differ_are_not_magnified() -> None:
    low, high = axis_range([np.array([9 * MS, 9 * MS + 1])] * 2)
    assert high - low >= 0.009 * 9 * MS


def test_the_words() -> None:
    sheet = sheet_of(comparison(work=work_check("unverifiable")))
    assert (
        sheet.title == "Phase decode, time of each step; medians A → B: 8.999 → 7.999 ms; work unverifiable"
    )
    assert sheet.alt_text == (
        "Time of each step in order of time, and cumulative distributions, phase decode; work unverifiable."
        " A: 50 steps, 8.951 to 9.049 ms, median 8.999 ms; B: 50 steps, 7.951 to 8.049 ms, median 7.999 ms."
    )


@pytest.mark.parametrize("side", ["A", "B"])
def test_without_steps_there_is_no_figure(side: str) -> None:
    empty = comparison(a_times=[]) if side == "A" else comparison(b_times=[])
    assert step_times.draw(empty) == f"no step time of {side} is part of this result"


def test_both_sides_differ_in_grey_and_for_the_colour_blind() -> None:
    assert too_alike([A_FILL, B_FILL], 25, 10, 20) == []
