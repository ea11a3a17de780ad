"""The price of collectives: latency against size, per group and kind, of what is transfer and not waiting.

A row stands for every kind of collective in every group: with a fit, or with the reason why there is none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from analyzer.across.waits import ALONE, MISSING_RANK, MISSING_RECORD, ONE_WAY_CALL
from analyzer.diagnosis import AlphaBeta, PriceInterval
from analyzer.explain.ranks.joint_report import JointReport
from analyzer.explain.ranks.price_points import both, contention, points_of, rounded
from analyzer.explain.ranks.transfers import KindOfCalls, Transfers, kinds_of_calls
from analyzer.latency_fit import MISFIT, LatencyLine, Samples, fit_latency

NARROWEST = 2.0
"""The largest size of a fit is at least so many times the smallest ..."""
FEWEST, FEWEST_OF_HALF = 8, 3
"""... and it rests on so many calls, so many of them on each side of the range's geometric middle."""

SEVERAL_SIZES = (
    "capture steps in which this collective has several sizes (another batch or context), or a sweep"
)
MORE_CALLS = "capture more steps"
ALL_RANKS = "give the captures of all ranks of the group in one call"
WITH_SIZES = (
    "capture with torch.profiler of torch 2.4 or later (2.2 and 2.3: with record_shapes=True; outside graphs), or with"
    " nsys from an NCCL that annotates its calls, exported with --include-json=true"
)
REMEDIES = {
    ALONE: ALL_RANKS,
    MISSING_RANK: ALL_RANKS,
    MISSING_RECORD: "capture fewer steps at a time, so that no record is lost",
    ONE_WAY_CALL: "measure it apart, with a benchmark of the library: a trace does not tell when it was ready to move",
}
NO_REMEDY = "see why its calls are not split"
EAGERLY = "capture the same steps without graphs: calls of the same kernels there have sizes"
ONE_EACH = "measure each size by itself: the rows of its sizes are measurements and hold"


@dataclass(frozen=True)
class _Fit:
    """A line with the calls that it rests on."""

    line: LatencyLine
    samples: Samples
    basis: str  # "uncontended" | "all"
    over: str  # "steps" | "calls"

    @property
    def range_bytes(self) -> tuple[int, int]:
        return int(self.samples.bytes.min()), int(self.samples.bytes.max())

    @property
    def spread(self) -> float:
        """Median relative distance of the calls that count from the line."""
        kept = self.samples.take(self.line.kept)
        return float(np.median(np.abs(kept.latency_ns / np.maximum(self.line.at(kept.bytes), 1.0) - 1)))


def collective_prices(joint: JointReport, topology: str | None) -> list[AlphaBeta]:
    """One row per group and kind of collective, those with most calls first. ``topology``: as declared."""
    hosts = {report.rank.rank: report.rank.host for report in joint.reports}
    rows = [
        _row(found, hosts, topology) for found in kinds_of_calls(joint.reports, joint.joint, joint.every_path)
    ]
    return sorted(rows, key=lambda row: (-row.calls, row.group, row.op, row.algorithm or "", row.in_graphs))


def _row(found: KindOfCalls, hosts: dict[int, str | None], topology: str | None) -> AlphaBeta:
    members, transfers = found.calls.group.members, found.transfers
    points = points_of(transfers, None)
    ratio, ratio_interval = contention(transfers)
    answer = _fitted(transfers, in_graph=found.kind.in_graph) if len(transfers) else _unsplit(found)
    fit = answer if isinstance(answer, _Fit) else None
    absent = None if isinstance(answer, _Fit) else answer
    beta, interval = (None, None) if fit is None else _bandwidth(fit.line)
    return AlphaBeta(
        group=found.calls.group.label,
        description=found.calls.group.description,
        op=found.kind.operation,
        dtype=found.kind.dtype,
        family=found.kind.family,
        algorithm=found.kind.how.algorithm,
        protocol=found.kind.how.protocol,
        in_graphs=found.kind.in_graph,
        ranks=list(members),
        hosts=sorted({host for rank in members if (host := hosts[rank]) is not None}),
        topology=topology,
        alpha_ns=None if fit is None else rounded(fit.line.alpha_ns),
        beta_bytes_per_s=beta,
        ci95=interval,
        sizes=len(np.unique(transfers.bytes[transfers.bytes >= 0])),
        range_bytes=None if fit is None else fit.range_bytes,
        calls=len(found.rows),
        calls_split=int(found.calls.split[found.rows].sum()),
        calls_contended=int(transfers.contended.sum()),
        contended_ratio=ratio,
        contended_ratio_ci95=ratio_interval,
        calls_apart=0 if fit is None else int((~fit.line.kept).sum()),
        basis=None if fit is None else fit.basis,
        interval_over=None if fit is None else fit.over,
        size_ratio=_ratio([point.bytes for point in points if point.bytes]),
        latency_ratio=_ratio([point.median_ns for point in points if point.bytes]),
        residual_spread=None if fit is None else rounded(fit.spread),
        reason_if_absent=None if absent is None else absent[0],
        remedy=None if absent is None else absent[1],
        notes=[] if fit is None else [*_notes(fit, transfers), *_on_clocks(found)],
        points=points if fit is None else points_of(transfers, fit.line),
    )


def _ratio(of_sizes: list[int]) -> float | None:
    """Of the largest size that moves anything to the smallest; None of one size, and beside a latency of 0."""
    return of_sizes[-1] / of_sizes[0] if len(of_sizes) > 1 and of_sizes[0] else None


def _unsplit(found: KindOfCalls) -> tuple[str, str]:
    """Why no call tells its transfer."""
    reasons = Counter(found.calls.why[at] for at in found.rows.tolist())
    reason = min(reasons, key=lambda text: (-reasons[text], text))
    return f"waiting and transfer are not told apart: {reason}", REMEDIES.get(reason, NO_REMEDY)


def _fitted(transfers: Transfers, *, in_graph: bool) -> _Fit | tuple[str, str]:
    """A fit to calls without contention where these are enough, else to all; or why there is none, and a remedy."""
    known = transfers.take(transfers.bytes >= 0)
    if not len(known) and in_graph:
        return "no profiler records sizes of calls inside graphs", EAGERLY
    if not len(known):
        return "the sizes of its calls are not recorded", WITH_SIZES
    known = known.take(known.bytes > 0)  # a call of no bytes moves nothing: another thing than a small one
    if not len(known):
        return "all calls have no bytes: they move nothing whose price could be told", SEVERAL_SIZES
    absent = _too_little(known)
    if absent is not None:
        return absent
    alone = known.take(~known.contended)
    enough = len(alone) > 0 and _too_little(alone) is None
    basis = alone if enough else known
    samples, over = basis.samples()
    line = fit_latency(samples)
    if line.misfit > MISFIT:
        return (
            f"latency is no line over size: with {len(samples.sizes)} sizes the medians stray up to"
            f" {100 * line.misfit:.0f} % from it and not by chance, as where the library changes algorithm or protocol"
            " at some size",
            ONE_EACH,
        )
    return _Fit(line, samples, "uncontended" if enough else "all", over)


def _too_little(transfers: Transfers) -> tuple[str, str] | None:
    """What of sizes and calls is too little for a line, and what to do."""
    sizes = np.unique(transfers.bytes)
    low, high = int(sizes[0]), int(sizes[-1])
    if len(sizes) < 2:
        return f"all calls have one size, {low:,} bytes: it does not tell alpha from beta", SEVERAL_SIZES
    if high < NARROWEST * low:
        return (
            f"sizes from {low:,} to {high:,} bytes are too close to tell alpha from beta: the largest is less than"
            f" {NARROWEST:g} times the smallest",
            SEVERAL_SIZES,
        )
    below = int((~transfers.upper_half()).sum())
    if len(transfers) < FEWEST or min(below, len(transfers) - below) < FEWEST_OF_HALF:
        return (
            f"{len(transfers)} calls, {below} of them in the lower half of the range, are too few: {FEWEST} are needed,"
            f" {FEWEST_OF_HALF} in each half",
            MORE_CALLS,
        )
    return None


def _bandwidth(line: LatencyLine) -> tuple[float | None, PriceInterval]:
    """Beta, None where latency may not depend on size at all, and the intervals."""
    low, high = line.ns_per_byte_ci95
    ends = (rounded(1e9 / high) if high > 0 else None, rounded(1e9 / low) if low > 0 else None)
    beta = rounded(1e9 / line.ns_per_byte) if line.ns_per_byte > 0 and low > 0 else None
    return beta, PriceInterval(alpha_ns=both(line.alpha_ci95), beta_bytes_per_s=ends)


def _notes(fit: _Fit, transfers: Transfers) -> list[str]:
    found = []
    if len(fit.samples.sizes) == 2:
        found.append("two sizes: every line meets them, so that nothing checks whether latency is a line")
    if not fit.line.ns_per_byte_ci95[0] > 0:
        found.append(
            f"no dependence on size is seen up to {fit.range_bytes[1]:,} bytes: beta has a lower bound only"
        )
    if fit.basis == "all" and transfers.contended.any():
        found.append(
            f"too few calls run alone: the fit holds {int(transfers.contended.sum()):,} contended ones"
        )
    empty, unknown = int((transfers.bytes == 0).sum()), int((transfers.bytes < 0).sum())
    if empty:
        found.append(f"{empty:,} calls of no bytes are left out")
    if unknown:
        found.append(f"{unknown:,} calls of unknown size are left out")
    if fit.over == "calls":
        found.append(
            "too few steps, or one half of the range in one step alone: the intervals take calls as independent of one"
            " another"
        )
    return found


def _on_clocks(found: KindOfCalls) -> list[str]:
    """What of the clocks is in the latencies: of sends and receives, which end on another rank than they begin."""
    if found.kind.operation != "send/recv":
        return []
    return [
        f"a transfer begins with the later of the two and ends with the receiver: the clocks' uncertainty,"
        f" {found.calls.uncertainty_ns:,} ns, is in it"
    ]
