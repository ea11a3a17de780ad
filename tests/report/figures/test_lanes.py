"""Rows of the timeline: pixels, runs, nesting, and which lanes are shown."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzer.report.figures.detail_step import Step
from analyzer.report.figures.lanes import arrange, dominant, merged, path_lanes
from analyzer.tables import DetailKind
from tests.report.figures import tables
from tests.report.figures.tables import COMM, COMPUTE, EVENTS, MAIN, OTHER, detail_table


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_only_bars_below_a_pixel_are_joined() -> None:
    # pixels of 10: two narrow ones close together, one far away, two wide ones that touch
    first, start, end = merged(ints(0, 8, 50, 100, 120), ints(3, 12, 52, 120, 140), 10)
    assert first.tolist() == [0, 2, 3, 4]
    assert start.tolist() == [0, 50, 100, 120]
    assert end.tolist() == [12, 52, 120, 140]
    assert merged(ints(), ints(), 10)[0].tolist() == []


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 40)), max_size=40), st.integers(1, 50))
def test_joining_covers_all_bars_and_invents_less_than_a_pixel(
    bars: list[tuple[int, int]], pixel: int
) -> None:
    bars = sorted((start, start + length) for start, length in bars)
    start, end = ints(*(b[0] for b in bars)), ints(*(b[1] for b in bars))
    _, low, high = merged(start, end, pixel)
    for begin, finish in bars:
        assert any(a <= begin and finish <= b for a, b in zip(low.tolist(), high.tolist(), strict=True))
    covered = np.zeros(600, bool)
    drawn = np.zeros(600, bool)
    for begin, finish in bars:
        covered[begin : max(finish, begin + 1)] = True  # a bar without length still has its instant
    for begin, finish in zip(low.tolist(), high.tolist(), strict=True):
        drawn[begin:finish] = True
    gaps = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], drawn & ~covered, [0]]))))[::2]
    assert (gaps < pixel).all()


def test_a_pixel_goes_to_what_has_most_of_it() -> None:
    # 100 ns in 4 pixels of 25: a gap of 1 ns in every pixel is not half of the picture
    start = ints(0, 24, 25, 49, 50, 90)
    end = ints(24, 25, 49, 50, 90, 100)
    runs = dominant(start, end, ints(0, 1, 0, 1, 0, 2), ints(0, 0, 0, 0, 0, 3), 4)
    assert runs.start_ns.tolist() == [0]
    assert (runs.end_ns.tolist(), runs.category.tolist(), runs.lane.tolist()) == ([100], [0], [0])
    runs = dominant(start, end, ints(0, 1, 0, 1, 0, 2), ints(0, 0, 0, 0, 0, 3), 10)
    assert runs.start_ns.tolist() == [0, 90]
    assert runs.category.tolist() == [0, 2]
    assert runs.lane.tolist() == [0, 3]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3), st.integers(-1, 2)), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_runs_tile_the_step_and_agree_with_brute_force(
    parts: list[tuple[int, int, int]], columns: int
) -> None:
    ends = np.cumsum([length for length, _, _ in parts])
    starts = ends - [length for length, _, _ in parts]
    category, lane = ints(*(p[1] for p in parts)), ints(*(p[2] for p in parts))
    runs = dominant(starts + 7, ends + 7, category, lane, columns)
    assert runs.start_ns[0] == 0
    assert runs.end_ns[-1] == ends[-1]
    assert runs.start_ns[1:].tolist() == runs.end_ns[:-1].tolist()
    columns = min(columns, int(ends[-1]))
    edges = [int(ends[-1]) * at // columns for at in range(columns + 1)]
    owner = np.repeat(np.arange(len(parts)), [length for length, _, _ in parts])
    for low, high in itertools.pairwise(edges):
        time: dict[tuple[int, int], int] = {}
        for ns in range(low, high):
            key = (int(category[owner[ns]]), int(lane[owner[ns]]))
            time[key] = time.get(key, 0) + 1
        at = int(np.searchsorted(runs.start_ns, low, "right")) - 1
        assert time[int(runs.category[at]), int(runs.lane[at])] == max(time.values())


def test_ops_and_ranges_nest_without_the_calls_between_them() -> None:
    rows, hidden = arrange(detail_table(), [0, 0, 0, 0])
    main = rows[0]
    assert hidden == 0
    assert [row.lane for row in rows] == [MAIN, OTHER, COMPUTE, COMM]
    assert main.levels == 2
    assert main.level.tolist() == [0, 1, -1, 1, -1, -1]  # range, op, launch, op, launch, held call
    assert [row.levels for row in rows[1:]] == [0, 0, 0]
    assert all(low.bottom < high.top for low, high in itertools.pairwise(rows))


def test_frames_are_shown_only_where_nothing_else_nests() -> None:
    frames = tuple((DetailKind.FRAME, lane, 0, 20.0, 21.0, "f", None) for lane in (MAIN, OTHER))
    rows, _ = arrange(detail_table((*EVENTS, *frames)), [0, 0, 0, 0])
    by_lane = {row.lane: row for row in rows}
    assert by_lane[OTHER].levels == 1
    kinds = detail_table((*EVENTS, *frames)).kind[detail_table((*EVENTS, *frames)).lane == MAIN]
    assert by_lane[MAIN].level[kinds == DetailKind.FRAME].tolist() == [-1]


def test_lanes_with_path_time_win_over_busy_ones() -> None:
    lanes = (*(f"thread {at}" for at in range(9)), "device 0 stream 7", "device 0 stream 20")
    events = tuple((DetailKind.API, at, 0, 20.0, 21.0 + at, "call", None) for at in range(9))
    rows, hidden = arrange(detail_table(events, lanes), [5, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    assert [row.lane for row in rows] == [0, 6, 7, 8, 9]
    assert hidden == 6


def test_path_places_are_found_by_name() -> None:
    table = tables.segment_table()
    rows = np.arange(len(table))
    assert path_lanes(table, rows, tables.LANES).tolist() == [MAIN, MAIN, COMPUTE, COMPUTE, COMM]
    assert path_lanes(table, rows, tables.LANES[2:]).tolist() == [-1, -1, 0, 0, 1]


def test_a_pixel_is_a_share_of_the_step() -> None:
    step = Step(tables.DETAIL, detail_table(), tables.segment_table(), ints(0), ints(0), 0, 8_200 * 144)
    assert step.pixel_ns == 1_000.0
