"""A rank's kernels against its ledger: which of them move which bytes, and how near the peaks they can have run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analyzer.categories import Category
from analyzer.explain.bytes.bounds import KernelTimes, Near, exceeded, near_peak
from analyzer.explain.bytes.roofs import Roof
from analyzer.explain.verdicts.shares import FloatArray, WindowShares
from analyzer.kernel_names import full_name
from analyzer.ledger.model import FOREIGN, Entry, Ledger, Phase, Uncounted
from analyzer.reconstruct.critical_path import ON_DEVICE, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.windows import WHOLE
from analyzer.reconstruct.work import BoolArray

NS_PER_S = 1e9


@dataclass(frozen=True)
class Amount:
    """Work of one rank per step. ``least_ns``: at the peak; None: the peak is not known.

    ``complete``: it stands for all work of its entries. ``missing``: why it does not, or why there is no least time.
    """

    units: int
    least_ns: float | None
    complete: bool
    missing: str = ""
    uncounted_ns: float = 0.0  # of tensors that no entry holds: they may be of any group


@dataclass(frozen=True)
class Group:
    """Kernels whose bytes the ledger tells together. ``names``: of the ledger's phases; ``all``: it is every kernel."""

    names: tuple[str, ...]
    all: bool
    bytes: Amount
    flop: Amount | None  # None: no entry tells any
    times: KernelTimes


@dataclass(frozen=True)
class Judged:
    """Time near a peak on the path of each window; ``shares`` None: why it cannot be told."""

    shares: WindowShares | None
    why: str = ""
    contradicted: bool = False  # the ledger does not fit the kernels


@dataclass(frozen=True)
class LedgerRates:
    """What a ledger says of one rank and phase of the diagnosis."""

    groups: tuple[Group, ...]
    bandwidth: Judged
    compute: Judged


def ledger_rates(
    account: RankAccount, rank: int, positions: Sequence[int], ledger: Ledger, roof: Roof, at: float
) -> LedgerRates | None:
    """Of the windows at ``positions``; None where the ledger holds nothing of this rank. ``at``: share of the peak."""
    entries = {
        number: [entry for entry in phase.entry if rank in entry.ranks]
        for number, phase in enumerate(ledger.phase)
    }
    here = [number for number, mine in entries.items() if mine]
    if not here:
        return None
    steps, uncounted = StepKernels(account, positions), sum(tensor.bytes for tensor in unplaced(ledger))
    kernels = kernels_of(account)
    of_phases = _rows_of(account, ledger, here, kernels)
    groups = tuple(
        _group(
            [ledger.phase[n] for n in numbers],
            [e for n in numbers for e in entries[n]],
            times,
            roof,
            uncounted,
        )
        for numbers, times in [(numbers, steps.times(rows)) for numbers, rows in of_phases]
    )
    unnamed = kernels.copy()
    for _, rows in of_phases:
        unnamed &= ~rows
    rest = steps.times(unnamed).path  # of kernels that no phase names: the ledger tells nothing of them
    if not any(group.all for group in groups):
        rest = rest + steps.hidden  # which can hold such kernels, too
    bandwidth = _judged([(group, group.bytes) for group in groups], steps.step, at, "bytes", rest)
    flop = [(group, group.flop) for group in groups if group.flop is not None]
    if not flop:
        return LedgerRates(groups, bandwidth, Judged(None, "no entry of the ledger tells its flop"))
    rest = rest + sum(group.times.path for group in groups if group.flop is None)
    return LedgerRates(groups, bandwidth, _judged(flop, steps.step, at, "arithmetic", rest))


def kernels_of(account: RankAccount) -> BoolArray:
    """(n,) kernels recorded one by one within the capture, collectives left out."""
    work = account.work
    return np.asarray(work.kernels & (work.own_label == Category.KERNEL) & ~work.prior, np.bool_)


def _rows_of(
    account: RankAccount, ledger: Ledger, here: Sequence[int], kernels: BoolArray
) -> list[tuple[list[int], BoolArray]]:
    """Phases of the ledger that share kernels, and those kernels (n,).

    Where a phase does not name its kernels, any kernel may move its bytes: all phases then stand for all kernels.
    """
    work = account.work
    patterns = [ledger.phase[number].kernels for number in here]
    if None in patterns:
        return [(list(here), kernels)]
    codes, inverse = np.unique(work.table.name, return_inverse=True)
    names = [account.trace.process.name_of(int(code)) for code in codes]
    groups: list[tuple[list[int], BoolArray]] = []
    for number, pattern in zip(here, patterns, strict=True):
        search = re.compile(pattern or "").search
        hit = np.array([bool(search(name) or search(full_name(name))) for name in names], bool)
        rows: BoolArray = kernels & (hit[inverse] if len(names) else np.zeros(len(work), bool))
        numbers = [number]
        for other in [one for one in groups if bool((one[1] & rows).any())]:
            groups.remove(other)
            numbers, rows = other[0] + numbers, other[1] | rows
        groups.append((numbers, rows))
    return groups


def _group(
    phases: Sequence[Phase], entries: Sequence[Entry], times: KernelTimes, roof: Roof, uncounted: int
) -> Group:
    """``uncounted``: bytes of tensors that no entry holds."""
    total = sum(entry.bytes for entry in entries)
    known = roof.bytes_per_s
    moved = Amount(
        total,
        None if known is None else total / known * NS_PER_S,
        complete=True,
        missing="" if known is not None else "the memory bandwidth of the device is not known",
        uncounted_ns=0.0 if known is None else uncounted / known * NS_PER_S,
    )
    flop = flop_of(entries, roof)
    if flop is not None and uncounted:
        flop = replace(flop, complete=False)
    whole = any(phase.kernels is None for phase in phases)
    return Group(
        tuple(phase.name for phase in phases),
        whole,
        moved,
        flop,
        times,
    )


def flop_of(entries: Sequence[Entry], roof: Roof) -> Amount | None:
    """Arithmetic of these entries and its least time; None where no entry tells any."""
    told = [entry for entry in entries if entry.flop is not None]
    if not told:
        return None
    least, missing = 0.0, set()
    if len(told) < len(entries):
        missing.add(f"{len(entries) - len(told)} of {len(entries)} entries tell no flop")
    for entry in told:
        peak = roof.peak_flop_per_s.get(entry.flop_dtype or "")
        if peak:
            least += (entry.flop or 0) / peak * NS_PER_S
        elif entry.flop:
            missing.add(
                f"no arithmetic peak of {entry.flop_dtype} is known for the device"
                if entry.flop_dtype
                else "an entry does not tell the type of its flop"
            )
    some = least > 0 or not missing
    return Amount(
        sum(entry.flop or 0 for entry in told),
        least if some else None,
        not missing,
        "; ".join(sorted(missing)),
    )


class StepKernels:
    """The path and the launched work of some windows of a rank, to be asked for groups of rows."""

    def __init__(self, account: RankAccount, positions: Sequence[int]) -> None:
        work = account.work
        self.duration = (work.end_ns - work.start_ns).astype(np.float64)
        self.index = np.array([account.windows[at].index for at in positions], np.int64)
        self.owner = (
            np.zeros(len(work), np.int64) if account.assignment is None else account.assignment.of_row
        )
        self.step = np.array(
            [account.windows[at].end_ns - account.windows[at].start_ns for at in positions], np.float64
        )
        each = [account.paths[at] for at in positions]
        path = join_paths(each)
        self.window = np.repeat(np.arange(len(each)), [len(one) for one in each])
        self.length = path.end_ns - path.start_ns
        body = (path.side == ON_DEVICE) & (path.ref >= 0) & (path.category == Category.KERNEL)
        self.row = np.where(body, path.ref, -1)
        self.hidden = self._per_window(path.category == Category.GRAPH_UNRESOLVED)

    def times(self, rows: BoolArray) -> KernelTimes:
        """Of the rows (n,) that are True."""
        mine = np.flatnonzero(rows & (self.owner >= 0))
        most = max(int(self.index.max(initial=-1)), int(self.owner[mine].max(initial=-1))) + 1
        total = np.bincount(self.owner[mine], weights=self.duration[mine], minlength=most)[self.index]
        here = self.row >= 0
        here[here] = rows[self.row[here]]
        own = here.copy()
        own[here] = self.owner[self.row[here]] == self.index[self.window[here]]
        return KernelTimes(
            total.astype(np.float64), self._per_window(own), self._per_window(here), self.hidden
        )

    def _per_window(self, which: BoolArray) -> FloatArray:
        ns = np.where(which, self.length, 0)
        return np.bincount(self.window, weights=ns, minlength=len(self.index)).astype(np.float64)


def _judged(
    amounts: Sequence[tuple[Group, Amount]],
    step: FloatArray,
    at: float,
    what: str,
    rest: FloatArray,
) -> Judged:
    """The sum over groups; why not, where one of them cannot be judged.

    ``rest``: (w,) path time of kernels of which the ledger tells nothing: any of it can be near the peak.
    """
    near: list[Near] = []
    for group, amount in amounts:
        name = "the ledger" if group.all else "phase " + " + ".join(group.names)
        if amount.least_ns is None:
            return Judged(None, amount.missing)
        if not group.times.total.any() and not group.times.hidden.any():
            if amount.units == 0:
                continue
            return Judged(None, f"no kernel of these steps is one that {name} names")
        if exceeded(amount.least_ns, group.times):
            kernel_ms = float(group.times.total.mean()) / 1e6
            verb, served = ("take", "caches served part, or ") if what == "bytes" else ("takes", "")
            why = (
                f"the {what} of {name} {verb} at least {amount.least_ns / 1e6:.3f} ms at the peak, its kernels only"
                f" {kernel_ms:.3f} ms: {served}ledger, kernels and peak do not belong together"
            )
            return Judged(None, why, contradicted=True)
        near.append(
            near_peak(amount.least_ns, group.times, at, complete=amount.complete, more_ns=amount.uncounted_ns)
        )
    zero = np.zeros_like(step)
    low, high = (sum((getattr(one, end) for one in near), zero) for end in ("low", "high"))
    high = np.minimum(high + rest, step)
    return Judged(WindowShares((low + high) / 2, low, high, step))


def unplaced(ledger: Ledger) -> list[Uncounted]:
    """Tensors that a step may read and that no entry holds."""
    return [tensor for tensor in ledger.uncounted if tensor.why.startswith(FOREIGN)]


def applicable(ledger: Ledger, phases: Sequence[str]) -> Mapping[str, bool]:
    """Which phases of a diagnosis are steps of the ledger's kind. Without ``applies_to`` only a single one can be."""
    if ledger.workload.applies_to is None and len(phases) != 1:
        return dict.fromkeys(phases, False)
    return {phase: may_apply(ledger, phase) for phase in phases}


def may_apply(ledger: Ledger, phase: str) -> bool:
    """Whether the ledger does not say that its steps are of other phases.

    A capture in which no steps were found is one step only where the ledger says so.
    """
    pattern = ledger.workload.applies_to
    return phase != WHOLE if pattern is None else re.search(pattern, phase) is not None
