"""Verdicts: what the evidence of one capture supports, contradicts or leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from analyzer.diagnosis import (
    Evidence,
    Hypothesis,
    Measured,
    MeasureKind,
    Share,
    Verdict,
)
from analyzer.explain.bytes.codes import NO_CODES, RowCodes
from analyzer.explain.segments import event_columns
from analyzer.explain.verdicts.amounts import amounts, ceiling
from analyzer.explain.verdicts.catalogue import (
    BETWEEN_RANKS,
    MEASURABLE,
    RATES,
    UNMEASURED,
    Candidate,
    Entry,
    Open,
)
from analyzer.explain.verdicts.facts import DRAM_COUNTERS, HOW_TO_RECORD, TENSOR_COUNTERS, recorded
from analyzer.explain.verdicts.path_facts import path_facts
from analyzer.explain.verdicts.shares import WindowShares, share_of
from analyzer.model import IntArray
from analyzer.reconstruct.clocks import DeviceClock
from analyzer.reconstruct.critical_path import Path, join_paths
from analyzer.reconstruct.rank import RankAccount
from analyzer.tables import NO_EVENT

EVIDENCE_ROWS = 3
SEGMENTS_FILE = "segments.csv"
ON_CPU = ("launch-bound", "host-bound", "synchronization", "output-path")
CONTRADICTIONS = 0.01
"""Share of launches with a negative latency from which on nothing on the CPU is called contradicted."""
FIRST_LINE = 2
"""Line of the first segment in segments.csv: the header comes before it."""


@dataclass(frozen=True)
class Basis:
    """What a share rests on where it is no sum of path categories: the kind of number, its name, what goes with it."""

    kind: MeasureKind
    quantity: str
    note: str = ""


@dataclass(frozen=True)
class RankEvidence:
    """What one rank's windows of one phase say about every measurable hypothesis."""

    rank: int
    device_events: int
    facts: frozenset[str]
    windows: int
    shares: Mapping[str, WindowShares]
    evidence: Mapping[str, list[Evidence]]
    clocks_contradict: bool  # and no shift mends it: what the CPU waited for is unsure
    ceilings: Mapping[str, WindowShares]  # of hypotheses that the path can only bound
    basis: Mapping[str, Basis] = field(default_factory=dict)  # by hypothesis; absent: measured on the path
    why_not: Mapping[str, str] = field(
        default_factory=dict
    )  # why what was given does not measure a hypothesis


def gather(
    account: RankAccount,
    rank: int,
    indices: Sequence[int],
    thresholds: Mapping[str, float],
    codes: RowCodes = NO_CODES,
) -> RankEvidence:
    """Measure one rank's windows (positions in ``account.windows``) for every hypothesis."""
    each = [account.paths[index] for index in indices]
    whole, facts = join_paths(each), path_facts(account, each, thresholds["small_grid_coverage"], codes)
    edges: IntArray = np.cumsum([0, *map(len, each)])
    owner = np.repeat(np.asarray(indices, np.int64), np.diff(edges))
    first = np.cumsum([0, *(len(path) for path in account.paths)])
    line = np.concatenate([np.empty(0, np.int64), *(np.arange(first[at], first[at + 1]) for at in indices)])
    shares: dict[str, WindowShares] = {}
    evidence: dict[str, list[Evidence]] = {}
    counted = counted_facts(codes)
    for entry in (*MEASURABLE, *(entry for entry in RATES if not missing(entry, counted))):
        measured = amounts(entry, facts)
        shares[entry.id] = measured.per_window(facts.length, edges)
        evidence[entry.id] = _evidence(account, rank, whole, owner, line, measured.mine)
    ceilings = {
        entry.id: ceiling(entry.ceiling, facts).per_window(facts.length, edges)
        for entry in UNMEASURED
        if entry.ceiling
    }
    return RankEvidence(
        rank=rank,
        device_events=len(account.work),
        facts=recorded(account.trace, output_ranges=bool(account.account.roles.output.any())) | counted,
        windows=len(indices),
        shares=shares,
        evidence=evidence,
        clocks_contradict=_contradict(account.clock),
        ceilings=ceilings,
    )


def counted_facts(codes: RowCodes) -> frozenset[str]:
    """What counters tell."""
    known = {DRAM_COUNTERS: codes.bandwidth, TENSOR_COUNTERS: codes.compute}
    return frozenset(name for name, code in known.items() if code is not None)


def _contradict(clock: DeviceClock) -> bool:
    """Whether so much work starts before its own launch that the order of host and device is unsure."""
    return clock.correction == "clipped" and clock.negative_latency_count >= CONTRADICTIONS * max(
        clock.pair_count, 1
    )


def verdicts(
    phase: str, ranks: Sequence[RankEvidence], thresholds: Mapping[str, float], distorted: str
) -> list[Hypothesis]:
    """All hypotheses for one phase. The rank with the largest share speaks, by name.

    ``distorted``: why absolute verdicts are weakened, or "".
    """
    result = [_measurable(entry, phase, ranks, thresholds, distorted) for entry in MEASURABLE]
    split = {
        entry.id: entry for entry in (*BETWEEN_RANKS, *RATES) if any(_answers(entry, part) for part in ranks)
    }
    for entry in UNMEASURED:
        if entry.id in split:
            result.append(_measurable(split[entry.id], phase, ranks, thresholds, distorted))
        else:
            result.append(_bounded(entry, phase, ranks, thresholds))
    return result


def global_verdicts(
    phase: str,
    joint: RankEvidence,
    mostly: Mapping[str, int],
    thresholds: Mapping[str, float],
    distorted: str,
) -> list[Hypothesis]:
    """All hypotheses for one phase on the path through all ranks; ``mostly``: the rank with the most of each."""
    return [
        msgspec.structs.replace(
            row,
            scope="global",
            rank=mostly.get(row.id) if row.share is not None else None,
            measured=None if row.measured is None else _over_all_ranks(row.measured),
        )
        for row in verdicts(phase, [joint], thresholds, distorted)
    ]


def rate_verdicts(
    phase: str, ranks: Sequence[RankEvidence], thresholds: Mapping[str, float], distorted: str
) -> dict[str, Hypothesis]:
    """Those hypotheses about peaks that the ranks' own paths answer, by id."""
    return {
        entry.id: _measurable(entry, phase, ranks, thresholds, distorted)
        for entry in RATES
        if any(_answers(entry, part) for part in ranks)
    }


def _over_all_ranks(measured: Measured) -> Measured:
    name = measured.name.replace("on the path", "on the global path")
    if name == "collective.wait on the global path":
        name = "waits for the rank that the global path was on, as a union"
    return msgspec.structs.replace(measured, name=name, rank=None)


def _measurable(
    entry: Entry, phase: str, ranks: Sequence[RankEvidence], thresholds: Mapping[str, float], distorted: str
) -> Hypothesis:
    usable = [part for part in ranks if _answers(entry, part)]
    if not usable:
        return _unmeasured(entry, phase, _why_not(entry, ranks))
    best, (value, low, high) = _speaker([(part, part.shares[entry.id]) for part in usable], thresholds)
    shares, basis = best.shares[entry.id], best.basis.get(entry.id, Basis("measurement", entry.quantity))
    verdict = decide(low, high, thresholds)
    note = "; ".join(filter(None, (entry.beyond, basis.note)))
    if verdict == "contradicted" and entry.beyond:
        verdict = "inconclusive"
    if verdict == "contradicted" and best.clocks_contradict and entry.id in ON_CPU:
        verdict, note = "inconclusive", "host and device clocks contradict one another, and no shift mends it"
    if verdict == "supported" and distorted and entry.id != "profiler-distortion":
        note = "; ".join(filter(None, (f"supported, under distortion: {distorted}", note)))
    return msgspec.structs.replace(
        _unmeasured(entry, phase, note),
        rank=best.rank,
        verdict=verdict,
        share=Share(value=value, interval=(low, high)),
        measured=Measured(
            name=basis.quantity,
            value=float(int(shares.value.sum() / best.windows)),
            unit="ns per step",
            kind=basis.kind,
            rank=best.rank,
            windows=best.windows,
        ),
        gain_upper_bound_ns=_most_ns(shares),
        evidence=best.evidence[entry.id],
    )


def _most_ns(shares: WindowShares) -> int:
    """What a change can give at most, ns per step: never more than the step itself."""
    return math.ceil(_most(shares) / len(shares.step))


def _most(shares: WindowShares) -> float:
    return min(max(float(shares.value.sum()), float(shares.high.sum())), float(shares.step.sum()))


def _speaker(
    parts: Sequence[tuple[RankEvidence, WindowShares]], thresholds: Mapping[str, float]
) -> tuple[RankEvidence, tuple[float, float, float]]:
    """The rank that speaks for all, with its share and interval: the one with the strongest case.

    A rank whose interval is open comes before one that contradicts, however small its share is.
    """
    strength = {"supported": 2, "inconclusive": 1, "contradicted": 0}
    shares = [(part, share_of(of_rank)) for part, of_rank in parts]
    return max(
        shares,
        key=lambda pair: (strength[decide(pair[1][1], pair[1][2], thresholds)], pair[1][0], -pair[0].rank),
    )


def _bounded(
    entry: Open, phase: str, ranks: Sequence[RankEvidence], thresholds: Mapping[str, float]
) -> Hypothesis:
    """Unmeasured, unless all that could belong to it holds next to nothing of the path."""
    usable = [(part, part.ceilings[entry.id]) for part in ranks if part.windows and entry.id in part.ceilings]
    usable = [(part, shares) for part, shares in usable if part.device_events]
    how = next((part.why_not[entry.id] for part in ranks if entry.id in part.why_not), entry.how_to_measure)
    if not usable:
        return _unmeasured(entry, phase, how)
    best, (_, _, high) = _speaker(usable, thresholds)
    ceiling = best.ceilings[entry.id]
    most_ns = _most_ns(ceiling)
    if high > thresholds["contradicted_share"]:
        words = (
            f"{entry.ceiling_words} hold at most {100 * high:.1f} % of the step on rank {best.rank}'s path"
        )
        return _unmeasured(entry, phase, f"{words}; {how}")
    return msgspec.structs.replace(
        _unmeasured(
            entry, phase, f"all path time of {entry.ceiling_words} and of what is unknown is at most this"
        ),
        rank=best.rank,
        verdict="contradicted",
        share=Share(value=_most(ceiling) / max(float(ceiling.step.sum()), 1.0), interval=(0.0, high)),
        measured=Measured(
            name=f"path time of {entry.ceiling_words} and of what is unknown, of which this could be a part",
            value=float(most_ns),
            unit="ns per step",
            kind="bound",
            rank=best.rank,
            windows=best.windows,
        ),
        gain_upper_bound_ns=most_ns,
    )


def _answers(entry: Entry, part: RankEvidence) -> bool:
    """Whether this rank's capture holds what the hypothesis needs (device work always)."""
    if not part.device_events or not part.windows:
        return False
    return entry.id in part.shares and not missing(entry, part.facts)


def missing(entry: Entry, facts: frozenset[str]) -> list[str]:
    """What the hypothesis needs and the capture has no place for ("a or b": either does)."""
    return [need for need in entry.needs if need != "device" and facts.isdisjoint(need.split(" or "))]


def decide(low: float, high: float, thresholds: Mapping[str, float]) -> Verdict:
    """The verdict on a share of the step by its interval, 0..1."""
    if low >= thresholds["supported_share"]:
        return "supported"
    if high <= thresholds["contradicted_share"]:
        return "contradicted"
    return "inconclusive"


def _evidence(
    account: RankAccount, rank: int, whole: Path, owner: IntArray, line: IntArray, mine: IntArray
) -> list[Evidence]:
    """The longest segments behind the quantity: rows of segments.csv.

    ``owner``: position of the window; ``line``: position among the rank's segments.
    """
    rows = np.flatnonzero(mine > 0)
    if len(rows) > EVIDENCE_ROWS:
        # Only what is as long as the last to be shown is sorted.
        least = np.partition(mine[rows], len(rows) - EVIDENCE_ROWS)[len(rows) - EVIDENCE_ROWS]
        rows = rows[mine[rows] >= least]
    order = np.lexsort((owner[rows], whole.start_ns[rows], -mine[rows]))
    shown = rows[order[:EVIDENCE_ROWS]]
    _, started = event_columns(account, whole)
    return [
        Evidence(
            file=SEGMENTS_FILE,
            line=int(line[at]) + FIRST_LINE,
            rank=rank,
            window=account.windows[owner[at]].index,
            start_ns=int(whole.start_ns[at]),
            end_ns=int(whole.end_ns[at]),
            event=_event_name(account, whole, at),
            input=account.trace.source.path,
            event_start_ns=None if started[at] == NO_EVENT else int(started[at]),
        )
        for at in shown.tolist()
    ]


def _event_name(account: RankAccount, path: Path, at: int) -> str:
    ref = int(path.ref[at])
    if ref < 0:
        return "(nothing recorded)"
    table = account.work.table.name if path.thread[at] < 0 else account.trace.process.host.name
    return account.trace.process.name_of(int(table[ref]))


def _why_not(entry: Entry, ranks: Sequence[RankEvidence]) -> str:
    """What no rank's capture holds of what the hypothesis needs, and what would record it."""
    lacking = {need for part in ranks if part.device_events for need in missing(entry, part.facts)}
    why = "not captured: " + ", ".join(sorted(lacking))
    if not any(part.device_events for part in ranks):
        why = "device activity was not recorded"
    how = "; ".join(HOW_TO_RECORD[need] for need in sorted(lacking) if need in HOW_TO_RECORD)
    return f"{why}: {how or entry.how_to_measure}"


def _unmeasured(candidate: Candidate, phase: str, note: str) -> Hypothesis:
    """The hypothesis in words, without any figure."""
    return Hypothesis(
        id=candidate.id,
        phase=phase,
        scope="rank",
        rank=None,
        claim=candidate.claim,
        verdict="unmeasured",
        verdict_note=note,
        share=None,
        overlaps_with=list(candidate.overlaps_with),
        measured=None,
        gain_upper_bound_ns=None,
        intervention=candidate.intervention,
        predicted_step_ns=None,
        disproof=candidate.disproof,
        undo=candidate.undo,
        discriminating_check=candidate.discriminating_check,
        evidence=[],
    )
