"""Tables of device and host work on the path, and of the ledger behind the figures."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis, HostCulprit
from analyzer.explain import focus
from analyzer.report.escape import cell, prose
from analyzer.report.numbers import count, ms, plain, share
from analyzer.report.tables import table

TOP = 10
LEDGER_SHOWN = 40


def focus_rank(diagnosis: Diagnosis) -> int | None:
    """The rank whose work the tables show: the slowest one of the phase with the most time."""
    return focus.focus_rank(diagnosis.budget, diagnosis.ranks)


def focus_text(diagnosis: Diagnosis) -> str:
    """Which rank that is, where there are several."""
    if len(diagnosis.ranks) < 2:
        return ""
    return f"Rank {focus_rank(diagnosis)}; the other ranks stand in the CSV file."


def kernel_table(diagnosis: Diagnosis) -> str:
    """The device work with the most time on the path."""
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.kernels if row.rank == rank and row.path_ns]
    if not rows:
        if any(row.rank == rank for row in diagnosis.kernels):
            return "None: no named device work lies on the path."
        return "None: no device work was recorded."
    rows.sort(key=lambda row: -row.path_ns)
    cells = [
        [
            cell(row.name, 72),
            prose(row.class_),
            f"{row.calls_total:,}",
            ms(row.total_ns),
            ms(row.path_ns),
            "-" if row.exposed_ns is None else ms(row.exposed_ns),
        ]
        for row in rows[:TOP]
    ]
    header = ["Device work", "Class", "Calls", "Sum of durations, ms", "On the path, ms", "Exposed, ms"]
    return table(header, cells, left=(0, 1)) + _rest(len(rows), "kernels.csv")


def host_table(diagnosis: Diagnosis) -> str:
    """What the CPU was doing while the path ran through it."""
    rank = focus_rank(diagnosis)
    rows = [row for row in diagnosis.host_culprits if row.rank == rank]
    if not rows:
        return "None: the path does not run through the CPU, or nothing was recorded there."
    rows.sort(key=lambda row: -row.path_ns)
    cells = [
        [
            row.category,
            cell(row.phase, 30),
            cell(row.thread, 48),
            _doing(row),
            ms(row.path_ns),
            f"{row.segments:,}",
        ]
        for row in rows[:TOP]
    ]
    header = ["Category", "Phase", "Thread", "Call, op, range or frame", "On the path, ms", "Segments"]
    return table(header, cells, left=(0, 1, 2, 3)) + _rest(len(rows), "host_time.csv")


def _doing(row: HostCulprit) -> str:
    """The innermost record, what encloses it, and the sampled frame where that is neither."""
    text = cell(row.name, 60) if row.name else "nothing recorded"
    outer = [part for part in row.stack if part != row.name][-1:]
    if outer:
        text += f" in {cell(outer[0], 44)}"
    if row.frame and row.frame not in (row.name, *outer):
        text += f" at {cell(row.frame, 60)}"
    return text


def _rest(total: int, file: str) -> str:
    return f"\n\n{count(total - TOP, 'more row')} in `{file}`." if total > TOP else ""


def quality_table(diagnosis: Diagnosis) -> str:
    """The ledger: everything that was missing, repaired, dropped, inferred or contradictory."""
    rows = diagnosis.quality
    if not rows:
        return "None: everything in the capture could be used."
    cells = [
        [
            cell(row.reason),
            f"{row.count:,}",
            "-" if row.share is None else share(row.share, 2),
            prose(row.effect),
            cell(row.place, 60) if row.place else "",
        ]
        for row in rows[:LEDGER_SHOWN]
    ]
    text = table(["Reason", "Count", "Share", "Effect", "Where"], cells, left=(0, 3, 4))
    left = len(rows) - LEDGER_SHOWN
    return f"{text}\n\n{count(left, 'more line')} in the JSON (quality)." if left > 0 else text


def unmeasured_table(diagnosis: Diagnosis) -> str:
    """Questions that this capture cannot answer."""
    if not diagnosis.unmeasured:
        return "None: the capture answers every question that this version asks."
    cells = [[prose(row.what), prose(row.how_to_measure)] for row in diagnosis.unmeasured]
    return table(["Not measured", "What would measure it"], cells, left=(0, 1))


def constants_table(diagnosis: Diagnosis) -> str:
    """The constants of the first rank; each rank carries its own in the JSON."""
    values = diagnosis.constants
    assumed = set(values.assumed)

    def kind(*names: str) -> str:
        return "assumed" if assumed.intersection(names) else "measured here"

    rows = [
        [
            f"launch latency, {cell(api)}",
            f"{low:,} to {high:,} ns",
            kind("launch_lambda_ns", api, f"launch_lambda_ns.{api}"),
            f"{values.launch_samples.get(api, 0):,}",
        ]
        for api, (low, high) in values.launch_lambda_ns.items()
    ]
    rows += [
        ["stream order (τ)", f"{values.stream_tau_ns:,} ns", kind("stream_tau_ns"), ""],
        [
            "usual turnaround",
            f"{values.turnaround_ns:,} ns",
            kind("turnaround_ns"),
            f"{values.turnaround_samples:,}",
        ],
        ["quiet time before a hand-over", f"{values.quiet_ns:,} ns", "setting", ""],
    ]
    rows += [
        [f"submission burst gap, thread {cell(thread, 48)}", f"{gap:,} ns", "derived here", ""]
        for thread, gap in list(values.burst_gap_ns.items())[:TOP]
    ]
    if values.queue_depth_limit is not None:
        rows.append(["queue depth limit", f"{values.queue_depth_limit:,}", kind("queue_depth_limit"), ""])
    if values.uncertainty_ns is not None:
        rows.append(["clock uncertainty", f"{values.uncertainty_ns:,} ns", kind("uncertainty_ns"), ""])
    rows += [
        [f"threshold {cell(name)}", plain(value), "setting", ""] for name, value in values.thresholds.items()
    ]
    return table(["Constant", "Value", "Kind", "Samples"], rows, left=(0, 2))
