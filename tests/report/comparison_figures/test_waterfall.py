"""The floating bars lead from A's mean step to B's, small ones are pooled, and a cut axis says so."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from analyzer.comparison.result import Comparison
from analyzer.report.comparison_figures import waterfall
from analyzer.report.comparison_figures.waterfall import FASTER, MEAN, SLOWER, bars_of, baseline
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.sheet import Sheet, drawing
from analyzer.report.labels import CATEGORY_WORDS
from tests.report.comparison_builder import A_NS, B_NS, MS, US, comparison, work_check
from tests.report.comparison_figures.cases import CASES, changed_by
from tests.report.figures.test_figures import rectangles
from tests.report.figures.test_palette import too_alike


def sheet_of(compared: Comparison) -> Sheet:
    with drawing():
        sheet = waterfall.draw(compared)
        assert isinstance(sheet, Sheet)
        sheet.finish()
    return sheet


def drawn(ax: Axes, fill: Fill) -> list[tuple[float, float, int]]:
    """(left, right, row) of the bars of one fill, in ms."""
    boxes = rectangles(ax, fill.colour, fill.hatch)
    return [(round(left, 6), round(right, 6), round((low + high) / 2)) for left, right, low, high in boxes]


def texts(ax: Axes) -> list[str]:
    return [text.get_text().strip() for text in ax.texts]


def test_bars_lead_from_a_to_b_the_largest_difference_first() -> None:
    sheet = sheet_of(comparison())
    (ax,) = sheet.figure.axes
    assert drawn(ax, MEAN) == [(0, 9, 0), (0, 8, 5)]
    assert drawn(ax, FASTER) == [(8, 9, 1), (7.8, 8, 2)]
    assert drawn(ax, SLOWER) == [(7.8, 7.9, 3), (7.9, 8, 4)]
    assert texts(ax) == [
        "9.000 ms",
        "-1.000 ms (-11.1 %)",
        "-0.200 ms (-2.2 %)",
        "+0.100 ms (+1.1 %)",
        "+0.100 ms (+1.1 %)",
        "8.000 ms",
    ]
    labels = [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    assert labels[:2] == ["A: mean of 50 steps", "launch.api: CPU inside launch calls"]
    assert labels[-1] == "B: mean of 50 steps"
    (lines,) = (one for one in ax.collections if isinstance(one, LineCollection))
    assert [round(float(line[0][0]), 6) for line in lines.get_segments()] == [9, 8, 7.8, 7.9, 8]
    assert ax.get_xlim()[0] == 0
    assert sheet.note == ""


nanoseconds = st.dictionaries(st.sampled_from(list(CATEGORY_WORDS)), st.integers(0, 50 * MS))


@given(nanoseconds, nanoseconds)
def test_any_bars_are_one_chain_and_hold_every_difference_once(
    a_ns: Mapping[str, int], b_ns: Mapping[str, int]
) -> None:
    pair = comparison(a_ns=a_ns, b_ns=b_ns).pairs[0]
    bars = bars_of(pair)
    changed = {name: ns for name, ns in pair.delta_ns.items() if ns}
    assert sorted(name for bar in bars for name in bar.names) == sorted(changed)
    if not bars:
        assert pair.a.mean == pair.b.mean
        return
    assert [bars[0].start_ns, *(bar.end_ns for bar in bars)] == [
        *(bar.start_ns for bar in bars),
        bars[-1].end_ns,
    ]
    assert (bars[0].start_ns, bars[-1].end_ns) == (pair.a.mean, pair.b.mean)
    assert min(bar.end_ns for bar in bars) >= 0
    for bar in bars:
        assert bar.delta_ns == sum(changed[name] for name in bar.names)
    assert 0 <= baseline(pair, bars) <= min(pair.a.mean, *(bar.end_ns for bar in bars))


def test_small_differences_are_one_bar_and_are_named_below() -> None:
    # 0.5 % of 9 ms are 45 us
    b_ns = changed_by({"copy": 44_999, "host.api": -20 * US, "profiler": 5 * US, "host.wait": 45 * US}, B_NS)
    a_ns = changed_by(
        {"copy": 0, "host.api": 20 * US, "profiler": 0, "host.wait": 0, "kernel": -20 * US}, A_NS
    )
    pair = comparison(a_ns=a_ns, b_ns=b_ns).pairs[0]
    *_, waits, others = bars_of(pair)
    assert waits.names == ("host.wait",)
    assert others.names == ("copy", "host.api", "profiler")
    assert (others.label, others.delta_ns) == ("others (3)", 44_999 - 40 * US + 5 * US)
    note = sheet_of(comparison(a_ns=a_ns, b_ns=b_ns)).note
    assert note == "Others, the largest first: copy, host.api, profiler; summed with their signs."


def test_a_single_small_difference_keeps_its_name() -> None:
    pair = comparison(b_ns=changed_by({"copy": 4 * US}, B_NS)).pairs[0]
    assert bars_of(pair)[-1].label == "copy: copies and fills running on the device"


def test_where_all_differences_are_small_the_largest_of_them_are_named() -> None:
    changes = {"kernel": -27 * US, "launch.api": 3 * US, "copy": 2 * US, "profiler": 1 * US}
    sheet = sheet_of(comparison(b_ns=changed_by(changes, A_NS)))
    (ax,) = sheet.figure.axes
    names = [label.get_text().partition(":")[0] for label in ax.get_yticklabels()]
    assert names == ["A", "kernel", "launch.api", "others (2)", "B"]
    assert texts(ax)[1:4] == ["-0.027 ms (-0.30 %)", "+0.003 ms (+0.03 %)", "+0.003 ms (+0.03 %)"]


def test_pooled_differences_that_cancel_are_still_told() -> None:
    changes = {"kernel": -MS, "launch.api": 3 * US, "launch.latency": -3 * US}
    sheet = sheet_of(comparison(b_ns=changed_by(changes, A_NS)))
    (ax,) = sheet.figure.axes
    assert texts(ax)[2] == "0.000 ms (0.0 %)"
    assert [entry.label for entry in sheet.legends[0][1]] == ["mean step", "B faster (-)"]


def test_an_axis_that_does_not_start_at_0_is_marked() -> None:
    sheet = sheet_of(comparison(b_ns=changed_by({"kernel": -27 * US}, A_NS)))
    (ax,) = sheet.figure.axes
    base = ax.get_xlim()[0]
    assert base == 8.96
    assert ax.get_xlabel() == "ms per step; the axis starts at 8.96 ms, not at 0"
    assert drawn(ax, MEAN) == [(base, 9, 0), (base, 8.973, 2)]
    assert len(ax.lines) == 4  # both edges of the gap in each mean step
    assert "cut at the gap" in sheet.note
    left, right, _ = drawn(ax, FASTER)[0]
    assert right - left > 0.3 * (ax.get_xlim()[1] - base)


def test_differences_far_below_a_microsecond_are_told_to_the_nanosecond() -> None:
    sheet = sheet_of(comparison(a_ns={"kernel": 20_000}, b_ns={"kernel": 19_600, "copy": 7}))
    assert sheet.title.endswith("mean step A → B: 0.020000 → 0.019607 ms (-2.0 %); no difference shown")
    assert texts(sheet.figure.axes[0]) == [
        "0.020000 ms",
        "-0.000400 ms (-2.0 %)",
        "+0.000007 ms (+0.0 %)",
        "0.019607 ms",
    ]


def test_what_is_told_sums_like_the_reports_table() -> None:
    a_ns = {"kernel": 1_000_400, "launch.api": 2_000_400, "copy": 3_000_400}
    b_ns = {"kernel": 1_500_600, "launch.api": 2_500_600, "copy": 3_500_600}
    told = [text.split(" ")[0] for text in texts(sheet_of(comparison(a_ns=a_ns, b_ns=b_ns)).figure.axes[0])]
    units = [round(float(text) * 1_000) for text in told]
    assert units[0] + sum(units[1:-1]) == units[-1]
    assert (units[0], units[-1]) == (6_001, 7_502)


def test_the_title_says_what_must_not_be_overlooked() -> None:
    def title(compared: Comparison) -> str:
        return sheet_of(compared).title

    plain = "Phase decode, mean step A → B: 9.000 → 8.000 ms (-11.1 %)"
    assert title(comparison()) == title(comparison(work=work_check("equivalent"))) == plain
    assert title(comparison(work=work_check("different"))) == f"{plain}; work differs"
    assert title(comparison(work=work_check("unverifiable"))) == f"{plain}; work unverifiable"
    unsure = comparison(work=work_check("different"), a_times=[9 * MS])
    assert title(unsure) == f"{plain}; no difference shown; work differs"
    sheet = sheet_of(unsure)
    assert "no difference shown; work differs" in sheet.alt_text
    assert sheet.subtitle == (
        "Rank 0; boundary: device completion. Fewer than 5 steps on one side. Work: 30.00% of A's and 12.00% of"
        " B's device time per step has no partner: 100 kernels."
    )


def test_sides_that_differ_in_name_rank_and_boundary_are_both_named() -> None:
    base = comparison()
    replace = msgspec.structs.replace
    pair = replace(base.pairs[0], phase_b="step", rank_b=3)
    sheet = sheet_of(replace(base, pairs=[pair], b=replace(base.b, boundary="host")))
    assert sheet.title.startswith("Phases decode (A) and step (B), mean step")
    assert sheet.subtitle.startswith("Rank 0 (A), 3 (B); boundary: device completion (A), host range (B).")
    pair = replace(pair, rank_a=None, rank_b=None, scope="global")
    assert sheet_of(replace(base, pairs=[pair])).subtitle.startswith("All ranks together; boundary:")


def test_words_for_those_who_do_not_see_it() -> None:
    assert sheet_of(comparison()).alt_text == (
        "Waterfall from the mean step of A, 9.000 ms, to that of B, 8.000 ms, phase decode. By what bound the step:"
        " launch.api -1.000 ms (-11.1 %); host.framework -0.200 ms (-2.2 %); kernel +0.100 ms (+1.1 %);"
        " launch.latency +0.100 ms (+1.1 %)."
    )
    assert sheet_of(CASES["all categories"]()).alt_text.endswith("-0.712 ms (-3.3 %); 20 more bars.")
    assert sheet_of(comparison(phase="")).title.startswith("Phase without a name, mean step")


@pytest.mark.parametrize("b_ns", [A_NS, {**A_NS, "copy": 0}])
def test_without_a_difference_there_is_no_figure(b_ns: Mapping[str, int]) -> None:
    assert waterfall.draw(comparison(b_ns=b_ns)) == "no category differs between the mean steps"
    assert waterfall.draw(comparison(pairs=[])) == "no phase of A stands against one of B"


def test_a_step_of_no_time_is_no_division_by_zero() -> None:
    sheet = sheet_of(comparison(a_ns={"kernel": 0}, b_ns={"kernel": 8 * MS}, a_times=[0], b_times=[8 * MS]))
    assert texts(sheet.figure.axes[0]) == ["0.000 ms", "+8.000 ms (-)", "8.000 ms"]


def test_faster_slower_and_the_means_are_told_apart_in_grey_and_by_the_colour_blind() -> None:
    colours = [Fill(fill.colour) for fill in (MEAN, FASTER, SLOWER)]
    assert too_alike(colours[:2], 25, 10, 20) == too_alike(colours[1:], 25, 10, 20) == []
    assert too_alike([MEAN, FASTER, SLOWER], 25, 10, 20) == []
    assert FASTER.hatch != SLOWER.hatch
