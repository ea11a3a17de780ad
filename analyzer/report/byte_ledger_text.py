"""A byte ledger as text for a terminal: per phase and kind what ranks move, floors, what is not counted."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from analyzer.ledger.model import FOREIGN
from analyzer.ledger.summary import Summary, Sums
from analyzer.report.escape import visible
from analyzer.report.numbers import count, int_ranges, plain
from analyzer.report.tables import columns, section

WIDTH = 110
UNCOUNTED_SHOWN = 12
_NAME = 50
_SI = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def text(summary: Summary) -> str:
    """The whole summary; JSON holds the exact figures."""
    parts = [_head(summary), section("Bytes per step and rank (a model of what must cross)", _bytes(summary))]
    parts.append(section("Floor (a bound, for these bytes)", _floors(summary)))
    if summary.uncounted:
        parts.append(section("Not counted", _uncounted(summary)))
    if summary.workload.assumptions:
        notes = [line for note in summary.workload.assumptions for line in _wrapped(f"- {visible(note)}")]
        parts.append(section("Assumed", "\n".join(notes)))
    return "\n".join(parts)


def _head(summary: Summary) -> str:
    workload, layout = summary.workload, summary.layout
    words = [visible(workload.name, 200)]
    if workload.model is not None:
        words.append(f"model {visible(workload.model, 200)}")
    if layout is not None:
        words.append(
            f"{count(layout.ranks, 'rank')}: tensor {layout.tensor}, expert {layout.expert},"
            f" pipeline {layout.pipeline}, data {layout.data}"
        )
    return "\n".join(line for word in words for line in _wrapped(word)) + "\n"


def _bytes(summary: Summary) -> str:
    rows: list[tuple[str, ...]] = []
    for phase in summary.phases:
        name = visible(phase.phase, _NAME) + (" (beside the one before)" if phase.overlaps_previous else "")
        for row in summary.kinds:
            if row.phase == phase.phase:
                rows.append((name, row.kind, *_figures(row.sums), ", ".join(row.basis)))
                name = ""
        rows.append((name, "all", *_figures(phase.sums), ""))
    rows.append(("step", "all", *_figures(summary.total), ""))
    header = ("phase", "kind", "ranks", "least", "most", "FLOP", "FLOP/byte", "basis")
    return columns(header, rows, left=(0, 1, 2, 7))


def _figures(sums: Sums) -> tuple[str, str, str, str, str]:
    least = "" if sums.flop_complete else ">= "
    return (
        int_ranges(sums.ranks, 4),
        size(sums.bytes_min),
        size(sums.bytes_max),
        "-" if sums.flop_max is None else f"{least}{sums.flop_max:.4g}",
        "-" if sums.flop_per_byte is None else f"{least}{sums.flop_per_byte:.3g}",
    )


def size(number: int) -> str:
    """Bytes with four significant digits and a decimal prefix; below 1,000 exactly."""
    for unit, name in _SI:
        if number >= unit:
            return f"{number / unit:.4g} {name}"
    return f"{number} B"


def _time(ns: float) -> str:
    for unit, name in ((1e6, "ms"), (1e3, "us")):
        if ns >= unit:
            return f"{ns / unit:.4g} {name}"
    return f"{ns:.4g} ns"


def _floors(summary: Summary) -> str:
    sources = [
        f"{row.bytes_per_s / 1e12:.6g} TB/s on {_of_ranks(row.ranks)} ({visible(row.source, 100)})"
        for row in summary.bandwidth
    ]
    if summary.floors is None or summary.floor_ns is None:
        missing = "no memory bandwidth is known for every rank; --device NAME or --bandwidth RATE tells it"
        return "\n".join([missing, *sources])
    rows = [
        (
            " + ".join(visible(name, _NAME) for name in row.phases),
            _time(row.floor_ns),
            size(row.bytes),
            str(row.rank),
        )
        for row in summary.floors
    ]
    rows.append(("step", _time(summary.floor_ns), "", ""))
    lines = [columns(("phase", "at least", "bytes", "first rank that sets it"), rows), "", *sources]
    lines.append("being far above a floor locates no bottleneck; it names an amount of time to explain")
    if summary.ceiling_tokens_per_s is not None:
        ceiling = plain(summary.ceiling_tokens_per_s)
        stages = summary.layout is not None and summary.layout.pipeline > 1
        lines += _wrapped(
            f"at most {ceiling} tokens/s from all ranks together, where these bytes must cross"
            + (
                ": each stage works on a batch of its own, while one batch takes the step above through all of them"
                if stages
                else ""
            )
        )
    return "\n".join(lines)


def _of_ranks(ranks: Sequence[int]) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {int_ranges(ranks)}"


def _uncounted(summary: Summary) -> str:
    shown = sorted(summary.uncounted, key=lambda row: (not row.why.startswith(FOREIGN), -row.bytes, row.name))
    rows = [
        (
            visible(row.name, 70),
            str(row.tensors),
            visible(row.dtype, 16),
            "x".join(map(str, row.shape)) or "scalar",
            size(row.bytes),
            visible(row.why, 80),
        )
        for row in shown[:UNCOUNTED_SHOWN]
    ]
    lines = [columns(("tensor", "tensors", "dtype", "shape", "bytes", "why"), rows, left=(0, 2, 3, 5))]
    if len(shown) > len(rows):
        rest = shown[len(rows) :]
        tensors = sum(row.tensors for row in rest)
        lines.append(
            f"and {count(tensors, 'more tensor')} of {size(sum(row.bytes for row in rest))}: the ledger lists all"
        )
    return "\n".join(lines)


def _wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, WIDTH, subsequent_indent="  ", break_on_hyphens=False) or [""]
