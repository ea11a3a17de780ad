"""The options that commands share, and how their values are read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from analyzer.errors import UsageError

STEP_CHOICES = ("median", "slowest", "p95")
MAX_RANKS = 1_000_000
TOKEN_CLOCKS = ("device", "server", "client")
STORE_VARIABLE = "TRACEBOUND_STORE"
"""Where ``--store`` may stand instead: a password on a command line is seen by all users of the machine."""


class Format(StrEnum):
    """What a command writes."""

    MD = "md"
    JSON = "json"


class Boundary(StrEnum):
    """Which clock a step's end is read from."""

    DEVICE = "device"
    HOST = "host"
    CLIENT = "client"


class TraceBoundary(StrEnum):
    """The boundaries that traces alone tell: the commands without a token log have no other."""

    DEVICE = "device"
    HOST = "host"


Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        help="Nsight Systems exports (.sqlite, .nsys-rep), torch.profiler traces (.json, .json.gz),"
        " directories or globs; all ranks of one run.",
        show_default=False,
    ),
]
Steps = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Names of the ranges that are steps; else they are found.")
]
StepIndex = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="Explain one step only: its number, or median, slowest, p95.",
        show_default=False,
    ),
]
BoundaryOption = Annotated[
    Boundary,
    typer.Option(
        help="Where a step ends: device completion, the host's own range, or the client's receipt (needs a token log)."
    ),
]
TraceBoundaryOption = Annotated[
    TraceBoundary,
    typer.Option("--boundary", help="Where a step ends: device completion, or the host's own range."),
]
TokenLogs = Annotated[
    list[Path] | None,
    typer.Option(
        "--token-log",
        metavar="FILE",
        help="When server and client had each token: CSV, JSON lines, Parquet or a client's log; may be repeated.",
        show_default=False,
    ),
]
TokenClock = Annotated[
    list[str] | None,
    typer.Option(
        "--token-clock",
        metavar="WHO=CLOCK,...",
        help="Names of the token log's clocks, such as server=trace,client=hostB; trace: that of the capture; may be"
        " repeated.",
        show_default=False,
    ),
]
RankRegex = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Rank from the file name, with a group 'rank': '(?P<rank>\\d+)'."),
]
ManifestOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The run's manifest.json; else one beside the files is used.", show_default=False
    ),
]
Ranks = Annotated[str | None, typer.Option(metavar="LIST", help="Only these ranks, such as 0,2-3.")]
DeviceOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Only this device, as the capture numbers it.")
]
Dispatch = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Names of ranges whose CPU time exists to submit device work."),
]
OutputRanges = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Names of ranges that are sampling, detokenization or output."),
]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Ranks to work on at the same time.")]
Threshold = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Set one threshold; may be repeated.", show_default=False),
]
RulesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        help="Rules for kernel classes, collectives and thresholds, before the built-in ones; may be repeated.",
        show_default=False,
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Byte ledger of these steps (TOML): floors, bandwidth-bound, compute-bound.",
        show_default=False,
    ),
]
CountersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--counters",
        metavar="FILE",
        help="CSV of Nsight Compute with DRAM bytes of these kernels, RANK=FILE for one rank's; may be repeated.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Where the report goes. Default: the current directory."
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="json: JSON alone on stdout (files only with --output).")
]
InspectFormat = Annotated[Format, typer.Option("--format", help="json: JSON alone on stdout.")]
Figures = Annotated[
    bool, typer.Option("--figures/--no-figures", help="Draw the figures (SVG and PNG) beside the report.")
]
SweepOption = Annotated[
    Path | None,
    typer.Option(
        "--sweep",
        metavar="FILE",
        help="A sweep.json of tracebound sweep: answers kv-context, where this run is of it or pinned alike.",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse inputs that are cut off or damaged (exit 1).")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLE,
        help="Keep the result in this store, a SQLite file or a database URL, for tracebound history.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress, no summary.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Every warning.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def pattern(option: str, value: str | None) -> str | None:
    """``value`` if it is a regular expression."""
    if value is None:
        return None
    try:
        re.compile(value)
    except re.error as error:
        raise UsageError(
            option,
            "",
            f"{value!r} is no regular expression: {error}",
            "escape special characters with a backslash, or quote the pattern for the shell",
        ) from None
    return value


def rank_pattern(value: str | None) -> str | None:
    """A regular expression with a group that is the rank."""
    if pattern("--rank-regex", value) is not None and "rank" not in re.compile(value or "").groupindex:
        raise UsageError(
            "--rank-regex", "", f"{value!r} has no group named 'rank'", "write it as 'rank(?P<rank>\\d+)'"
        )
    return value


def rank_list(value: str | None) -> list[int] | None:
    """``0,2-3`` as [0, 2, 3]."""
    if value is None:
        return None
    ranks: set[int] = set()
    for part in value.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if last < first or last > MAX_RANKS:
            raise UsageError("--ranks", "", f"{value!r} is no list of ranks", "write it as 0,2-3")
        ranks.update(range(first, last + 1))
    return sorted(ranks)


def step_index(value: str | None) -> str | None:
    """A step's number, or one of the names."""
    if value is None or value in STEP_CHOICES or re.fullmatch(r"\d{1,18}", value, re.ASCII):
        return value
    raise UsageError(
        "--step-index", "", f"{value!r} names no step", f"give a number or one of {', '.join(STEP_CHOICES)}"
    )


def thresholds(values: Sequence[str] | None) -> dict[str, float]:
    """``["supported=0.2"]`` as a mapping."""
    result: dict[str, float] = {}
    for value in values or ():
        name, equals, number = value.partition("=")
        try:
            parsed = float(number)
        except ValueError:
            parsed = math.nan
        if not (name.strip() and equals and math.isfinite(parsed)):
            raise UsageError(
                "--threshold", "", f"{value!r} is not NAME=VALUE", "write it as --threshold supported=0.2"
            )
        result[name.strip()] = parsed
    return result


def token_clocks(values: list[str] | None) -> dict[str, str]:
    """``server=trace,client=hostB``, in one value or several, as a mapping. Raises UsageError."""
    result: dict[str, str] = {}
    for part in (part for value in values or () for part in value.split(",")):
        who, equals, clock = (piece.strip() for piece in part.partition("="))
        if who not in TOKEN_CLOCKS or not equals or not clock:
            raise UsageError(
                "--token-clock",
                "",
                f"{part!r} is not WHO=CLOCK with WHO one of {', '.join(TOKEN_CLOCKS)}",
                "write it as --token-clock server=trace,client=hostB",
            )
        if result.setdefault(who, clock) != clock:
            raise UsageError(
                "--token-clock",
                "",
                f"names the clock of the {who} twice: {result[who]} and {clock}",
                "name each once; logs of clients with clocks of their own name them in their columns",
            )
    return result
