"""The cross-rank timeline: which step and ranks it shows, where bars and the line lie, who is marked as late."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch

from analyzer import example, pipeline
from analyzer.analysis import Analysis
from analyzer.categories import Category
from analyzer.report.figures import rank_timeline
from analyzer.report.figures.palette import Fill
from analyzer.report.figures.rank_marks import BAR, LINE_AT, MOST_JUMPS
from analyzer.report.figures.rank_pixels import partition, shared_out
from analyzer.report.figures.rank_step import BLANK, LOOKS, WAITING, chosen_ranks, median_window, step_of
from analyzer.report.figures.rank_timeline import main_late_ranks
from analyzer.report.figures.sheet import Sheet, drawing
from tests.report import builder
from tests.report.builder import MS
from tests.report.figures import rank_tables
from tests.report.figures.rank_tables import account, joint, window

US = 1_000


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def sheet_of(analysis: Analysis) -> Sheet:
    with drawing():
        sheet = rank_timeline.draw(analysis)
        assert isinstance(sheet, Sheet)
        sheet.finish()
    return sheet


def bars(ax: Axes, fill: Fill) -> list[tuple[float, float, float]]:
    """(lane, left, right) of all bars of one look."""
    found = []
    for patch in ax.patches:
        if isinstance(patch, PathPatch) and patch.get_hatch() == (fill.hatch or None):
            if to_hex(patch.get_facecolor()).upper() != fill.colour:
                continue
            corners = np.asarray(patch.get_path().vertices).reshape(-1, 5, 2)
            for box in corners:
                assert box[:, 1].max() - box[:, 1].min() == pytest.approx(BAR)
                found.append((box[:, 1].min(), box[:, 0].min(), box[:, 0].max()))
    return [(lane, round(left, 2), round(right, 2)) for lane, left, right in sorted(found)]


def line(ax: Axes, width: float) -> list[tuple[float, float, float, float]]:
    """(x, lane, x, lane) of the pieces of one width of the path."""
    collection = next(
        c for c in ax.collections if isinstance(c, LineCollection) and c.get_linewidth()[0] == width
    )
    return [
        (
            round(float(a[0]), 2),
            round(float(a[1]) - LINE_AT),
            round(float(b[0]), 2),
            round(float(b[1]) - LINE_AT),
        )
        for a, b in collection.get_segments()
    ]


# the step


def test_the_step_is_the_median_of_the_longest_phase() -> None:
    lengths = (7, 5, 9, 100, 6)
    steps = [
        window(at, start_ns=0, end_ns=length * MS, warmup=length == 100) for at, length in enumerate(lengths)
    ]
    rest = [window(5, phase="prefill", start_ns=0, end_ns=30 * MS), window(6, end_ns=60 * MS, empty=True)]
    found, steps_of_phase = median_window(account(*steps, *rest))
    assert found is not None
    assert (found.index, steps_of_phase) == (4, 5)  # the lower one of 5, 6, 7 and 9
    only_warmup, _ = median_window(account(*(window(at, warmup=True) for at in range(3))))
    assert only_warmup is not None
    assert only_warmup.index == 1
    assert median_window(account(window(empty=True))) == (None, 0)


def test_every_reason_not_to_draw_is_told() -> None:
    whole = joint()
    alone = Analysis(builder.diagnosis(), whole.segment_table)
    assert step_of(alone) == "one rank alone waits for no other"
    apart = Analysis(builder.diagnosis(ranks=[builder.rank(0), builder.rank(1)]), whole.segment_table)
    assert step_of(apart) == "there is no path through all ranks"
    from_json = Analysis.from_json(whole.to_json())
    assert step_of(from_json) == "the path segments are not part of this result"
    empty = rank_tables.analysis(window(empty=True), [], [])
    assert step_of(empty) == "no step of all ranks has any time"
    without = rank_tables.analysis(window(), [(0, 0, 0, 5, 0, -1)], [])
    assert step_of(without) == "the path through all ranks has no segments in this result"


# the ranks


def test_up_to_sixteen_ranks_have_a_lane_each() -> None:
    assert chosen_ranks(window(ranks=16)) == list(range(16))


def test_of_many_ranks_those_that_matter_and_some_others_have_one() -> None:
    time = dict.fromkeys(range(512), 0) | {300: 5, 8: 4, 9: 1}
    step = window(ranks=512, late_ranks=[300, 77], last_rank=511, rank_ns=time)
    ranks = chosen_ranks(step)
    assert len(ranks) == 16
    assert ranks == sorted(set(ranks))
    assert {300, 77, 511, 8, 9} <= set(ranks)
    others = sorted(set(ranks) - {300, 77, 511, 8, 9})
    assert max(b - a for a, b in itertools.pairwise([0, *others, 511])) < 60
    assert chosen_ranks(step) == ranks


def test_very_many_late_ranks_leave_room_for_others() -> None:
    late = list(range(100, 140))
    step = window(ranks=200, late_ranks=late, last_rank=199, rank_ns=dict.fromkeys(range(200), 1))
    ranks = chosen_ranks(step)
    assert len(ranks) == 16
    assert set(late[:10]) <= set(ranks)
    assert 199 in ranks
    assert len(set(ranks) - set(late)) >= 4


def test_only_ranks_behind_a_good_part_of_real_waiting_stand_out() -> None:
    calls = {1: 2, 3: 6, 5: 4}
    assert main_late_ranks(window(late_calls=calls, waited_ns=MS)) == {3, 5}
    assert main_late_ranks(window(late_calls=calls, waited_ns=199 * US)) == set()
    assert main_late_ranks(window()) == set()


# what lies on the lanes


def test_the_others_wait_for_the_late_rank_and_the_path_goes_over() -> None:
    # two calls of 5 ms: 2.5 ms of kernels, 2 ms of waiting for rank 1, 0.5 ms of transfer
    sheet = sheet_of(joint(ranks=3, calls=2, late=lambda _: 1))
    lanes, waits = sheet.figure.axes
    off = 0.01  # a pixel
    expected = [(lane, left, left + 2) for lane in (0, 2) for left in (2.5, 7.5)]
    assert np.allclose(bars(lanes, LOOKS[WAITING]), expected, atol=off)
    assert [lane for lane, _, _ in bars(lanes, LOOKS["kernels"])] == [0, 0, 1, 1, 2, 2]
    assert np.allclose(line(lanes, 2.6), [(0, 1, 9.5, 1), (9.5, 0, 10, 0)], atol=off)
    assert np.allclose(line(lanes, 1.3), [(9.5, 1, 9.5, 0)], atol=off)
    (heads,) = (one for one in lanes.lines if one.get_marker() == "^")
    assert np.asarray(heads.get_xdata()) == pytest.approx([9.5], abs=off)
    assert [text.get_text() for text in waits.texts] == ["40.0 %", "0.0 %", "40.0 %"]
    assert bars_of_column(waits) == [(0.0, 40.0), (2.0, 40.0)]
    assert {text.get_text() for text in lanes.texts} == {"waits for rank 1"}


def bars_of_column(ax: Axes) -> list[tuple[float, float]]:
    paths = [path for collection in ax.collections for path in collection.get_paths()]
    return [(round(float(p.vertices[:, 1].min()), 2), round(float(p.vertices[:, 0].max()), 2)) for p in paths]


def test_late_ranks_are_named_on_their_lanes() -> None:
    labels = (
        sheet_of(joint(ranks=3, calls=5, late=lambda call: 1 if call else 2)).figure.axes[0].get_yticklabels()
    )
    assert [label.get_text() for label in labels] == [
        "rank 0",
        "rank 1\nlate in 4 calls",
        "rank 2\nlate in 1 call",
    ]
    assert [label.get_fontweight() for label in labels] == ["normal", "bold", "bold"]
    assert [label.get_bbox_patch() is not None for label in labels] == [False, True, False]


def test_words_name_the_late_ranks() -> None:
    sheet = sheet_of(joint(ranks=8, calls=16, late=lambda call: min(call, 7)))
    assert sheet.subtitle == (
        "10.000 ms, the one step of phase decode 7; boundary: device completion. For 4.000 ms of it (40.0 %) at"
        " least one rank waited for rank 7 (9 calls), rank 0 (1 call), rank 1 (1 call), rank 2 (1 call) or 4 more"
        " ranks."
    )
    assert sheet.alt_text == (
        "Timeline of decode 7 on all ranks, 10.000 ms, one lane per rank, waiting hatched. Ranks waited 4.000 ms for"
        " rank 7 (9 calls), rank 0 (1 call), rank 1 (1 call), rank 2 (1 call) or 4 more ranks. The path through all"
        " ranks ends on rank 0."
    )
    nobody = rank_tables.analysis(
        window(), [(rank, 0, 0, 10 * MS, 0, -1) for rank in (0, 1)], [(0, 0, 0, 10 * MS, 0, -1)]
    )
    sheet = sheet_of(nobody)
    assert "No rank is known to have waited" in sheet.subtitle
    assert sheet.alt_text.endswith("waiting hatched. The path through all ranks ends on rank 0.")
    assert sheet.note == ""


def test_time_outside_of_a_ranks_steps_stays_blank_and_other_steps_go_on_its_lane() -> None:
    step = window(1, windows={0: 1, 1: 1})  # 10 to 20 ms
    own = [
        (0, 0, 0, 11 * MS, Category.KERNEL, -1),  # the step before ends in this one
        (0, 1, 11 * MS, 20 * MS, Category.COPY, -1),
        (1, 1, 12 * MS, 19 * MS, Category.KERNEL, -1),
    ]
    analysis = rank_tables.analysis(step, own, [(0, 1, 10 * MS, 20 * MS, Category.COPY, -1)])
    found = step_of(analysis)
    assert not isinstance(found, str)
    looks = list(LOOKS)
    first, second = (lane.runs for lane in found.lanes)
    assert first.category.tolist() == [looks.index("kernels"), looks.index("copies")]
    assert second.category.tolist() == [BLANK, looks.index("kernels"), BLANK]
    assert second.start_ns.tolist() == pytest.approx([0, 2 * MS, 9 * MS], abs=10 * US)
    assert "Blank: outside of the rank's steps." in sheet_of(analysis).note


def test_ranks_without_a_lane_share_one_line() -> None:
    sheet = sheet_of(joint(ranks=64, calls=40, late=lambda call: call * 37 % 64))
    ax = sheet.figure.axes[0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len(labels) == 17
    assert labels[-1] == "ranks without\na lane"
    assert {lane for _, lane, _, _ in line(ax, 2.6)} >= {16}
    assert "48 ranks not drawn" in sheet.note
    assert "too close together, or between ranks without a lane" in sheet.note


def test_more_changes_of_rank_than_can_be_told_apart_are_counted() -> None:
    sheet = sheet_of(joint(ranks=8, calls=400, late=lambda call: call * 5 % 8))
    ax = sheet.figure.axes[0]
    assert not [one for one in ax.lines if one.get_marker() in ("v", "^")]
    assert len(line(ax, 2.6)) > MOST_JUMPS
    assert "400 changes of rank on the path not drawn: too close together." in sheet.note


def test_waits_far_below_a_pixel_are_drawn_as_the_share_that_they_are() -> None:
    step = step_of(joint(ranks=2, calls=10_000, late=lambda _: 1, span_ns=20 * MS))
    assert not isinstance(step, str)
    runs = step.lanes[0].runs
    waiting = (runs.end_ns - runs.start_ns)[runs.category == list(LOOKS).index(WAITING)].sum()
    assert waiting / (20 * MS) == pytest.approx(0.4, abs=0.01)


def test_a_capture_with_a_late_rank_shows_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("demo")
    eager = sorted(path for path in example.write(folder) if path.parent.name == "eager")
    sheet = sheet_of(pipeline.analyze(pipeline.read(eager)))
    labels = sheet.figure.axes[0].get_yticklabels()
    marked = [label.get_text() for label in labels if label.get_bbox_patch() is not None]
    assert marked == ["rank 5\nlate in 12 calls"]
    assert "for rank 5 (12 calls)" in sheet.subtitle


# a path without holes, in pixels


def test_a_ranks_own_step_goes_before_its_neighbours() -> None:
    # own step 10 to 20; the one before reaches into it, the one after begins in it
    row, start, end = partition(ints(0, 10, 18), ints(14, 20, 30), ints(-1, 0, 1), 5, 40)
    assert list(zip(row.tolist(), start.tolist(), end.tolist(), strict=True)) == [
        (0, 5, 10),
        (1, 10, 20),
        (2, 20, 30),
        (3, 30, 40),  # nothing
    ]
    row, start, end = partition(ints(), ints(), ints(), 5, 40)
    assert (row.tolist(), start.tolist(), end.tolist()) == ([0], [5], [40])


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(-1, 1)), max_size=12),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_any_segments_become_a_partition(parts: list[tuple[int, int, int]], low: int, span: int) -> None:
    start = ints(*(p[0] for p in parts))
    end = start + ints(*(p[1] for p in parts))
    row, since, until = partition(start, end, ints(*(p[2] for p in parts)), low, low + span)
    assert since[0] == low
    assert until[-1] == low + span
    assert since[1:].tolist() == until[:-1].tolist()
    assert (until > since).all()
    for at, a, b in zip(row.tolist(), since.tolist(), until.tolist(), strict=True):
        if at < len(parts):
            assert start[at] <= a < b <= end[at]


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(-1, 1)), min_size=1, max_size=40),
    st.integers(1, 50),
)
def test_pixels_show_what_lies_in_them_and_keep_the_shares(
    parts: list[tuple[int, int, int]], columns: int
) -> None:
    ends = np.cumsum([length for length, _, _ in parts])
    starts = ends - [length for length, _, _ in parts]
    look, late = ints(*(p[1] for p in parts)), ints(*(p[2] for p in parts))
    runs = shared_out(starts + 7, ends + 7, look, late, columns)
    span = int(ends[-1])
    assert runs.start_ns[0] == 0
    assert runs.end_ns[-1] == span
    assert runs.start_ns[1:].tolist() == runs.end_ns[:-1].tolist()
    pixel = -(-span // min(columns, span))
    of_ns = list(
        zip(np.repeat(look, ends - starts).tolist(), np.repeat(late, ends - starts).tolist(), strict=True)
    )
    for kind in set(of_ns):
        mine = (runs.category == kind[0]) & (runs.lane == kind[1])
        drawn = int((runs.end_ns - runs.start_ns)[mine].sum())
        assert abs(drawn - of_ns.count(kind)) <= 2 * pixel
        for low, high in zip(runs.start_ns[mine].tolist(), runs.end_ns[mine].tolist(), strict=True):
            assert kind in of_ns[low:high]
