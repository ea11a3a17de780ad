"""Verdicts: what the evidence of one capture supports, contradicts or leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.analysis import Evidence, Hypothesis, Measured, Share, Verdict
from analyzer.explain.catalogue import MEASURABLE, UNMEASURED, Entry, Open
from analyzer.explain.shares import member_mask, share_of, window_shares
from analyzer.reconstruct.critical_path import Path
from analyzer.reconstruct.rank import HOST, RankAccount

EVIDENCE_ROWS = 3


@dataclass(frozen=True)
class PhaseOfRank:
    """The windows of one rank and phase that verdicts rest on."""

    rank: int
    account: RankAccount
    indices: tuple[int, ...]

    @property
    def paths(self) -> list[Path]:
        """Their paths."""
        return [self.account.paths[index] for index in self.indices]


def verdicts(
    phase: str,
    ranks: Sequence[PhaseOfRank],
    thresholds: Mapping[str, float],
    captured: Mapping[int, frozenset[str]],
    distorted: str,
) -> list[Hypothesis]:
    """All hypotheses for one phase. The rank with the largest share speaks, by name.

    ``captured``: record classes per rank. ``distorted``: why absolute verdicts are weakened, or "".
    """
    result = [_measurable(entry, phase, ranks, thresholds, captured, distorted) for entry in MEASURABLE]
    result += [_open(entry, phase) for entry in UNMEASURED]
    return result


def _measurable(
    entry: Entry,
    phase: str,
    ranks: Sequence[PhaseOfRank],
    thresholds: Mapping[str, float],
    captured: Mapping[int, frozenset[str]],
    distorted: str,
) -> Hypothesis:
    usable = [part for part in ranks if _answers(entry, part, captured[part.rank])]
    if not usable:
        missing = " and ".join(entry.needs)
        note = f"{missing} records were not captured" if ranks else "no window to measure"
        if all(part.account.boundary == HOST for part in ranks):
            note = "device activity was not recorded"
        return _unmeasured(entry, phase, note)
    best = max(usable, key=lambda part: (share_of(window_shares(entry, part.paths))[0], -part.rank))
    shares = window_shares(entry, best.paths)
    value, low, high = share_of(shares)
    verdict = _decide(low, high, thresholds)
    note = ""
    if verdict == "supported" and distorted and entry.id != "profiler-distortion":
        note = f"supported, under distortion: {distorted}"
    mean_ns = int(shares.value.sum() / len(shares.value))
    return Hypothesis(
        id=entry.id,
        phase=phase,
        scope="rank",
        rank=best.rank,
        claim=entry.claim,
        verdict=verdict,
        verdict_note=note,
        share=Share(value=value, interval=(low, high)),
        overlaps_with=list(entry.overlaps_with),
        measured=Measured(
            name=entry.quantity,
            value=float(mean_ns),
            unit="ns per step",
            kind="measurement",
            rank=best.rank,
            windows=len(best.indices),
        ),
        gain_upper_bound_ns=mean_ns,
        intervention=entry.intervention,
        predicted_step_ns=None,
        disproof=entry.disproof,
        undo=entry.undo,
        discriminating_check=entry.discriminating_check,
        evidence=_evidence(entry, best),
    )


def _answers(entry: Entry, part: PhaseOfRank, captured: frozenset[str]) -> bool:
    """Whether this rank's capture holds what the hypothesis needs (device work always)."""
    if part.account.boundary == HOST or not part.indices:
        return False
    return all(need == "device" or need in captured for need in entry.needs)


def _decide(low: float, high: float, thresholds: Mapping[str, float]) -> Verdict:
    if low >= thresholds["supported_share"]:
        return "supported"
    if high <= thresholds["contradicted_share"]:
        return "contradicted"
    return "inconclusive"


def _evidence(entry: Entry, part: PhaseOfRank) -> list[Evidence]:
    """The longest segments behind the quantity: rows of segments.csv."""
    rows: list[tuple[int, int, int, int, int]] = []
    for index in part.indices:
        path = part.account.paths[index]
        members = np.flatnonzero(member_mask(entry, path))
        length = (path.end_ns - path.start_ns)[members]
        for at in members[np.argsort(-length, kind="stable")[:EVIDENCE_ROWS]].tolist():
            rows.append((int(path.start_ns[at] - path.end_ns[at]), int(path.start_ns[at]), index, at, 0))
    return [
        Evidence(
            file="segments.csv",
            window=part.account.windows[index].index,
            start_ns=int(part.account.paths[index].start_ns[at]),
            end_ns=int(part.account.paths[index].end_ns[at]),
            event=_event_name(part.account, part.account.paths[index], at),
        )
        for _, _, index, at, _ in sorted(rows)[:EVIDENCE_ROWS]
    ]


def _event_name(account: RankAccount, path: Path, at: int) -> str:
    ref = int(path.ref[at])
    if ref < 0:
        return "(nothing recorded)"
    table = account.work.table.name if path.thread[at] < 0 else account.trace.process.host.name
    code = int(table[ref])
    return account.trace.process.names[code] if code >= 0 else "(no name)"


def _unmeasured(entry: Entry, phase: str, note: str) -> Hypothesis:
    return _open(
        Open(entry.id, entry.claim, entry.discriminating_check, f"{note}: {entry.how_to_measure}"), phase
    )


def _open(entry: Open, phase: str) -> Hypothesis:
    return Hypothesis(
        id=entry.id,
        phase=phase,
        scope="rank",
        rank=None,
        claim=entry.claim,
        verdict="unmeasured",
        verdict_note=entry.how_to_measure,
        share=None,
        overlaps_with=[],
        measured=None,
        gain_upper_bound_ns=None,
        intervention="",
        predicted_step_ns=None,
        disproof="",
        undo="",
        discriminating_check=entry.discriminating_check,
        evidence=[],
    )
