"""Tables of what the figures rest on: the quality ledger, what was not measured, the constants."""

from __future__ import annotations

from analyzer.diagnosis import Diagnosis
from analyzer.report.escape import cell, prose
from analyzer.report.labels import CONSTANT_WORDS
from analyzer.report.numbers import count, plain, share
from analyzer.report.tables import table

THREADS_SHOWN = 10
LEDGER_SHOWN = 40


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
            f"{CONSTANT_WORDS['launch_lambda_ns']}, {cell(api)}",
            f"{low:,} to {high:,} ns",
            kind("launch_lambda_ns", api, f"launch_lambda_ns.{api}"),
            f"{values.launch_samples.get(api, 0):,}",
        ]
        for api, (low, high) in values.launch_lambda_ns.items()
    ]
    rows += [
        [CONSTANT_WORDS["stream_tau_ns"], f"{values.stream_tau_ns:,} ns", kind("stream_tau_ns"), ""],
        [
            CONSTANT_WORDS["turnaround_ns"],
            f"{values.turnaround_ns:,} ns",
            kind("turnaround_ns"),
            f"{values.turnaround_samples:,}",
        ],
        ["hop over a recorded event", f"{values.event_hop_ns:,} ns", "measured here, at least 5 µs", ""],
        ["quiet time before a hand-over", f"{values.quiet_ns:,} ns", "setting", ""],
    ]
    rows += [
        [f"submission burst gap, thread {cell(thread, 48)}", f"{gap:,} ns", "derived here", ""]
        for thread, gap in list(values.burst_gap_ns.items())[:THREADS_SHOWN]
    ]
    if values.queue_depth_limit is not None:
        rows.append(
            [
                CONSTANT_WORDS["queue_depth_limit"],
                f"{values.queue_depth_limit:,}",
                kind("queue_depth_limit"),
                "",
            ]
        )
    if values.uncertainty_ns is not None:
        rows.append(["clock uncertainty", f"{values.uncertainty_ns:,} ns", kind("uncertainty_ns"), ""])
    rows += [
        [f"threshold {cell(name)}", plain(value), "setting", ""] for name, value in values.thresholds.items()
    ]
    return table(["Constant", "Value", "Kind", "Samples"], rows, left=(0, 2))
