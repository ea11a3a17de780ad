"""What a reader must know about the joint answer: what it rests on, what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.diagnosis import Unmeasured
from analyzer.explain.absent_device import WHERE
from analyzer.explain.ranks.joint_report import JointReport
from analyzer.model import Capture, QualityEntry

LARGE_NS = 1_000_000
"""Clocks of one host agree to tens of microseconds; a correction of a millisecond is news."""


def notes(joint: JointReport, capture: Capture) -> list[str]:
    """Sentences for the top of the report; none for a capture of one rank."""
    if len(joint.reports) < 2:
        return []
    sentences = list(joint.joint.problems())
    sentences += _incomplete(joint)
    sentences += _one_host(joint, capture)
    alignment = joint.joint.alignment
    lonely = [rank for rank in alignment.alone if rank not in joint.joint.doubted]
    if alignment.maps and lonely:
        alone = ", ".join(str(rank) for rank in lonely)
        sentences.append(
            f"Rank {alone} shares no collective with the others: its clock could not be compared with theirs."
        )
    if alignment.contradictory:
        odd = ", ".join(str(rank) for rank in alignment.contradictory)
        sentences.append(
            f"The collectives that rank {odd} shares with the others contradict one another: at every offset between "
            "the clocks some rank leaves calls before all have come. Its clock is not compared with theirs."
        )
    for label, operation in sorted(alignment.unsynchronized):
        sentences.append(
            f"Group {label}: ranks leave {operation} before all have come, so it is not taken to synchronize "
            "them; its time is not split."
        )
    if joint.paths is None:
        sentences.append(f"There is no path through all ranks: {joint.why_no_path}.")
    elif any(row.unsplit and row.split_calls for row in joint.collectives):
        lost = sum(sum(row.unsplit.values()) for row in joint.collectives if row.split_calls)
        sentences.append(
            f"{lost} collective calls could not be split beside others that could: the path through all ranks stays "
            "on its rank there, so that what came before is that rank's own story."
        )
    return sentences


def _incomplete(joint: JointReport) -> list[str]:
    """Groups of which a rank is missing, and those of which nothing tells who takes part."""
    found = []
    missing = {row.group: row.missing_ranks for row in joint.collectives if row.missing_ranks}
    for group, ranks in sorted(missing.items()):
        names = ", ".join(str(rank) for rank in ranks)
        found.append(
            f"Group {group}: nothing was captured of rank {names}. Its collectives are not split; who came last is "
            "said of the observed ranks only."
        )
    assumed = sorted({row.group for row in joint.collectives if row.assumed_complete and row.split_calls})
    if assumed and not joint.world_known:
        found.append(
            f"The capture does not say which ranks take part in group {', '.join(assumed)}: the ranks given are taken "
            "for all of them. If one is missing, what is called transfer holds waiting for it; if these are several "
            "groups whose calls end together by chance, figures of waiting and intervals of clocks rest on that chance."
        )
    return found


def _one_host(joint: JointReport, capture: Capture) -> list[str]:
    """Large corrections between ranks whose reports come from one host."""
    host = {
        rank: trace.hostname or (trace.source.path if len(capture.sources) < len(capture.traces) else None)
        for trace, rank in zip(capture.traces, capture.ranks, strict=True)
    }
    found = []
    for rank, clock in sorted(joint.joint.alignment.maps.items()):
        reference = clock.reference
        if host[rank] is None or host[rank] != host[reference]:
            continue
        if abs(clock.offset_ns) > LARGE_NS:
            found.append(
                f"Rank {rank} and rank {reference} come from one host, yet their clocks differ by "
                f"{clock.offset_ns} ns: reports of one host share a clock, so one of them is wrong about its own start."
            )
    return found


def quality(joint: JointReport) -> list[QualityEntry]:
    """What the matching of ranks could not use."""
    calls = sum(row.calls_total for row in joint.collectives)
    reasons: Counter[str] = Counter()
    for row in joint.collectives:
        reasons.update(row.unsplit)
    entries = [
        QualityEntry(
            "collective-not-split", count, calls, f"waiting and transfer are not told apart: {reason}"
        )
        for reason, count in sorted(reasons.items())
    ]
    if joint.paths is not None:
        unknown = sum(window.path_ns["unattributed"] for window in joint.paths.account.windows)
        whole = sum(window.end_ns - window.start_ns for window in joint.paths.account.windows)
        entries.append(
            QualityEntry(
                "global-path-unattributed-ns", unknown, whole,
                "time of the path through all ranks that no record explains, such as before a rank's first record",
            )
        )  # fmt: skip
    return [entry for entry in entries if entry.count]


def unmeasured(joint: JointReport, no_device: str = "") -> list[Unmeasured]:
    """What of the joint answer this capture cannot give. ``no_device``: why none was there."""
    found = []
    if len(joint.reports) > 1 and joint.paths is None:
        found.append(
            Unmeasured(
                what=f"one path through all ranks: {joint.why_no_path}",
                how_to_measure=WHERE
                if no_device
                else "captures of all ranks over the same steps, with the collectives that they share",
            )
        )
    split = any(row.split_calls for row in joint.collectives)
    if joint.collectives and not split:
        missing = any(row.missing_ranks for row in joint.collectives) or len(joint.reports) < 2
        why: Sequence[str] = sorted({reason for row in joint.collectives for reason in row.unsplit})
        found.append(
            Unmeasured(
                what=f"transfer and waiting inside collectives: {'; '.join(why)}",
                how_to_measure="give the captures of all ranks of the group in one call"
                if missing
                else "no rank is missing: what stands in the way is named beside this",
            )
        )
    return found
