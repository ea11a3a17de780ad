"""From the traces of many files to one ``Capture``: which rank is which, and which are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analyzer.errors import TraceError, UsageError
from analyzer.model import Capture, QualityEntry, Trace
from analyzer.readers.registry import natural_key
from analyzer.readers.run import Run

# rank0, rank_0, rank-34, [rank]: the word must begin a piece of the name. TP-0 is what SGLang and vLLM write.
_NAME_PATTERNS = (
    re.compile(r"(?:^|[^a-z])rank[-_ ]?(\d+)(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z0-9])tp[-_ ]?(\d+)(?!\d)", re.IGNORECASE),
)

_MAX_WORLD = 1 << 20  # a larger world size is damage, and its missing ranks no help

_BY_OPTION = "--rank-regex on the file names"
_BY_RECORD = "the rank that each file records"
_BY_RUN = "the run's manifest"
_BY_NAME = "the file names"
_BY_ORDER = "the order of files, processes and devices, because nothing tells the ranks"
_MANY_DEVICES = "one process drives several devices, so its rank does not tell them apart"


@dataclass(frozen=True)
class _Claim:
    """What one trace is by its own account: a rank, and what says so; ``rank`` None: nothing does."""

    trace: Trace
    rank: int | None
    basis: str


def assemble(
    traces_per_file: Sequence[list[Trace]], rank_regex: str | None = None, run: Run | None = None
) -> Capture:
    """Number the traces and order them by rank.

    The rank is what ``rank_regex`` finds in the file's name (or in the nearest folder name that matches),
    else what the run's manifest says, else what the file records, else what its name says (``rank0``, ``rank-34``,
    ``TP-0``), else the order of files, processes and devices; ``Capture.rank_basis`` says which. Raises
    ``TraceError`` for two files of one rank, ``UsageError`` for a pattern that cannot be used.
    """
    claims = [claim for traces in _in_order(traces_per_file) for claim in _claims(traces, rank_regex, run)]
    _refuse_twice(claims)
    taken = {claim.rank for claim in claims if claim.rank is not None}
    free = iter(number for number in range(len(taken) + len(claims)) if number not in taken)
    numbered = [
        (claim.trace, next(free) if claim.rank is None else claim.rank, claim.rank is None)
        for claim in claims
    ]
    numbered.sort(key=lambda item: item[1])
    by_order = sum(guessed for _, _, guessed in numbered)
    ranks = tuple(rank for _, rank, _ in numbered)
    capture = Capture(
        traces=tuple(trace for trace, _, _ in numbered),
        ranks=ranks,
        quality=_quality(by_order, len(numbered)),
        missing_ranks=() if by_order else _missing(claims, ranks, run),
        rank_basis="; ".join(dict.fromkeys(claim.basis for claim in claims)),
    )
    if run is None:
        return capture
    records = tuple(run.record_of(trace.source.path) for trace in capture.traces)
    return replace(capture, run=run.manifest, run_path=run.path, records=records)


def _in_order(traces_per_file: Sequence[list[Trace]]) -> list[list[Trace]]:
    """Files by the rank they record where all do, else by name, so that the order given does not matter."""
    files = [traces for traces in traces_per_file if traces]

    def key(traces: list[Trace]) -> tuple[int, object]:
        rank = traces[0].rank
        return (-1 if rank is None else rank, natural_key(traces[0].source.path))

    return sorted(files, key=key)


def _claims(traces: list[Trace], rank_regex: str | None, run: Run | None) -> list[_Claim]:
    """The claims of the traces of one file."""
    path = traces[0].source.path
    if rank_regex is not None:
        return [_Claim(_only(traces, path), _by_regex(rank_regex, path), _BY_OPTION)]
    record = run.record_of(path) if run is not None and len(traces) == 1 else None
    if record is not None:
        return [_Claim(traces[0], record.rank, _BY_RUN)]
    recorded = [trace.rank for trace in traces]
    known = [rank for rank in recorded if rank is not None]
    if len(traces) > 1 and known and len(set(known)) < len(known):
        return [_Claim(trace, None, f"{_BY_ORDER} ({_MANY_DEVICES})") for trace in traces]
    named = rank_in_name(path) if len(traces) == 1 else None
    claims: list[_Claim] = []
    for trace in traces:
        if trace.rank is not None:
            claims.append(_Claim(trace, trace.rank, _BY_RECORD))
        elif named is not None:
            claims.append(_Claim(trace, named, _BY_NAME))
        else:
            claims.append(_Claim(trace, None, _BY_ORDER))
    return claims


def rank_in_name(path: str) -> int | None:
    """The rank in a file's name, else in its folder's name; None where neither has one or has several."""
    for part in reversed(Path(path).parts[-2:]):
        for pattern in _NAME_PATTERNS:
            found = {int(match.group(1)) for match in pattern.finditer(part)}
            if len(found) == 1:
                return found.pop()
    return None


def _only(traces: list[Trace], path: str) -> Trace:
    if len(traces) > 1:
        why = f"--rank-regex gives one rank, but this file holds {len(traces)} (process, device) pairs"
        raise UsageError(path, "", why, "leave the option out for files that hold several ranks")
    return traces[0]


def _by_regex(rank_regex: str, path: str) -> int:
    try:
        pattern = re.compile(rank_regex)
    except re.error as error:
        raise UsageError(
            "--rank-regex", rank_regex, f"is no regular expression: {error}", "quote it"
        ) from error
    for part in reversed(Path(path).parts):
        match = pattern.search(part)
        if match is not None:
            return _number(match, rank_regex, path)
    raise UsageError(path, "", f"--rank-regex {rank_regex} does not match", "check the pattern")


def _number(match: re.Match[str], rank_regex: str, path: str) -> int:
    named = "rank" in match.re.groupindex
    text = match.group("rank") if named else match.group(1 if match.re.groups else 0)
    if text is None or not text.isdecimal():
        why = f"--rank-regex {rank_regex} finds {text!r}, which is no number"
        raise UsageError(path, "", why, r"use a group of digits, such as 'rank(?P<rank>\d+)'")
    return int(text)


def _refuse_twice(claims: list[_Claim]) -> None:
    seen: dict[int, _Claim] = {}
    for claim in claims:
        if claim.rank is None:
            continue
        first = seen.setdefault(claim.rank, claim)
        if first is not claim:
            raise TraceError(
                claim.trace.source.path,
                "",
                f"claims rank {claim.rank} (by {claim.basis}), and so does {first.trace.source.path}",
                "give one file per rank, or tell them apart with --rank-regex 'PATTERN'",
            )


def _missing(claims: list[_Claim], ranks: tuple[int, ...], run: Run | None) -> tuple[int, ...]:
    """Ranks that the manifest, the world's size or a process group tells of, and that no file has."""
    expected: set[int] = set()
    if run is not None and any(claim.basis == _BY_RUN for claim in claims):
        expected |= {*run.manifest.missing_ranks, *(record.rank for record in run.manifest.ranks)}
    for claim in claims:
        expected |= set(range(min(claim.trace.world_size or 0, _MAX_WORLD)))
        for collective in claim.trace.collectives:
            expected |= set(collective.group_ranks or ())
    return tuple(sorted(expected - set(ranks)))


def _quality(by_order: int, total: int) -> tuple[QualityEntry, ...]:
    if by_order == 0 or total == 1:
        return ()
    effect = "rank numbers may not be those of the run, and missing ranks cannot be told"
    return (QualityEntry("rank-by-order", by_order, total, effect),)
