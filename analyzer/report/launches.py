"""What submitting the work costs: the launch bill, ranges, small kernels, graph replays."""

from __future__ import annotations

from fractions import Fraction

from analyzer.apportion import round_half_up
from analyzer.diagnosis import Diagnosis, LaunchBill, Quantiles
from analyzer.report import whole_capture
from analyzer.report.escape import cell, code
from analyzer.report.numbers import fixed, ms, percent, us
from analyzer.report.tables import table
from analyzer.report.views import View, focus_phase, focus_rank, rest

PHASES = 6
RANGES = 8
GRAPHS = 6
SHAPES = 12
UNKNOWN = "-"


def launch_tables(diagnosis: Diagnosis) -> list[View]:
    """Every table that has rows."""
    views = (
        _bill(diagnosis),
        _latency(diagnosis),
        _ranges(diagnosis),
        _graphs(diagnosis),
        _shapes(diagnosis),
        _small(diagnosis),
    )
    return [view for view in views if view is not None]


def _of_focus(diagnosis: Diagnosis) -> list[LaunchBill]:
    rank = focus_rank(diagnosis)
    return [row for row in diagnosis.launch_bill if row.rank == rank]


def _per(total: int | None, windows: int) -> str:
    """A count per step with one decimal."""
    return UNKNOWN if total is None or not windows else fixed(round_half_up(_tenths(total, windows)), 1)


def _tenths(total: int, windows: int) -> Fraction:
    return Fraction(total * 10, windows)


def _bill(diagnosis: Diagnosis) -> View | None:
    rows = _of_focus(diagnosis)
    if not rows:
        return None
    cells = [
        [
            cell(row.phase, 40),
            f"{row.windows:,}",
            _per(row.launches_total, row.windows),
            _per(row.graph_launches_total, row.windows),
            _per(row.kernels_total, row.windows),
            UNKNOWN
            if row.kernels_in_graphs_total is None or not row.kernels_total
            else percent(row.kernels_in_graphs_total, row.kernels_total),
            ms(row.launch_api_ns_total, max(row.windows, 1)),
            ms(row.path_launch_ns_total, max(row.windows, 1)),
            UNKNOWN if row.slot_ns is None else us(row.slot_ns, 2),
            f"{row.held_launches_total:,}",
        ]
        for row in rows[:PHASES]
    ]
    header = [
        "Phase", "Steps", "Launches", "of them graphs", "Kernels", "in graphs", "API time, ms",
        "On the path, ms", "Slot (budget), µs", "Held launches",
    ]  # fmt: skip
    return View(
        f"Launches of rank {rows[0].rank}, {whole_capture.per(rows[0].phase)}. A slot is a budget (time over"
        " launches), not what a launch costs; API time is a sum over threads, launches that the device held left out.",
        table(header, cells) + rest(len(rows), PHASES, "launches.csv"),
    )


def _quantiles(values: Quantiles | None) -> list[str]:
    if values is None:
        return [UNKNOWN, UNKNOWN]
    return [us(values.median), us(values.p95)]


def _latency(diagnosis: Diagnosis) -> View | None:
    rows = [row for row in _of_focus(diagnosis) if row.latency_ns is not None]
    if not rows:
        return None
    cells = [
        [
            cell(row.phase, 40),
            *_quantiles(row.api_ns),
            *_quantiles(row.latency_ns),
            *_quantiles(row.idle_latency_ns),
            *_quantiles(row.run_ahead_ns),
            *(
                [UNKNOWN, UNKNOWN]
                if row.depth_at_launch is None
                else [f"{row.depth_at_launch.median:,}", f"{row.depth_at_launch.p95:,}"]
            ),
        ]
        for row in rows[:PHASES]
    ]
    header = [
        "Phase", "Call, µs", "p95", "To its work's start, µs", "p95", "the same on an idle device, µs", "p95",
        "CPU runs ahead, µs", "p95", "Queue depth", "p95",
    ]  # fmt: skip
    return View("Per launch, median and 95 % quantile:", table(header, cells))


def _ranges(diagnosis: Diagnosis) -> View | None:
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.ranges if row.rank == rank]
    if not any(row.name for row in rows):
        return None
    rows.sort(key=lambda row: -row.launches)
    cells = [
        [
            cell(row.name, 60) if row.name is not None else "(outside every range)",
            cell(row.thread, 36),
            f"{row.launches:,}",
            f"{row.device_events:,}",
            ms(row.api_ns),
            UNKNOWN if row.latency_ns is None else us(row.latency_ns.median),
            ms(row.total_ns),
        ]
        for row in rows[:RANGES]
    ]
    header = [
        "Innermost range at the launch", "Thread", "Launches", "Device work", "API time, ms", "Latency (median), µs",
        "Sum of durations, ms",
    ]  # fmt: skip
    more = len(rows) - RANGES
    return View(
        f"By named range, rank {rank}, whole capture:",
        table(header, cells, left=(0, 1)) + (f"\n\n{more:,} more in the JSON (ranges)." if more > 0 else ""),
    )


def _graphs(diagnosis: Diagnosis) -> View | None:
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.graph_replays if row.rank == rank]
    if not rows:
        return None
    cells = [
        [
            cell(row.graph, 60),
            cell(row.phase, 40),
            f"{row.replays:,}",
            UNKNOWN if row.kernels_per_replay is None else f"{row.kernels_per_replay:,.1f}",
            ms(row.device_ns_total),
            ms(row.path_ns),
        ]
        for row in rows[:GRAPHS]
    ]
    header = [
        "Executable graph",
        "Phase",
        "Replays",
        "Kernels per replay",
        "Sum of durations, ms",
        "On the path, ms",
    ]
    return View(
        "Graph replays:", table(header, cells, left=(0, 1)) + rest(len(rows), GRAPHS, "graph_replays.csv")
    )


def _shapes(diagnosis: Diagnosis) -> View | None:
    """Of a rank that replays graphs, which batch shapes it replays and which it launches one by one."""
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.shape_replays if row.rank == rank]
    if not any(row.replayed_steps for row in rows):
        return None
    cells = [
        [
            cell(row.phase, 40),
            "not told" if row.shape is None else cell(row.shape, 30),
            f"{row.steps:,}",
            f"{row.replayed_steps:,}",
            f"{row.eager_steps:,}",
            UNKNOWN
            if row.kernels_in_graphs_total is None or not row.kernels_total
            else percent(row.kernels_in_graphs_total, row.kernels_total),
            ms(row.step_ns_total, max(row.steps, 1)),
            UNKNOWN if not row.eager_steps else ms(row.eager_ns_total, row.eager_steps),
        ]
        for row in rows[:SHAPES]
    ]
    header = [
        "Phase", "Batch shape", "Steps", "With a replay", "Without any", "Kernels in replays", "Mean step, ms",
        "Without a replay, ms",
    ]  # fmt: skip
    return View(
        f"Graph replays by batch shape, rank {rank}:",
        table(header, cells, left=(0, 1)) + rest(len(rows), SHAPES, "shape_replays.csv"),
    )


def _small(diagnosis: Diagnosis) -> View | None:
    rank, phase = focus_rank(diagnosis), focus_phase(diagnosis)
    rows = [row for row in diagnosis.small_kernels if (row.rank, row.phase) == (rank, phase)]
    if not rows or phase is None or not any(row.of_kernels for row in rows):
        return None
    cells = [
        [
            f"below {us(row.below_ns, 0)} µs",
            f"{row.kernels_total:,}",
            percent(row.kernels_total, row.of_kernels),
            ms(row.total_ns),
            percent(row.total_ns, row.of_total_ns),
            ms(row.path_ns),
        ]
        for row in rows
    ]
    header = ["Kernels", "Number", "Of all", "Sum of durations, ms", "Of all time", "On the path, ms"]
    return View(
        f"Small kernels in phase {code(phase)}, over the windows of its budget:", table(header, cells)
    )
