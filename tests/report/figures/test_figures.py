"""Which figures are drawn, what lies in them, and that the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import msgspec
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from PIL import Image

from analyzer import example, pipeline
from analyzer.analysis import Analysis
from analyzer.categories import CATEGORY_NAMES
from analyzer.diagnosis import Budget
from analyzer.report.figures import (
    NAMES,
    Drawn,
    Figures,
    budget_over_steps,
    exposed_time,
    figure_links,
    figures,
    kernels_on_path,
    launch_and_queue,
    timeline,
)
from analyzer.report.figures.palette import PATH_FILLS
from analyzer.report.figures.sheet import Sheet, drawing
from analyzer.report.labels import DEVICE_PATH
from analyzer.tables import QueueTable
from tests.report import builder
from tests.report.builder import MS
from tests.report.figures import rank_tables, tables

ROOT = Path(__file__).resolve().parents[3]


def sheet_of(module: Any, analysis: Analysis) -> Sheet:
    with drawing():
        sheet = module.draw(analysis)
        assert isinstance(sheet, Sheet)
        sheet.finish()
    return sheet


def rectangles(ax: Axes, colour: str | None = None, hatch: str | None = None) -> list[tuple[float, ...]]:
    """(left, right, bottom, top) of all areas, of one fill if asked."""
    found = []
    for collection in ax.collections:
        if not isinstance(collection, PolyCollection):
            continue
        face = matplotlib.colors.to_hex(collection.get_facecolor()[0]).upper()
        if colour in (None, face) and hatch in (None, collection.get_hatch() or ""):
            for path in collection.get_paths():
                (left, bottom), (right, top) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.append((left, right, bottom, top))
    return found


@cache
def whole() -> Figures:
    """All figures of the literal analysis."""
    return figures(tables.analysis())


def test_all_figures_of_a_whole_analysis_are_drawn() -> None:
    result = whole()
    assert [one.name for one in result.drawn] == list(NAMES)
    assert result.not_drawn == ()
    for one in result.drawn:
        assert Image.open(io.BytesIO(one.png)).size[0] == 1_440
        root = ET.fromstring(one.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert one.title in one.svg.decode()
        assert b"<dc:date>" not in one.svg
        assert len(one.svg) < 400_000
        assert len(one.alt_text) > 60
    assert list(result.files())[:2] == ["budget_over_steps.svg", "budget_over_steps.png"]


def test_what_is_not_there_is_not_drawn_and_named() -> None:
    from_json = Analysis.from_json(tables.analysis().to_json())
    result = figures(from_json)
    assert [one.name for one in result.drawn] == ["budget_over_steps", "exposed_time", "collective_price"]
    assert {one.name: one.why for one in result.not_drawn} == {
        "rank_timeline": "the path segments are not part of this result",
        "timeline": "the events of one step are not part of this result",
        "launch_and_queue": "the queue over time is not part of this result",
        "kernels_on_path": "the path segments are not part of this result",
    }


def test_without_device_work_nothing_of_the_device_is_drawn() -> None:
    windows = [builder.window(2, exposed_ns=None)]
    nothing = builder.diagnosis(
        ranks=[builder.rank(windows=windows)],
        budget=[builder.budget(windows=1, exposed_ns_total=None)],
        detail=None,
    )
    host_path = tables.segment_table(tables.PATH[:2])
    result = figures(Analysis(nothing, host_path, tables.queue_table(0), None))
    assert [one.name for one in result.drawn] == ["budget_over_steps"]
    assert {one.name: one.why for one in result.not_drawn}["kernels_on_path"] == (
        "no device work lies on the path of phase decode, rank 0"
    )


def test_a_result_without_steps_has_no_figures() -> None:
    empty = builder.diagnosis(ranks=[builder.rank(windows=[])], budget=[], detail=None)
    assert figures(Analysis(empty, None)).drawn == ()
    assert figures(Analysis(builder.diagnosis(ranks=[], budget=[]), None)).drawn == ()


def test_a_step_without_any_time_is_no_division_by_zero() -> None:
    nothing = builder.path()
    windows = [builder.window(2, end_ns=20 * MS, path_ns=nothing, exposed_ns=builder.exposed())]
    zero = builder.budget(
        windows=1, step_ns_total=0, path_ns_total=nothing, exposed_ns_total=builder.exposed()
    )
    diagnosis = builder.diagnosis(ranks=[builder.rank(windows=windows)], budget=[zero], detail=tables.DETAIL)
    table = tables.segment_table(((0, tables.COMPUTE, 20.0, 20.0, "k"),))
    result = figures(tables.analysis(diagnosis, segment_table=table))
    assert [one.name for one in result.not_drawn] == [
        "rank_timeline", "timeline", "kernels_on_path", "collective_price"
    ]  # fmt: skip


def test_links_lead_from_the_report_to_the_files() -> None:
    links = figure_links([Drawn("timeline", "One step", "what is seen", b"", b"")])
    assert links == [("timeline", "One step", "what is seen", "diagnosis/figures/timeline.svg")]


def test_settings_of_the_user_have_no_influence_and_stay() -> None:
    before = whole().files()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True}):
        after = figures(tables.analysis()).files()
        assert matplotlib.rcParams["font.size"] == 30
    assert before == after


SCRIPT = """
import hashlib, sys
from tests.report.figures import tables
from analyzer.report.figures import figures
files = figures(tables.analysis()).files()
assert "matplotlib.pyplot" not in sys.modules
print(hashlib.sha256(b"".join(files.values())).hexdigest())
"""


def test_another_process_draws_the_same_bytes_without_pyplot() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "MPLBACKEND": "svg"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    here = hashlib.sha256(b"".join(whole().files().values())).hexdigest()
    assert found.stdout.strip() == here


def test_the_command_line_starts_without_matplotlib() -> None:
    script = "import sys, analyzer.cli, analyzer.report.outputs; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


# budgets over steps


def test_the_columns_of_a_step_add_up_to_the_step() -> None:
    sheet = sheet_of(budget_over_steps, tables.analysis())
    decode, prefill = sheet.figure.axes
    for ax, columns in ((decode, 4), (prefill, 1)):
        heights = dict.fromkeys(range(columns), 0.0)
        for fill in {fill.colour for fill in PATH_FILLS.values()}:
            for left, right, bottom, top in rectangles(ax, fill):
                heights[round((left + right) / 2)] += top - bottom
        assert list(heights.values()) == pytest.approx([10.0] * columns)
    assert [label.get_text() for label in decode.get_xticklabels()] == ["1", "2", "3", "4"]
    assert "decode, rank 0: mean step 10.000 ms (3 steps, 1 left out)" in decode.get_title("left")
    greyed = [box for box in rectangles(decode, "#FFFFFF", "xx") if box[3] > box[2]]
    assert [round((left + right) / 2) for left, right, _, _ in greyed] == [0]  # step 1, the warm-up


def test_very_many_steps_become_means_of_bins_and_nothing_is_lost() -> None:
    windows = [
        builder.window(at, path_ns=builder.path(kernel=at, copy=2), end_ns=at * 10 * MS + at + 2)
        for at in range(1_001)
    ]
    diagnosis = builder.diagnosis(ranks=[builder.rank(windows=windows)])
    panel = budget_over_steps.panel_of(diagnosis, builder.budget(windows=1_001))
    assert panel is not None
    assert panel.per == 3
    assert panel.index[:3].tolist() == [0, 3, 6]
    names = list(PATH_FILLS)
    assert panel.parts_ns[:2, names.index("kernel")].tolist() == [1.0, 4.0]
    assert panel.parts_ns[-1, names.index("kernel")] == 999.5  # the last bin holds two steps
    assert panel.slowest_ns[:2].tolist() == [4, 7]


def test_a_step_far_above_the_others_is_cut_and_said() -> None:
    slow = builder.window(4, end_ns=40 * MS + 900 * MS, path_ns=builder.path(kernel=900 * MS))
    windows = [*(builder.window(at) for at in range(4)), slow]
    budget = builder.budget(windows=5, step_ns_total=940 * MS)
    diagnosis = builder.diagnosis(ranks=[builder.rank(windows=windows)], budget=[budget])
    sheet = sheet_of(budget_over_steps, tables.analysis(diagnosis))
    # five steps: their 95th percentile is close to the slow one, so nothing is cut
    assert sheet.note == ""
    many = [*(builder.window(at) for at in range(60)), slow]
    diagnosis = builder.diagnosis(ranks=[builder.rank(windows=many)], budget=[budget])
    sheet = sheet_of(budget_over_steps, tables.analysis(diagnosis))
    assert sheet.figure.axes[0].get_ylim()[1] == pytest.approx(15.12)
    assert "1 in phase decode, the longest step 900.000 ms" in sheet.note


# exposed time


def test_rows_are_the_slowest_ranks_of_each_phase() -> None:
    budgets = [
        builder.budget("decode", number, 1, step_ns_total=(10 + number % 5) * MS) for number in range(20)
    ]
    rows, hidden = exposed_time.rows_of(builder.diagnosis(budget=budgets))
    assert [row.rank for row in rows[:5]] == [4, 9, 14, 19, 3]
    assert (len(rows), hidden) == (16, 4)


def test_each_bar_is_the_whole_step() -> None:
    path, device = sheet_of(exposed_time, tables.analysis()).figure.axes
    for ax in (path, device):
        for row in (0, 1):
            widths = [r - left for left, r, low, high in rectangles(ax) if round((low + high) / 2) == row]
            assert sum(widths) == pytest.approx(100)
    shown = [text.get_text() for text in device.texts]
    assert shown.count("50.0 %") == 2  # idle.host
    labels = [label.get_text() for label in path.get_yticklabels()]
    assert labels == ["decode, rank 0\n10.000 ms", "prefill, rank 0\n10.000 ms"]


# launch and queue


def test_bins_without_a_launch_have_no_latency() -> None:
    upper, lower = sheet_of(launch_and_queue, tables.analysis()).figure.axes
    line = next(line for line in lower.lines if len(line.get_xdata()) > 2)
    latency = np.asarray(line.get_ydata(), float)
    assert np.isnan(latency[2::3][:33]).all()
    assert latency[0] == 9_000
    assert upper.get_ylim()[0] < 0 < upper.get_ylim()[1]
    starts = [line.get_xdata()[0] for line in upper.lines if len(line.get_xdata()) == 2]
    assert starts == [0, 10, 20, 30, 40]  # ms, the five windows


@pytest.mark.parametrize("queue", [None, tables.queue_table(0), tables.queue_table(rank=3)])
def test_no_queue_no_figure(queue: QueueTable | None) -> None:
    with drawing():
        assert isinstance(launch_and_queue.draw(tables.analysis(queue=queue)), str)


def test_a_queue_without_any_launch_shows_its_depth_only() -> None:
    table = tables.queue_table()
    none = np.full(len(table), -1, np.int64)
    silent = QueueTable(
        table.rank,
        table.start_ns,
        table.end_ns,
        table.depth_low,
        table.depth_high,
        none * 0,
        none,
        none,
        none,
    )
    _, lower = sheet_of(launch_and_queue, tables.analysis(queue=silent)).figure.axes
    assert rectangles(lower) == []
    assert lower.get_yticks().tolist() == []


def test_a_single_launch_is_one_dot() -> None:
    table = tables.queue_table()
    at = np.arange(len(table)) == 7
    latency = np.where(at, 5_000, -1)
    one = QueueTable(
        table.rank, table.start_ns, table.end_ns, at * 0, at * 1, at * 1, latency, latency, latency
    )
    _, lower = sheet_of(launch_and_queue, tables.analysis(queue=one)).figure.axes
    low, high = lower.get_ylim()
    assert low < 5_000 < high
    dots = next(line for line in lower.lines if line.get_marker() == ".")
    assert np.asarray(dots.get_ydata())[7] == 5_000


# timeline


def test_the_path_runs_along_its_lanes_and_jumps_between_them() -> None:
    sheet = sheet_of(timeline, tables.analysis())
    (ax,) = sheet.figure.axes
    launch = PATH_FILLS["launch.latency"]
    on_path = [box for box in rectangles(ax, launch.colour) if box[1] - box[0] > 0.5]
    assert {(round(left, 2), round(right, 2)) for left, right, _, _ in on_path} == {(1.0, 2.0)}
    assert len(on_path) == 2  # the strip on top and the thread's track
    jumps = next(c for c in ax.collections if isinstance(c, LineCollection) and c.get_zorder() == 4)
    assert [round(float(s[0][0]), 3) for s in jumps.get_segments()] == [2.0, 6.0]
    names = [text.get_text().strip() for text in ax.texts]
    assert {"decode step", "aten::linear", "kernel", "collective.unsplit"} <= set(names)
    legend = {entry.label for entry in sheet.legends[0][1]}
    assert "host.framework" in legend
    assert "copy" not in legend


def test_short_path_time_does_not_fill_the_strip() -> None:
    # 1,000 kernels of 9 us with gaps of 1 us: less than a pixel each, and never the most of one
    path = tuple(
        part
        for at in range(1_000)
        for part in (
            (0, tables.COMPUTE, 20 + at * 0.01, 20 + at * 0.01 + 0.009, "k"),
            (10, tables.COMPUTE, 20 + at * 0.01 + 0.009, 20 + (at + 1) * 0.01, "k"),
        )
    )
    sheet = sheet_of(timeline, tables.analysis(segment_table=tables.segment_table(path)))
    drawn = rectangles(sheet.figure.axes[0], PATH_FILLS["gap.dispatch"].colour)
    shares = sum(right - left for left, right, bottom, _ in drawn if bottom == 0.0) / 10
    assert shares < 0.1


def test_the_note_says_what_is_not_drawn() -> None:
    lanes = (*(f"thread {at}" for at in range(9)), "device 0 stream 7", "device 0 stream 20")
    events = tuple((5, at, 0, 20.0, 21.0, "cudaLaunchKernel", None) for at in range(11))
    detail = msgspec.structs.replace(tables.DETAIL, left_out=12)
    analysis = tables.analysis(builder.diagnosis(detail=detail), detail=tables.detail_table(events, lanes))
    note = sheet_of(timeline, analysis).note
    assert "5 lanes with less path time and work not drawn" in note
    assert "12 short events left out" in note


# kernels on the path


def test_only_steps_of_the_budget_count() -> None:
    analysis = tables.analysis()
    budget = builder.budget()
    table = analysis.segment_table
    assert table is not None
    assert kernels_on_path.path_by_name(analysis.diagnosis, table, budget) == {
        "ncclDevKernel_AllReduce": 4 * MS,
        "gemm_kernel": 3 * MS,
        "softmax_kernel": MS,
    }
    warmup = tables.segment_table(window=1)
    assert kernels_on_path.path_by_name(analysis.diagnosis, warmup, budget) == {}


def test_names_beyond_the_top_are_summed() -> None:
    path = tuple((0, tables.COMPUTE, 20 + at, 21 + at, f"kernel {at:02}") for at in range(10)) + tuple(
        (0, tables.COMPUTE, 30 + at, 30.5 + at, f"small {at}") for at in range(5)
    )
    sheet = sheet_of(kernels_on_path, tables.analysis(segment_table=tables.segment_table(path)))
    left, right = sheet.figure.axes
    texts = [text.get_text().strip() for text in left.texts]
    assert "3 more names" in texts
    assert "small 1" in texts
    assert len(rectangles(left)) == 13
    assert sum(r - low for low, r, _, _ in rectangles(left)) == pytest.approx(12.5 / 3)  # ms per step
    assert sum(r - low for low, r, _, _ in rectangles(right)) == pytest.approx(12.5 / 3)


def test_all_ranks_together_have_their_steps_and_their_device_work() -> None:
    """The budget of all ranks: its steps, and the device work on the path through them, whoever did it."""
    joint = rank_tables.joint(path_ns=builder.path(kernel=9 * MS, collective_transfer=MS))
    assert joint.diagnosis.global_ is not None and joint.global_segments is not None
    (step,) = joint.diagnosis.global_.windows
    budget = builder.budget(
        rank=None,
        scope="global",
        phase=step.phase,
        windows=1,
        step_ns_total=10 * MS,
        path_ns_total=step.path_ns,
    )
    diagnosis = msgspec.structs.replace(joint.diagnosis, budget=[budget])
    analysis = Analysis(diagnosis, joint.segment_table, global_segments=joint.global_segments)
    (ax,) = sheet_of(budget_over_steps, analysis).figure.axes
    assert ax.get_title("left").startswith(f"Phase {step.phase}, all ranks: mean step 10.000 ms (1 step")
    heights = [top - bottom for _, _, bottom, top in rectangles(ax, PATH_FILLS["kernel"].colour)]
    assert heights == pytest.approx([9.0])
    totals = kernels_on_path.path_by_name(diagnosis, joint.global_segments, budget)
    assert sum(totals.values()) == 10 * MS
    assert "all ranks, mean of 1 step of 10.000 ms" in sheet_of(kernels_on_path, analysis).subtitle
    without = Analysis(diagnosis, joint.segment_table)
    assert kernels_on_path.draw(without) == "the path segments are not part of this result"


def test_kernels_and_classes_agree_with_the_budget(tmp_path: Path) -> None:
    eager = sorted(path for path in example.write(tmp_path) if path.parent.name == "eager")
    analysis = pipeline.analyze(pipeline.read([eager[0]]))
    budget: Budget = analysis.diagnosis.budget[0]
    table = analysis.segment_table
    assert table is not None
    by_name = kernels_on_path.path_by_name(analysis.diagnosis, table, budget)
    assert sum(by_name.values()) == sum(
        ns for name, ns in budget.path_ns_total.items() if name in DEVICE_PATH
    )
    by_class: dict[str, int] = {}
    class_of = {row.name: row.class_ for row in analysis.diagnosis.kernels}
    for name, path_ns in by_name.items():
        by_class[class_of[name]] = by_class.get(class_of[name], 0) + path_ns
    told = [row for row in analysis.diagnosis.classes if row.phase == budget.phase and row.path_ns]
    assert by_class == {row.class_: row.path_ns for row in told}
    assert set(CATEGORY_NAMES.values()) >= set(DEVICE_PATH)
