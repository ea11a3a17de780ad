"""What collectives cost: on the path and as a product, by size, and as a line through the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyzer.apportion import round_half_up
from analyzer.diagnosis import AlphaBeta, CollectiveCost, Diagnosis
from analyzer.report.escape import cell, code, prose
from analyzer.report.numbers import count, fixed, ms, percent, us
from analyzer.report.tables import table
from analyzer.report.views import View, rest

COSTS, FITS, SIZES, REASONS = 12, 12, 24, 8
COST_INTRO = (
    "What each kind of collective costs a step. *On the path* is measured: how much of the step waits for it, transfer"
    " and waiting together. *Calls x duration* is a budget: it ignores that calls overlap other work, and its durations"
    " hold the waiting for late ranks, which *calls x transfer* leaves out. A price of a call holds for this sharding"
    " only."
)
FIT_INTRO = (
    "Latency = alpha + bytes / beta: a fit to transfers alone (from the last arrival on), with 95 % intervals. It holds"
    " within the range of sizes that it was fitted to, for these ranks, this topology and this load. Bytes are the"
    " larger of what one rank puts in and gets out, so that beta is an algorithm bandwidth."
)
SIZE_INTRO = (
    "Transfers by size, measured. Contended calls ran while other kernels shared the device for a tenth of the transfer"
    " or more."
)


def price_views(diagnosis: Diagnosis) -> list[View]:
    """Every table that has rows."""
    views = (_costs(diagnosis.collective_costs), _fits(diagnosis.alpha_beta), _sizes(diagnosis.alpha_beta))
    return [view for view in views if view is not None]


def without_fit(diagnosis: Diagnosis) -> list[str]:
    """A sentence for every kind that has no fit."""
    rows = [row for row in diagnosis.alpha_beta if row.reason_if_absent is not None]
    lines = [
        f"No fit for {_named(row)} ({count(row.calls, 'call')}): {prose(row.reason_if_absent or '')}."
        + (f" To get one: {prose(row.remedy)}." if row.remedy else "")
        for row in rows[:REASONS]
    ]
    left = len(rows) - len(lines)
    return [*lines, *([f"{count(left, 'more kind')} without a fit in `diagnosis.json`."] if left else [])]


def notes_on_fits(diagnosis: Diagnosis) -> list[str]:
    """What a reader must know of single fits."""
    return [f"{_named(row)}: {prose(note)}." for row in diagnosis.alpha_beta[:FITS] for note in row.notes]


def _named(row: AlphaBeta) -> str:
    how = "".join(f", {cell(word, 24)}" for word in (row.algorithm, row.protocol) if word)
    dtype = f" of {cell(row.dtype, 16)}" if row.dtype else ""
    return f"{cell(row.op, 24)}{dtype}{how}{' in graphs' if row.in_graphs else ''} in group {code(row.group, 24)}"


def _kind(row: AlphaBeta) -> str:
    words = (row.dtype, row.algorithm, row.protocol, "in graphs" if row.in_graphs else None)
    told = ", ".join(cell(word, 24) for word in words if word)
    return cell(row.op, 24) + (f" ({told})" if told else "")


def _costs(rows: Sequence[CollectiveCost]) -> View | None:
    if not rows:
        return None
    several = len({(row.scope, row.rank) for row in rows}) > 1
    cells = [
        [
            cell(row.phase, 24) + (f", rank {row.rank}" if several and row.rank is not None else ""),
            cell(row.group, 24),
            cell(row.op, 24),
            f"{row.calls_per_step:,.1f}",
            us(row.median_duration_ns),
            ms(row.naive_ns_total, row.windows),
            percent(row.naive_ns_total, row.step_ns_total, 2),
            "-" if row.naive_transfer_ns_total is None else ms(row.naive_transfer_ns_total, row.windows),
            ms(sum(row.path_ns_total.values()), row.windows),
            percent(sum(row.path_ns_total.values()), row.step_ns_total, 2),
            _times(row.naive_ns_total, sum(row.path_ns_total.values())),
        ]
        for row in rows[:COSTS]
    ]
    header = ["Phase", "Group", "Operation", "Calls per step", "Duration, µs (median)",
              "Calls x duration, ms (budget)", "Of the step", "Calls x transfer, ms (budget)",
              "On the path, ms (measured)", "Of the step", "Calls x duration / measured"]  # fmt: skip
    text = table(header, cells, left=(0, 1, 2)) + rest(len(rows), len(cells), "collective_costs.csv")
    return View(COST_INTRO, text)


def _times(naive_ns: int, path_ns: int) -> str:
    return "-" if not path_ns else fixed(round_half_up(Fraction(100 * naive_ns, path_ns)), 2)


def _fits(rows: Sequence[AlphaBeta]) -> View | None:
    fitted = [row for row in rows if row.alpha_ns is not None]
    if not fitted:
        return None
    header = ["Group", "Operation", "Ranks", "Calls (contended)", "Sizes", "Range, bytes", "Alpha, µs",
              "95 % interval", "Beta, GB/s", "95 % interval", "Half within", "Rests on"]  # fmt: skip
    text = table(header, [_fit(row) for row in fitted[:FITS]], left=(0, 1, 11))
    left_out = rest(len(fitted), min(FITS, len(fitted)), "diagnosis.json")
    return View(FIT_INTRO, f"{text}{left_out}\n\n{_place(fitted[0])}")


def _place(row: AlphaBeta) -> str:
    """Where the fits hold: topology and hosts, as far as they are known."""
    topology = "undeclared" if row.topology is None else prose(row.topology)
    hosts = ", ".join(cell(host, 40) for host in row.hosts[:4]) or "not recorded"
    return f"Topology: {topology}. Hosts of the first row's ranks: {hosts}{', ...' if len(row.hosts) > 4 else ''}."


def _fit(row: AlphaBeta) -> list[str]:
    assert row.alpha_ns is not None and row.ci95 is not None and row.range_bytes is not None
    low, high = row.range_bytes
    return [
        cell(row.group, 24) + (f" ({cell(row.description, 24)})" if row.description else ""),
        _kind(row),
        str(len(row.ranks)),
        f"{row.calls_split:,} ({row.calls_contended:,})",
        f"{row.sizes:,}",
        f"{low:,} to {high:,}",
        _us(row.alpha_ns),
        f"{_us(row.ci95.alpha_ns[0])} to {_us(row.ci95.alpha_ns[1])}",
        "-" if row.beta_bytes_per_s is None else _gb(row.beta_bytes_per_s),
        _between(*row.ci95.beta_bytes_per_s),
        "-" if row.residual_spread is None else f"{100 * row.residual_spread:.1f} %",
        f"{row.basis} calls, drawn by {row.interval_over}",
    ]


def _between(low: float | None, high: float | None) -> str:
    if low is None:
        return "-"
    return f"{_gb(low)} to {_gb(high)}" if high is not None else f"at least {_gb(low)}"


def _us(ns: float) -> str:
    return fixed(round(ns / 10), 2)


def _gb(bytes_per_s: float) -> str:
    return fixed(round(bytes_per_s / 1e7), 2)


def _sizes(rows: Sequence[AlphaBeta]) -> View | None:
    points = [(row, point) for row in rows for point in row.points]
    if not points:
        return None
    cells = [
        [
            cell(row.group, 24),
            _kind(row),
            f"{point.bytes:,}",
            f"{point.calls:,}",
            us(point.median_ns, 2),
            f"{us(point.p05_ns, 2)} to {us(point.p95_ns, 2)}",
            "-" if point.fitted_ns is None else _us(point.fitted_ns),
            f"{point.contended_calls:,}",
            _ratio(point.contended_ratio, point.contended_ratio_ci95),
        ]
        for row, point in points[:SIZES]
    ]
    header = ["Group", "Operation", "Bytes", "Calls", "Transfer, µs (median)", "5 % to 95 %", "Fit, µs",
              "Contended", "Contended / others (95 %)"]  # fmt: skip
    text = table(header, cells, left=(0, 1)) + rest(len(points), len(cells), "collective_sizes.csv")
    return View(SIZE_INTRO, text + "".join(f"\n\n{line}" for line in (*_spans(rows), *_contended(rows))))


def _ratio(ratio: float | None, interval: tuple[float, float] | None) -> str:
    if ratio is None or interval is None:
        return "-"
    return f"{ratio:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def _contended(rows: Sequence[AlphaBeta]) -> list[str]:
    """What other kernels beside a collective add to it, over all sizes."""
    return [
        f"{_named(row)}: contended calls take {_ratio(row.contended_ratio, row.contended_ratio_ci95)} times as long as"
        f" the others of their size."
        for row in rows[:FITS]
        if row.contended_ratio is not None
    ]


def _spans(rows: Sequence[AlphaBeta]) -> list[str]:
    """How latency grows over the whole range of sizes: what a payload in latency-bound calls costs."""
    return [
        f"{_named(row)}: {row.size_ratio:,.6g} times the payload takes {row.latency_ratio:.2f} times the latency."
        for row in rows[:FITS]
        if row.size_ratio is not None and row.latency_ratio is not None
    ]
