"""The check-up of a capture: which hypotheses it can answer, which not and why, and what would close the gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from analyzer import strict_json
from analyzer.diagnosis import Diagnosis, Steps
from analyzer.explain.absent_device import no_device as _no_device
from analyzer.explain.check_up import remedies
from analyzer.explain.check_up.files import FileCheck, Note, check_files, collectives_of
from analyzer.explain.check_up.remedies import Remedy, Tool
from analyzer.explain.check_up.shortfalls import RankHolds, Shortfall, holdings, shortfalls
from analyzer.explain.run import FAILED_COMMAND, PARTIAL_RUN, how_ranks_ended
from analyzer.explain.verdicts.catalogue import MEASURABLE, RATES, UNMEASURED, Entry, Open
from analyzer.model import Capture
from analyzer.rules import Rules, builtin_rules

FORMAT = "tracebound.doctor"
FORMAT_VERSION = 1

_GAPS = frozenset(("missing-ranks", "no-steps", "no-device", PARTIAL_RUN, FAILED_COMMAND))
"""Notes about the whole capture that are gaps."""
AnswerWord = Literal["can", "partly", "cannot"]


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that keeps an answer from being whole.

    ``ranks``: those it holds for. ``close_gap``: what to do in words; ``flags``: the options of the profiler
    that made the file. ``closable``: one more capture with that profiler would close it.
    """

    reason: str
    ranks: list[int]
    close_gap: str
    flags: list[str]
    closable: bool


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What this capture can say about one hypothesis."""

    id: str
    claim: str
    answer: AnswerWord
    limits: list[Limit]


class CaptureAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """One capture that closes every closable gap of the files of one profiler; ``costs`` in words."""

    tool: str
    kind: str
    flags: list[str]
    lines: list[str]
    collect: str  # the same by a collector, with the manifest of the run
    costs: list[str]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that ``--strict`` fails on."""

    what: str  # hypothesis, or the code of a note that is a gap
    subject: str
    why: str


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that ``tracebound doctor --format json`` prints."""

    format: str
    format_version: int
    tracebound_version: str
    ranks: list[int]
    missing_ranks: list[int]
    steps: Steps | None
    steps_missing_because: str | None
    hypotheses: list[Answer]
    captures: list[CaptureAdvice]
    notes: list[Note]
    files: list[FileCheck]
    gaps: int  # failures
    failures: list[Failure]

    def to_json(self) -> bytes:
        """Pretty and deterministic, newline at the end."""
        return strict_json.encode(self)


def examine(
    capture: Capture,
    diagnosis: Diagnosis | None = None,
    *,
    version: str,
    steps_missing_because: str | None = None,
    rules: Rules | None = None,
) -> Checkup:
    """Check a capture. ``diagnosis``: its analysis; None where there is none, and then why.

    ``rules`` say which kernels communicate; None: the built-in ones.

    Where there is an analysis its verdicts decide what is unmeasured; else the catalogue's needs do.
    """
    rules = rules or builtin_rules()
    ranks = _rank_holdings(capture, diagnosis)
    collectives = sum(collectives_of(trace, rules)[0] for trace in capture.traces)
    hypotheses = [_measurable(entry, ranks, diagnosis) for entry in MEASURABLE]
    hypotheses += [
        _between_ranks(entry, ranks, diagnosis)
        or _counted(entry, ranks, diagnosis)
        or _open(entry, ranks, capture, collectives)
        for entry in UNMEASURED
    ]
    files = check_files(capture, diagnosis, rules)
    notes = _notes(capture, diagnosis, ranks, steps_missing_because)
    failures = _failures(hypotheses, files, notes)
    return Checkup(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=version,
        ranks=list(capture.ranks),
        missing_ranks=list(capture.missing_ranks),
        steps=None if diagnosis is None else diagnosis.steps,
        steps_missing_because=steps_missing_because,
        hypotheses=hypotheses,
        captures=_advice(capture, hypotheses, notes, files),
        notes=notes,
        files=files,
        gaps=len(failures),
        failures=failures,
    )


def _rank_holdings(capture: Capture, diagnosis: Diagnosis | None) -> list[RankHolds]:
    results = {} if diagnosis is None else {rank.rank: rank for rank in diagnosis.ranks}
    verdict = None if diagnosis is None else _unmeasured_because("output-path", diagnosis) is None
    some = any(len(trace.device) for trace in capture.traces)
    no_gpu = bool(_no_device(capture))
    return [
        holdings(
            trace,
            rank,
            results.get(rank),
            output=verdict,
            forked=some and not len(trace.device),
            no_gpu=no_gpu,
        )
        for trace, rank in zip(capture.traces, capture.ranks, strict=True)
    ]


def _unmeasured_because(id_: str, diagnosis: Diagnosis) -> str | None:
    """Why no phase has a verdict on this hypothesis; None where one has."""
    rows = [row for row in diagnosis.hypotheses if row.id == id_]
    if not rows or any(row.verdict != "unmeasured" for row in rows):
        return None
    return rows[0].verdict_note


def _has_verdict(id_: str, diagnosis: Diagnosis | None) -> bool:
    """Whether a phase has one: the manifest can tell what no record of the traces does."""
    return diagnosis is not None and any(
        row.id == id_ and row.verdict != "unmeasured" for row in diagnosis.hypotheses
    )


def _measurable(entry: Entry, ranks: Sequence[RankHolds], diagnosis: Diagnosis | None) -> Answer:
    per_rank = [(holds, shortfall) for holds in ranks for shortfall in shortfalls(entry, holds)]
    lost = {holds.rank for holds, shortfall in per_rank if shortfall.fatal}
    limits = _merged(per_rank)
    unmeasured = None if diagnosis is None else _unmeasured_because(entry.id, diagnosis)
    answer: AnswerWord = "partly" if limits else "can"
    if len(lost) == len(ranks) and not _has_verdict(entry.id, diagnosis):
        answer = "cannot"
    elif unmeasured is not None:
        answer = "cannot"
        limits.append(_limit(Shortfall(unmeasured, Remedy("")), [holds.rank for holds in ranks]))
    return Answer(id=entry.id, claim=entry.claim, answer=answer, limits=limits)


def _merged(rows: Iterable[tuple[RankHolds, Shortfall]]) -> list[Limit]:
    """Equal shortfalls of several ranks as one limit; counts of a shared process count once."""
    groups: dict[tuple[str, Remedy], list[tuple[RankHolds, Shortfall]]] = {}
    for holds, shortfall in rows:
        groups.setdefault((shortfall.reason, shortfall.remedy), []).append((holds, shortfall))
    limits = []
    for (reason, remedy), found in groups.items():
        counts = {
            holds.process if shortfall.on_host else holds.rank: shortfall.count for holds, shortfall in found
        }
        count = sum(counts.values())
        limits.append(_limit(Shortfall(reason, remedy, count=count), [holds.rank for holds, _ in found]))
    return limits


def _limit(shortfall: Shortfall, ranks: list[int]) -> Limit:
    return Limit(
        reason=shortfall.reason.replace("{n}", f"{shortfall.count:,}"),
        ranks=ranks,
        close_gap=shortfall.remedy.how,
        flags=list(shortfall.remedy.flags),
        closable=shortfall.remedy.closable,
    )


def _between_ranks(entry: Open, ranks: Sequence[RankHolds], diagnosis: Diagnosis | None) -> Answer | None:
    """What several ranks on one clock say of a hypothesis about collectives; None where they say nothing."""
    rows = [] if diagnosis is None else diagnosis.collectives
    if not entry.id.startswith("collective-") or not any(row.split_calls for row in rows):
        return None
    reasons = sorted({reason for row in rows for reason in row.unsplit})
    all_ranks = [holds.rank for holds in ranks]
    limits = [
        _limit(Shortfall(f"some calls are not split: {reason}", Remedy("")), all_ranks) for reason in reasons
    ]
    return Answer(id=entry.id, claim=entry.claim, answer="partly" if limits else "can", limits=limits)


_OF_LEDGER = {"bandwidth-bound": "bytes", "compute-bound": "arithmetic"}


def _counted(entry: Open, ranks: Sequence[RankHolds], diagnosis: Diagnosis | None) -> Answer | None:
    """What the counters of the capture itself say of a hypothesis about peaks; None where they say nothing."""
    if entry.id not in _OF_LEDGER or not _has_verdict(entry.id, diagnosis) or diagnosis is None:
        return None
    rows = [row for row in diagnosis.hypotheses if row.id == entry.id and row.measured is not None]
    if not any(row.measured is not None and row.measured.kind == "measurement" for row in rows):
        return None
    silent = [holds.rank for holds in ranks if "metrics" not in holds.facts]
    limits = [_limit(Shortfall("its counters were not sampled", Remedy("")), silent)] if silent else []
    return Answer(id=entry.id, claim=entry.claim, answer="partly" if limits else "can", limits=limits)


def _open(entry: Open, ranks: Sequence[RankHolds], capture: Capture, collectives: int) -> Answer:
    """A hypothesis that this version answers from no single capture."""
    reason, remedy = "no single capture answers it", Remedy(entry.how_to_measure)
    if entry.id in {rate.id for rate in RATES}:
        reason = f"takes counters, or a ledger with its {_OF_LEDGER[entry.id]} that diagnose is given"
        tools = {holds.tool.kind: holds.tool for holds in ranks}
        remedy = remedies.counters_or_ledger(tools[min(tools, key=lambda kind: kind != remedies.NSYS)])
    elif entry.id.startswith("collective-"):
        inside = any(holds.whole_graphs for holds in ranks)
        none = "no collective was recorded on a device" + (
            " outside graph replays, which are one row each" if inside else ""
        )
        reason = entry.how_to_measure if collectives else none
        remedy = Remedy("give the files of all ranks" if collectives and capture.missing_ranks else "")
    return Answer(
        id=entry.id,
        claim=entry.claim,
        answer="cannot",
        limits=[_limit(Shortfall(reason, remedy), [holds.rank for holds in ranks])],
    )


def _notes(
    capture: Capture, diagnosis: Diagnosis | None, ranks: Sequence[RankHolds], reason: str | None
) -> list[Note]:
    """What concerns the capture as a whole."""
    notes = []
    tool = ranks[0].tool
    rule = None if diagnosis is None else diagnosis.steps
    if rule is None or rule.rule == "whole" or rule.confidence == "low":
        remedy = remedies.step_markers(tool)
        guessed = rule is not None and rule.rule != "whole"
        text = "the steps are guessed from the rhythm of the device work" if guessed else "no step was found"
        notes.append(
            Note(
                code="steps-guessed" if guessed else "no-steps",
                text=text + (f": {reason}" if reason else ""),
                close_gap=remedy.how,
                flags=list(remedy.flags),
            )
        )
    for code, sentence in how_ranks_ended(capture):
        close_gap = "see why, and capture again" if code == FAILED_COMMAND else "capture again"
        notes.append(Note(code=code, text=sentence.rstrip("."), close_gap=close_gap, flags=[]))
    no_device = _no_device(capture)
    if no_device:
        notes.append(
            Note(
                code="no-device",
                text=f"no rank has device work, and the run's manifest says why: {no_device}",
                close_gap="capture where the GPU is; no option helps",
                flags=[],
            )
        )
    if capture.missing_ranks:
        notes.append(
            Note(
                code="missing-ranks",
                text=f"{len(capture.missing_ranks)} of {len(capture.ranks) + len(capture.missing_ranks)} ranks "
                "of the run are not here",
                close_gap="give the files of all ranks in one call",
                flags=[],
            )
        )
    return notes


def _failures(
    hypotheses: Iterable[Answer], files: Iterable[FileCheck], notes: Iterable[Note]
) -> list[Failure]:
    """What ``--strict`` fails on: what another capture of this kind would have, and damage."""
    found = [
        Failure(
            what="hypothesis",
            subject=row.id,
            why="; ".join(limit.reason for limit in row.limits if limit.closable),
        )
        for row in hypotheses
        if any(limit.closable for limit in row.limits)
    ]
    for file in files:
        if file.partial:
            found.append(Failure(what="damaged-file", subject=file.path, why="it is cut off or damaged"))
        found += [
            Failure(what="lost-records", subject=file.path, why=note.text)
            for note in file.notes
            if note.code == "lost-records"
        ]
    found += [
        Failure(what=note.code, subject="capture", why=note.text) for note in notes if note.code in _GAPS
    ]
    return found


def _advice(
    capture: Capture, hypotheses: Iterable[Answer], notes: Iterable[Note], files: Iterable[FileCheck]
) -> list[CaptureAdvice]:
    """One capture per profiler that has something to add."""
    limits = [limit for row in hypotheses for limit in row.limits if limit.closable]
    kinds: dict[str, list[tuple[int, Tool]]] = {}
    for trace, rank in zip(capture.traces, capture.ranks, strict=True):
        kinds.setdefault(trace.source.kind, []).append((rank, Tool.of(trace.source)))
    wanted = {flag for note in notes for flag in note.flags}
    result = []
    for kind, found in sorted(kinds.items()):
        tool = min((tool for _, tool in found), key=lambda each: each.version or (0, 0))
        ranks = {rank for rank, _ in found}
        paths = sum(file.kind == kind for file in files)
        mine = {flag for limit in limits if ranks & set(limit.ranks) for flag in limit.flags}
        mine |= {flag for file in files if file.kind == kind for note in file.notes for flag in note.flags}
        flags = frozenset(flag for flag in mine | wanted if flag.startswith("--") == (kind == remedies.NSYS))
        if not flags and not any(ranks & set(limit.ranks) for limit in limits):
            continue
        result.append(
            CaptureAdvice(
                tool=tool.label,
                kind=kind,
                flags=sorted(flags),
                lines=remedies.command(tool, flags, per_rank=paths > 1 or bool(capture.missing_ranks)),
                collect=remedies.collect(tool, flags),
                costs=[f"`{flag}` {remedies.COST[flag]}" for flag in sorted(flags) if flag in remedies.COST],
            )
        )
    return result
