"""Everything that ledger and counters say of one rank, gathered while its records are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.explain.bytes.codes import FloatArray, RowCodes, codes_of, first_known
from analyzer.explain.bytes.given import Given
from analyzer.explain.bytes.launch_counters import Matched, beyond_peak, matched, throughput
from analyzer.explain.bytes.ledger_rates import LedgerRates, ledger_rates, may_apply
from analyzer.explain.bytes.roofs import Roof, roof_of
from analyzer.explain.bytes.samples import Samples, dram_samples, tensor_samples
from analyzer.model import SmallArray
from analyzer.reconstruct.rank import RankAccount

NEAR_PEAK = "near_peak_share"
"""The threshold: from which share of the peak on a kernel runs at the peak."""
LAUNCHES, SAMPLES = "nsight-compute", "gpu-metrics"


@dataclass(frozen=True)
class Counted:
    """Bytes from and to device memory per step (w,), by one source: least, likely, most.

    ``of_kernel_time``: share of the kernels' summed durations that has counters (0..1).
    """

    by: str
    low: FloatArray
    value: FloatArray
    high: FloatArray
    of_kernel_time: float


@dataclass(frozen=True)
class Counters:
    """What counters say of a rank, before phases are looked at."""

    codes: RowCodes
    launches: Matched | None = None
    dram: Samples | None = None
    tensor: Samples | None = None
    beyond_peak: int = 0  # rows whose counted bytes do not fit their duration


@dataclass(frozen=True)
class RankRates:
    """By phase of the diagnosis. ``ledger``: of the phases that it may apply to."""

    roof: Roof
    ledger: Mapping[str, LedgerRates] = field(default_factory=dict)
    counted: Mapping[str, tuple[Counted, ...]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()  # kernels of the counters' files that the trace lacks
    names: int = 0
    beyond_peak: int = 0
    metrics: tuple[str, ...] = ()
    device_work: bool = True  # whether any was recorded


def counters_of(account: RankAccount, given: Given, roof: Roof, at: float) -> Counters:
    """Counters of one rank as codes per row. Nsight Compute's, of that very kernel, go before samples over time."""
    work = account.work
    bandwidth: list[SmallArray] = []
    compute: list[SmallArray] = []
    launches, beyond = None, 0
    if given.counters:
        launches = matched(account, [one.file for one in given.counters])
        if roof.bytes_per_s is not None and not np.isnan(launches.bytes).all():
            low, middle, high, beyond = throughput(account, launches, roof.bytes_per_s)
            bandwidth.append(codes_of(low, middle, high, at))
        if not np.isnan(launches.arithmetic).all():
            compute.append(
                codes_of(launches.arithmetic_low, launches.arithmetic, launches.arithmetic_high, at)
            )
    dram, tensor = dram_samples(account.trace), tensor_samples(account.trace)
    length = np.maximum(work.end_ns - work.start_ns, 1)
    for samples, codes in ((dram, bandwidth), (tensor, compute)):
        if samples is not None:
            low, middle, high = (one / length for one in samples.over(work.start_ns, work.end_ns))
            if samples is tensor:  # other arithmetic pipes were not sampled
                high = np.where(np.isnan(high), high, 1.0)
            codes.append(codes_of(low, middle, high, at))
    return Counters(RowCodes(first_known(bandwidth), first_known(compute)), launches, dram, tensor, beyond)


def rank_rates(
    account: RankAccount,
    rank: int,
    used: Mapping[str, Sequence[int]],
    given: Given,
    roof: Roof,
    counters: Counters,
    at: float,
) -> RankRates:
    """``used``: by phase, the positions in ``account.windows`` that its budget rests on."""
    ledger: dict[str, LedgerRates] = {}
    counted: dict[str, tuple[Counted, ...]] = {}
    for phase, positions in used.items():
        if given.ledger is not None and len(account.work) and may_apply(given.ledger, phase):
            found = ledger_rates(account, rank, positions, given.ledger, roof, at)
            if found is not None:
                ledger[phase] = found
        counted[phase] = tuple(_counted(account, positions, roof, counters))
    launches = counters.launches
    return RankRates(
        roof,
        ledger,
        counted,
        absent=() if launches is None else launches.absent,
        names=0 if launches is None else launches.names,
        beyond_peak=counters.beyond_peak,
        metrics=(
            *(counters.dram.names if counters.dram else ()),
            *(counters.tensor.names if counters.tensor else ()),
        ),
        device_work=len(account.work) > 0,
    )


def roof_of_rank(account: RankAccount, rank: int, given: Given) -> Roof:
    """The device of this rank."""
    return roof_of(given.ledger, rank, account.trace.device_info)


def _counted(account: RankAccount, positions: Sequence[int], roof: Roof, counters: Counters) -> list[Counted]:
    found = []
    if counters.dram is not None and roof.bytes_per_s is not None and positions:
        found += _by_samples(account, positions, counters.dram, roof.bytes_per_s)
    if counters.launches is not None and not np.isnan(counters.launches.bytes).all():
        found.append(_by_launches(account, positions, counters.launches, roof.bytes_per_s))
    return found


def _by_samples(
    account: RankAccount, positions: Sequence[int], dram: Samples, bytes_per_s: float
) -> list[Counted]:
    start, end = (
        np.array([getattr(account.windows[at], name) for at in positions], np.int64)
        for name in ("start_ns", "end_ns")
    )
    low, value, high = (one * bytes_per_s / 1e9 for one in dram.over(start, end))
    if np.isnan(value).any():
        return []
    return [Counted(SAMPLES, low, value, high, 1.0)]


def _by_launches(
    account: RankAccount, positions: Sequence[int], launches: Matched, bytes_per_s: float | None
) -> Counted:
    """Bytes of the launches of each step. At most, those without counters moved what the peak allows.

    Launches that cannot have moved what was counted are as those without.
    """
    work = account.work
    index = np.array([account.windows[at].index for at in positions], np.int64)
    owner = np.zeros(len(work), np.int64) if account.assignment is None else account.assignment.of_row
    mine = launches.kernels & ~work.prior & np.isin(owner, index)
    known = mine & ~np.isnan(launches.bytes)
    if bytes_per_s is not None:
        known &= ~beyond_peak(account, launches, bytes_per_s)
    duration = (work.end_ns - work.start_ns).astype(np.float64)

    def per_step(values: FloatArray, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
        most = int(index.max(initial=0)) + 1
        return np.bincount(owner[rows], weights=values[rows], minlength=most)[index].astype(np.float64)

    low, value, high = (
        per_step(one, known) for one in (launches.least_bytes, launches.bytes, launches.most_bytes)
    )
    open_ = per_step(duration, mine & ~known)
    if bytes_per_s is not None:
        high = high + open_ / 1e9 * bytes_per_s
    elif open_.any():
        high = np.full_like(high, np.inf)
    total = float(duration[mine].sum())
    return Counted(LAUNCHES, low, value, high, float(duration[known].sum()) / total if total else 0.0)
