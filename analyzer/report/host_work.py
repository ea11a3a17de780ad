"""What the CPU did while the path ran through it."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis, HostCulprit, HostRollup
from analyzer.explain.focus import leading_budgets
from analyzer.report import whole_capture
from analyzer.report.escape import cell, code, prose
from analyzer.report.labels import PATH_GROUPS
from analyzer.report.numbers import ms
from analyzer.report.tables import table
from analyzer.report.views import View, focus_phase, focus_rank, rest

TOP = 10
FEW = 4
ROLLED_UP = 6
KINDS = {
    "range": "named range",
    "frame": "Python frame",
    "op": "framework op",
    "call": "CUDA call",
    "os": "OS call",
    "thread": "thread",
}
NOTHING = "None: the path does not run through the CPU, or nothing was recorded there."


def _culprits(diagnosis: Diagnosis) -> list[HostCulprit]:
    rank = focus_rank(diagnosis)
    return sorted((row for row in diagnosis.host_culprits if row.rank == rank), key=lambda row: -row.path_ns)


def host_table(diagnosis: Diagnosis) -> str:
    """What the CPU was doing, by innermost record."""
    rows = _culprits(diagnosis)
    if not rows:
        return NOTHING
    cells = [
        [
            row.category,
            cell(row.phase, 30),
            cell(row.thread, 48),
            _doing(row),
            ms(row.path_ns),
            *_of_steps(row, mean=True),
            f"{row.segments:,}",
        ]
        for row in rows[:TOP]
    ]
    header = [
        "Category", "Phase", "Thread", "Call, op, range or frame", "On the path, ms",
        *_heads(rows[0].phase, "Mean per step, ms", "In steps"), "Segments",
    ]  # fmt: skip
    return table(header, cells, left=(0, 1, 2, 3)) + rest(len(rows), TOP, "host_time.csv")


def host_short(diagnosis: Diagnosis) -> str:
    """The same in few rows and columns; rows that would read alike name their threads."""
    rows = _culprits(diagnosis)
    if not rows:
        return NOTHING
    heads = [[_doing(row), row.category, cell(row.phase, 30)] for row in rows[:FEW]]
    cells = [
        [
            doing + (f" on {cell(row.thread, 44)}" if heads.count([doing, *of]) > 1 else ""),
            *of,
            ms(row.path_ns, max(row.windows, 1)),
            *_of_steps(row),
        ]
        for row, (doing, *of) in zip(rows, heads, strict=False)
    ]
    phase = rows[0].phase
    header = [
        "Call, op, range or frame", "Category", "Phase", whole_capture.head(phase), *_heads(phase, "In steps"),
    ]  # fmt: skip
    return table(header, cells, left=(0, 1, 2)) + rest(len(rows), FEW, "host_time.csv")


def _of_steps(row: HostCulprit | HostRollup, *, mean: bool = False) -> list[str]:
    """In how many steps it is, behind its mean if asked; a capture without steps is one phase, and has neither."""
    means = whole_capture.steps_only(row.phase, ms(row.path_ns, max(row.windows, 1))) if mean else []
    return [*means, *whole_capture.steps_only(row.phase, f"{row.windows_with:,} of {row.windows:,}")]


def _heads(phase: str, *heads: str) -> list[str]:
    return [one for head in heads for one in whole_capture.steps_only(phase, head)]


def _doing(row: HostCulprit) -> str:
    """The innermost record, what encloses it, and the sampled frame where that is neither."""
    text = cell(row.name, 60) if row.name else "nothing recorded"
    outer = [part for part in row.stack if part != row.name][-1:]
    if outer:
        text += f" in {cell(outer[0], 44)}"
    if row.frame and row.frame not in (row.name, *outer):
        text += f" at {cell(row.frame, 60)}"
    return text


def look_first_text(diagnosis: Diagnosis) -> str:
    """The one record of the leading phase to look at first."""
    rank, phase = focus_rank(diagnosis), focus_phase(diagnosis)
    first = next((row for row in diagnosis.look_first if (row.rank, row.phase) == (rank, phase)), None)
    if first is None or _negligible(diagnosis):
        return ""
    kind = KINDS.get(first.by, first.by)
    return (
        f"Look first at the {kind} {code(first.name)}: {ms(first.per_step_ns)} ms"
        f" {whole_capture.per(first.phase)} in phase {code(first.phase)}; {prose(first.why)}."
    )


def _negligible(diagnosis: Diagnosis) -> bool:
    """Whether the leading phase's path spends next to no time on the CPU."""
    leading = leading_budgets(diagnosis.budget)
    if not leading:
        return True
    names = (*PATH_GROUPS["CPU"], *PATH_GROUPS["launches"])
    host = sum(leading[0].path_ns_total.get(name, 0) for name in names)
    return host <= diagnosis.constants.thresholds.get("contradicted_share", 0.0) * leading[0].step_ns_total


def host_tables(diagnosis: Diagnosis) -> list[View]:
    """The leading phase's path time on the CPU, rolled up by range, frame, op, CUDA call, OS call and thread."""
    rank, phase = focus_rank(diagnosis), focus_phase(diagnosis)
    views = []
    for by, words in KINDS.items():
        rows = [row for row in diagnosis.host_rollups if (row.rank, row.phase, row.by) == (rank, phase, by)]
        if phase is None or not any(not row.name.startswith("(") for row in rows):
            continue
        cells = [
            [
                cell(row.name, 70),
                ms(row.path_ns),
                *_of_steps(row, mean=True),
                f"{row.segments:,}",
            ]
            for row in rows[:ROLLED_UP]
        ]
        header = [
            words[0].upper() + words[1:],
            "On the path, ms",
            *_heads(phase, "Mean per step, ms", "In steps"),
            "Segments",
        ]
        views.append(
            View(
                f"By {words}, phase {code(phase)}, rank {rank}:",
                table(header, cells) + rest(len(rows), ROLLED_UP, "host_rollups.csv"),
            )
        )
    return views
