"""Device work on the path: by name, by class, by launch shape."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis, Kernel
from analyzer.hardware import LIMITER_WORDS
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import count, ms, percent, share
from analyzer.report.tables import table
from analyzer.report.views import View, focus_phase, focus_rank, rest

TOP = 10
FEW = 5
UNKNOWN = "-"


def kernel_table(diagnosis: Diagnosis) -> str:
    """The device work with the most time on the path."""
    rows, nothing = _on_path(diagnosis)
    if nothing:
        return nothing
    cells = [
        [
            cell(row.name, 60),
            prose(row.class_),
            f"{row.calls_total:,}",
            ms(row.total_ns),
            ms(row.path_ns),
            UNKNOWN if row.exposed_ns is None else ms(row.exposed_ns),
            _share(row.coverage),
            _share(row.occupancy),
            _limiter(row.limiter),
        ]
        for row in rows[:TOP]
    ]
    header = [
        "Device work", "Class", "Calls", "Sum of durations, ms", "On the path, ms", "Exposed, ms", "Coverage",
        "Occupancy", "Limited by",
    ]  # fmt: skip
    return table(header, cells, left=(0, 1, 8)) + rest(len(rows), TOP, "kernels.csv")


def kernels_short(diagnosis: Diagnosis) -> str:
    """The same in few rows and columns."""
    rows, nothing = _on_path(diagnosis)
    if nothing:
        return nothing
    total = sum(row.path_ns for row in rows)
    cells = [
        [
            cell(row.name, 60),
            prose(row.class_),
            f"{row.calls_total:,}",
            ms(row.path_ns),
            percent(row.path_ns, total),
            _share(row.coverage),
            _share(row.occupancy),
        ]
        for row in rows[:FEW]
    ]
    header = ["Device work", "Class", "Calls", "On the path, ms", "Of device work", "Coverage", "Occupancy"]
    return table(header, cells, left=(0, 1)) + rest(len(rows), FEW, "kernels.csv")


def _on_path(diagnosis: Diagnosis) -> tuple[list[Kernel], str]:
    """The focus rank's work on the path, longest first, or why there is none."""
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.kernels if row.rank == rank and row.path_ns]
    if rows:
        return sorted(rows, key=lambda row: (-row.path_ns, row.name)), ""
    if any(row.rank == rank for row in diagnosis.kernels):
        return [], "None: no named device work lies on the path."
    return [], "None: no device work was recorded."


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else share(value)


def _limiter(limiter: str | None) -> str:
    if limiter is None:
        return UNKNOWN
    return ", ".join(LIMITER_WORDS.get(part) or prose(part) for part in limiter.split("+"))


def device_tables(diagnosis: Diagnosis) -> list[View]:
    """Time by class, and the launch shapes that cover little of the device."""
    return [view for view in (_classes(diagnosis), _small_shapes(diagnosis)) if view is not None]


def _classes(diagnosis: Diagnosis) -> View | None:
    rank, phase = focus_rank(diagnosis), focus_phase(diagnosis)
    rows = [row for row in diagnosis.classes if (row.rank, row.phase) == (rank, phase)]
    if not rows or phase is None:
        return None
    rows.sort(key=lambda row: (-row.path_ns, -row.total_ns, row.class_))
    cells = [
        [prose(row.class_), f"{row.events:,}", ms(row.total_ns), ms(row.path_ns)] for row in rows[: 2 * TOP]
    ]
    header = ["Class", "Events", "Sum of durations, ms", "On the path, ms"]
    return View(
        f"By class, phase {code(phase)}, rank {rank}, over the windows of its budget (`other`: no rule knows the"
        " name; `--rules` adds rules):",
        table(header, cells) + rest(len(rows), 2 * TOP, "classes.csv"),
    )


def _small_shapes(diagnosis: Diagnosis) -> View | None:
    """Shapes on the path whose grid covers less of the device than the threshold."""
    rank, limit = focus_rank(diagnosis), diagnosis.constants.thresholds.get("small_grid_coverage")
    rows = [
        row
        for row in diagnosis.kernel_shapes
        if row.rank == rank and row.path_ns and row.coverage is not None and limit is not None
        and row.coverage < limit and not row.class_.startswith("collective")
    ]  # fmt: skip
    if not rows or limit is None:
        return None
    rows.sort(key=lambda row: (-row.path_ns, row.name, row.grid or ()))
    cells = [
        [
            cell(row.name, 48),
            " × ".join(str(size) for size in row.grid or ()),
            " × ".join(str(size) for size in row.block or ()),
            f"{row.calls_total:,}",
            ms(row.path_ns),
            _share(row.coverage),
            _share(row.occupancy),
            UNKNOWN if row.trace_occupancy_pct is None else f"{row.trace_occupancy_pct} %",
        ]
        for row in rows[:TOP]
    ]
    header = [
        "Kernel",
        "Grid",
        "Block",
        "Calls",
        "On the path, ms",
        "Coverage",
        "Occupancy",
        "Trace's estimate",
    ]
    return View(
        f"Launch shapes on the path that cover less than {share(limit, 0)} of the device"
        f" ({count(len(rows), 'shape')}):",
        table(header, cells) + rest(len(rows), TOP, "kernel_shapes.csv"),
    )
