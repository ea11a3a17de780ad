"""Diagnose every shared capture and write docs/real-traces.md (``--check``: only compare).

Usage: python scripts/real_traces.py [--check] [FOLDER]    (FOLDER: the shared captures, ../shared/traces)
"""

from __future__ import annotations

import sys
from pathlib import Path

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis
from analyzer.errors import TraceboundError
from analyzer.report.collective_price import without_fit
from analyzer.report.numbers import count
from analyzer.report.ranks import late_rank_sentence

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "real-traces.md"
TOGETHER = ("astra-megatron-tp8", "torchrec-a2a", "torchrec-resnet18")
"""Folders whose files are the ranks of one run."""
READABLE = (".sqlite", ".json", ".gz", ".nsys-rep")

SEVERAL = (
    "What is said of the clocks and collectives of captures that hold several ranks. Medians; the residual spread is"
    " the uncertainty: how far the ends of common collectives stray from the estimate."
)

INTRODUCTION = """# Real captures

What tracebound says of every public capture that it is tested with. The captures are other people's; they are
not part of this repository (their folder names are given). Each row is one run of `tracebound diagnose` with
no options; the budget is the mean step of the longest phase, of all ranks where they could be put on one clock, else
of the first rank, its largest parts first. This page is
written by `python scripts/real_traces.py` and a test holds it against the program.

"""


def captures(folder: Path) -> list[Path]:
    """One path per capture: a file, or a folder of ranks."""
    found: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name in TOGETHER:
            found.append(entry)
        elif entry.is_dir():
            found += sorted(path for path in entry.iterdir() if path.suffix in READABLE)
    return found


def document(folder: Path) -> str:
    """The page as text."""
    rows = [
        "| Capture | Steps | Mean step | Budget | Supported | Not used or mended |",
        "|---|---|---|---|---|---|",
    ]
    several = ["", "## Several ranks", "", SEVERAL, ""]
    refused = ["", "## Refused", "", "Exit code 2, with the reason that a reader is shown:", ""]
    for path in captures(folder):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".nsys-rep":
            continue  # read where a fitting `nsys` is on PATH, else refused with the export command
        try:
            diagnosis = pipeline.analyze(pipeline.read([path])).diagnosis
        except TraceboundError as error:
            refused.append(f"- `{name}`: {error.why}.")
            continue
        rows.append(f"| `{name}` | {_row(diagnosis)} |")
        if len(diagnosis.ranks) > 1:
            several += _several(name, diagnosis)
    refused.append(
        "- `.nsys-rep` files where no `nsys` that can read them is on PATH: the message holds the export command."
    )
    return INTRODUCTION + "\n".join(rows + several + refused) + "\n"


def _several(name: str, diagnosis: Diagnosis) -> list[str]:
    """Clocks, collectives and late ranks of a capture of several ranks."""
    lines = [f"### `{name}`", ""]
    if all(rank.clock.offset_ns is None for rank in diagnosis.ranks):
        return [
            *lines,
            "The ranks share no collective: each is explained by itself.",
            "",
            *_prices(diagnosis),
        ]
    lines += [
        "| Rank | Offset, µs | Interval, µs | Residual spread, µs | Shared calls |",
        "|---|---|---|---|---|",
    ]
    for rank in diagnosis.ranks:
        clock = rank.clock
        if clock.offset_ns is None or clock.uncertainty_ns is None:
            lines.append(f"| {rank.rank} | not compared | - | - | - |")
            continue
        low, high = clock.interval_ns or (0, 0)
        interval = "reference" if clock.compared_with is None else f"{low / 1e3:.1f} to {high / 1e3:.1f}"
        lines.append(
            f"| {rank.rank} | {clock.offset_ns / 1e3:.1f} | {interval} | {clock.uncertainty_ns / 1e3:.1f} |"
            f" {clock.shared_calls} |"
        )
    lines += ["", "| Operation | Calls | Split | Transfer, µs | Arrivals apart, µs | Dominated by | Last |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in diagnosis.collectives:
        transfer = "-" if row.transfer_ns is None else f"{row.transfer_ns.median / 1e3:.1f}"
        apart = "-" if row.arrival_spread_ns is None else f"{row.arrival_spread_ns.median / 1e3:.1f}"
        last = ", ".join(f"rank {rank}: {calls}" for rank, calls in row.late_rank_counts.items() if calls)
        lines.append(
            f"| {row.op} | {row.calls_total} | {row.split_calls} | {transfer} | {apart} | {row.class_} |"
            f" {last or '-'} |"
        )
    lines.append("")
    lines += [f"- {late_rank_sentence(late)}" for late in diagnosis.late_ranks]
    return [*lines, "", *_prices(diagnosis)]


def _prices(diagnosis: Diagnosis) -> list[str]:
    """A fit of every kind of collective, or why there is none."""
    fits = [
        f"Fit for {row.op} ({count(row.calls_split, 'call')}, {row.sizes} sizes): {row.alpha_ns / 1e3:.1f} µs"
        + (f" + bytes / {row.beta_bytes_per_s / 1e9:.1f} GB/s." if row.beta_bytes_per_s else ".")
        for row in diagnosis.alpha_beta
        if row.alpha_ns is not None
    ]
    lines = [f"- {line}" for line in (*fits, *without_fit(diagnosis))]
    return [*lines, ""] if lines else []


def _row(diagnosis: Diagnosis) -> str:
    steps = diagnosis.steps
    found = f"{steps.count} by {steps.rule}"
    found += f", {steps.warmup_count} warm-up" if steps.warmup_count else ""
    found += f", {count(steps.outlier_count, 'outlier')}" if steps.outlier_count else ""
    if len(diagnosis.ranks) > 1:
        found += f"; {len(diagnosis.ranks)} ranks"
    if diagnosis.boundary == "host":
        found += "; host boundary"
    budget = diagnosis.budget[0] if diagnosis.budget else None
    if budget is None:
        return f"{found} | - | - | - | {_quality(diagnosis)}"
    mean = budget.step_ns_total / budget.windows / 1e6
    parts = sorted(budget.path_ns_total.items(), key=lambda item: -item[1])[:5]
    shown = ", ".join(f"{name} {100 * ns / budget.step_ns_total:.1f} %" for name, ns in parts if ns)
    supported = [
        f"{entry.id}{' (' + entry.phase + ')' if len(steps.phases) > 1 else ''}"
        for entry in diagnosis.hypotheses
        if entry.verdict == "supported"
    ]
    return f"{found} | {mean:.3f} ms | {shown} | {', '.join(supported) or 'none'} | {_quality(diagnosis)}"


def _quality(diagnosis: Diagnosis) -> str:
    counts: dict[str, int] = {}
    for entry in diagnosis.quality:
        if not entry.reason.endswith("-ns"):
            counts[entry.reason] = counts.get(entry.reason, 0) + entry.count
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items()) or "nothing"


def main() -> int:
    """Write or check the page."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    folder = Path(arguments[0]) if arguments else ROOT.parent / "shared" / "traces"
    text = document(folder)
    if "--check" in sys.argv:
        return 0 if DOCUMENT.read_text() == text else 1
    DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
